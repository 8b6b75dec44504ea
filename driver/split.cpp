// Making communicators: by colour, of a list of ranks, among some ranks only.
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/crc32c.hpp"
#include "core/reserved_tags.hpp"
#include "driver/objects.hpp"

namespace unisono::driver {

namespace {

/// What every member tells every other in the first round.
struct Member {
  std::int64_t colour;
  std::int64_t key;
  std::uint64_t group_size;
  std::uint64_t group;       ///< hint; 0: none
  std::uint64_t proposal;    ///< communicator number from which on all are free here
  std::uint64_t alike;       ///< of what all who take part must have given alike
  std::uint64_t timeout_us;  ///< hint for the default deadline; 0: none
  std::uint64_t endpoint;
  std::byte capabilities[kCapabilitiesBytes];
};
static_assert(sizeof(Member) == 64 + kCapabilitiesBytes);

/// And in the second one: whether it has created its communicator.
enum class Verdict : std::uint32_t { kRetry = 0, kCreated = 1, kFailed = 2 };

/// Those who make communicators together: all of a parent, or some of its ranks.
class Circle {
 public:
  virtual ~Circle() = default;
  Circle() = default;
  Circle(const Circle&) = delete;
  Circle& operator=(const Circle&) = delete;
  /// Tells all, and hears from all. Throws Error.
  template <class Word>
  std::vector<Word> exchange(Word mine) {
    std::vector<Word> all(members());
    exchange(std::as_writable_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  virtual std::uint32_t members() const = 0;
  /// This rank's position among them.
  virtual std::uint32_t position() const = 0;
  /// The rank in the parent of a position.
  virtual std::uint32_t rank(std::uint32_t position) const = 0;

 protected:
  /// `all` has room for the words of all, by position.
  virtual void exchange(std::span<std::byte> mine, std::span<std::byte> all) = 0;
};

class AllOf final : public Circle {
 public:
  explicit AllOf(const Communicator& parent) : parent_(parent) {}
  std::uint32_t members() const override { return parent_.size; }
  std::uint32_t position() const override { return parent_.rank; }
  std::uint32_t rank(std::uint32_t position) const override { return position; }

 private:
  void exchange(std::span<std::byte> mine, std::span<std::byte> all) override {
    CallRequest request;
    request.communicator = parent_.number;
    request.call.collective = Collective::kAllgather;
    request.call.dtype = Datatype::kByte;
    request.call.count = mine.size();
    request.src = {mine.data(), mine.size()};
    request.dst = {all.data(), all.size()};
    run_to_end(parent_, request);
  }

  const Communicator& parent_;
};

/// Messages among some ranks only, by way of the first of them, with tags that users do not have.
class SomeOf final : public Circle {
 public:
  SomeOf(const Communicator& parent, std::span<const std::uint32_t> ranks, std::uint32_t tag)
      : parent_(parent),
        ranks_(ranks),
        position_(static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), parent.rank) - ranks.begin())),
        tag_(kFirstGroupTag + tag) {}
  std::uint32_t members() const override { return static_cast<std::uint32_t>(ranks_.size()); }
  std::uint32_t position() const override { return position_; }
  std::uint32_t rank(std::uint32_t position) const override { return ranks_[position]; }

 private:
  void exchange(std::span<std::byte> mine, std::span<std::byte> all) override {
    const auto place_of = [&](std::size_t position) { return all.subspan(position * mine.size(), mine.size()); };
    if (position_ != 0) {
      message(Collective::kSend, ranks_[0], mine);
      message(Collective::kRecv, ranks_[0], all);
      return;
    }
    std::copy(mine.begin(), mine.end(), place_of(0).begin());
    for (std::size_t i = 1; i < ranks_.size(); ++i) message(Collective::kRecv, ranks_[i], place_of(i));
    for (std::size_t i = 1; i < ranks_.size(); ++i) message(Collective::kSend, ranks_[i], all);
  }
  void message(Collective collective, std::uint32_t peer, std::span<std::byte> words) {
    const Binding memory{words.data(), words.size()};
    CallRequest request;
    request.communicator = parent_.number;
    request.call.collective = collective;
    request.call.dtype = Datatype::kByte;
    request.call.root = peer;
    request.call.count = memory.bytes;
    request.tag = tag_;
    request.reserved_tag = true;
    (collective == Collective::kSend ? request.src : request.dst) = memory;
    run_to_end(parent_, request);
  }

