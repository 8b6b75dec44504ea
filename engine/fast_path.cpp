#include "engine/fast_path.hpp"

#include <sys/single_threaded.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/footprint.hpp"
#include "engine/plain_blocks.hpp"
#include "engine/state.hpp"
#include "network/wait_hook.hpp"

namespace unisono::cclo {
namespace {

using shm::Reach;

/// Addresses as they travel: src, dst, and whether the rank copies.
using AddressWords = std::array<std::uint64_t, 3>;
constexpr std::uint64_t kShownCopies = 1;   ///< Shown::copies
constexpr std::uint64_t kShownInPlace = 2;  ///< Shown::in_place
/// Steps of a long message between two looks at everything else: 16 MB.
constexpr std::uint32_t kStepsPerLook = 64;

std::uint64_t address_head() {
  HeaderLine line;
  line.bytes = sizeof(AddressWords);
  line.type = MessageType::kRequest;
  return encode(line)[0];
}

}  // namespace

FastPath::FastPath(shm::ShmPoe& network, Watch& watch, std::uint32_t number, std::uint16_t epoch, std::uint32_t rank,
                   std::span<const std::uint32_t> endpoints, std::uint32_t eager_limit,
                   std::shared_ptr<CallOrder> order, std::shared_ptr<LastNumber> last,
                   std::shared_ptr<CallRecorder> recorder, std::shared_ptr<PlanCache> plans)
    : network_(network),
      watch_(watch),
      number_(number),
      rank_(rank),
      size_(static_cast<std::uint32_t>(endpoints.size())),
      eager_limit_(eager_limit),
      order_(std::move(order)),
      last_(std::move(last)),
      plans_(std::move(plans)),
      segment_(network.segment()),
      traffic_(segment_->counters(network.self())),
      windows_(network, rank, endpoints, traffic_),
      recorder_(std::move(recorder)),
      lanes_(segment_, network.arena(), network.self(), number, epoch, endpoints),
      endpoints_(endpoints.begin(), endpoints.end()),
      reachable_(size_) {}

Error FastPath::unreachable(const Plan& plan) {
  return {
      ErrorCode::kUnsupported,
      std::string(name_of(plan.call.collective)) + ": algorithm " + plan.direct.algorithm->name +
          " needs buffers that every rank can reach: memory of unisono_allocate, or any where the kernel lets ranks "
          "copy from each other (`unisono doctor`). On some rank they are neither. Allocate them so on all ranks, or "
          "leave the choice of the algorithm to Unisono"};
}

void FastPath::trim_plans() {
  if (!plans_->full() || !claim()) return;
  plans_->trim();
  release();
}

// ------------------------------------------------------------------------------------------ blocking calls

// A thread that finds the lanes claimed goes through the engine; nobody waits here. While the process has one thread,
// no locked instruction is needed.
bool FastPath::claim() {
  if (__libc_single_threaded) {
    if (busy_.load(std::memory_order_relaxed)) return false;
    busy_.store(true, std::memory_order_relaxed);
    return true;
  }
  return !busy_.exchange(true, std::memory_order_acquire);
}

void FastPath::release() { busy_.store(false, std::memory_order_release); }

/// `kVaries`: the plan does.
template <bool kVaries>
[[gnu::always_inline]] inline void FastPath::run_claimed(const Plan& plan, const LaneLaunch& launch) {
  // However the call ends, that is recorded, and the lanes are given back; after an error nobody takes them again.
  struct Claim {
    explicit Claim(FastPath& of) : fast_path(of) {}
    ~Claim() {
      fast_path.recorder_->end(fast_path.blocking_.mark, outcome);
      fast_path.release();
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    FastPath& fast_path;
    RecordedState outcome = RecordedState::kFailed;
  };
  Claim claim(*this);
  const CallOrder::Place place = order_->enter_alone(kVaries ? plan.signature_for(launch.count) : plan.signature);
  const std::uint32_t set = next_set(plan, place.sequence, kVaries);
  plans_->note<kVaries>(place.sequence, plan, launch.count);
  blocking_.mark = recorder_->begin(kVaries ? plan.record_for(launch.count) : plan.record, place.sequence);
  if constexpr (kVaries) {
    blocking_.count = launch.count;
    blocking_.params = launch.params;
  }
  blocking_.plan = &plan;
  blocking_.sequence = place.sequence;
  blocking_.registered = 0;
  try {
    LiveRank& live = sets_[set] ? *sets_[set] : open(blocking_, set);
    live.channels.digest = place.digest;
    const LaneProgram* program = plan.must_be_direct ? &plan.direct : &plan.plain;
    if (asks(plan)) {
      const LaneProgram* const direct = exchange_addresses(plan, launch);
      found(plan, direct != nullptr);
      if (direct != nullptr) {
        program = direct;
      } else if (plan.must_be_direct) {
        throw Unreachable{};
      }
    }
    if (program->lowered.scratch_bytes > scratch_.size()) [[unlikely]]
      scratch_.resize(program->lowered.scratch_bytes);
    bind_regions(live, launch.src.data, launch.dst.data, scratch_.data());
    if constexpr (kVaries) bind(*program, launch);
    last_->number.store(program->number, std::memory_order_relaxed);
    recorder_->set_algorithm(blocking_.mark, program->recorded());
    const bool straight =
        live.channels.holds(program->lowered) && !(plan.lends && lends(plan, launch, program->lowered));
    if constexpr (kVaries) {
      if (!straight) [[unlikely]]
        launcher_.number(program->lowered);
    }
    if (straight) {
      flight_.start_straight(program->lowered);
      if (!live.executor->straight(flight_)) await_straight(live);
    } else {
      run_windowed(program->lowered, live);
    }
  } catch (const Unreachable&) {
    // All ranks find this alike, having told each other; nothing is left on the lanes.
    if (blocking_.registered != 0) watch_.completed(*this, blocking_);
    throw unreachable(plan);
  } catch (const LaneFault& fault) {
    fail_shielded(launch.dst.data, launch.dst.bytes, [&] { watch_.fault(*this, blocking_, fault); });
  } catch (const AccessBanned&) {
    fail_shielded(launch.dst.data, launch.dst.bytes, [&] { await_verdict(blocking_); });
  } catch (const Error& error) {
    fail_shielded(launch.dst.data, launch.dst.bytes, [&] {
      watch_.failed(*this, error);
      throw Error(error);
    });
  }
  if (blocking_.registered != 0) [[unlikely]]
    watch_.completed(*this, blocking_);
  traffic_.add(flight_.program->load);
  claim.outcome = RecordedState::kEnded;
}

bool FastPath::run(const std::shared_ptr<const Plan>& plan, const LaneLaunch& launch, bool remember) {
  if (!claim()) return false;
  if (unavailable()) {
    release();
    return false;
  }
  if (remember && !is_user(plan->call.func)) plans_->remember(plan);
  if (plan->varies) {
    run_claimed<true>(*plan, launch);
  } else {
    run_claimed<false>(*plan, launch);
  }
  return true;
}

bool FastPath::try_as_member(const Request& request, std::uint64_t& received) {
  if (!request.call.in_place || request.call.root == rank_ || !in_place_at_root(request.call.collective)) return false;
  Request plain = request;
  plain.call.in_place = false;
  return try_run(plain, received);
}

bool FastPath::try_vectors(const Request& request, const VectorArguments& counts) {
  Call call = request.call;
  call.rank = rank_;
  call.size = size_;
  if (!is_known(call.collective) || !is_known(call.dtype) || call.dtype == Datatype::kNone || call.root >= size_)
    return false;
  if (call.root != rank_ && in_place_at_root(call.collective)) call.in_place = false;
  const std::optional<PlainBlocks> blocks = plain_blocks(call, counts);
  if (!blocks) return false;
  call.count = blocks->count;
  const Footprint used = footprint_of(call, blocks->extents);
  const std::uint64_t element = element_bytes(call);
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 43U;  // the product stays a number
  if (std::max(used.src, used.dst) >= kMostElements) return false;
  const Binding src{request.src.data, used.src * element};
  const Binding dst{request.dst.data, used.dst * element};
  if (!fits(src.bytes, dst.bytes, request.src, request.dst) || !claim()) return false;
  const std::uint64_t shown = blocks->count == kUnknownCount ? blocks->extents.own : blocks->count;
  const Plan* plan = plans_->front_of_class(call, blocks->count);
  if (plan == nullptr || unavailable()) {
    release();
    return false;
  }
  params_.resize(plan->checked->program.params_bytes / sizeof(std::uint64_t));
  plan->algorithm->fill_params(call, counts, params_.data());
  run_claimed<true>(*plan, {src, dst, shown, params_});
  return true;
}

void FastPath::run_known(const Plan& plan, std::byte* src, std::byte* dst) {
  run_claimed<false>(plan, {{src, plan.src_bytes}, {dst, plan.dst_bytes}});
}

/// Another rank has failed and forbidden access; its reason is on its way.
void FastPath::await_verdict(Blocking& blocking) {
  blocking.phase = "waits to hear why another rank has ended the call";
  constexpr int kLooks = 10'000;
  for (int i = 0; i < kLooks; ++i) {
    watch_.look(*this, blocking);
    WaitHook::sleep_for(std::chrono::microseconds(100));
  }
  throw Error(ErrorCode::kRevoked, recorder_->title() + ": another rank has ended the call and has not said why");
}

const Algorithm* FastPath::last_algorithm() const {
  const std::uint32_t position = last_->number.load(std::memory_order_relaxed) & ~LastNumber::kAutomatic;
  return position == 0 ? nullptr : &algorithms()[position - 1];
}

/// Shields a buffer, then ends the call by `end`, which throws Error.
template <class End>
void FastPath::fail_shielded(std::byte* dst, std::uint64_t bytes, End&& end) {
  const std::string note = shield(dst, bytes);
  try {
    end();
  } catch (const Error& error) {
    if (note.empty()) throw;
    throw Error(error.code(), error.what() + note, true);
  }
}

std::string FastPath::shield(std::byte* dst, std::uint64_t bytes) {
  close();
  end_window();
  if (!opened_.load(std::memory_order_acquire)) return {};
  const shm::TouchGuard& guard = guard_;
  guard.ban();
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

/// Takes the lanes into use if rank 0 has made them. The caller has claimed them.
bool FastPath::try_open() {
  if (opened_.load(std::memory_order_relaxed)) return true;
  if (!lanes_.open()) return false;
  one_process_ = network_.one_process();
  guard_ = lanes_.touch_guard();
  windows_.open(lanes_, one_process_, KernelValues::streaming_bytes_for(size_));
  const std::lock_guard lock(early_mutex_);
  point_to_point_ = std::make_unique<PointToPoint>(
      PointToPointWays{lanes_, segment_, &network_.kernel_copy(), endpoints_, traffic_, one_process_, eager_limit_},
      size_);
  for (Transfer* op : early_) point_to_point_->post(*op);
  early_.clear();
  opened_.store(true, std::memory_order_release);
  return true;
}

/// The same, and a set of them.
bool FastPath::try_open(std::uint32_t set) {
  if (!try_open()) return false;
  if (sets_[set]) return true;
  auto live = std::make_unique<LiveRank>();
  const shm::LaneSpace space = set == kLargeSet ? shm::LaneSpace::kCollective : shm::small_set(set);
  live->open(lanes_, space, rank_, size_, &network_.kernel_copy(), endpoints_);
  if (set == kLargeSet)
    live->channels.loans.open({lanes_, segment_, one_process_, &network_.kernel_copy(), endpoints_, traffic_});
  sets_[set] = std::move(live);
  return true;
}

/// The same for a caller that has not claimed them; false also while another thread has.
bool FastPath::claim_and_open() {
  if (!claim()) return opened_.load(std::memory_order_acquire);
  const bool open = try_open();
  release();
  return open;
}

LiveRank& FastPath::open(Blocking& blocking, std::uint32_t set) {
  blocking.phase = "waits for the communicator's lanes, which rank 0 makes";
  await_naming([&] { return try_open(set); }, [](auto&& use) { use(0U); }, blocking);
  return *sets_[set];
}

/// Writes what a launch brings into a program that varies.
void FastPath::bind(const LaneProgram& program, const LaneLaunch& launch) {
  launcher_.bind(program.lowered, launch.params,
                 {launch.src.bytes, launch.dst.bytes, program.lowered.scratch_bytes, 0, 0});
}

/// Whether messages of a launch whose plan lends are long enough for that, which the straight form does not.
bool FastPath::lends(const Plan& plan, const LaneLaunch& launch, const LoweredProgram& program) const {
  if (program.remote_memory || program.longest_message < Loans::kWorthIt) return false;
  if (one_process_ || program.longest_message >= plan.least_lent) return true;
  const Binding& own = launch.src.bytes != 0 ? launch.src : launch.dst;
  return segment_->offset_of(own.data, own.bytes) != 0;
}

/// The rest of a straight form that could not go on.
void FastPath::await_straight(LiveRank& live) {
  Live& executor = *live.executor;
  const auto name = [&](auto&& use) {
    executor.awaited_straight(flight_, [&](std::uint32_t rank, Need need) {
      blocking_.phase = need == Need::kRoom ? "waits for the receiver to take earlier messages" : "waits for a message";
      use(rank);
    });
  };
  while (!flight_.ended_straight()) {
    const Flight::Place stuck = flight_.place;
    // Nothing is tried before the word that tells has changed: a look at more would slow down who writes it.
    await_naming([&] { return !live.channels.stuck.still() && (executor.straight(flight_) || flight_.place != stuck); },
                 name, blocking_);
  }
}

void FastPath::run_windowed(const LoweredProgram& program, LiveRank& live) {
  Live& executor = *live.executor;
  live.channels.loans.begin(program, blocking_.plan->lends && !program.remote_memory, blocking_.plan->least_lent);
  flight_.start_windowed(program, size_);
  while (!flight_.ended_windowed()) {
    if (executor.windowed(flight_)) continue;
    blocking_.phase = "waits for messages, or for room for them";
    await_naming([&] { return executor.windowed(flight_); },
                 [&](auto&& use) { executor.awaited_windowed(flight_, [&](std::uint32_t rank, Need) { use(rank); }); },
                 blocking_);
  }
}

template <class Ready>
void FastPath::await(Ready&& ready, std::uint32_t peer) {
  await_naming(
      ready, [peer](auto&& use) { use(peer); }, blocking_);
}

/// Looks at everything else than what a call waits for. `name` names the ranks that are waited for: one that has done
/// its part may have left the job meanwhile. Until when it may wait.
template <class Name>
std::chrono::steady_clock::time_point FastPath::look_naming(Name&& name, Blocking& blocking) {
  blocking.awaited.clear();
  name([&](std::uint32_t rank) { blocking.awaited.push_back(rank); });
  return watch_.look(*this, blocking);
}

/// Waits until `ready`, looking now and then at everything else; see `look_naming`. It may sleep after `ready` has said
/// no: what this rank can do by itself must have been done then.
template <class Ready, class Name>
void FastPath::await_naming(Ready&& ready, Name&& name, Blocking& blocking) {
  Clock::time_point until = Clock::time_point::max();
  const auto look = [&] {
    const Clock::time_point next = look_naming(name, blocking);
    return std::exchange(until, next) == next;
  };
  // A wait ends early when it turns out that it must not last as long as it was begun for.
  while (!network_.await(ready, look, until)) {
    if (Clock::now() >= until) look();
  }
}

void FastPath::await_line(shm::LaneSender& lane, std::uint32_t peer) {
  blocking_.phase = "waits for the receiver to take earlier messages";
  await([&] { return lane.has_line(); }, peer);
}

// ------------------------------------------------------------------------------------------------ point to point

[[gnu::always_inline]] inline std::optional<FastPath::ShortTransfer> FastPath::short_transfer(
    const Request& request) const {
  if (!opened_.load(std::memory_order_acquire) || closed_.load(std::memory_order_relaxed)) return std::nullopt;
  const Call& call = request.call;
  const bool sends = call.collective == Collective::kSend;
  const Binding& data = sends ? request.src : request.dst;
  const std::uint64_t element = element_bytes(call);
  const std::uint64_t bytes = call.count * element;
  if (call.root >= size_ || request.tag > kMaxUserTag || element == 0 || call.func != Func::kNone || call.in_place ||
      call.count > PointToPoint::kShort || data.data == nullptr || data.bytes < bytes ||
      (!sends && bytes > PointToPoint::kShort)) {
    return std::nullopt;
  }
  return ShortTransfer{sends, data.data, bytes};
}

bool FastPath::try_transfer(const Request& request, std::uint64_t& received) {
  const std::optional<ShortTransfer> given = short_transfer(request);
  if (!given) return false;
  const Call& call = request.call;
  if (given->sends) return point_to_point_->try_send(call.root, request.tag, call.dtype, given->data, given->bytes);
  constexpr int kPolls = 1024;
  for (int polls = 0; !point_to_point_->stirs(call.root); ++polls) {
    if (polls == kPolls || network_.crowded() || WaitHook::installed()) return false;
    shm::pause_core();  // a tighter loop takes the line from the sender before it has written it
  }
  return point_to_point_->try_receive(call.root, request.tag, call.dtype, given->data, given->bytes, received);
}

bool FastPath::try_start(const Request& request, std::uint64_t& received) {
  const std::optional<ShortTransfer> given = short_transfer(request);
  if (!given) return false;
  const Call& call = request.call;
  if (given->sends) return point_to_point_->try_send(call.root, request.tag, call.dtype, given->data, given->bytes);
  return point_to_point_->stirs(call.root) &&
         point_to_point_->try_receive(call.root, request.tag, call.dtype, given->data, given->bytes, received);
}

bool FastPath::try_window(const Request& request) {
  const Call& call = request.call;
  const bool stores = call.collective == Collective::kPut;
  const Binding& data = stores ? request.src : request.dst;
  const std::uint64_t bytes = call.count * element_bytes(call);
  if (call.root >= size_ || call.count == 0 || call.count > kMaxCount || bytes == 0 || data.data == nullptr ||
      data.bytes < bytes || request.window_offset > kMaxWindowOffset || closed_.load(std::memory_order_relaxed)) {
    return false;
  }
  return windows_.try_reach({stores, call.root, request.window_offset, data.data, bytes});
}

std::uint64_t FastPath::run_transfer(Transfer& op, std::uint64_t count) {
  Blocking blocking;
  blocking.transfer.collective = op.sends ? Collective::kSend : Collective::kRecv;
  blocking.transfer.dtype = op.dtype;
  blocking.transfer.root = op.peer;
  blocking.transfer.rank = rank_;
  blocking.transfer.size = size_;
  blocking.transfer.count = count;
  blocking.tag = op.tag;
  blocking.wanted = op.wanted;
  blocking.mark =
      recorder_->begin(RecordEntry::of(blocking.transfer, op.tag, kRecordedPointToPoint | record_flags(op.wanted)), 0);
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
    point_to_point_->post(op);
    posted = true;
    blocking.phase = op.sends ? "waits for its message to be taken" : "waits for a message";
    const auto ended = [&] { return op.ended.load(std::memory_order_acquire); };
    const auto progress = [&] { return op.of_anybody() ? progress_all() : point_to_point_->progress(op.peer); };
    const auto name = [&](auto&& use) {
      blocking.anybody = op.of_anybody();
      if (!blocking.anybody) {
        use(op.peer);
        return;
      }
      for (std::uint32_t peer = 0; peer < size_; ++peer) {
        if (peer != rank_ || size_ == 1) use(peer);
      }
    };
    // A long message is copied in steps. Who waits may sleep: so only while no step has anything to do.
    for (std::uint32_t steps = 1; !ended(); ++steps) {
      if (!progress()) {
        await_naming([&] { return progress() || ended(); }, name, blocking);
      } else if (steps % kStepsPerLook == 0) {
        look_naming(name, blocking);
      }
    }
  } catch (const AccessBanned&) {
    if (posted) point_to_point_->withdraw(op);
    fail_shielded(op.sends ? nullptr : op.data, op.sends ? 0 : op.bytes, [&] { await_verdict(blocking); });
  } catch (const Error& error) {
    if (posted) point_to_point_->withdraw(op);
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

void FastPath::post_transfer(Transfer& op) {
  if (!opened_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(early_mutex_);
    if (!opened_.load(std::memory_order_relaxed)) {
      early_.push_back(&op);
      return;
    }
  }
  point_to_point_->post(op);
}

/// Does what can be done for the messages of all peers. While this endpoint polls, for so many of them at a time; who
/// is about to sleep has said so in its word, and looks at all once more.
bool FastPath::progress_all() {
  constexpr std::uint32_t kPolled = 64;
  const bool about_to_sleep =
      (segment_->endpoint(network_.self()).parked.load(std::memory_order_relaxed) & shm::kParked) != 0;
  return point_to_point_->progress_all(about_to_sleep ? size_ : kPolled);
}

bool FastPath::step_transfer(const Transfer& op, std::uint32_t round) {
  if (!opened_.load(std::memory_order_acquire) && !claim_and_open()) return false;
  if (!op.of_anybody()) return point_to_point_->progress(op.peer);
  if (std::exchange(polled_in_, round) == round) return false;
  return progress_all();
}

std::optional<MessageStatus> FastPath::probe(const Wanted& wanted) {
  if (!opened_.load(std::memory_order_acquire) && !claim_and_open()) return std::nullopt;
  if (auto found = point_to_point_->look_for(wanted)) return found;
  if (wanted.any_source) {
    point_to_point_->progress_all(size_);
  } else {
    point_to_point_->progress(wanted.source);
  }
  return point_to_point_->look_for(wanted);
}

std::uint64_t FastPath::kept() const { return opened_.load(std::memory_order_acquire) ? point_to_point_->kept() : 0; }

std::string FastPath::unexpected_text() const {
  return opened_.load(std::memory_order_acquire) ? point_to_point_->unexpected_text() : std::string();
}

std::string FastPath::withdraw_transfer(Transfer& op) {
  if (op.ended.load(std::memory_order_acquire)) return {};
  if (!opened_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(early_mutex_);
    if (!opened_.load(std::memory_order_relaxed)) {
      early_.erase(std::remove(early_.begin(), early_.end(), &op), early_.end());
      return {};
    }
  }
  // A message that no peer knows of is nobody's business: a rank that leaves with receives posted keeps nobody from
  // reaching the memory of the others.
  if (!point_to_point_->withdraw(op)) return {};
  return shield(op.sends ? nullptr : op.data, op.sends ? 0 : op.bytes);
}

// --------------------------------------------------------------------------------------------- addresses

/// Whether this rank copies from and to ordinary memory of every other member. Tried by the first call that asks; where
/// cells are faster at all lengths, not before all have permitted it.
bool FastPath::copies_all() {
  if (copies_) return *copies_;
  if (!copy_from().ever() && !permitted_) return false;
  bool all = true;
  for (std::uint32_t peer = 0; peer < size_ && all; ++peer) {
    all = peer == rank_ || network_.kernel_copy().reaches(endpoints_[peer]);
  }
  copies_ = all;
  return all;
}

/// Whether the call that has the lanes now asks where the regions of all are; the same on all ranks.
bool FastPath::asks(const Plan& plan) {
  return plan.shows_addresses && (plan.must_be_direct || asking_[plan.may_copy ? 0 : 1].next());
}

/// What it has found.
void FastPath::found(const Plan& plan, bool reachable) {
  if (!plan.must_be_direct) asking_[plan.may_copy ? 0 : 1].found(reachable);
}

/// Where this rank's regions are, for its peers.
Shown FastPath::own_addresses(const Plan& plan, std::byte* src, std::byte* dst) {
  Shown own;
  own.copies = !one_process_ && plan.may_copy && copies_all();
  const auto word = [&](const std::byte* region, std::uint64_t bytes) {
    if (bytes == 0) return std::uint64_t{0};
    if (one_process_) return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(region));
    const std::uint64_t offset = segment_->offset_of(region, bytes);
    if (offset != 0) return offset;
    return own.copies && copyable_.holds(region, bytes) ? Reach::copied(region) : Reach::kNone;
  };
  own.src = word(src, plan.src_bytes);
  own.dst = word(dst, plan.dst_bytes);
  own.in_place = plan.call.in_place;
  own.note(own.src);
  own.note(own.dst);
  return own;
}

/// Tells one peer where this rank's regions are; false if there is no room for it now.
bool FastPath::show_address(std::uint32_t peer, const Shown& own) {
  shm::LaneSender& lane = large().channels.send[peer];
  if (!lane.has_line()) return false;
  const AddressWords words{own.src, own.dst, (own.copies ? kShownCopies : 0U) | (own.in_place ? kShownInPlace : 0U)};
  std::memcpy(lane.next().payload.data(), words.data(), sizeof words);
  lane.publish(address_head(), large().channels.digest);
  shm::wake_if_parked(*lane.peer);
  return true;
}

/// Learns where a peer's regions are; false if it has not said so yet. Adds what it says to what is known of `all`.
bool FastPath::see_address(std::uint32_t peer, const Plan& plan, Shown& all) {
  shm::LaneReceiver& lane = large().channels.receive[peer];
  const shm::LaneLine& line = lane.next();
  const std::uint64_t flag = line.flag.load(std::memory_order_acquire);
  const std::uint64_t awaited = lane.awaited(large().channels.digest);
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
  all.copies = all.copies && (shown[2] & kShownCopies) != 0;
  const bool root_in_place =
      plan.direct_in_place.algorithm != nullptr && peer == plan.call.root && (shown[2] & kShownInPlace) != 0;
  if (root_in_place) all.in_place = true;
  const auto& [src, dst] = root_in_place ? plan.root_bytes_in_place : plan.peer_bytes[peer];
  reachable_[peer] = {found(shown[0], src), found(shown[1], dst)};
  return true;
}

/// Whether the members must still permit each other kernel copy for this call. Where cells are faster at all lengths,
/// nobody has by himself, and what reaches nothing else goes by them; but a direct algorithm that the user has named is
/// refused where ordinary memory cannot be reached, not where a measurement says that something else is faster. All
/// ranks find this alike.
bool FastPath::must_permit(const Plan& plan, const Shown& all) const {
  return plan.must_be_direct && !all.reachable() && !copies_ && !one_process_;
}

/// Every rank tells every other where its regions are. Returns what runs if all of them can be reached, else null,
/// which all ranks find alike, for each has what all have shown.
const LaneProgram* FastPath::exchange_addresses(const Plan& plan, const LaneLaunch& launch) {
  Shown all = exchange(plan, own_addresses(plan, launch.src.data, launch.dst.data));
  if (must_permit(plan, all)) [[unlikely]] {
    network_.kernel_copy().show();
    exchange(plan, Shown::nothing());  // nobody tries before all have permitted it
    permitted_ = true;
    all = exchange(plan, own_addresses(plan, launch.src.data, launch.dst.data));
  }
  reachable_[rank_] = {{launch.src.data, 0}, {launch.dst.data, 0}};
  large().values.peers = reachable_.data();
  large().values.copies = all.ordinary;
  return all.reachable() ? &plan.direct_for(all.in_place) : nullptr;
}

/// One round of it: what all have shown.
Shown FastPath::exchange(const Plan& plan, const Shown& own) {
  Shown all = own;
  for (std::uint32_t distance = 1; distance < size_; ++distance) {
    const std::uint32_t peer = (rank_ + distance) % size_;
    if (!show_address(peer, own)) {
      await_line(large().channels.send[peer], peer);
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
  return all;
}

}  // namespace unisono::cclo
