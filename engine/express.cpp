#include "engine/express.hpp"

#include <sys/single_threaded.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/footprint.hpp"
#include "core/signature.hpp"
#include "engine/validate.hpp"
#include "collectives/record.hpp"

namespace unisono::cclo {
namespace {

/// What a rank shows instead of an address that its peers cannot reach.
constexpr std::uint64_t kUnreachable = ~std::uint64_t{0};

/// Not all regions of a call that needs it can be reached by all ranks.
struct Unreachable {};

Error unreachable(const LanePlan& plan) {
  return {ErrorCode::kUnsupported,
          std::string(name_of(plan.call.collective)) + ": algorithm " + plan.direct.algorithm->name +
              " needs every rank's buffers to be memory of unisono_allocate; on some rank they are not. Allocate them "
              "so on all ranks, or leave the choice of the algorithm to Unisono"};
}

std::uint64_t address_head() {
  HeaderLine line;
  line.bytes = 2 * sizeof(std::uint64_t);
  line.type = MessageType::kRequest;
  return encode(line)[0];
}

}  // namespace

Express::Express(shm::ShmPoe& network, Watch& watch, std::uint32_t number, std::uint16_t epoch, std::uint32_t rank,
                 std::span<const std::uint32_t> endpoints, std::shared_ptr<std::atomic<std::uint32_t>> sequence)
    : network_(network),
      watch_(watch),
      number_(number),
      rank_(rank),
      size_(static_cast<std::uint32_t>(endpoints.size())),
      sequence_(std::move(sequence)),
      segment_(network.segment()),
      lanes_(segment_, network.arena(), network.self(), number, epoch, endpoints),
      reachable_(size_) {}

bool Express::carries(Collective collective) {
  switch (collective) {
    case Collective::kBcast:
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kReduceScatter:
    case Collective::kAllgather:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAlltoall:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kBarrier:
      return true;
    default:
      return false;
  }
}

// --------------------------------------------------------------------------------------------- plans

std::size_t Express::Hash::operator()(const Key& key) const {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(key.algorithm);
  const auto mix = [&](std::uint64_t value) {
    hash ^= value;
    hash *= 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29U;
  };
  const Call& call = key.call;
  mix(static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.func) << 8U |
      static_cast<std::uint64_t>(call.dtype) << 16U | std::uint64_t{call.in_place} << 24U |
      std::uint64_t{call.root} << 32U);
  mix(call.count);
  return hash;
}

const LanePlan& Express::plan(const Call& call, const Algorithm& algorithm, bool named,
                              std::shared_ptr<const CheckedProgram> checked, const Capability& capability,
                              std::uint32_t eager_limit) {
  const Key key{call, named ? &algorithm : nullptr};
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  if (plans_.size() >= kMostPlans && claim()) {
    // Nobody is running one of them while the lanes are claimed and nothing is queued.
    if (queued_.load(std::memory_order_relaxed) == 0) {
      slots_.fill(nullptr);
      for (Past& entry : past_) entry.plan.store(nullptr, std::memory_order_relaxed);
      plans_.clear();
    }
    release();
  }
  auto made = std::make_unique<LanePlan>();
  made->call = call;
  made->checked = std::move(checked);
  const auto lowered = [&](const Algorithm& chosen, const Program& program) {
    std::optional<LoweredProgram> result = lower(program, size_);
    if (!result) {
      throw Error(ErrorCode::kInternal, std::string("algorithm ") + chosen.name +
                                            " uses what lanes do not carry; it must not be one of this collective");
    }
    return LaneProgram{&chosen, std::move(*result)};
  };
  const auto footprint = footprint_of(call);
  made->src_bytes = footprint.src * bytes_of(call.dtype);
  made->dst_bytes = footprint.dst * bytes_of(call.dtype);
  made->must_be_direct = algorithm.direct;
  if (algorithm.direct) {
    made->direct = lowered(algorithm, made->checked->program);
  } else {
    made->plain = lowered(algorithm, made->checked->program);
  }
  if (!named && size_ > 1) {
    Call direct = call;
    direct.direct = true;
    const int position = choose_algorithm(direct);
    const Algorithm* best = position < 0 ? nullptr : &algorithms()[static_cast<std::size_t>(position)];
    if (best != nullptr && best->direct) {
      made->direct = lowered(*best, check_program(record(*best, direct), size_, capability, true)->program);
    }
  }
  if (made->direct.algorithm != nullptr) {
    made->shows_addresses = size_ > 1 && call.count != 0;
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      Call of_peer = call;
      of_peer.rank = peer;
      const auto needs = footprint_of(of_peer);
      made->peer_bytes.push_back({needs.src * bytes_of(call.dtype), needs.dst * bytes_of(call.dtype)});
    }
  }
  const std::uint32_t number =
      named ? static_cast<std::uint32_t>(&algorithm - algorithms().data()) + 1 : 0;  // 0: the automatic choice
  made->signature = signature_of(call, AgreedTerms{number, eager_limit, Datatype::kNone});
  return *(plans_[key] = std::move(made));
}

