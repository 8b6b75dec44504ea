// How the ranks of a communicator go on without the switches that have carried its calls.
//
// Invariant: a rank contributes to a turn only when it has the results of all turns more than `ahead` before it, so of
// all turns that some rank has a result of, every rank has contributed to, and still keeps what it gave. Those that
// another rank lacks are therefore done again from what is kept, even where results have replaced the inputs.
#include <algorithm>
#include <cstring>

#include "collectives/algorithm.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "engine/engine.hpp"
#include "switch/endpoint/carried_communicator.hpp"

namespace unisono::slots {

namespace {

/// How often a rank looks whether others have given the switches up.
constexpr std::chrono::milliseconds kLook{2};
/// On the communicator that is made for this alone.
constexpr std::uint32_t kHaltTag = 1;

Binding binding_of(std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace

void CarriedCommunicator::halt(const std::string& why) {
  if (phase_ != Phase::kCarrying) return;
  phase_ = Phase::kTelling;
  reason_ = why;
  log(LogLevel::kWarn, formatted("rank {} of communicator {}: {}; its ranks go on without {}", shape_.rank,
                                 shape_.number, why, pools() == 1 ? "it" : "them"));
  for (std::size_t i = 0; i < pools(); ++i) {
    Window& window = links_[i]->window;
    window.stop();
    own_.lacking[i] = window.lacking();
    own_.begun[i] = window.end();
  }
}

void CarriedCommunicator::run(CallStarter& starter, const CallRequest& request, Then then) {
  const std::uint64_t number = ++next_run_;
  running_.emplace(number, std::move(then));
  try {
    starter.start(request, [ended = ended_, number](const CallResult& result) {
      const std::lock_guard lock(ended->mutex);
      ended->calls.emplace_back(number, result.code, result.message);
    });
  } catch (const Error& error) {
    running_.erase(number);
    broken(error.code(), error.what());
  }
}

bool CarriedCommunicator::take_ended(CallStarter& starter) {
  decltype(ended_->calls) calls;
  {
    const std::lock_guard lock(ended_->mutex);
    calls.swap(ended_->calls);
  }
  for (auto& [number, code, text] : calls) {
    auto node = running_.extract(number);
    if (node.empty()) continue;
    if (code != ErrorCode::kOk) {
      broken(code, text);
    } else {
      node.mapped()(starter);
    }
  }
  return !calls.empty();
}

void CarriedCommunicator::broken(ErrorCode code, const std::string& why) {
  if (phase_ == Phase::kBroken) return;
  phase_ = Phase::kBroken;
  for (const auto& call : calls_) {
    call->fail(code, formatted("{}; and its ranks could not go on by themselves: {}", reason_, why));
  }
}

bool CarriedCommunicator::progress(CallStarter& starter, Time now) {
  bool any = !running_.empty() && take_ended(starter);
  if (phase_ == Phase::kCarrying && now >= next_look_) {
    next_look_ = now + kLook;
    if (const auto rank = starter.look_for(shape_.shadow, kHaltTag)) halt(formatted("rank {} has given it up", *rank));
  }
  if (phase_ == Phase::kTelling && !told_) {
    told_ = true;
    tell(starter);
    any = true;
  }
  if (phase_ == Phase::kOff) begin_by_ranks(starter);
  return any;
}

void CarriedCommunicator::tell(CallStarter& starter) {
  halts_[shape_.rank] = own_;
  const auto left = std::make_shared<std::uint32_t>(2 * (shape_.ranks - 1));
  const Then then = [this, left](CallStarter& with) {
    if (--*left == 0) heard_all(with);
  };
  for (std::uint32_t rank = 0; rank < shape_.ranks && phase_ == Phase::kTelling; ++rank) {
    if (rank == shape_.rank) continue;
    CallRequest request;
    request.communicator = shape_.shadow;
    request.tag = kHaltTag;
    request.call.root = rank;
    request.call.dtype = Datatype::kByte;
    request.call.count = sizeof(Halt);
    request.call.collective = Collective::kRecv;
    request.dst = {reinterpret_cast<std::byte*>(&halts_[rank]), sizeof(Halt)};
    run(starter, request, then);
    request.call.collective = Collective::kSend;
    request.src = {reinterpret_cast<std::byte*>(&own_), sizeof(Halt)};
    request.dst = {};
    run(starter, request, then);
  }
}

void CarriedCommunicator::heard_all(CallStarter& starter) {
  least_had_ = own_.lacking;
  for (const Halt& halt : halts_) {
    for (std::size_t i = 0; i < pools(); ++i) {
      least_had_[i] = std::min(least_had_[i], halt.lacking[i]);
      most_had_[i] = std::max(most_had_[i], halt.lacking[i]);
      all_begun_[i] = std::max(all_begun_[i], halt.begun[i]);
    }
  }
  phase_ = Phase::kMending;
  mend_pool_ = 0;
  mend_turn_ = least_had_[0];
  mend_next(starter);
}

/// A call among the ranks that folds as the switches do.
CallRequest CarriedCommunicator::among_ranks(std::size_t pool, Collective collective, Func func,
                                             const SlotCall& like) const {
  CallRequest request;
  request.communicator = shape_.shadow;
  request.call.collective = collective;
  request.call.func = combines(collective) ? func : Func::kNone;
  request.call.dtype = like.dtype;
  request.call.tree = trees_[pool];
  request.call.root = rank_of(pool, like.root);
  request.algorithm = find_algorithm(collective, "switch");
  return request;
}

/// Does the next turn again that some ranks lack.
void CarriedCommunicator::mend_next(CallStarter& starter) {
  while (mend_pool_ < pools() && mend_turn_ >= most_had_[mend_pool_]) {
    if (++mend_pool_ < pools()) mend_turn_ = least_had_[mend_pool_];
  }
  if (mend_pool_ == pools()) {
    phase_ = Phase::kOff;
    for (const auto& call : calls_) {
      if (call->state == CarriedCall::State::kCarried && !finished(*call)) by_ranks(starter, call);
    }
    begin_by_ranks(starter);
    return;
  }
  const std::size_t pool = mend_pool_;
  const std::uint64_t turn = mend_turn_++;
  Window& window = links_[pool]->window;
  const std::optional<Window::Contribution> given = window.contribution(turn);
  if (!given) {
    broken(ErrorCode::kInternal, formatted("what this rank gave to turn {} is not kept", turn));
    return;
  }
  const SlotFrame& head = given->head;
  SlotCall like;
  like.dtype = head.dtype;
  like.root = head.root;
  Collective collective = head.opcode;
  if (collective == Collective::kReduceScatter) collective = Collective::kReduce;
  if (collective == Collective::kAllgather) collective = Collective::kBcast;
  CallRequest request = among_ranks(pool, collective, func_here(head.func), like);
  request.call.count = head.count;
  const std::size_t bytes = std::size_t{head.count} * bytes_of(head.dtype);
  const auto source = std::make_shared<std::vector<std::byte>>(given->payload.begin(), given->payload.end());
  const auto result = std::make_shared<std::vector<std::byte>>(bytes);
  if (collective == Collective::kBcast) {
    std::copy(source->begin(), source->end(), result->begin());
  } else {
    request.src = binding_of(*source);
  }
  request.dst = binding_of(*result);
  const bool gets = collective != Collective::kReduce || rank_of(pool, head.root) == shape_.rank;
  run(starter, request, [this, pool, turn, source, result, gets](CallStarter& with) {
    links_[pool]->window.give(turn, gets ? std::span<const std::byte>(*result) : std::span<const std::byte>());
    mend_next(with);
  });
}

/// Finishes a call that some rank has begun: what all lack of it.
void CarriedCommunicator::by_ranks(CallStarter& starter, const std::shared_ptr<CarriedCall>& call) {
  const bool was_carried = call->state == CarriedCall::State::kCarried;
  call->state = CarriedCall::State::kByRanks;
  call->left = static_cast<std::uint32_t>(call->parts.size());
  const auto part_done = [call](CallStarter&) {
    if (--call->left == 0 && call->state == CarriedCall::State::kByRanks) call->state = CarriedCall::State::kDone;
  };
  for (const CarriedPart& part : call->parts) {
    const PlannedPool& pool = plan_.pools[part.pool];
    const CallTurns turns(part.call, pool.places[shape_.rank].order, shape_.ranks, pool.payload_bytes);
    const std::uint64_t first = std::max(most_had_[part.pool], part.base);
    if (first >= part.base + turns.turns()) {
      part_done(starter);
      continue;
    }
    if (was_carried) links_[part.pool]->window.restore(part.number, first);
    const Collective collective = part.call.collective;
    const bool blocks = collective == Collective::kReduceScatter || collective == Collective::kAllgather;
    // Blocks are done again from their begin: their inputs are still there.
    const std::uint64_t from = blocks ? 0 : turns.chunk(first - part.base).from;
    const std::size_t size = bytes_of(part.call.dtype);
    const std::uint64_t count = part.call.count - from;
    CallRequest request = among_ranks(part.pool, collective, folded_by(call->call.func), part.call);
    if (combines(collective)) request.post_scale = call->post_scale;
    request.call.count = count;
    const bool is_root = request.call.root == shape_.rank;
    const bool gives = collective != Collective::kBcast || is_root;
    const bool gets = collective != Collective::kReduce || is_root;
    const std::size_t all = blocks ? shape_.ranks : 1;
    const std::size_t in = count * size * (collective == Collective::kReduceScatter ? all : 1);
    const std::size_t out = count * size * (collective == Collective::kAllgather ? all : 1);
    // In memory of its own, because the user may have the call's back before this has ended.
    const auto source = std::make_shared<std::vector<std::byte>>();
    if (gives && in != 0) source->assign(part.call.src + from * size, part.call.src + from * size + in);
    const auto result = std::make_shared<std::vector<std::byte>>(gets ? out : 0);
    if (collective == Collective::kBcast) {
      if (is_root) *result = *source;
    } else {
      request.src = binding_of(*source);
    }
    request.dst = binding_of(*result);
    std::byte* const to = part.call.dst + from * size;
    run(starter, request, [call, source, result, to, part_done](CallStarter& with) {
      if (call->state != CarriedCall::State::kByRanks) return;
      if (!result->empty()) std::memcpy(to, result->data(), result->size());
      part_done(with);
    });
  }
}

/// Calls that have not begun here: some rank may have begun them at the switches.
void CarriedCommunicator::begin_by_ranks(CallStarter& starter) {
  for (const auto& call : calls_) {
    if (call->state == CarriedCall::State::kQueued) break;
    if (call->state != CarriedCall::State::kReady) continue;
    call->parts = parts_of(*call);
    const bool elsewhere = std::any_of(call->parts.begin(), call->parts.end(),
                                       [&](const CarriedPart& part) { return part.base < all_begun_[part.pool]; });
    if (!elsewhere) {
      call->state = CarriedCall::State::kDeclined;
      call->orphan();
      continue;
    }
    ++sequence_;
    for (const CarriedPart& part : call->parts) {
      const PlannedPool& pool = plan_.pools[part.pool];
      const CallTurns turns(part.call, pool.places[shape_.rank].order, shape_.ranks, pool.payload_bytes);
      begun_[part.pool] += turns.turns();
    }
    by_ranks(starter, call);
  }
  std::erase_if(calls_, [](const auto& call) { return call->state == CarriedCall::State::kDeclined; });
}

}  // namespace unisono::slots
