#include "engine/express.hpp"

#include <sys/single_threaded.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "collectives/record.hpp"
#include "core/error.hpp"
#include "core/footprint.hpp"
#include "core/signature.hpp"
#include "core/user_op.hpp"
#include "engine/copy_class.hpp"
#include "engine/state.hpp"
#include "engine/validate.hpp"
#include "network/shm/wait_hook.hpp"

namespace unisono::cclo {
namespace {

using shm::Reach;

/// Addresses as they travel: src, dst, and whether the rank copies.
using AddressWords = std::array<std::uint64_t, 3>;

std::uint64_t address_head() {
  HeaderLine line;
  line.bytes = sizeof(AddressWords);
  line.type = MessageType::kRequest;
  return encode(line)[0];
}

}  // namespace

Express::Express(shm::ShmPoe& network, Watch& watch, std::uint32_t number, std::uint16_t epoch, std::uint32_t rank,
                 std::span<const std::uint32_t> endpoints, std::uint32_t eager_limit, std::shared_ptr<CallOrder> order,
                 std::shared_ptr<LastNumber> last, std::shared_ptr<CallRecorder> recorder)
    : network_(network),
      watch_(watch),
      number_(number),
      rank_(rank),
      size_(static_cast<std::uint32_t>(endpoints.size())),
      eager_limit_(eager_limit),
      order_(std::move(order)),
      last_(std::move(last)),
      segment_(network.segment()),
      traffic_(segment_->ledger(network.self())),
      recorder_(std::move(recorder)),
      lanes_(segment_, network.arena(), network.self(), number, epoch, endpoints),
      endpoints_(endpoints.begin(), endpoints.end()),
      reachable_(size_) {}

Error Express::unreachable(const LanePlan& plan) {
  return {
      ErrorCode::kUnsupported,
      std::string(name_of(plan.call.collective)) + ": algorithm " + plan.direct.algorithm->name +
          " needs buffers that every rank can reach: memory of unisono_allocate, or any where the kernel lets ranks "
          "copy from each other (`unisono doctor`). On some rank they are neither. Allocate them so on all ranks, or "
          "leave the choice of the algorithm to Unisono"};
}

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
                              std::uint32_t eager_limit, const Tuning& tuning) {
  const Key key{call, named ? &algorithm : nullptr, identity_of(call.func)};
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  if (plans_.size() >= kMostPlans && pins_.load(std::memory_order_acquire) == 0 && claim()) {
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
    return LaneProgram{&chosen, LastNumber::of(&chosen, !named), std::move(*result)};
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
    const int position = choose_algorithm(direct, tuning);
    const Algorithm* best = position < 0 ? nullptr : &algorithms()[static_cast<std::size_t>(position)];
    if (best != nullptr && best->direct) {
      made->direct = lowered(*best, check_program(record(*best, direct), size_, capability, true)->program);
    }
  }
  if (made->direct.algorithm != nullptr) {
    made->shows_addresses = size_ > 1 && call.count != 0;
    made->may_copy = made->must_be_direct || call.count * element_bytes(call) >=
                                                 copied_from(call.collective, size_, segment_->geometry().copy_from);
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      Call of_peer = call;
      of_peer.rank = peer;
      const auto needs = footprint_of(of_peer);
      made->peer_bytes.push_back({needs.src * bytes_of(call.dtype), needs.dst * bytes_of(call.dtype)});
    }
  }
  const std::uint32_t number =
      named ? static_cast<std::uint32_t>(&algorithm - algorithms().data()) + 1 : 0;  // 0: the automatic choice
  made->signature = signature_of(call, AgreedTerms{number, eager_limit, Datatype::kNone, key.op});
  made->record = RecordEntry::of(call, made->signature, 0);
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
  if (remember && !is_user(plan.call.func)) {  // whose number may come to stand for another operator
    const Call& call = plan.call;
    slots_[slot_of({call.collective, call.func, call.dtype, call.in_place, call.root, call.count, nullptr, 0, nullptr,
                    0})] = &plan;
  }
  run_claimed(plan, src, dst);
  return true;
}