  const Communicator& parent_;
  std::span<const std::uint32_t> ranks_;
  std::uint32_t position_;
  std::uint32_t tag_;
};

/// A function of the program's own.
class ByProgram final : public Circle {
 public:
  ByProgram(const Communicator& parent, std::span<const std::uint32_t> ranks, const CommunicatorHints& hints)
      : parent_(parent), ranks_(ranks), hints_(hints) {}
  std::uint32_t members() const override { return static_cast<std::uint32_t>(ranks_.size()); }
  std::uint32_t position() const override {
    return static_cast<std::uint32_t>(std::find(ranks_.begin(), ranks_.end(), parent_.rank) - ranks_.begin());
  }
  std::uint32_t rank(std::uint32_t position) const override { return ranks_[position]; }

 private:
  void exchange(std::span<std::byte> mine, std::span<std::byte> all) override {
    std::chrono::microseconds patience{parent_.timeout_us.load(std::memory_order_relaxed)};
    if (patience.count() == 0) patience = parent_.context->endpoint()->engine->settings().timeout;
    const double seconds = std::chrono::duration<double>(patience).count();
    if (hints_.all_gather(mine.data(), mine.size(), all.data(), seconds)) return;
    throw Error(ErrorCode::kBootstrap,
                "the program's all_gather failed on rank " + std::to_string(parent_.rank) + " of the parent");
  }

