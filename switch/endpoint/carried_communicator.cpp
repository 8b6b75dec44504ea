#include "switch/endpoint/carried_communicator.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/log.hpp"
#include "core/operators.hpp"
#include "core/signature.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "core/user_op.hpp"
#include "engine/engine.hpp"
#include "switch/path_time.hpp"

namespace unisono::slots {

namespace {

WindowShape window_of(const CarriedShape& shape, const PlannedPool& pool) {
  const PlannedPool::Place& place = pool.places[shape.rank];
  const PlannedPool::Leaf& leaf = pool.leaves[place.leaf];
  WindowShape window;
  window.communicator = shape.number;
  window.epoch = shape.epoch;
  window.rank = place.order;
  window.ranks = shape.ranks;
  window.position = place.position;
  window.slots = pool.slots;
  window.payload_bytes = pool.payload_bytes;
  window.generation = leaf.generation;
  window.peer = formatted("the switch {} ({})", leaf.name, shape.addresses[leaf.address]);
  // Switches speak only when they are spoken to; several repeats may be lost before one is given up.
  window.longest_pause = shape.patience / 8;
  return window;
}

}  // namespace

// ---- links ----

Link::Link(const WindowShape& shape, const Digest& secret, std::uint64_t pool, const std::string& upper,
           Datagrams& datagrams, const tcp::SystemAddress& to)
    : window(shape, *this),
      rank_(shape.rank),
      datagrams_(datagrams),
      to_(to),
      up_(secret, pool, upper, shape.position, Direction::kUp),
      down_(secret, pool, upper, shape.position, Direction::kDown),
      group_(secret, pool, upper, kEveryone, Direction::kDown) {}

void Link::up(const SlotFrame& head, std::span<const std::byte> payload) {
  const std::span<std::byte> room = datagrams_.room();
  datagrams_.queue(to_, up_.seal(head, payload, room, stamp_of(std::chrono::steady_clock::now())));
}

bool Link::take(std::span<std::byte> datagram, Time now) {
  FrameView frame;
  const std::optional<Labels> labels = labels_of(datagram);
  if (!labels) return false;
  // What is for all comes by the group, or to each in a datagram of its own: as the last one did, most likely.
  const bool for_all = labels->member == kEveryone;
  const Envelope& likely = for_all && by_group_ ? group_ : down_;
  if (!likely.open(datagram, frame)) {
    if (!for_all || !(by_group_ ? down_ : group_).open(datagram, frame)) return false;
    by_group_ = !by_group_;
  }
  // A switch that only asks for what this rank gives again and again is one that the rank's frames do not reach.
  if (frame.head.kind != SlotKind::kMissing || frame.head.root != rank_) heard = now;
  ++frames;
  if (frame.head.kind == SlotKind::kMissing) {
    if (frame.head.root != kEveryone) {
      if (frame.head.root != missing_) missing_since_ = now;
      missing_ = frame.head.root;
      missing_again_ = true;
    }
  } else if (frame.head.kind == SlotKind::kResult) {
    missing_ = kEveryone;
  }
  window.take(frame, now, path_of(labels->stamp, now));
  return true;
}

std::optional<std::uint32_t> Link::awaited_still(Time now) {
  constexpr std::chrono::milliseconds kForAWhile{100};
  const bool again = std::exchange(missing_again_, false);
  const std::optional<std::uint32_t> awaited = window.awaited();
  // Of a later turn the switch may have said last that it waits for the one above it.
  if (!again || !awaited || missing_ == kEveryone) return std::nullopt;
  if (*awaited != missing_ && *awaited != kEveryone) return std::nullopt;
  return now - missing_since_ >= kForAWhile ? std::optional(missing_) : std::nullopt;
}

// ---- calls ----

CarriedCommunicator::CarriedCommunicator(const CarriedShape& shape, const Plan& plan, Datagrams& datagrams)
    : shape_(shape), plan_(plan), begun_(plan.pools.size()), halts_(shape.ranks) {
  for (std::size_t i = 0; i < plan_.pools.size(); ++i) {
    const PlannedPool& pool = plan_.pools[i];
    const PlannedPool::Place& place = pool.places[shape_.rank];
    const PlannedPool::Leaf& leaf = pool.leaves[place.leaf];
    WindowShape window = window_of(shape_, pool);
    window.others = shape_.others[i];
    title_ += (i == 0 ? "" : " and ") + window.peer;
    links_.push_back(
        std::make_unique<Link>(window, pool.secret, pool_number(i), leaf.name, datagrams, shape_.reachable[i]));
    std::vector<std::uint32_t>& ranks = ranks_.emplace_back(shape_.ranks);
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      ranks[pool.places[rank].order] = rank;
      in_rank_order_ = in_rank_order_ && pool.places[rank].order == rank;
    }
    trees_.push_back(parse_tree(pool.tree, true));
  }
}

