#include <algorithm>
#include <cstring>

#include "driver/objects.hpp"

namespace unisono::driver {

namespace {

/// What every member tells every other.
struct Member {
  std::int64_t colour;
  std::int64_t key;
  std::uint64_t group_size;
  std::uint64_t proposal;  ///< communicator number from which on all are free here
  std::uint32_t endpoint;
  std::uint32_t created;  ///< second round: whether this member has created its communicator
  std::byte offer[kOfferBytes];
};
static_assert(sizeof(Member) == 40 + kOfferBytes);

std::vector<Member> exchange(const Communicator& parent, const Member& mine) {
  std::vector<Member> members(parent.size);
  Member own = mine;
  CallRequest request;
  request.communicator = parent.number;
  request.call.collective = Collective::kAllgather;
  request.call.dtype = Datatype::kByte;
  request.call.count = sizeof(Member);
  request.src = {reinterpret_cast<std::byte*>(&own), sizeof own};
  request.dst = {reinterpret_cast<std::byte*>(members.data()), members.size() * sizeof(Member)};
  run_to_end(parent, request);
  return members;
}

}  // namespace

std::shared_ptr<Communicator> split(const std::shared_ptr<Communicator>& parent, std::int64_t colour, std::int64_t key,
                                    std::uint32_t group_size) {
  const std::shared_ptr<Endpoint> endpoint = parent->context->endpoint();
  Member mine{};
  mine.colour = colour;
  mine.key = key;
  mine.group_size = group_size;
  mine.endpoint = endpoint->poe->self();
  const std::vector<std::byte> offer = pack_offer(endpoint->engine->offer());
  if (offer.size() != sizeof mine.offer) throw Error(ErrorCode::kInternal, "size of an offer");
  std::memcpy(mine.offer, offer.data(), offer.size());

  // Two threads that split two parents at the same time may agree on the same number. The second round
  // tells all members whether everyone could take it; if not, all try again above. It also keeps anybody
  // from using the new communicator before everybody has it.
  constexpr int kAttempts = 64;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    mine.proposal = parent->context->propose_number(parent->size);
    const std::vector<Member> members = exchange(*parent, mine);

    std::vector<std::int64_t> colours;
    std::uint64_t base = 0;
    for (const Member& member : members) {
      base = std::max(base, member.proposal);
      if (member.colour >= 0) colours.push_back(member.colour);
    }
    std::sort(colours.begin(), colours.end());
    colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
    if (base + colours.size() >= std::uint64_t{1} << 32U) {
      throw Error(ErrorCode::kCapacity, "2^32 communicators have been made in this job; no number is left");
    }

    std::shared_ptr<Communicator> made;
    std::string failure;
    ErrorCode failure_code = ErrorCode::kInternal;
    bool claimed = true;
    if (colour >= 0) {
      made = std::make_shared<Communicator>();
      made->context = parent->context;
      made->number = static_cast<std::uint32_t>(
          base +
          static_cast<std::uint64_t>(std::lower_bound(colours.begin(), colours.end(), colour) - colours.begin()));
      made->group_size = group_size;
      std::vector<std::uint32_t> order;
      for (std::uint32_t rank = 0; rank < parent->size; ++rank) {
        if (members[rank].colour == colour) order.push_back(rank);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return members[a].key < members[b].key; });
      std::vector<std::vector<std::byte>> offers;
      for (const std::uint32_t rank : order) {
        if (rank == parent->rank) made->rank = static_cast<std::uint32_t>(made->endpoints.size());
        made->endpoints.push_back(members[rank].endpoint);
        offers.emplace_back(std::begin(members[rank].offer), std::end(members[rank].offer));
        if (members[rank].group_size != group_size) {
          failure_code = ErrorCode::kMismatchedCall;
          failure = "group_size is " + std::to_string(group_size) + " here and " +
                    std::to_string(members[rank].group_size) + " on rank " + std::to_string(rank) +
                    "; it must be equal on all ranks of a colour";
        }
      }
      made->size = static_cast<std::uint32_t>(order.size());
      if (failure.empty()) {
        claimed = parent->context->claim_number(made->number);
        if (claimed) {
          try {
            endpoint->engine->create_communicator(made->number, 0, made->endpoints, agree_on(offers), group_size);
            made->express = endpoint->engine->express(made->number);
          } catch (const Error& error) {
            parent->context->release_number(made->number);
            failure_code = error.code();
            failure = error.what();
          }
        }
      }
    }
    const bool created = claimed && failure.empty();
    enum : std::uint32_t { kRetry = 0, kCreated = 1, kFailed = 2 };
    mine.created = created ? kCreated : (failure.empty() ? kRetry : kFailed);
    const std::vector<Member> verdicts = exchange(*parent, mine);
    std::uint32_t failed_rank = parent->size;
    bool all = true;
    for (std::uint32_t rank = 0; rank < parent->size; ++rank) {
      all = all && verdicts[rank].created == kCreated;
      if (verdicts[rank].created == kFailed && failed_rank == parent->size) failed_rank = rank;
    }
    if (all) return made;
    if (made && created) {
      endpoint->engine->free_communicator(made->number);
      parent->context->release_number(made->number);
    }
    if (!failure.empty()) throw Error(failure_code, failure);
    if (failed_rank != parent->size) {
      throw Error(ErrorCode::kUnsupported, "split: rank " + std::to_string(failed_rank) +
                                               " of the parent could not create its communicator; see its own error");
    }
  }
  throw Error(ErrorCode::kCapacity, "split: no communicator number could be agreed on in " + std::to_string(kAttempts) +
                                        " attempts; do not split many communicators from many threads at once");
}

}  // namespace unisono::driver