void Express::run_claimed(const LanePlan& plan, std::byte* src, std::byte* dst) {
  // However the call ends, that is recorded, and the lanes are given back; after an error nobody takes them again.
  struct Claim {
    explicit Claim(Express& of) : express(of) {}
    ~Claim() {
      express.recorder_->end(express.blocking_.mark, outcome);
      express.release();
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Express& express;
    RecordedState outcome = RecordedState::kFailed;
  };
  Claim claim(*this);
  const CallOrder::Place place = order_->enter_alone(plan.signature);
  note(place.sequence, plan);
  blocking_.mark = recorder_->begin(plan.record, place.sequence);
  blocking_.plan = &plan;
  blocking_.sequence = place.sequence;
  blocking_.registered = 0;
  try {
    if (!opened_.load(std::memory_order_relaxed)) [[unlikely]]
      open(blocking_);
    frame_.regions[static_cast<std::size_t>(Region::kSrc)] = src;
    frame_.regions[static_cast<std::size_t>(Region::kDst)] = dst;
    frame_.digest = place.digest;
    const LaneProgram* program = plan.must_be_direct ? &plan.direct : &plan.plain;
    if (plan.shows_addresses) {
      if (exchange_addresses(plan)) {
        program = &plan.direct;
      } else if (plan.must_be_direct) {
        throw Unreachable{};
      }
    }
    if (program->lowered.scratch_bytes > scratch_.size()) [[unlikely]]
      scratch_.resize(program->lowered.scratch_bytes);
    frame_.regions[static_cast<std::size_t>(Region::kScratch)] = scratch_.data();
    frame_.program = &program->lowered;
    last_->number.store(program->number, std::memory_order_relaxed);
    recorder_->set_algorithm(blocking_.mark, program->number);
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
    fail_shielded(dst, plan.dst_bytes, [&] { watch_.fault(*this, blocking_, fault); });
  } catch (const AccessBanned&) {
    fail_shielded(dst, plan.dst_bytes, [&] { await_verdict(blocking_); });
  } catch (const Error& error) {
    fail_shielded(dst, plan.dst_bytes, [&] {
      watch_.failed(*this, error);
      throw Error(error);
    });
  }
  if (blocking_.registered != 0) [[unlikely]]
    watch_.completed(*this, blocking_);
  traffic_.add(frame_.program->load);
  claim.outcome = RecordedState::kEnded;
}

/// Another rank has failed and forbidden access; its reason is on its way.
void Express::await_verdict(Blocking& blocking) {
  blocking.phase = "waits to hear why another rank has ended the call";
  constexpr int kLooks = 10'000;
  for (int i = 0; i < kLooks; ++i) {
    watch_.look(*this, blocking);
    shm::WaitHook::sleep_for(std::chrono::microseconds(100));
  }
  throw Error(ErrorCode::kRevoked, recorder_->title() + ": another rank has ended the call and has not said why");
}

const Algorithm* Express::last_algorithm() const {
  const std::uint32_t position = last_->number.load(std::memory_order_relaxed) & ~LastNumber::kAutomatic;
  return position == 0 ? nullptr : &algorithms()[position - 1];
}

/// Shields a buffer, then ends the call by `end`, which throws Error.
template <class End>
void Express::fail_shielded(std::byte* dst, std::uint64_t bytes, End&& end) {
  const std::string note = shield(dst, bytes);
  try {
    end();
  } catch (const Error& error) {
    if (note.empty()) throw;
    throw Error(error.code(), error.what() + note, true);
  }
}

std::string Express::shield(std::byte* dst, std::uint64_t bytes) {
  close();
  if (!opened_.load(std::memory_order_acquire)) return {};
  const shm::TouchGuard& guard = ports_.guard;
  guard.ban();
  constexpr std::chrono::seconds kPatience{1};
  const auto until = shm::Parking::Clock::now() + kPatience;
  std::string staying;
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    while (peer != rank_ && guard.touches(peer) && network_.liveness(endpoints_[peer]) == Poe::Liveness::kAlive) {
      if (shm::Parking::Clock::now() >= until) {
        staying += (staying.empty() ? "rank " : ", rank ") + std::to_string(peer);
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  if (staying.empty() || bytes == 0) return {};
  if (one_process_ || segment_->offset_of(dst, bytes) != 0) {
    segment_->detach(dst, bytes);
    return {};
  }
  // Ordinary memory cannot be taken from under a system call of another process.
  return " (" + staying +
         " was stopped while copying: if it goes on, it may still write to this call's buffer, which "
         "must not be used for anything else before that process has ended)";
}

/// Takes the lanes into use if rank 0 has made them. By whoever has claimed.
bool Express::try_open() {
  if (opened_.load(std::memory_order_relaxed)) return true;
  if (!lanes_.open()) return false;
  one_process_ = network_.one_process();
  ports_.open(lanes_, shm::LaneSpace::kCollective, rank_, size_, &network_.kernel_copy(), endpoints_);
  const std::lock_guard lock(early_mutex_);
  mail_ = std::make_unique<Mail>(
      MailWays{lanes_, segment_, &network_.kernel_copy(), endpoints_, traffic_, one_process_, eager_limit_}, size_);
  for (MailOp* op : early_) mail_->post(*op);
  early_.clear();
  opened_.store(true, std::memory_order_release);
  return true;
}

/// The same by whoever has not claimed; false also while another thread has.
bool Express::claim_and_open() {
  if (!claim()) return opened_.load(std::memory_order_acquire);
  const bool open = try_open();
  release();
  return open;
}

void Express::open(Blocking& blocking) {
  blocking.phase = "waits for the communicator's lanes, which rank 0 makes";
  await_naming([&] { return try_open(); }, [](auto&& use) { use(0U); }, blocking);
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
    if (!lane.has_line()) [[unlikely]]
      await_line(lane, peer);
    copy_inline(lane.next().payload.data(), data, bytes);
    lane.publish(head, frame_.digest);
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
  const std::uint64_t awaited = lane.awaited(frame_.digest);
  if (line.flag.load(std::memory_order_acquire) != awaited) await_flag(lane, awaited, peer);
  const auto bytes = static_cast<std::uint32_t>(action.bytes);
  if (line.head != LanePorts::head(bytes, action.tag_in)) [[unlikely]]
    throw LaneFault{peer, false};
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
    await_naming([&] { return ports_.advance(action, frame_, done); },
                 [&](auto&& use) { ports_.for_each_awaited(action, *frame_.program, use); }, blocking_);
  }
}

void Express::run_windowed(const LoweredProgram& program) {
  frame_.program = &program;
  windowed_.start(ports_, frame_);
  while (!windowed_.finished()) {
    if (windowed_.step()) continue;
    blocking_.phase = "waits for messages, or for room for them";
    await_naming([&] { return windowed_.step(); }, [&](auto&& use) { windowed_.for_each_awaited(use); }, blocking_);
  }
}

template <class Ready>
void Express::await(Ready&& ready, std::uint32_t peer) {
  await_naming(
      ready, [peer](auto&& use) { use(peer); }, blocking_);
}

/// Waits until `ready`, looking now and then at everything else. `name` names the ranks that are waited for then: one
/// that has done its part may have left the job meanwhile.
template <class Ready, class Name>
void Express::await_naming(Ready&& ready, Name&& name, Blocking& blocking) {
  Clock::time_point until = Clock::time_point::max();
  const auto look = [&] {
    blocking.awaited.clear();
    name([&](std::uint32_t rank) { blocking.awaited.push_back(rank); });
    const Clock::time_point next = watch_.look(*this, blocking);
    return std::exchange(until, next) == next;
  };
  // A wait ends early when it turns out that it must not last as long as it was begun for.
  while (!network_.await(ready, look, until)) {
    if (Clock::now() >= until) look();
  }
}

void Express::await_flag(const shm::LaneReceiver& lane, std::uint64_t awaited, std::uint32_t peer) {
  blocking_.phase = "waits for a message";
  const std::atomic<std::uint64_t>& flag = lane.next().flag;
  std::uint64_t seen = 0;
  await(
      [&] {
        seen = flag.load(std::memory_order_acquire);
        return static_cast<std::uint32_t>(seen) == static_cast<std::uint32_t>(awaited);
      },
      peer);
  if (seen != awaited) throw LaneFault{peer, true};
}

void Express::await_line(shm::LaneSender& lane, std::uint32_t peer) {
  blocking_.phase = "waits for the receiver to take earlier messages";
  await([&] { return lane.has_line(); }, peer);
}

// ------------------------------------------------------------------------------------------------ mail

bool Express::try_mail(bool sends, std::uint32_t peer, std::uint32_t tag, Datatype dtype, std::uint64_t count,
                       std::byte* data, std::uint64_t& received) {
  if (!opened_.load(std::memory_order_acquire) || closed_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t bytes = count * bytes_of(dtype);
  if (sends) return mail_->try_send(peer, tag, dtype, data, bytes);
  if (bytes > Mail::kShort) return false;
  constexpr int kPolls = 1024;
  for (int polls = 0; !mail_->stirs(peer); ++polls) {
    if (polls == kPolls || network_.crowded() || shm::WaitHook::installed()) return false;
    shm::pause_core();  // a tighter loop takes the line from the sender before it has written it
  }
  return mail_->try_receive(peer, tag, dtype, data, bytes, received);
}

std::uint64_t Express::run_mail(MailOp& op, std::uint64_t count) {
  Blocking blocking;
  blocking.mail.collective = op.sends ? Collective::kSend : Collective::kRecv;
  blocking.mail.dtype = op.dtype;
  blocking.mail.root = op.peer;
  blocking.mail.rank = rank_;
  blocking.mail.size = size_;
  blocking.mail.count = count;
  blocking.tag = op.tag;
  blocking.mark = recorder_->begin(RecordEntry::of(blocking.mail, op.tag, kRecordedPointToPoint), 0);
  recorder_->set_algorithm(blocking.mark, 0);
  struct Recorded {
    ~Recorded() { recorder.end(mark, outcome); }
    CallRecorder& recorder;
    const RecordMark& mark;
    RecordedState outcome = RecordedState::kFailed;
  };
  Recorded recorded{*recorder_, blocking.mark};
  bool posted = false;
  try {
    if (!opened_.load(std::memory_order_acquire)) {
      blocking.phase = "waits for the communicator's lanes, which rank 0 makes";
      await_naming([&] { return claim_and_open(); }, [](auto&& use) { use(0U); }, blocking);
    }
    mail_->post(op);
    posted = true;
    blocking.phase = op.sends ? "waits for its message to be taken" : "waits for a message";
    await_naming(
        [&] { return op.ended.load(std::memory_order_acquire) || (mail_->progress(op.peer), op.ended.load()); },
        [&](auto&& use) { use(op.peer); }, blocking);
  } catch (const AccessBanned&) {
    if (posted) mail_->withdraw(op);
    fail_shielded(op.sends ? nullptr : op.data, op.sends ? 0 : op.bytes, [&] { await_verdict(blocking); });
  } catch (const Error& error) {
    if (posted) mail_->withdraw(op);
    fail_shielded(op.sends ? nullptr : op.data, op.sends ? 0 : op.bytes, [&] {
      watch_.failed(*this, error);
      throw Error(error);
    });
  }
  if (blocking.registered != 0) watch_.completed(*this, blocking);
  if (op.code != ErrorCode::kOk) {
    throw Error(op.code, std::string(op.sends ? "send" : "recv") + " (" + recorder_->title() + ", rank " +
                             std::to_string(rank_) + ", peer " + std::to_string(op.peer) + ", tag " +
                             std::to_string(op.tag) + "): " + op.text);
  }
  recorded.outcome = RecordedState::kEnded;
  return op.received;
}

void Express::post_mail(MailOp& op) {
  if (!opened_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(early_mutex_);
    if (!opened_.load(std::memory_order_relaxed)) {
      early_.push_back(&op);
      return;
    }
  }
  mail_->post(op);
}

bool Express::step_mail(const MailOp& op) {
  return (opened_.load(std::memory_order_acquire) || claim_and_open()) && mail_->progress(op.peer);
}

std::string Express::withdraw_mail(MailOp& op) {
  if (op.ended.load(std::memory_order_acquire)) return {};
  if (!opened_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(early_mutex_);
    if (!opened_.load(std::memory_order_relaxed)) {
      early_.erase(std::remove(early_.begin(), early_.end(), &op), early_.end());
      return {};
    }
  }
  mail_->withdraw(op);
  return shield(op.sends ? nullptr : op.data, op.sends ? 0 : op.bytes);
}

// --------------------------------------------------------------------------------------------- addresses

/// Whether this rank copies from and to ordinary memory of every other member. Tried by the first call that asks.
bool Express::copies_all() {
  if (copies_) return *copies_;
  bool all = true;
  for (std::uint32_t peer = 0; peer < size_ && all; ++peer) {
    all = peer == rank_ || network_.kernel_copy().reaches(endpoints_[peer]);
  }
  copies_ = all;
  return all;
}

/// Whether the kernel copies a region of this rank; asked once for each of the last ones.
bool Express::copies_own(const std::byte* region, std::uint64_t bytes) {
  const auto place = reinterpret_cast<std::uintptr_t>(region);
  OwnRegion& known = copied_[(place >> 12U ^ place >> 6U) % copied_.size()];
  if (known.region == region && known.bytes == bytes) return true;
  if (!shm::KernelCopy::copies_own(region, bytes)) return false;
  known = {region, bytes};
  return true;
}

/// Where this rank's regions are, for its peers.
Shown Express::own_addresses(const LanePlan& plan, std::byte* src, std::byte* dst) {
  Shown own;
  own.copies = !one_process_ && plan.may_copy && copies_all();
  const auto word = [&](const std::byte* region, std::uint64_t bytes) {
    if (bytes == 0) return std::uint64_t{0};
    if (one_process_) return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(region));
    const std::uint64_t offset = segment_->offset_of(region, bytes);
    if (offset != 0) return offset;
    return own.copies && copies_own(region, bytes) ? Reach::copied(region) : Reach::kNone;
  };
  own.src = word(src, plan.src_bytes);
  own.dst = word(dst, plan.dst_bytes);
  own.note(own.src);
  own.note(own.dst);
  return own;
}

/// Tells one peer where this rank's regions are; false if there is no room for it now.
bool Express::show_address(std::uint32_t peer, const Shown& own) {
  shm::LaneSender& lane = ports_.send[peer];
  if (!lane.has_line()) return false;
  const AddressWords words{own.src, own.dst, own.copies ? 1U : 0U};
  std::memcpy(lane.next().payload.data(), words.data(), sizeof words);
  lane.publish(address_head(), frame_.digest);
  shm::wake_if_parked(*lane.peer);
  return true;
}

/// Learns where a peer's regions are; false if it has not said so yet. Adds what it says to what is known of `all`.
bool Express::see_address(std::uint32_t peer, const LanePlan& plan, Shown& all) {
  shm::LaneReceiver& lane = ports_.receive[peer];
  const shm::LaneLine& line = lane.next();
  const std::uint64_t flag = line.flag.load(std::memory_order_acquire);
  const std::uint64_t awaited = lane.awaited(frame_.digest);
  if (static_cast<std::uint32_t>(flag) != static_cast<std::uint32_t>(awaited)) return false;
  if (flag != awaited) throw LaneFault{peer, true};
  if (line.head != address_head()) throw LaneFault{peer, false};
  AddressWords shown{};
  std::memcpy(shown.data(), line.payload.data(), sizeof shown);
  if (lane.release()) shm::wake_if_parked(*lane.peer);
  const auto found = [&](std::uint64_t word, std::uint64_t bytes) {
    FarRegion region;
    if (bytes == 0) return region;
    all.note(word);
    if (word == Reach::kNone) return region;
    if (one_process_) {
      region.mapped = reinterpret_cast<std::byte*>(word);  // NOLINT(performance-no-int-to-ptr): a thread's own address
    } else if (Reach::by_copy(word)) {
      region.address = Reach::address(word);
      if (region.address == 0) throw LaneFault{peer, false};
    } else {
      region.mapped = segment_->at(word, bytes);
      if (region.mapped == nullptr) throw LaneFault{peer, false};
    }
    return region;
  };
  all.copies = all.copies && shown[2] != 0;
  reachable_[peer] = {found(shown[0], plan.peer_bytes[peer][0]), found(shown[1], plan.peer_bytes[peer][1])};
  return true;
}

/// Every rank tells every other where its regions are. Returns whether all of them can be reached, which all ranks
/// find alike, for each has what all have shown.
bool Express::exchange_addresses(const LanePlan& plan) {
  std::byte* src_region = frame_.regions[static_cast<std::size_t>(Region::kSrc)];
  std::byte* dst_region = frame_.regions[static_cast<std::size_t>(Region::kDst)];
  const Shown own = own_addresses(plan, src_region, dst_region);
  Shown all = own;
  for (std::uint32_t distance = 1; distance < size_; ++distance) {
    const std::uint32_t peer = (rank_ + distance) % size_;
    if (!show_address(peer, own)) {
      await_line(ports_.send[peer], peer);
      show_address(peer, own);
    }
  }
  blocking_.phase = "waits to hear where its buffers are";
  for (std::uint32_t distance = 1; distance < size_; ++distance) {
    const std::uint32_t peer = (rank_ + size_ - distance) % size_;
    if (!see_address(peer, plan, all)) {
      await([&] { return see_address(peer, plan, all); }, peer);
    }
  }
  reachable_[rank_] = {{src_region, 0}, {dst_region, 0}};
  frame_.peers = reachable_.data();
  frame_.copies = all.ordinary;
  return all.reachable();
}

// ------------------------------------------------------------------------------------ calls in the queue

void Express::enqueue(LaneCall& call) {
  queued_.fetch_add(1, std::memory_order_relaxed);
  const CallOrder::Place place = order_->enter(call.plan->signature);
  call.sequence = place.sequence;
  call.digest = place.digest;
  note(call.sequence, *call.plan);
  call.phase = LaneCall::Phase::kWaiting;
  queue_.push_back(&call);
}

std::string Express::dequeue(LaneCall& call) {
  const auto found = std::find(queue_.begin(), queue_.end(), &call);
  if (found == queue_.end()) return {};
  std::string note;
  // One that has ended half-way leaves the lanes in disorder, and peers perhaps at its buffers.
  if (call.phase != LaneCall::Phase::kWaiting && call.phase != LaneCall::Phase::kDone) {
    note = shield(call.dst.data, call.plan->dst_bytes);
  }
  queue_.erase(found);
  queued_.fetch_sub(1, std::memory_order_relaxed);
  return note;
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
    if (!try_open()) return false;
    call.shown.assign(size_, false);
    call.seen.assign(size_, false);
    if (plan.shows_addresses) call.own = call.all = own_addresses(plan, call.src.data, call.dst.data);
    call.phase = LaneCall::Phase::kAddresses;
    any = true;
  }
  // Only one call of the queue is beyond kWaiting, so it may use what blocking calls use.
  frame_.regions[static_cast<std::size_t>(Region::kSrc)] = call.src.data;
  frame_.regions[static_cast<std::size_t>(Region::kDst)] = call.dst.data;
  frame_.digest = call.digest;
  if (call.phase == LaneCall::Phase::kAddresses) {
    bool complete = true;
    bool reachable = plan.shows_addresses;
    if (plan.shows_addresses) {
      reachable_[rank_] = {{call.src.data, 0}, {call.dst.data, 0}};
      for (std::uint32_t peer = 0; peer < size_; ++peer) {
        if (peer == rank_) continue;
        if (!call.shown[peer]) call.shown[peer] = show_address(peer, call.own);
        if (!call.seen[peer] && see_address(peer, plan, call.all)) {
          call.seen[peer] = true;
          any = true;
        }
        complete = complete && call.shown[peer] && call.seen[peer];
      }
      reachable = call.all.reachable();
      frame_.peers = reachable_.data();
      frame_.copies = call.all.ordinary;
    }
    if (!complete) return any;
    if (plan.must_be_direct && plan.shows_addresses && !reachable) {
      call.phase = LaneCall::Phase::kWaiting;  // the lanes are clean
      throw Unreachable{};
    }
    const LaneProgram& program = reachable || plan.must_be_direct ? plan.direct : plan.plain;
    last_->number.store(program.number, std::memory_order_relaxed);
    call.scratch.resize(program.lowered.scratch_bytes);
    frame_.regions[static_cast<std::size_t>(Region::kScratch)] = call.scratch.data();
    frame_.program = &program.lowered;
    call.run.start(ports_, frame_);
    call.phase = LaneCall::Phase::kRunning;
    any = true;
  }
  while (!call.run.finished() && call.run.step()) any = true;
  if (call.run.finished()) {
    traffic_.add(frame_.program->load);
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
  } else if (call.phase == LaneCall::Phase::kWaiting) {
    if (!opened_ && rank_ != 0) use(0);  // who makes the lanes
  } else if (call.phase == LaneCall::Phase::kAddresses) {
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      if (peer != rank_ && !call.seen[peer]) use(peer);
    }
  }
}

}  // namespace unisono::cclo
