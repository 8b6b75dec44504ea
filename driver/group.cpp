#include "driver/group.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "core/signature.hpp"

namespace unisono::driver {

namespace {

/// Packs what the members contribute before the fused call begins, and hands out the results after it.
class Packing final : public CallHooks {
 public:
  explicit Packing(std::uint64_t bytes) : memory_(bytes) {}

  void add(const CallRequest& member, std::uint64_t bytes) {
    const std::byte* const from = member.call.in_place ? member.dst.data : member.src.data;
    pieces_.push_back({from, member.dst.data, bytes, member.hooks});
  }
  Binding binding() { return {memory_.data(), memory_.size()}; }

  void before() override {
    std::byte* to = memory_.data();
    for (const Piece& piece : pieces_) {
      if (piece.hooks) piece.hooks->before();
      std::memcpy(to, piece.from, piece.bytes);
      to += piece.bytes;
    }
  }
  void after(std::uint64_t /*received_bytes*/) override {
    const std::byte* from = memory_.data();
    for (const Piece& piece : pieces_) {
      std::memcpy(piece.to, from, piece.bytes);
      from += piece.bytes;
      if (piece.hooks) piece.hooks->after(0);
    }
  }

 private:
  struct Piece {
    const std::byte* from;
    std::byte* to;
    std::uint64_t bytes;
    std::shared_ptr<CallHooks> hooks;  ///< the member's own
  };
  std::vector<std::byte> memory_;
  std::vector<Piece> pieces_;
};

std::uint64_t bytes_of_call(const Call& call) { return call.count * bytes_of(call.dtype); }

bool may_be_fused(const Call& call) {
  return call.collective == Collective::kAllreduce && call.count != 0 && bytes_of_call(call) <= kFusedBytes;
}

std::shared_ptr<Flight> failure(const Error& error) {
  return std::make_shared<Flight>(CallResult{true, error.code(), error.what(), 0, error.still_written()});
}

}  // namespace

void Group::begin(Communicator& communicator) {
  const std::lock_guard lock(communicator.groups_mutex);
  auto& open = communicator.groups[std::this_thread::get_id()];
  if (open) {
    throw Error(ErrorCode::kInvalidArgument, "a group of this communicator is open on this thread; end it first");
  }
  open = std::make_shared<Group>();
  communicator.open_groups.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<Group> Group::of_this_thread(const Communicator& communicator) {
  if (communicator.open_groups.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(communicator.groups_mutex);
  const auto found = communicator.groups.find(std::this_thread::get_id());
  return found == communicator.groups.end() ? nullptr : found->second;
}

void Group::refuse(const Communicator& communicator, const char* function) {
  if (!of_this_thread(communicator)) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(function) +
                                               " was called while a group of this communicator is open on this "
                                               "thread; it may wait for other ranks, so end the group first "
                                               "(unisono_group_end)");
}

void Group::end(Communicator& communicator) {
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(communicator.groups_mutex);
    const auto found = communicator.groups.find(std::this_thread::get_id());
    if (found == communicator.groups.end()) {
      throw Error(ErrorCode::kInvalidArgument, "no group of this communicator is open on this thread");
    }
    group = std::move(found->second);
    communicator.groups.erase(found);
    communicator.open_groups.fetch_sub(1, std::memory_order_relaxed);
  }
  group->submit();
}

void Group::abandon(Communicator& communicator, const Error& error) {
  std::map<std::thread::id, std::shared_ptr<Group>> groups;
  {
    const std::lock_guard lock(communicator.groups_mutex);
    groups.swap(communicator.groups);
    communicator.open_groups.store(0, std::memory_order_relaxed);
  }
  for (const auto& [thread, group] : groups) {
    std::vector<std::shared_ptr<Request>> requests;
    {
      const std::lock_guard lock(group->mutex_);
      requests.swap(group->requests_);
    }
    for (const auto& request : requests) request->fly(failure(error));
  }
}

void Group::add(std::shared_ptr<Request> request) {
  if (request->call().request.streams()) {
    // Which calls go as one is agreed by what all ranks can see, and a stream is the affair of one.
    throw Error(ErrorCode::kUnsupported,
                "a call with a stream port was started in a group; start it before the group, or after it");
  }
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
}

void Group::remove(const Request& request) {
  const std::lock_guard lock(mutex_);
  requests_.erase(std::remove_if(requests_.begin(), requests_.end(),
                                 [&](const std::shared_ptr<Request>& each) { return each.get() == &request; }),
                  requests_.end());
}

void Group::submit() {
  std::vector<std::shared_ptr<Request>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  std::vector<bool> taken(requests.size(), false);
  for (std::size_t first = 0; first < requests.size(); ++first) {
    if (taken[first]) continue;
    std::vector<std::shared_ptr<Request>> members{requests[first]};
    const CallRequest& own = requests[first]->call().request;
    if (may_be_fused(own.call)) {
      std::uint64_t bytes = bytes_of_call(own.call);
      for (std::size_t other = first + 1; other < requests.size(); ++other) {
        if (taken[other]) continue;  // and has given its arguments away
        const CallRequest& candidate = requests[other]->call().request;
        const bool alike = may_be_fused(candidate.call) && candidate.call.func == own.call.func &&
                           candidate.call.dtype == own.call.dtype && candidate.algorithm == own.algorithm &&
                           factor_bits(candidate.post_scale) == factor_bits(own.post_scale);
        if (!alike) continue;
        if (bytes + bytes_of_call(candidate.call) > kFusedTotalBytes) break;
        bytes += bytes_of_call(candidate.call);
        taken[other] = true;
        members.push_back(requests[other]);
      }
    }
    try {
      if (members.size() > 1) {
        submit_fused(members);
        continue;
      }
    } catch (const Error& error) {
      for (const auto& member : members) member->fly(failure(error));
      continue;
    }
    for (const auto& member : members) {
      try {
        member->submit();
      } catch (const Error& error) {
        member->fly(failure(error));
      }
    }
  }
}

void Group::submit_fused(const std::vector<std::shared_ptr<Request>>& members) {
  const std::shared_ptr<Communicator>& communicator = members.front()->communicator();
  CallRequest fused;
  const CallRequest& first = members.front()->call().request;
  fused.communicator = first.communicator;
  fused.call = first.call;
  fused.call.count = 0;
  fused.call.in_place = true;
  fused.algorithm = first.algorithm;
  fused.post_scale = first.post_scale;
  std::vector<CallId> wait_for;
  std::uint64_t bytes = 0;
  bool default_timeout = false;
  for (const auto& member : members) {
    CheckedCall& call = member->call();
    resolve_before(call);
    wait_for.insert(wait_for.end(), call.wait_for.begin(), call.wait_for.end());
    fused.call.count += call.request.call.count;
    bytes += bytes_of_call(call.request.call);
    default_timeout = default_timeout || call.request.timeout.count() == 0;
    fused.timeout = std::max(fused.timeout, call.request.timeout);
  }
  if (default_timeout) fused.timeout = {};
  const auto packing = std::make_shared<Packing>(bytes);
  for (const auto& member : members) packing->add(member->call().request, bytes_of_call(member->call().request.call));
  fused.dst = packing->binding();
  fused.wait_for = wait_for;
  fused.hooks = packing;
  const CallId id = communicator->context->endpoint()->engine->submit(fused);
  const auto flight = std::make_shared<Flight>(communicator->context, id);
  for (const auto& member : members) member->fly(flight);
  communicator->context->call_started();
}

}  // namespace unisono::driver