const LanePlan* Express::past(std::uint32_t sequence) const {
  const Past& entry = past_[sequence % kPast];
  const LanePlan* plan = entry.plan.load(std::memory_order_acquire);
  return entry.sequence.load(std::memory_order_relaxed) == sequence ? plan : nullptr;
}

// ------------------------------------------------------------------------------------------ blocking calls

// A thread that finds the lanes claimed goes through the engine; nobody waits here. While the process has one thread,
// no locked instruction is needed.
bool Express::claim() {
  if (__libc_single_threaded) {
    if (busy_.load(std::memory_order_relaxed)) return false;
    busy_.store(true, std::memory_order_relaxed);
    return true;
  }
  return !busy_.exchange(true, std::memory_order_acquire);
}

void Express::release() { busy_.store(false, std::memory_order_release); }

bool Express::run(const LanePlan& plan, std::byte* src, std::byte* dst, bool remember) {
  if (!claim()) return false;
  if (unavailable()) {
    release();
    return false;
  }
  if (remember) {
    const Call& call = plan.call;
    slots_[slot_of({call.collective, call.func, call.dtype, call.in_place, call.root, call.count, nullptr, 0, nullptr,
                    0})] = &plan;
  }
  run_claimed(plan, src, dst);
  return true;
}

void Express::run_claimed(const LanePlan& plan, std::byte* src, std::byte* dst) {
  // However the call ends, the lanes are given back; after an error nobody takes them again.
  struct Claim {
    explicit Claim(Express& of) : express(of) {}
    ~Claim() { express.release(); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Express& express;
  };
  const Claim claim(*this);
  const std::uint32_t sequence = sequence_->load(std::memory_order_relaxed);
  sequence_->store(sequence + 1, std::memory_order_relaxed);
  note(sequence, plan);
  blocking_.plan = &plan;
  blocking_.sequence = sequence;
  blocking_.registered = 0;
  try {
    if (!opened_) [[unlikely]] open();
    frame_.regions[static_cast<std::size_t>(Region::kSrc)] = src;
    frame_.regions[static_cast<std::size_t>(Region::kDst)] = dst;
    frame_.signature = plan.signature;
    const LaneProgram* program = plan.must_be_direct ? &plan.direct : &plan.plain;
    if (plan.shows_addresses) {
      if (exchange_addresses(plan)) {
        program = &plan.direct;
      } else if (plan.must_be_direct) {
        throw Unreachable{};
      }
    }
    if (program->lowered.scratch_bytes > scratch_.size()) [[unlikely]] scratch_.resize(program->lowered.scratch_bytes);
    frame_.regions[static_cast<std::size_t>(Region::kScratch)] = scratch_.data();
    frame_.program = &program->lowered;
    last_algorithm_.store(program->algorithm, std::memory_order_relaxed);
    if (ports_.holds(program->lowered)) {
      run_straight(program->lowered);
    } else {
      run_windowed(program->lowered);
    }
  } catch (const Unreachable&) {
    // All ranks find this alike, having told each other; nothing is left on the lanes.
    if (blocking_.registered != 0) watch_.completed(*this, blocking_);
    throw unreachable(plan);
  } catch (const LaneFault& fault) {
    close();
    retire(plan, src, dst);
    watch_.fault(*this, blocking_, fault);
  } catch (...) {
    close();
    retire(plan, src, dst);
    throw;
  }
  if (blocking_.registered != 0) [[unlikely]] watch_.completed(*this, blocking_);
}

void Express::retire(const LanePlan& plan, const std::byte* src, const std::byte* dst) {
  if (!plan.shows_addresses) return;
  network_.arena()->retire(src);
  network_.arena()->retire(dst);
}

void Express::open() {
  blocking_.phase = "waits for the communicator's lanes, which rank 0 makes";
  await_peer([&] { return lanes_.open(); }, 0);
  ports_.open(lanes_, shm::LaneSpace::kCollective, rank_, size_);
  one_process_ = network_.one_process();
  opened_ = true;
}

void Express::run_straight(const LoweredProgram& program) {
  for (const Step& step : program.steps) {
    switch (step.kind) {
      case Step::Kind::kSend:
        send_inline(step.send);
        break;
      case Step::Kind::kExchange:
        send_inline(step.send);
        take_inline(step.take);
        break;
      case Step::Kind::kTake:
        take_inline(step.take);
        break;
      case Step::Kind::kGeneral:
        finish(step.take);
        break;
    }
  }
}

inline void Express::send_inline(const Action& action) {
  if (action.bytes > shm::kInlineBytes) {
    finish(action);
    return;
  }
  const auto bytes = static_cast<std::uint32_t>(action.bytes);
  const std::byte* data = action.own.present ? frame_.at(action.own) : nullptr;
  const std::uint64_t head = LanePorts::head(bytes, action.tag_forward);
  for (std::uint32_t i = action.forward.begin; i < action.forward.begin + action.forward.count; ++i) {
    const std::uint32_t peer = frame_.program->ranks[i];
    shm::LaneSender& lane = ports_.send[peer];
    if (!lane.has_line()) [[unlikely]] await_line(lane, peer);
    copy_inline(lane.next().payload.data(), data, bytes);
    lane.publish(head, frame_.signature);
    shm::wake_if_parked(*lane.peer);
  }
}

inline void Express::take_inline(const Action& action) {
  if (action.bytes > shm::kInlineBytes) {
    finish(action);
    return;
  }
  const std::uint32_t peer = frame_.program->ranks[action.from.begin];
  shm::LaneReceiver& lane = ports_.receive[peer];
  const shm::LaneLine& line = lane.next();
  const std::uint64_t awaited = lane.awaited(frame_.signature);
  if (line.flag.load(std::memory_order_acquire) != awaited) await_flag(lane, awaited, peer);
  const auto bytes = static_cast<std::uint32_t>(action.bytes);
  if (line.head != LanePorts::head(bytes, action.tag_in)) [[unlikely]] throw LaneFault{peer, frame_.signature, false};
  if (action.own.present) {
    const std::byte* own = frame_.at(action.own);
    const std::byte* payload = line.payload.data();
    action.combine(action.swap ? payload : own, action.swap ? own : payload, frame_.at(action.out), action.count);
  } else if (action.out.present) {
    copy_inline(frame_.at(action.out), line.payload.data(), bytes);
  }
  if (lane.release()) shm::wake_if_parked(*lane.peer);
}

void Express::finish(const Action& action) {
  std::uint64_t done = 0;
  while (!LanePorts::finished(action, done)) {
    if (ports_.advance(action, frame_, done)) continue;
    blocking_.phase = "waits for a message, or for room for one";
    await([&] { return ports_.advance(action, frame_, done); },
          [&](auto&& use) { ports_.for_each_missing(action, *frame_.program, done, use); });
  }
}

void Express::run_windowed(const LoweredProgram& program) {
  frame_.program = &program;
  windowed_.start(ports_, frame_);
  while (!windowed_.finished()) {
    if (windowed_.step()) continue;
    blocking_.phase = "waits for messages, or for room for them";
    await([&] { return windowed_.step(); }, [&](auto&& use) { windowed_.for_each_awaited(use); });
  }
}

template <class Ready>
void Express::await_peer(Ready&& ready, std::uint32_t peer) {
  await(ready, [peer](auto&& use) { use(peer); });
}

/// Waits until `ready`, looking now and then at everything else. `awaited(use)` names the ranks that are waited for, at
/// the time of the look.
template <class Ready, class Awaited>
void Express::await(Ready&& ready, Awaited&& awaited) {
  network_.await(
      ready,
      [&] {
        blocking_.awaited.clear();
        awaited([&](std::uint32_t rank) { blocking_.awaited.push_back(rank); });
        watch_.look(*this, blocking_);
        return true;
      },
      shm::Parking::Clock::time_point::max());
}

void Express::await_flag(const shm::LaneReceiver& lane, std::uint64_t awaited, std::uint32_t peer) {
  blocking_.phase = "waits for a message";
  const std::atomic<std::uint64_t>& flag = lane.next().flag;
  std::uint64_t seen = 0;
  await_peer(
      [&] {
        seen = flag.load(std::memory_order_acquire);
        return static_cast<std::uint32_t>(seen) == static_cast<std::uint32_t>(awaited);
      },
      peer);
  if (seen != awaited) throw LaneFault{peer, static_cast<std::uint32_t>(seen >> 32U), true};
}

void Express::await_line(shm::LaneSender& lane, std::uint32_t peer) {
  blocking_.phase = "waits for the receiver to take earlier messages";
  await_peer([&] { return lane.has_line(); }, peer);
}

// --------------------------------------------------------------------------------------------- addresses

std::uint64_t Express::address_of(const std::byte* region, std::uint64_t bytes) const {
  if (bytes == 0) return 0;
  if (one_process_) return reinterpret_cast<std::uintptr_t>(region);
  const std::uint64_t offset = segment_->offset_of(region, bytes);
  return offset == 0 ? kUnreachable : offset;
}

/// Tells one peer where this rank's regions are; false if there is no room for it now.
bool Express::show_address(std::uint32_t peer, std::uint64_t src, std::uint64_t dst, std::uint32_t signature) {
  shm::LaneSender& lane = ports_.send[peer];
  if (!lane.has_line()) return false;
  std::memcpy(lane.next().payload.data(), &src, sizeof src);
  std::memcpy(lane.next().payload.data() + sizeof src, &dst, sizeof dst);
  lane.publish(address_head(), signature);
  shm::wake_if_parked(*lane.peer);
  return true;
}

/// Learns where a peer's regions are; false if it has not said so yet. Clears `reachable` if they are not.
bool Express::see_address(std::uint32_t peer, const LanePlan& plan, bool& reachable) {
  shm::LaneReceiver& lane = ports_.receive[peer];
  const shm::LaneLine& line = lane.next();
  const std::uint64_t flag = line.flag.load(std::memory_order_acquire);
  const std::uint64_t awaited = lane.awaited(plan.signature);
  if (static_cast<std::uint32_t>(flag) != static_cast<std::uint32_t>(awaited)) return false;
  if (flag != awaited) throw LaneFault{peer, static_cast<std::uint32_t>(flag >> 32U), true};
  if (line.head != address_head()) throw LaneFault{peer, plan.signature, false};
  std::array<std::uint64_t, 2> shown{};
  std::memcpy(shown.data(), line.payload.data(), sizeof shown);
  if (lane.release()) shm::wake_if_parked(*lane.peer);
  std::array<std::byte*, 2> found{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::uint64_t bytes = plan.peer_bytes[peer][i];
    if (bytes == 0) continue;
    if (shown[i] == kUnreachable) {
      reachable = false;
    } else if (one_process_) {
      found[i] = reinterpret_cast<std::byte*>(shown[i]);  // NOLINT(performance-no-int-to-ptr): a thread's own address
    } else {
      found[i] = segment_->at(shown[i], bytes);
      if (found[i] == nullptr) throw LaneFault{peer, plan.signature, false};
    }
  }
  reachable_[peer] = {found[0], found[1]};
  return true;
}

/// Every rank tells every other where its regions are. Returns whether all of them can be reached, which all ranks
/// find alike, for each has what all have shown.
bool Express::exchange_addresses(const LanePlan& plan) {
  std::byte* src_region = frame_.regions[static_cast<std::size_t>(Region::kSrc)];
  std::byte* dst_region = frame_.regions[static_cast<std::size_t>(Region::kDst)];
  const std::uint64_t src = address_of(src_region, plan.src_bytes);
  const std::uint64_t dst = address_of(dst_region, plan.dst_bytes);
  bool reachable = src != kUnreachable && dst != kUnreachable;
  for (std::uint32_t distance = 1; distance < size_; ++distance) {
    const std::uint32_t peer = (rank_ + distance) % size_;
    if (!show_address(peer, src, dst, plan.signature)) {
      await_line(ports_.send[peer], peer);
      show_address(peer, src, dst, plan.signature);
    }
  }
  blocking_.phase = "waits to hear where its buffers are";
  for (std::uint32_t distance = 1; distance < size_; ++distance) {
    const std::uint32_t peer = (rank_ + size_ - distance) % size_;
    if (!see_address(peer, plan, reachable)) {
      await_peer([&] { return see_address(peer, plan, reachable); }, peer);
    }
  }
  reachable_[rank_] = {src_region, dst_region};
  frame_.peers = reachable_.data();
  return reachable;
}

// ------------------------------------------------------------------------------------ calls in the queue

void Express::enqueue(LaneCall& call) {
  queued_.fetch_add(1, std::memory_order_relaxed);
  call.sequence = sequence_->fetch_add(1, std::memory_order_relaxed);
  note(call.sequence, *call.plan);
  call.phase = LaneCall::Phase::kWaiting;
  queue_.push_back(&call);
}

void Express::dequeue(LaneCall& call) {
  const auto found = std::find(queue_.begin(), queue_.end(), &call);
  if (found == queue_.end()) return;
  if (call.phase != LaneCall::Phase::kWaiting && call.phase != LaneCall::Phase::kDone) {  // ended half-way
    close();
    retire(*call.plan, call.src.data, call.dst.data);
  }
  queue_.erase(found);
  queued_.fetch_sub(1, std::memory_order_relaxed);
}

bool Express::step(LaneCall& call) {
  if (queue_.empty() || queue_.front() != &call || call.phase == LaneCall::Phase::kDone) return false;
  if (!claim()) return false;
  struct Claim {
    explicit Claim(Express& of) : express(of) {}
    ~Claim() { express.release(); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Express& express;
  };
  const Claim claimed(*this);
  const LanePlan& plan = *call.plan;
  bool any = false;
  if (call.phase == LaneCall::Phase::kWaiting) {
    if (!opened_) {
      if (!lanes_.open()) return false;
      ports_.open(lanes_, shm::LaneSpace::kCollective, rank_, size_);
      one_process_ = network_.one_process();
      opened_ = true;
    }
    call.shown.assign(size_, false);
    call.seen.assign(size_, false);
    call.phase = LaneCall::Phase::kAddresses;
    any = true;
  }
  // Only one call of the queue is beyond kWaiting, so it may use what blocking calls use.
  frame_.regions[static_cast<std::size_t>(Region::kSrc)] = call.src.data;
  frame_.regions[static_cast<std::size_t>(Region::kDst)] = call.dst.data;
  frame_.signature = plan.signature;
  if (call.phase == LaneCall::Phase::kAddresses) {
    bool complete = true;
    bool reachable = plan.shows_addresses;
    if (plan.shows_addresses) {
      const std::uint64_t src = address_of(call.src.data, plan.src_bytes);
      const std::uint64_t dst = address_of(call.dst.data, plan.dst_bytes);
      reachable_[rank_] = {call.src.data, call.dst.data};
      if (src == kUnreachable || dst == kUnreachable) reachable_[rank_] = {};
      call.unreachable = call.unreachable || src == kUnreachable || dst == kUnreachable;
      for (std::uint32_t peer = 0; peer < size_; ++peer) {
        if (peer == rank_) continue;
        if (!call.shown[peer]) call.shown[peer] = show_address(peer, src, dst, plan.signature);
        bool peer_reachable = true;
        if (!call.seen[peer] && see_address(peer, plan, peer_reachable)) {
          call.seen[peer] = true;
          call.unreachable = call.unreachable || !peer_reachable;
          any = true;
        }
        complete = complete && call.shown[peer] && call.seen[peer];
      }
      reachable = !call.unreachable;
      frame_.peers = reachable_.data();
    }
    if (!complete) return any;
    if (plan.must_be_direct && plan.shows_addresses && !reachable) {
      call.phase = LaneCall::Phase::kWaiting;  // the lanes are clean
      throw unreachable(plan);
    }
    const LaneProgram& program = reachable || plan.must_be_direct ? plan.direct : plan.plain;
    call.scratch.resize(program.lowered.scratch_bytes);
    frame_.regions[static_cast<std::size_t>(Region::kScratch)] = call.scratch.data();
    frame_.program = &program.lowered;
    call.run.start(ports_, frame_);
    call.phase = LaneCall::Phase::kRunning;
    any = true;
  }
  while (!call.run.finished() && call.run.step()) any = true;
  if (call.run.finished()) {
    call.phase = LaneCall::Phase::kDone;
    queue_.pop_front();
    queued_.fetch_sub(1, std::memory_order_relaxed);
    any = true;
  }
  return any;
}

void Express::for_each_awaited(const LaneCall& call, const std::function<void(std::uint32_t)>& use) const {
  if (call.phase == LaneCall::Phase::kRunning) {
    call.run.for_each_awaited(use);
  } else if (call.phase == LaneCall::Phase::kAddresses) {
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      if (peer != rank_ && !call.seen[peer]) use(peer);
    }
  }
}

}  // namespace unisono::cclo
