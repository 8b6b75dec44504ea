// The fast path, as far as calls do not block: they wait in the queue of their set of lanes, and are advanced bit by
// bit.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/fast_path.hpp"

namespace unisono::cclo {

std::shared_ptr<const Plan> FastPath::plan_at_hand(const Request& request) {
  if (closed() || !claim()) return nullptr;
  std::shared_ptr<const Plan> plan = plans_->front_to_keep(request.call);
  release();
  const bool fit =
      plan != nullptr && plan->set_mask != 0 && fits(plan->src_bytes, plan->dst_bytes, request.src, request.dst);
  return fit ? plan : nullptr;
}

void FastPath::remember(const std::shared_ptr<const Plan>& plan) {
  if (is_user(plan->call.func) || !claim()) return;
  plans_->remember(plan);
  release();
}

void FastPath::enqueue(LaneCall& call) {
  queued_.fetch_add(1, std::memory_order_relaxed);
  const CallOrder::Place place = order_->enter(call.plan->signature_for(call.launch.count));
  call.sequence = place.sequence;
  call.digest = place.digest;
  call.set = next_set(*call.plan, place.sequence, call.plan->varies);
  if (call.plan->varies) {
    plans_->note<true>(call.sequence, *call.plan, call.launch.count);
  } else {
    plans_->note<false>(call.sequence, *call.plan, 0);
  }
  call.phase = LaneCall::Phase::kWaiting;
  call.own = call.all = {};
  call.permits = false;
  call.next = nullptr;
  Queue& queue = queues_[call.set];
  (queue.first == nullptr ? queue.first : queue.last->next) = &call;
  queue.last = &call;
}

/// Takes a call out of the queue of its set; false if it is not there.
bool FastPath::unlink(LaneCall& call) {
  Queue& queue = queues_[call.set];
  LaneCall* before = nullptr;
  LaneCall* found = queue.first;
  for (; found != nullptr && found != &call; found = found->next) before = found;
  if (found == nullptr) return false;
  (before == nullptr ? queue.first : before->next) = call.next;
  if (queue.last == &call) queue.last = before;
  queued_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

std::string FastPath::dequeue(LaneCall& call) {
  if (call.phase == LaneCall::Phase::kDone || !unlink(call)) return {};
  // One that has ended half-way leaves the lanes in disorder, and peers perhaps at its buffers.
  if (call.phase == LaneCall::Phase::kWaiting) return {};
  return shield(call.launch.dst.data, call.launch.dst.bytes);
}

/// Says where the regions of a call are, and learns it of the peers, as far as that can be done now; notes whether it
/// learned anything. Returns whether all is said and known.
bool FastPath::tell_addresses(LaneCall& call, bool& any) {
  const Plan& plan = *call.plan;
  bool complete = true;
  reachable_[rank_] = {{call.launch.src.data, 0}, {call.launch.dst.data, 0}};
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    if (!call.shown[peer]) call.shown[peer] = show_address(peer, call.own);
    if (!call.seen[peer] && see_address(peer, plan, call.all)) {
      call.seen[peer] = true;
      any = true;
    }
    complete = complete && call.shown[peer] && call.seen[peer];
  }
  large().values.peers = reachable_.data();
  large().values.copies = call.all.ordinary;
  return complete;
}

/// Begins a round of the exchange of addresses.
void FastPath::show(LaneCall& call, const Shown& own) {
  call.shown.assign(size_, false);
  call.seen.assign(size_, false);
  call.own = call.all = own;
}

/// Whether another round follows the one that has ended, as in `exchange_addresses`; begins it.
bool FastPath::exchanges_again(LaneCall& call) {
  const bool permits = !call.permits && must_permit(*call.plan, call.all);
  if (permits) {
    network_.kernel_copy().show();
    show(call, Shown::nothing());
  } else if (call.permits) {
    permitted_ = true;
    show(call, own_addresses(*call.plan, call.launch.src.data, call.launch.dst.data));
  }
  return std::exchange(call.permits, permits) || permits;
}

/// A queued call whose turn it is, and whose peers' addresses are known, takes off.
void FastPath::begin(LaneCall& call) {
  const Plan& plan = *call.plan;
  LiveRank& live = *sets_[call.set];
  const bool reachable = call.asks && call.all.reachable();
  if (call.asks) found(plan, reachable);
  if (plan.must_be_direct && call.asks && !reachable) {
    call.phase = LaneCall::Phase::kWaiting;  // the lanes are clean
    throw Unreachable{};
  }
  const LaneProgram& program = reachable || plan.must_be_direct ? plan.direct_for(call.all.in_place) : plan.plain;
  last_->number.store(program.number, std::memory_order_relaxed);
  if (call.scratch.size() < program.lowered.scratch_bytes) call.scratch.resize(program.lowered.scratch_bytes);
  bind_regions(live, call.launch.src.data, call.launch.dst.data, call.scratch.data());
  if (plan.varies) {
    bind(program, call.launch);
    launcher_.number(program.lowered);
  }
  // Programs of the user have the windowed form only.
  call.straight = plan.algorithm != nullptr && live.channels.holds(program.lowered) &&
                  !(plan.lends && lends(plan, call.launch, program.lowered));
  if (call.straight) {
    call.flight.start_straight(program.lowered);
  } else {
    live.channels.loans.begin(program.lowered, plan.lends && !program.lowered.remote_memory, plan.least_lent);
    call.flight.start_windowed(program.lowered, size_);
  }
  call.phase = LaneCall::Phase::kRunning;
}

bool FastPath::step(LaneCall& call) {
  if (queues_[call.set].first != &call || call.phase == LaneCall::Phase::kDone) return false;
  if (!claim()) return false;
  struct Claim {
    explicit Claim(FastPath& of) : fast_path(of) {}
    ~Claim() { fast_path.release(); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    FastPath& fast_path;
  };
  const Claim claimed(*this);
  const Plan& plan = *call.plan;
  bool any = false;
  if (call.phase == LaneCall::Phase::kWaiting) {
    if (!try_open(call.set)) return false;
    // Nothing else uses the set before this call has ended.
    sets_[call.set]->channels.digest = call.digest;
    call.phase = LaneCall::Phase::kAddresses;
    any = true;
    call.asks = asks(plan);
    if (call.asks) show(call, own_addresses(plan, call.launch.src.data, call.launch.dst.data));
  }
  if (call.phase == LaneCall::Phase::kAddresses) {
    while (call.asks) {
      if (!tell_addresses(call, any)) return any;
      if (!exchanges_again(call)) break;
    }
    begin(call);
    any = true;
  }
  Live& executor = *sets_[call.set]->executor;
  bool ended = false;
  if (call.straight) {
    const Flight::Place before = call.flight.place;
    ended = executor.straight(call.flight);
    any = any || ended || call.flight.place != before;
  } else {
    while (!call.flight.ended_windowed() && executor.windowed(call.flight)) any = true;
    ended = call.flight.ended_windowed();
  }
  if (!ended) return any;
  traffic_.add(call.flight.program->load);
  call.phase = LaneCall::Phase::kDone;
  unlink(call);
  return true;
}

void FastPath::for_each_awaited(const LaneCall& call, const std::function<void(std::uint32_t)>& use) {
  const auto name = [&](std::uint32_t rank, Need) { use(rank); };
  if (call.phase == LaneCall::Phase::kRunning) {
    Live& executor = *sets_[call.set]->executor;
    if (call.straight) {
      executor.awaited_straight(call.flight, name);
    } else {
      executor.awaited_windowed(call.flight, name);
    }
  } else if (call.phase == LaneCall::Phase::kWaiting) {
    if (!opened_ && rank_ != 0) use(0);  // rank 0 makes the lanes
  } else if (call.phase == LaneCall::Phase::kAddresses) {
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      if (peer != rank_ && !call.seen[peer]) use(peer);
    }
  }
}

}  // namespace unisono::cclo