CarriedCommunicator::~CarriedCommunicator() {
  for (const auto& call : calls_) call->orphan();
}

void CarriedCommunicator::add_operator(Func here, Func at_switches, std::uint32_t element_bytes) {
  std::erase_if(operators_, [&](const OwnOperator& one) { return one.at_switches == at_switches; });
  operators_.push_back({at_switches, element_bytes, identity_of(here)});
}

const CarriedCommunicator::OwnOperator* CarriedCommunicator::own_operator(Func here) const {
  const std::uint32_t identity = identity_of(here);
  if (identity == 0) return nullptr;
  // Of several numbers there the last one, on every rank.
  const auto found =
      std::find_if(operators_.rbegin(), operators_.rend(), [&](const auto& one) { return one.identity == identity; });
  return found == operators_.rend() ? nullptr : &*found;
}

/// The number that an operator has in this process now, whichever it had when calls by it were carried. None if it has
/// been freed: calls by none fail.
Func CarriedCommunicator::func_here(Func at_switches) const {
  if (!is_user(at_switches)) return at_switches;
  for (const OwnOperator& one : operators_) {
    if (one.at_switches != at_switches) continue;
    for (const Func func : kAllFunc) {
      if (is_user(func) && identity_of(func) == one.identity) return func;
    }
  }
  return Func::kNone;
}

/// Alike on all ranks: it looks at nothing that the call does not have alike on all of them.
bool CarriedCommunicator::carries(const Call& call) const {
  if (!carried(call.collective) || call.direct || call.radix != 0) return false;
  if (combines(call.collective)) {
    const Capability able = decode_capability({plan_.capability});
    const Func func = folded_by(call.func);
    if (!is_operator(call.func, call.dtype)) return false;
    if (is_user(func)) {
      const OwnOperator* const op = own_operator(func);
      if (op == nullptr || op->element_bytes != bytes_of(call.dtype) || plan_.stable) return false;
      if (needs_order(func) && !in_rank_order_) return false;
    } else {
      if ((able.datatypes >> static_cast<unsigned>(call.dtype) & 1U) == 0) return false;
      if ((able.funcs >> static_cast<unsigned>(func) & 1U) == 0) return false;
      if (plan_.stable && !folds_in_any_order(func, call.dtype)) return false;
    }
  }
  const bool blocks = call.collective == Collective::kReduceScatter || call.collective == Collective::kAllgather;
  // Blocks travel in the order of the tree; and in place the input of a reduce_scatter is where results come.
  if (blocks && (!in_rank_order_ || (call.in_place && combines(call.collective)))) return false;
  const std::uint64_t bytes = call.count * element_bytes(call);
  return bytes <= plan_.up_to_bytes / (blocks ? shape_.ranks : 1);
}

std::shared_ptr<CarriedCall> CarriedCommunicator::carry(const Call& call, double post_scale, const std::byte* src,
                                                        std::byte* dst) {
  if (phase_ == Phase::kBroken || !carries(call)) return nullptr;
  if (phase_ == Phase::kOff) {
    bool behind = false;
    for (std::size_t i = 0; i < pools(); ++i) behind = behind || begun_[i] < all_begun_[i];
    if (!behind) return nullptr;
  }
  const bool from_dst = call.collective == Collective::kBcast || call.in_place;
  const std::byte* from = from_dst ? dst : src;
  if (call.in_place && call.collective == Collective::kAllgather) {
    from = dst + shape_.rank * call.count * element_bytes(call);
  }
  const auto& made = calls_.emplace_back(std::make_shared<CarriedCall>(*this, call, post_scale, from, dst));
  if (combines(call.collective)) {
    made->func = is_user(call.func) ? own_operator(call.func)->at_switches : folded_by(call.func);
  }
  return made;
}