  const Communicator& parent_;
  std::span<const std::uint32_t> ranks_;
  const CommunicatorHints& hints_;
};

/// What this endpoint is capable of for a communicator with these hints.
std::vector<std::byte> capabilities_for(const Endpoint& endpoint, const CommunicatorHints& hints) {
  Agreement capabilities = endpoint.engine->capabilities();
  if (hints.eager_limit != 0) capabilities.eager_limit = std::min(capabilities.eager_limit, hints.eager_limit);
  if (!hints.lanes || hints.streams) {
    Capability capability = decode_capability({capabilities.capability});
    capability.lanes = false;
    capability.streams = capability.streams || hints.streams;
    capabilities.capability = encode(capability)[0];
  }
  return pack_capabilities(capabilities);
}

std::uint64_t digest_of(std::span<const std::uint32_t> ranks) {
  return std::uint64_t{crc32c({reinterpret_cast<const std::uint8_t*>(ranks.data()), ranks.size_bytes()})} << 32U |
         ranks.size();
}

/// What is wrong with the groups that the members of a new communicator want, given their positions; empty if nothing.
std::string contradiction(const std::vector<Member>& members, const std::vector<std::uint32_t>& order,
                          const Circle& circle) {
  const auto rank = [&](std::uint32_t position) { return std::to_string(circle.rank(position)); };
  for (const std::uint32_t position : order) {
    if ((members[position].group == 0) != (members[order[0]].group == 0)) {
      const bool first = members[order[0]].group != 0;
      return "rank " + rank(first ? order[0] : position) + " gives a group, and rank " +
             rank(first ? position : order[0]) + " does not; all ranks of the new communicator give one, or none does";
    }
    if (members[position].group != 0 && members[position].group_size != 0) {
      return "rank " + rank(position) + " gives a group and a group_size; give one of them";
    }
  }
  return {};
}

/// The groups of a new communicator, from what its members have told; their positions in order of rank.
Grouping grouping_of(const Poe& poe, const std::vector<Member>& members, const std::vector<std::uint32_t>& order,
                     const CommunicatorHints& hints) {
  if (hints.group_size != 0) return {hints.group_size, nullptr};
  std::vector<std::uint32_t> endpoints;
  std::vector<std::uint64_t> groups;
  for (const std::uint32_t position : order) {
    endpoints.push_back(static_cast<std::uint32_t>(members[position].endpoint));
    groups.push_back(members[position].group);
  }
  return hints.group != 0 ? find_groups(groups) : hosts_of(poe, endpoints);
}

/// `colour` as for `split`, `alike` what all must have given alike.
std::shared_ptr<Communicator> make_together(const char* operation, const std::shared_ptr<Communicator>& parent,
                                            Circle& circle, std::int64_t colour, std::int64_t key, std::uint64_t alike,
                                            const CommunicatorHints& hints) {
  const std::shared_ptr<Endpoint> endpoint = parent->context->endpoint();
  Member mine{};
  mine.colour = colour;
  mine.key = key;
  mine.group_size = hints.group_size;
  mine.group = hints.group;
  mine.alike = alike;
  mine.timeout_us = static_cast<std::uint64_t>(hints.timeout.count());
  mine.endpoint = endpoint->poe->self();
  const std::vector<std::byte> capabilities = capabilities_for(*endpoint, hints);
  if (capabilities.size() != sizeof mine.capabilities) throw Error(ErrorCode::kInternal, "size of an offer");
  std::memcpy(mine.capabilities, capabilities.data(), capabilities.size());

  // Two threads that make communicators of two parents at the same time may agree on the same number. The second round
  // tells all members whether everyone could take it; if not, all try again above. It also keeps anybody
  // from using the new communicator before everybody has it.
  constexpr int kAttempts = 64;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint32_t proposed = parent->context->propose_number(parent->size);
    const NumberProposal stands(parent->context, proposed);
    mine.proposal = proposed;
    std::vector<Member> members = as_part_of(operation, [&] { return circle.exchange(mine); });

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
    for (std::uint32_t position = 0; position < members.size(); ++position) {
      if (members[position].alike == alike) continue;
      failure_code = ErrorCode::kMismatchedCall;
      failure = std::string(operation) + ": rank " + std::to_string(circle.rank(position)) +
                " has given another list of ranks than this rank; all give the same, in the same order";
    }
    if (colour >= 0) {
      made = std::make_shared<Communicator>();
      made->context = parent->context;
      made->number = static_cast<std::uint32_t>(
          base +
          static_cast<std::uint64_t>(std::lower_bound(colours.begin(), colours.end(), colour) - colours.begin()));
      std::vector<std::uint32_t> order;
      for (std::uint32_t position = 0; position < members.size(); ++position) {
        if (members[position].colour == colour) order.push_back(position);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return members[a].key < members[b].key; });
      std::vector<std::vector<std::byte>> all_capabilities;
      std::uint64_t timeout_us = 0;
      for (const std::uint32_t position : order) {
        const Member& member = members[position];
        if (position == circle.position()) made->rank = static_cast<std::uint32_t>(made->endpoints.size());
        made->endpoints.push_back(static_cast<std::uint32_t>(member.endpoint));
        all_capabilities.emplace_back(std::begin(member.capabilities), std::end(member.capabilities));
        if (member.timeout_us != 0 && (timeout_us == 0 || member.timeout_us < timeout_us)) {
          timeout_us = member.timeout_us;
        }
        if (member.group_size != hints.group_size) {
          failure_code = ErrorCode::kMismatchedCall;
          failure = "group_size is " + std::to_string(hints.group_size) + " here and " +
                    std::to_string(member.group_size) + " on rank " + std::to_string(circle.rank(position)) +
                    "; it must be equal on all ranks of " + (alike == 0 ? "a colour" : "the new communicator");
        }
      }
      if (failure.empty()) {
        failure = contradiction(members, order, circle);
        if (!failure.empty()) failure_code = ErrorCode::kMismatchedCall;
      }
      made->grouping = grouping_of(*endpoint->poe, members, order, hints);
      made->size = static_cast<std::uint32_t>(order.size());
      made->timeout_us.store(timeout_us, std::memory_order_relaxed);
      if (failure.empty()) {
        claimed = parent->context->claim_number(made->number);
        if (claimed) {
          try {
            endpoint->engine->create_communicator(made->number, 0, made->endpoints, agree_on(all_capabilities),
                                                  made->grouping);
            if (timeout_us != 0) {
              endpoint->engine->set_timeout(made->number, std::chrono::microseconds(timeout_us));
            }
            made->fast_path = endpoint->engine->fast_path(made->number);
            if (!hints.name.empty()) set_name(*made, hints.name);
          } catch (const Error& error) {
            parent->context->release_number(made->number);
            failure_code = error.code();
            failure = error.what();
          }
        }
      }
    }
    const bool created = claimed && failure.empty();
    const Verdict own = created ? Verdict::kCreated : (failure.empty() ? Verdict::kRetry : Verdict::kFailed);
    members = std::vector<Member>();  // much memory, where thousands wait at the same time
    // Others may have heard of all, and use it already: they shall not wait for this rank.
    const auto give_up = [&](const Error& error) {
      if (!made || !created || !parent->context->release_number(made->number)) return;
      endpoint->engine->revoke(made->number, error.what());
      endpoint->engine->free_communicator(made->number);
    };
    std::vector<Verdict> verdicts;
    try {
      verdicts = as_part_of(operation, [&] { return circle.exchange(own); });
    } catch (const Error& error) {
      give_up(error);
      throw;
    }
    std::optional<std::uint32_t> failed_rank;
    bool all = true;
    for (std::uint32_t position = 0; position < verdicts.size(); ++position) {
      all = all && verdicts[position] == Verdict::kCreated;
      if (verdicts[position] == Verdict::kFailed && !failed_rank) failed_rank = circle.rank(position);
    }
    if (all) {
      if (made) {
        try {
          made->context->arrange_carriers(made->number, made->endpoints);
        } catch (const Error& error) {
          give_up(error);
          throw;
        }
        log_made(*made, operation);
      }
      return made;
    }
    if (made && created) {
      endpoint->engine->free_communicator(made->number);
      parent->context->release_number(made->number);
    }
    if (!failure.empty()) throw Error(failure_code, failure);
    if (failed_rank) {
      throw Error(ErrorCode::kUnsupported, std::string(operation) + ": rank " + std::to_string(*failed_rank) +
                                               " of the parent could not create its communicator; see its own error");
    }
  }
  throw Error(ErrorCode::kCapacity, std::string(operation) + ": no communicator number could be agreed on in " +
                                        std::to_string(kAttempts) +
                                        " attempts; do not make many communicators from many threads at once");
}