/// Long vectors are shared by the pools; short ones go by one of them, each by the next.
std::vector<CarriedPart> CarriedCommunicator::parts_of(const CarriedCall& of) const {
  const Call& call = of.call;
  SlotCall whole;
  whole.sequence = sequence_;
  whole.collective = call.collective;
  whole.func = of.func;
  whole.dtype = call.dtype;
  whole.factor = factor_digest(of.post_scale);
  whole.count = call.count;
  whole.src = of.src;
  whole.dst = of.dst;
  const std::uint64_t size = element_bytes(call);
  const bool blocks = call.collective == Collective::kReduceScatter || call.collective == Collective::kAllgather;
  const std::uint64_t least = std::uint64_t{4} * plan_.pools[0].payload_bytes;
  std::size_t shares = 1;
  if (!blocks && size != 0) shares = std::clamp<std::size_t>(call.count * size / least, 1, pools());
  std::vector<CarriedPart> parts;
  for (std::size_t i = 0; i < shares; ++i) {
    CarriedPart part;
    part.pool = (sequence_ + i) % pools();
    part.base = begun_[part.pool];
    part.call = whole;
    if (facts_of(call.collective).rooted) part.call.root = plan_.pools[part.pool].places[call.root].order;
    if (shares > 1) {
      const std::uint64_t from = call.count * i / shares;
      part.call.count = call.count * (i + 1) / shares - from;
      if (part.call.src != nullptr) part.call.src += from * size;
      if (part.call.dst != nullptr) part.call.dst += from * size;
    }
    parts.push_back(part);
  }
  return parts;
}

void CarriedCommunicator::pump(Time now) {
  if (phase_ != Phase::kCarrying) return;  // see begin_by_ranks
  bool any = false;
  for (const auto& call : calls_) {
    if (call->state == CarriedCall::State::kQueued) break;
    if (call->state != CarriedCall::State::kReady) continue;
    start(*call, now);
    if (call->state == CarriedCall::State::kReady) break;
    any = true;
  }
  if (any) links_[0]->flush();
}

void CarriedCommunicator::start(CarriedCall& call, Time now) {
  call.parts = parts_of(call);
  for (CarriedPart& part : call.parts) {
    // All windows have the same calls open, but for those of short calls, so the first that is full says it in time.
    if (!links_[part.pool]->window.has_room()) return;
  }
  bool first = true;
  for (const auto& other : calls_) first = first && other->state != CarriedCall::State::kCarried;
  if (first) waiting_since_ = now;
  for (CarriedPart& part : call.parts) {
    part.number = links_[part.pool]->window.start(part.call, now).value();
    begun_[part.pool] = links_[part.pool]->window.end();
  }
  ++sequence_;
  call.state = CarriedCall::State::kCarried;
}

bool CarriedCommunicator::finished(CarriedCall& call) {
  bool all = true;
  for (const CarriedPart& part : call.parts) {
    const Window& window = links_[part.pool]->window;
    if (window.failure()) {
      call.fail(window.failure()->code, window.failure()->text);
      return false;
    }
    all = all && window.done(part.number);
  }
  return all;
}

/// The engine is done with a call. One that has not ended leaves windows that would write to its memory.
void CarriedCommunicator::left(CarriedCall& call) {
  if (call.state == CarriedCall::State::kCarried || call.state == CarriedCall::State::kFailed) {
    phase_ = Phase::kBroken;
    for (const auto& link : links_) link->window.stop();
  }
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& one) { return one.get() == &call; });
  if (found == calls_.end()) return;
  const std::shared_ptr<CarriedCall> kept = *found;
  calls_.erase(found);
  const Time now = std::chrono::steady_clock::now();
  waiting_since_ = now;
  pump(now);
}

void CarriedCommunicator::tick(Time now) {
  if (phase_ != Phase::kCarrying) return;
  for (const auto& link : links_) link->window.tick(now);
  look_for_silence(now);
}

Time CarriedCommunicator::next_due() const {
  Time due = Time::max();
  if (phase_ != Phase::kCarrying) return due;
  for (const auto& link : links_) due = std::min(due, link->window.next_due());
  return due;
}

void CarriedCommunicator::look_for_silence(Time now) {
  const bool carrying = std::any_of(calls_.begin(), calls_.end(),
                                    [](const auto& call) { return call->state == CarriedCall::State::kCarried; });
  if (!carrying) return;
  for (const auto& link : links_) {
    const Window& window = link->window;
    if (window.lacking() == window.end()) continue;
    if (now - std::max(link->heard, waiting_since_) <= shape_.patience) continue;
    halt(formatted("nothing has come from {} for {}", window.peer(), join::seconds_text(shape_.patience)));
    return;
  }
}

}  // namespace unisono::slots