/// Checks a list of ranks. Throws Error.
void check_list(const char* operation, const Communicator& parent, std::span<const std::uint32_t> ranks) {
  if (ranks.empty()) {
    throw Error(ErrorCode::kInvalidArgument, std::string(operation) + ": the list of ranks is empty");
  }
  std::vector<bool> seen(parent.size, false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] >= parent.size || seen[ranks[i]]) {
      throw Error(ErrorCode::kInvalidArgument, std::string(operation) + ": entry " + std::to_string(i) +
                                                   " of the list of ranks is " + std::to_string(ranks[i]) +
                                                   "; allowed are 0 to " + std::to_string(parent.size - 1) +
                                                   ", each once");
    }
    seen[ranks[i]] = true;
  }
}

}  // namespace

Grouping hosts_of(const Poe& poe, std::span<const std::uint32_t> endpoints) {
  std::vector<std::uint64_t> hosts;
  hosts.reserve(endpoints.size());
  for (const std::uint32_t endpoint : endpoints) hosts.push_back(poe.host_of(endpoint));
  return find_groups(hosts);
}

std::shared_ptr<Communicator> split(const std::shared_ptr<Communicator>& parent, std::int64_t colour, std::int64_t key,
                                    const CommunicatorHints& hints) {
  AllOf circle(*parent);
  return make_together("split", parent, circle, colour, key, 0, hints);
}

std::shared_ptr<Communicator> duplicate(const std::shared_ptr<Communicator>& parent, CommunicatorHints hints) {
  AllOf circle(*parent);
  if (hints.group_size == 0 && hints.group == 0) {
    hints.group_size = parent->grouping.size;
    if (parent->grouping.list != nullptr) hints.group = 1 + group_of(parent->grouping, parent->rank);
  }
  if (hints.timeout.count() == 0) {
    hints.timeout = std::chrono::microseconds(parent->timeout_us.load(std::memory_order_relaxed));
  }
  return make_together("dup", parent, circle, 0, parent->rank, 0, hints);
}

std::shared_ptr<Communicator> subset(const std::shared_ptr<Communicator>& parent, std::span<const std::uint32_t> ranks,
                                     const CommunicatorHints& hints) {
  check_list("subset", *parent, ranks);
  AllOf circle(*parent);
  const auto found = std::find(ranks.begin(), ranks.end(), parent->rank);
  return make_together("subset", parent, circle, found == ranks.end() ? -1 : 0, found - ranks.begin(), digest_of(ranks),
                       hints);
}

std::shared_ptr<Communicator> create_group(const std::shared_ptr<Communicator>& parent,
                                           std::span<const std::uint32_t> ranks, std::uint32_t tag,
                                           const CommunicatorHints& hints) {
  check_list("create_group", *parent, ranks);
  const auto found = std::find(ranks.begin(), ranks.end(), parent->rank);
  if (found == ranks.end()) {
    throw Error(ErrorCode::kInvalidArgument, "create_group: this rank (" + std::to_string(parent->rank) +
                                                 ") is not in the list of ranks; only those that are call it");
  }
  const auto together = [&](Circle&& circle) {
    return make_together("create_group", parent, circle, 0, found - ranks.begin(), digest_of(ranks), hints);
  };
  return hints.all_gather ? together(ByProgram(*parent, ranks, hints)) : together(SomeOf(*parent, ranks, tag));
}

}  // namespace unisono::driver
