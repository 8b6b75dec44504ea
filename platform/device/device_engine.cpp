#include "platform/device/device_engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/log.hpp"
#include "core/reserved_tags.hpp"
#include "core/text.hpp"
#include "engine/admit.hpp"
#include "engine/call_queue.hpp"
#include "engine/kernel_run.hpp"
#include "engine/known_tuning.hpp"
#include "engine/state.hpp"
#include "engine/stream_ports.hpp"
#include "network/wait_hook.hpp"
#include "platform/device/bring_up.hpp"
#include "platform/device/broken_ways.hpp"
#include "platform/device/communicator_table.hpp"
#include "platform/device/flight.hpp"
#include "platform/device/group_switches.hpp"
#include "platform/device/hosts.hpp"
#include "platform/device/image.hpp"
#include "platform/device/loaded_programs.hpp"
#include "platform/device/lost.hpp"
#include "platform/device/registers.hpp"
#include "platform/device/turn_lock.hpp"
#include "platform/device/window_image.hpp"

namespace unisono {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

/// Of the device's time: how long a waiting host leaves it alone.
constexpr microseconds kSlice{100};
/// The same while kernels run in the host's process.
constexpr microseconds kKernelSlice{1};
/// Calls of a communicator that a switch in hardware tells apart: its UnitRuns (rtl/switch/unisono_switch_pkg.sv).
constexpr std::uint64_t kSwitchRuns = 8;
/// Of this machine's time: how often a waiting host looks after the others.
constexpr std::chrono::milliseconds kLookInterval{20};
/// Of this machine's time: how long a call must have taken before its flight record says what it waits for.
constexpr std::chrono::milliseconds kRecordPatience{50};
/// Of the device's time: how long what a host has left behind in its device may take to arrive. A host that left in
/// good order has seen the end of its own calls, but others may still be passing on what it sent.
constexpr nanoseconds kAfterDeath{200'000};
constexpr nanoseconds kAfterLeaving{1'000'000};
constexpr std::uint64_t kLeastBandwidth = 1;  ///< bytes in a nanosecond, of a path that is not stuck

/// Of the device's time: how long a host that waits for others lets it run before it looks.
constexpr microseconds kStep{20};
/// Nanoseconds: jobs begin at a multiple of this.
constexpr std::uint64_t kStart = 1'000'000;
std::string in_words(microseconds time) {
  return time.count() % 1000 == 0 ? formatted("{} ms", time.count() / 1000) : formatted("{} us", time.count());
}

bool overlap(const Binding& a, const Binding& b) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(a.data);
  const auto second = reinterpret_cast<std::uintptr_t>(b.data);
  return first < second + b.bytes && second < first + a.bytes;
}

/// Whether an error concerns all ranks of a communicator as it is, rather than as that of another rank.
bool tells_itself(ErrorCode code) { return code == ErrorCode::kPeerDead || code == ErrorCode::kFramesLost; }

/// Whether a rank's dst has to be on the device before the call: it is read, or not all of it is written.
bool reads_dst(const Call& call) {
  const CollectiveFacts facts = facts_of(call.collective);
  const Uses uses = uses_of(call);
  // Between blocks by counts there may be gaps, a message may be shorter than its buffer, and of programs nothing is
  // known.
  const bool writes_all = uses.writes == uses.dst && !facts.vectors && !facts.point_to_point && facts.data;
  return uses.reads != Extent::kNothing || !writes_all;
}

CallResult result_of(const CallResult* known, CallId id, CallId last) {
  if (known != nullptr) return *known;
  if (id == 0 || id > last) {
    throw Error(ErrorCode::kInvalidArgument, formatted("no call of this endpoint has number {}", id));
  }
  return {true, ErrorCode::kOk, {}, 0};  // forgotten
}

}  // namespace

class DeviceEngine::Impl {
 public:
  using Image = DeviceImage;

  Impl(std::unique_ptr<Device> given, DeviceOptions with)
      : device(std::move(given)),
        options(std::move(with)),
        flight(options.job, options.records),
        memory(device->memory_address(), device->memory_bytes()) {
    if (options.hosts != nullptr) hosts.emplace(*options.hosts);
  }

  /// A communicator, and its place in the device's table.
  struct Group {
    cclo::Communicator state;
    std::uint32_t position = 0;
    std::uint64_t calls = 0;      ///< submitted so far
    std::uint64_t launches = 0;   ///< handed to the device so far
    std::uint32_t on_device = 0;  ///< calls that the device has not ended
    LastAlgorithm last;
    std::optional<WindowImage> window;
    GroupSwitches switches;
  };

  struct Work {
    enum class State : std::uint8_t { kQueued, kRunning, kEnded };
    CallId id = 0;
    State state = State::kQueued;
    bool with_device = false;  ///< the device works on it, whether or not anybody still waits for the result
    bool forgotten = false;
    bool automatic = true;
    std::uint32_t number = 0;  ///< the device's for it
    std::uint64_t launch = 0;  ///< which one of the communicator's, once it runs
    Group* group = nullptr;
    std::unique_ptr<cclo::CallState> call;
    std::vector<CallId> wait_for;
    std::shared_ptr<CallHooks> hooks;
    microseconds timeout{0};
    nanoseconds submitted{0};
    Clock::time_point began;  ///< on this machine
    std::shared_ptr<Image> src, dst, scratch, params;
    // Of a kernel: of all memory that it reaches; and the calls that the host has prepared for it.
    std::vector<std::shared_ptr<Image>> images;
    std::vector<std::unique_ptr<Work>> prepared;
    std::int8_t src_port = -1, dst_port = -1;   ///< stream ports of the device in their place
    std::optional<std::uint32_t> program_slot;  ///< the device's, while it works on the call
    CallResult result;
    std::vector<Listener> listeners;

    const Binding& region(Region which) const { return call->regions[static_cast<std::size_t>(which)]; }
    bool collective() const { return call->space == cclo::CallState::Space::kCollective; }
    bool point_to_point() const { return call->space == cclo::CallState::Space::kPointToPoint; }
  };

  // --------------------------------------------------------------------------------------------- bring-up

  void bring_up() {
    capability = capability_of(*device);
    device->meanwhile([this] { tell_of_waits(true); });
    options.settings = within_limits(options.settings, capability);
    rules.add(options.settings.rules);
    unisono::bring_up(*device, options.firmware, options.settings);
  }

  // ---------------------------------------------------------------------------------------- communicators

  Group& group(std::uint32_t number) {
    const auto found = groups.find(number);
    if (found != groups.end()) return *found->second;
    if (freed.count(number) != 0) {
      throw Error(ErrorCode::kFreedCommunicator, formatted("communicator {} was freed", number));
    }
    throw Error(ErrorCode::kInvalidArgument, formatted("there is no communicator {}", number));
  }

  void create(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
              const Agreement& agreed, const Grouping& grouping) {
    check_alive();
    const auto refuse = [&](ErrorCode code, const std::string& what) {
      throw Error(code, formatted("communicator {}: {}", number, what));
    };
    if (groups.count(number) != 0) refuse(ErrorCode::kInvalidArgument, "it exists already");
    if (endpoints.size() > DeviceLimits::kRanks) {
      refuse(ErrorCode::kUnsupported,
             formatted("{} ranks; a device takes up to {}", endpoints.size(), DeviceLimits::kRanks));
    }
    if (grouping.list != nullptr) {
      refuse(ErrorCode::kUnsupported,
             "its groups are of several sizes, or no ranges of ranks; a device takes ranges of one size: group_size");
    }
    if (agreed.segment_bytes < 64 || agreed.rx_buffer_count < 1 || agreed.eager_limit > agreed.segment_bytes) {
      refuse(ErrorCode::kInvalidArgument,
             formatted("agreed were segments of {} bytes, eager messages up to {} and {} receive buffers; allowed are "
                       "at least 64, up to a segment, and at least 1",
                       agreed.segment_bytes, agreed.eager_limit, agreed.rx_buffer_count));
    }
    std::vector<std::uint32_t> nodes;
    for (const std::uint32_t endpoint : endpoints) {
      const std::uint32_t node = endpoint < options.nodes.size() ? options.nodes[endpoint] : ~0U;
      if (node >= DeviceLimits::kRanks || std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
        refuse(ErrorCode::kInvalidArgument,
               formatted("endpoint {} has no node of its own from 0 to {}", endpoint, DeviceLimits::kRanks - 1));
      }
      nodes.push_back(node);
    }
    const auto own = std::find(nodes.begin(), nodes.end(), device->node());
    if (own == nodes.end()) {
      refuse(ErrorCode::kInvalidArgument, formatted("node {} is not among the members it names", device->node()));
    }
    auto made = std::make_unique<Group>();
    cclo::Communicator& state = made->state;
    state.number = number;
    state.epoch = epoch;
    state.size = static_cast<std::uint32_t>(endpoints.size());
    state.rank = static_cast<std::uint32_t>(own - nodes.begin());
    state.grouping = grouping;
    state.agreed = agreed;
    state.capability = decode_capability({agreed.capability});
    state.timeout = options.settings.timeout;
    state.segment_bytes = agreed.segment_bytes / 64 * 64;
    state.hardware_peers = true;  // whose rules of what ranks compare are its own
    state.rules = rules.find(agreed.tuning_hash);
    if (state.rules) state.tuning.rules = *state.rules;
    state.tuning.radices = state.capability.radices;
    state.peers = cclo::Peers(endpoints, 0);

    std::array<bool, DeviceLimits::kCommunicators> taken{};
    for (const auto& [other, present] : groups) taken[present->position] = true;
    for (const auto& leaving : retiring) taken[leaving->position] = true;
    const auto place = std::find(taken.begin(), taken.end(), false);
    if (place == taken.end()) {
      refuse(ErrorCode::kCapacity,
             formatted("the device knows {} communicators already; free one first", DeviceLimits::kCommunicators));
    }
    made->position = static_cast<std::uint32_t>(place - taken.begin());
    flight.open(state);
    use([&] {
      made->switches.ask(*device, state, nodes, DeviceLimits::kRanks);
      table.write(made->position, state, nodes, made->switches.above());
    });
    check_alive();
    Group& here = *(groups[number] = std::move(made));
    const auto early = revoked_early.find({number, epoch});
    if (early != revoked_early.end()) {
      revoke(here, early->second.first, early->second.second, false);
      revoked_early.erase(early);
    }
  }

  void free(std::uint32_t number) {
    Group& leaving = group(number);
    unbind_window(leaving);
    use([&] { leaving.switches.leave(*device, leaving.state); });
    end_all(leaving, ErrorCode::kFreedCommunicator, formatted("communicator {} was freed by this rank", number));
    // The place keeps its words until it is needed: what this rank has sent may still be on its way through the device,
    // and peers may still wait for it. Only calls that are given up are told, so that they end soon.
    if (leaving.on_device != 0) use([&] { table.write_state(leaving.position, leaving.state, 0); });
    const auto found = groups.find(number);
    // The place is not given to others while the device is still at a call there.
    if (leaving.on_device != 0) retiring.push_back(std::move(found->second));
    groups.erase(found);
    freed.insert(number);
  }

  void revoke(Group& of, ErrorCode code, const std::string& reason, bool tell) {
    if (of.state.revoked) return;
    of.state.revoked = true;
    of.state.reason = reason;
    DeviceFlight::revoked(of.state);
    end_all(of, code, (code == ErrorCode::kRevoked ? "the communicator was revoked: " : "") + reason);
    unmarked.insert(of.state.number);
    if (!waiting) mark_revoked();
    if (!tell || !hosts || !lost_because.empty()) return;
    for (std::uint32_t rank = 0; rank < of.state.size; ++rank) {
      if (rank == of.state.rank) continue;
      hosts->tell(of.state.peers.endpoint(rank), {0, of.state.number, of.state.epoch, code, reason});
    }
  }

  /// Tells the device which communicators were revoked.
  void mark_revoked() {
    for (const std::uint32_t number : std::exchange(unmarked, {})) {
      const auto found = groups.find(number);
      if (found == groups.end()) continue;
      use([&] {
        table.write_state(found->second->position, found->second->state,
                          registers::kStateValid | registers::kStateRevoked);
      });
    }
  }

  // ---------------------------------------------------------------------------------------------- windows
  void bind_window(Group& of, const Binding& window) {
    check_alive();
    const bool none = window.data == nullptr || window.bytes == 0;
    if (!none && !of.state.capability.remote_memory) {
      throw Error(ErrorCode::kUnsupported,
                  formatted("window on communicator {}: a member's device has no put and get; use send and recv",
                            of.state.number));
    }
    unbind_window(of);
    if (none) return;
    std::shared_ptr<Image> image = Image::of(memory, window);
    if (!image) {
      throw Error(ErrorCode::kOutOfMemory,
                  formatted("window on communicator {}: its {} bytes find no room in the device", of.state.number,
                            window.bytes));
    }
    use([&] {
      of.window.emplace(*device, std::move(image));
      table.set_window(of.position, of.window->address(), window.bytes);
    });
    check_alive();
  }

  void unbind_window(Group& of) {
    if (!of.window) return;
    pull_window(of);
    use([&] { table.set_window(of.position, 0, 0); });
    of.window.reset();
  }

  void push_windows() {
    for (const auto& [number, of] : groups) {
      if (of->window) of->window->push();
    }
  }

  void pull_window(Group& of) {
    if (of.window) use([&] { of.window->pull(); });
  }

  // ------------------------------------------------------------------------------------------------ calls

  void check_alive() const {
    if (!lost_because.empty()) throw Error(ErrorCode::kDeviceLost, lost_because);
  }

  /// Uses the device. What it throws ends everything on it.
  template <class Use>
  void use(Use&& action) {
    if (!lost_because.empty()) return;
    try {
      action();
    } catch (const Error& error) {
      lose(error.what());
    }
  }

  void lose(const std::string& why) {
    if (!lost_because.empty()) return;
    lost_because = why;
    waiting = false;
    for (Work* work : std::vector<Work*>(queue.begin(), queue.end()))
      end(*work, ErrorCode::kDeviceLost, told(*work, why));
    for (auto& [number, work] : running) {
      work->with_device = false;
      --work->group->on_device;
      if (work->state != Work::State::kEnded) end(*work, ErrorCode::kDeviceLost, told(*work, why));
    }
    running.clear();
    for (auto& [number, work] : std::exchange(kernels, {})) {
      work->with_device = false;
      if (work->state != Work::State::kEnded) {
        end(*work, ErrorCode::kDeviceLost, told(*work, why));
      } else {
        settle(*work);
      }
    }
    for (auto& [number, of] : groups) {
      of->state.revoked = true;
      of->state.reason = why;
      DeviceFlight::revoked(of->state);
    }
  }

  static std::string told(const Work& work, const std::string& what) {
    return cclo::CallQueue::describe(*work.call) + ": " + what;
  }

  Work* find(CallId id) {
    const auto found = works.find(id);
    return found == works.end() ? nullptr : found->second.get();
  }

  CallResult result(CallId id) const {
    const auto found = works.find(id);
    return result_of(found == works.end() || found->second->forgotten ? nullptr : &found->second->result, id, last_id);
  }

  /// Whether no call is in flight.
  bool idle() const {
    return std::all_of(works.begin(), works.end(),
                       [](const auto& entry) { return entry.second->state == Work::State::kEnded; });
  }

  /// Waits until `done`, called under the lock, or until `at_most` has passed.
  template <class Done>
  void wait_until(Done&& done, microseconds at_most) {
    const auto begin = Clock::now();
    const auto longest = std::chrono::duration_cast<microseconds>(Clock::time_point::max() - begin);
    const auto end = at_most >= longest ? Clock::time_point::max() : begin + at_most;
    Turn turn(*this);
    while (!done()) {
      if (waiting) {
        listen();
        tell_of_waits(true);
      } else {
        advance();
      }
      if (done() || Clock::now() >= end) return;
      pass(kSlice);
      if (WaitHook::installed()) turn.call_hook();
      if (turns.wanted() || !due.empty()) turn.pass_on();
    }
  }

  /// Refuses what no device takes.
  void check_request(const CallRequest& request) const {
    if (request.reserved_tag && !is_message_tag(static_cast<std::uint32_t>(request.tag))) {
      throw Error(ErrorCode::kUnsupported,
                  formatted("create_group on communicator {}: its members would exchange messages with tags of the "
                            "library, which devices do not carry; use `split` or `subset`, which all ranks of the "
                            "communicator call, or platform native",
                            request.communicator));
    }
    if (const std::string why = cclo::wildcard_in_hardware(request); !why.empty()) {
      throw Error(ErrorCode::kUnsupported, formatted("recv on communicator {}: {}", request.communicator, why));
    }
    if (request.src_port >= 0)
      check_stream(static_cast<std::uint32_t>(request.src_port), name_of(request.call.collective));
    if (request.dst_port >= 0)
      check_stream(static_cast<std::uint32_t>(request.dst_port), name_of(request.call.collective));
  }

  /// A call that may go to the device. Throws Error.
  std::unique_ptr<Work> admitted(const CallRequest& request, Group& on) {
    auto made = std::make_unique<Work>();
    made->call = std::make_unique<cclo::CallState>();
    made->call->communicator = &on.state;
    made->group = &on;
    cclo::admit(request, *made->call);
    if (made->call->streams) {
      // The device has its own ports, and knows whether its program can go to them.
      made->src_port = request.src_port;
      made->dst_port = request.dst_port;
      for (const cclo::CallStreams::Bound& bound : made->call->streams->bounds) {
        if (bound.staged && !device->copies_streams()) refuse_stream(*made->call, bound);
        made->call->regions[static_cast<std::size_t>(bound.region)] = {};
      }
      made->call->streams.reset();
    }
    check_size(*made);
    made->automatic = request.algorithm == -1;
    made->hooks = request.hooks;
    made->timeout = request.timeout.count() > 0 ? request.timeout : on.state.timeout;
    return made;
  }

  Work& submit(const CallRequest& request) {
    check_alive();
    check_request(request);
    listen();
    Group& on = group(request.communicator);
    if (on.state.revoked) {
      throw Error(ErrorCode::kRevoked, on.state.title() + " was revoked: " + on.state.reason);
    }
    for (const CallId id : request.wait_for) {
      if (id == 0 || id > last_id) {
        throw Error(ErrorCode::kInvalidArgument,
                    formatted("it is to follow call {}, but no call of this endpoint has that number", id));
      }
    }
    if (request.timeout.count() < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("a timeout of {} us was given; 0 is the communicator's, else it is positive",
                            request.timeout.count()));
    }
    std::unique_ptr<Work> made = admitted(request, on);
    made->id = ++last_id;
    ++on.calls;
    made->call->kernel = request.kernel;
    made->wait_for.assign(request.wait_for.begin(), request.wait_for.end());
    made->submitted = device->now();
    made->began = Clock::now();
    Work& work = *made;
    works.emplace(work.id, std::move(made));
    queue.push_back(&work);
    if (work.collective()) {
      work.call->sequence = on.state.order->enter(work.call->signature).sequence;
      on.last = {work.call->algorithm, work.automatic};
    }
    DeviceFlight::begin(*work.call);
    return work;
  }

  /// Refuses an algorithm that a device cannot give a stream to, before anything is sent.
  [[noreturn]] static void refuse_stream(const cclo::CallState& call, const cclo::CallStreams::Bound& bound) {
    const char* const collective = name_of(call.call.collective);
    throw Error(
        ErrorCode::kUnsupported,
        formatted("{} on {}: stream port {} is its {}, and the algorithm {} does not go through that once, in "
                  "order, as a stream on a device must. Name another one on all ranks: `unisono explain {} "
                  "--streams` says which",
                  collective, call.communicator->title(), bound.port, bound.region == Region::kSrc ? "src" : "dst",
                  call.algorithm == nullptr ? "of the call" : call.algorithm->name, collective));
  }

  /// Refuses a stream port that the device, or its host, does not have.
  void check_stream(std::uint32_t port, const std::string& operation) const {
    cclo::check_port(port, operation);
    const std::uint32_t there = device->streams();
    if (port < there) return;
    throw Error(ErrorCode::kUnsupported,
                there == 0 ? operation +
                                 ": the streams of this device are those of kernels beside its engine; a host does "
                                 "not reach them"
                           : formatted("{}: stream port {} was given; this device has ports 0 to {}", operation, port,
                                       there - 1));
  }

  /// Refuses what no state of the device has room for.
  void check_size(const Work& work) const {
    std::uint64_t bytes = 0;
    if (work.call->call.collective == Collective::kProgram) {
      LoadedPrograms::check_size(*work.call->program, work.group->state);
      bytes = kMoveBytes * LoadedPrograms::rest_of(*work.call->program).size();
    }
    for (const Region region : {Region::kSrc, Region::kDst, Region::kScratch, Region::kParams}) {
      bytes += work.region(region).bytes;
    }
    if (bytes <= device->memory_bytes()) return;
    throw Error(
        ErrorCode::kOutOfMemory,
        formatted("{} on communicator {}: it takes {} bytes of device memory; the device has {}",
                  name_of(work.call->call.collective), work.group->state.number, bytes, device->memory_bytes()));
  }

  /// Calls of one order begin in the order of their submission: collectives of a communicator, and its messages.
  using Order = std::pair<const Group*, bool>;
  static std::optional<Order> order_of(const Work& work) {
    if (work.collective()) return Order{work.group, true};
    if (work.point_to_point()) return Order{work.group, false};
    return std::nullopt;
  }

  void launch_all() {
    std::set<Order> held;
    for (auto next = queue.begin(); next != queue.end();) {
      if (running.size() >= DeviceLimits::kCalls || !lost_because.empty()) return;
      Work& work = **next;
      ++next;  // `launch` takes it out of the queue, and nothing behind it unless the communicator fails
      const auto order = order_of(work);
      if (order && held.count(*order) != 0) continue;
      const std::uint64_t before = removals;
      use([&] { launch(work); });
      if (work.state == Work::State::kQueued && order) held.insert(*order);
      // A failure may have ended calls further behind.
      if (removals > before + 1) next = queue.begin();
    }
  }

  void dequeue(Work& work) {
    queue.remove(&work);
    ++removals;
  }

  /// Whether a call that this one would follow by kSwitchRuns has not ended: switches tell only so many apart, by their
  /// sequence (docs/rtl/switch_unit.md).
  bool is_too_early(const Work& work) const {
    if (work.group->state.tree == nullptr) return false;
    return std::any_of(running.begin(), running.end(), [&](const auto& one) {
      return one.second->group == work.group && work.group->launches - one.second->launch >= kSwitchRuns;
    });
  }

  /// Hands the call to the device, if what it needs is there.
  void launch(Work& work) {
    if (is_too_early(work)) return;
    std::array<std::uint32_t, DeviceLimits::kWaitFor> waits{};
    std::size_t count = 0;
    for (const CallId id : work.wait_for) {
      const Work* before = find(id);
      if (before == nullptr) continue;
      if (before->state == Work::State::kEnded) {
        if (before->result.code == ErrorCode::kOk) continue;
        fail(work, before->result.code, formatted("it follows call {}, which failed: {}", id, before->result.message));
        return;
      }
      // What the host does around a call it does with results on the host.
      if (before->state == Work::State::kQueued || count == waits.size() || work.hooks || before->hooks) return;
      // The device's engine knows nothing of kernels.
      if (work.call->kernel || before->call->kernel) return;
      waits[count++] = before->number;
    }
    if (work.call->kernel) return launch_kernel(work);

    const Binding src = work.region(Region::kSrc);
    const Binding dst = work.region(Region::kDst);
    const bool fill_dst = reads_dst(work.call->call);
    bool waits_for_host = false;
    std::shared_ptr<Image> src_image = image_in_flight(src, waits_for_host);
    std::shared_ptr<Image> dst_image = fill_dst ? image_in_flight(dst, waits_for_host) : nullptr;
    if (waits_for_host) return;
    const bool store_src = src.bytes != 0 && !src_image;
    const bool store_dst = fill_dst && dst.bytes != 0 && !dst_image;
    const Binding scratch{nullptr, work.region(Region::kScratch).bytes};
    const Binding params = work.region(Region::kParams);
    std::shared_ptr<Image> scratch_image, params_image;
    const Binding rest{nullptr, bytes_to_load(work)};
    std::shared_ptr<Image> rest_image;
    const auto find_room = [&] {
      return place(src, src_image) && place(dst, dst_image) && place(scratch, scratch_image) &&
             place(params, params_image) && place(rest, rest_image);
    };
    if (!find_room()) {
      if (!running.empty()) return;
      programs.forget(*work.call);
    }
    if (!find_room()) {
      fail(work, ErrorCode::kOutOfMemory,
           formatted("its {} bytes find no room in the device: {} bytes are free, {} in one piece",
                     src.bytes + dst.bytes + scratch.bytes + params.bytes + rest.bytes, memory.free_bytes(),
                     memory.largest()));
      return;
    }
    if (work.call->call.collective == Collective::kProgram) {
      work.program_slot = slot_of(work, std::move(rest_image));
      if (!work.program_slot) return;
    }
    push_windows();
    if (work.hooks) work.hooks->before();
    if (store_src) store(src_image->address, src);
    if (store_dst) store(dst_image->address, dst);
    if (params_image) store(params_image->address, params);

    const auto at = [](const std::shared_ptr<Image>& image, const Binding& host) {
      return image ? image->address + static_cast<std::uint64_t>(host.data - image->host.data) : 0;
    };
    CallDescriptor descriptor =
        described(work, {at(src_image, src), at(dst_image, dst), at(scratch_image, scratch), at(params_image, params)});
    const auto used = std::chrono::duration_cast<microseconds>(device->now() - work.submitted);
    descriptor.deadline_us = deadline_of(work.timeout - used);
    do {
      if (++last_number == 0) last_number = 1;
    } while (running.count(last_number) != 0);
    descriptor.call_id = last_number;
    descriptor.wait_for0 = waits[0];
    descriptor.wait_for1 = waits[1];
    ring(descriptor);

    dequeue(work);
    work.number = last_number;
    work.state = Work::State::kRunning;
    work.with_device = true;
    work.src = std::move(src_image);
    work.dst = std::move(dst_image);
    work.scratch = std::move(scratch_image);
    work.params = std::move(params_image);
    ++work.group->on_device;
    work.launch = work.group->launches++;
    running.emplace(work.number, &work);
  }

  /// Where the regions of a call stand in the device's memory; 0: they have no bytes there.
  struct Addresses {
    std::uint64_t src = 0, dst = 0, scratch = 0, params = 0;
  };

  /// What the device is asked for; number, deadline and what it follows are left out.
  CallDescriptor described(const Work& work, const Addresses& at) const {
    const Call& call = work.call->call;
    CallDescriptor descriptor;
    descriptor.collective = call.collective;
    // The algorithm is chosen here, for it decides how much scratch there must be. A nop's number has another meaning.
    if (call.collective != Collective::kNop && work.call->algorithm != nullptr) {
      descriptor.algorithm = static_cast<std::uint8_t>(work.call->algorithm - algorithms().data() + 1);
    }
    descriptor.func = call.func;
    descriptor.dtype = call.dtype;
    descriptor.in_place = call.in_place;
    descriptor.communicator = work.group->position;
    descriptor.radix = call.radix;
    descriptor.root = call.root;
    descriptor.tag = work.point_to_point() ? work.call->tag : 0;
    descriptor.count = call.count;
    const auto bind = [](std::uint64_t from, const Binding& host, std::uint64_t& address, std::uint64_t& bytes) {
      if (from == 0) return;
      address = from;
      bytes = host.bytes;
    };
    bind(at.src, work.region(Region::kSrc), descriptor.src_address, descriptor.src_bytes);
    bind(at.dst, work.region(Region::kDst), descriptor.dst_address, descriptor.dst_bytes);
    const auto stream = [](std::int8_t port, bool& is_stream, std::uint64_t& address) {
      if (port < 0) return;
      is_stream = true;
      address = static_cast<std::uint8_t>(port);
    };
    stream(work.src_port, descriptor.src_stream, descriptor.src_address);
    // The port of a send is the peer's; its engine knows it by the tag.
    if (call.collective != Collective::kSend) stream(work.dst_port, descriptor.dst_stream, descriptor.dst_address);
    bind(at.scratch, work.region(Region::kScratch), descriptor.scratch_address, descriptor.scratch_bytes);
    bind(at.params, work.region(Region::kParams), descriptor.params_address, descriptor.params_bytes);
    descriptor.program = work.program_slot.value_or(0);
    descriptor.window_offset = work.call->window_offset;
    return descriptor;
  }

  /// Lets the kernel of a call go: on the device, if that runs kernels, or in this process.
  void launch_kernel(Work& work) {
    KernelRun& kernel = *work.call->kernel;
    if (device->kernels() && !start_on_device(work, kernel)) return;
    if (!device->kernels()) kernel.begin();
    dequeue(work);
    work.state = Work::State::kRunning;
    do {
      if (++last_number == 0) last_number = 1;
    } while (running.count(last_number) != 0 || kernels.count(last_number) != 0);
    work.number = last_number;
    work.with_device = device->kernels();
    kernels.emplace(work.number, &work);
    if (!device->kernels()) return;
    std::vector<std::uint64_t> addresses;
    for (const KernelRun::Memory& one : kernel.memory()) addresses.push_back(address_in(work.images, one));
    std::vector<KernelRun::Place> places;
    for (const std::uint32_t number : kernel.communicators()) {
      const Group& of = group(number);
      places.push_back({of.position, of.state.rank, of.state.size});
    }
    const auto used = std::chrono::duration_cast<microseconds>(device->now() - work.submitted);
    std::vector<CallDescriptor> calls;
    for (const auto& one : work.prepared) {
      const auto at = [](const std::shared_ptr<Image>& image) { return image ? image->address : 0; };
      calls.push_back(
          described(*one, {address_in(work.images, one->region(Region::kSrc)),
                           address_in(work.images, one->region(Region::kDst)), at(one->scratch), at(one->params)}));
      calls.back().deadline_us = deadline_of(one->timeout);
    }
    device->start_kernel(work.number, kernel.packed(addresses, places, calls, deadline_of(work.timeout - used)));
  }

  /// Where memory stands on the device that one of these images has.
  template <class Memory>
  static std::uint64_t address_in(const std::vector<std::shared_ptr<Image>>& images, const Memory& wanted) {
    if (wanted.bytes == 0) return 0;
    for (const auto& image : images) {
      const Binding& host = image->host;
      if (host.data <= wanted.data && wanted.data + wanted.bytes <= host.data + host.bytes) {
        return image->address + static_cast<std::uint64_t>(wanted.data - host.data);
      }
    }
    return 0;
  }

  /// Provides an image for each piece of memory; pieces that overlap have one together, so that they are one there,
  /// too. False if there is no room.
  bool place_all(std::vector<Binding> wanted, std::vector<std::shared_ptr<Image>>& images) {
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [](const Binding& one) { return one.bytes == 0; }),
                 wanted.end());
    std::sort(wanted.begin(), wanted.end(), [](const Binding& a, const Binding& b) { return a.data < b.data; });
    std::vector<Binding> merged;
    for (const Binding& one : wanted) {
      if (merged.empty() || merged.back().data + merged.back().bytes <= one.data) {
        merged.push_back(one);
      } else {
        const auto* const end = std::max(merged.back().data + merged.back().bytes, one.data + one.bytes);
        merged.back().bytes = static_cast<std::uint64_t>(end - merged.back().data);
      }
    }
    for (const Binding& one : merged) {
      std::shared_ptr<Image> image;
      if (!place(one, image)) return false;
      images.push_back(std::move(image));
    }
    return true;
  }

  /// Checks the calls that the host has prepared for a kernel. Throws Error.
  void admit_prepared(const KernelRun& kernel, std::vector<std::unique_ptr<Work>>& prepared) {
    for (const CallRequest* const request : kernel.calls()) {
      check_request(*request);
      prepared.push_back(admitted(*request, group(request->communicator)));
      if (!prepared.back()->hooks) continue;
      throw Error(ErrorCode::kUnsupported,
                  formatted("{}, which was prepared for kernel {}: the host has work to do before and after it, which "
                            "no kernel can ask for; leave out compression, datatypes and operators of its own",
                            name_of(request->call.collective), kernel.name()));
    }
  }

  /// Provides scratch, params and programs of these calls. False if there is no room now.
  bool place_prepared(std::vector<std::unique_ptr<Work>>& prepared) {
    for (const auto& one : prepared) {
      const Binding params = one->region(Region::kParams);
      if (!place({nullptr, one->region(Region::kScratch).bytes}, one->scratch) || !place(params, one->params)) {
        return false;
      }
      if (one->params) store(one->params->address, params);
      if (one->call->call.collective != Collective::kProgram) continue;
      std::shared_ptr<Image> rest;
      if (!place({nullptr, bytes_to_load(*one)}, rest)) return false;
      one->program_slot = slot_of(*one, std::move(rest));
      if (!one->program_slot) return false;
    }
    return true;
  }

  void release_programs(std::vector<std::unique_ptr<Work>>& prepared) {
    for (const auto& one : prepared) {
      if (one->program_slot) programs.leave(*one->program_slot);
      one->program_slot.reset();
    }
  }

  /// Brings what the kernel reads to the device. False if there is no room for it now, or never.
  bool start_on_device(Work& work, const KernelRun& kernel) {
    for (const std::uint32_t number : kernel.communicators()) {
      if (groups.count(number) != 0) continue;
      fail(work, ErrorCode::kFreedCommunicator, formatted("communicator {} was freed", number));
      return false;
    }
    std::vector<std::unique_ptr<Work>> prepared;
    try {
      admit_prepared(kernel, prepared);
    } catch (const Error& error) {
      fail(work, error.code(), error.what());
      return false;
    }
    std::vector<Binding> wanted;
    for (const KernelRun::Memory& one : kernel.memory()) wanted.push_back({one.data, one.bytes});
    for (const auto& one : prepared) {
      wanted.push_back(one->region(Region::kSrc));
      wanted.push_back(one->region(Region::kDst));
    }
    std::uint64_t bytes = 0;
    for (const Binding& one : wanted) {
      bytes += one.bytes;
      bool waits_for_host = false;
      if (image_in_flight(one, waits_for_host) || waits_for_host) return false;
    }
    std::vector<std::shared_ptr<Image>> images;
    if (!place_all(wanted, images) || !place_prepared(prepared)) {
      release_programs(prepared);
      if (!running.empty() || !kernels.empty()) return false;
      fail(work, ErrorCode::kOutOfMemory,
           formatted("its {} bytes find no room in the device: {} bytes are free, {} in one piece", bytes,
                     memory.free_bytes(), memory.largest()));
      return false;
    }
    push_windows();
    for (const auto& image : images) store(image->address, image->host);
    work.images = std::move(images);
    work.prepared = std::move(prepared);
    return true;
  }

  /// Looks which kernels have ended. Returns whether any has.
  bool look_for_kernels() {
    if (kernels.empty()) return false;
    bool any = false;
    if (!device->kernels()) {
      for (auto at = kernels.begin(); at != kernels.end();) {
        Work& work = *at->second;
        ErrorCode code = ErrorCode::kOk;
        std::string sentence;
        const bool given_up = work.state == Work::State::kEnded;
        if (!given_up && !work.call->kernel->ended(code, sentence)) {
          ++at;
          continue;
        }
        at = kernels.erase(at);
        any = true;
        if (!given_up) end(work, code, code == ErrorCode::kOk ? std::string() : told(work, sentence));
      }
      return any;
    }
    use([&] {
      for (const Device::EndedKernel& ended : device->ended_kernels()) {
        const auto found = kernels.find(ended.number);
        if (found == kernels.end()) lost(formatted("it tells of kernel {}, which it was not given", ended.number));
        Work& work = *found->second;
        kernels.erase(found);
        any = true;
        work.with_device = false;
        if (work.state == Work::State::kEnded) {
          settle(work);
          continue;
        }
        for (const auto& [number, of] : groups) pull_window(*of);
        for (const KernelRun::Memory& one : work.call->kernel->memory()) {
          if (one.writes && one.bytes != 0) device->load(address_in(work.images, one), {one.data, one.bytes});
        }
        for (const auto& one : work.prepared) {
          const Binding dst = one->region(Region::kDst);
          const bool root_of_bcast = one->call->call.collective == Collective::kBcast && reads_dst(one->call->call);
          if (dst.bytes != 0 && !root_of_bcast) {
            device->load(address_in(work.images, dst), {dst.data, dst.bytes});
          }
        }
        end(work, ended.code, ended.code == ErrorCode::kOk ? std::string() : told(work, ended.sentence));
      }
    });
    return any;
  }

  /// Of the device's memory, for the program of a call that must be loaded first.
  std::uint64_t bytes_to_load(const Work& work) const {
    if (work.call->call.collective != Collective::kProgram || programs.holds(*work.call)) return 0;
    return kMoveBytes * LoadedPrograms::rest_of(*work.call->program).size();
  }

  /// See LoadedPrograms::take.
  std::optional<std::uint32_t> slot_of(const Work& work, std::shared_ptr<Image> rest) {
    const std::optional<std::uint32_t> taken = programs.take(*work.call, std::move(rest));
    if (!taken && running.empty() && kernels.empty()) lost("it has no place for a program, and no call under way");
    return taken;
  }

  /// The result of a call in flight, where `wanted` lies in it: then both share it, and the device need not bring it to
  /// the host and back. `hold`: it overlaps with results in another way, and must wait until these are on the host.
  std::shared_ptr<Image> image_in_flight(const Binding& wanted, bool& hold) const {
    std::shared_ptr<Image> found;
    for (const auto& [number, work] : running) {
      if (work->state == Work::State::kEnded || !work->dst || work->dst == found) continue;
      if (!overlap(wanted, work->region(Region::kDst))) continue;
      const Binding& host = work->dst->host;
      const bool covers = host.data <= wanted.data && wanted.data + wanted.bytes <= host.data + host.bytes;
      if (found || !covers) {
        hold = true;
        return nullptr;
      }
      found = work->dst;
    }
    return found;
  }

  /// Provides memory for `host` in `image`, unless there is some. False if there is no room.
  bool place(const Binding& host, std::shared_ptr<Image>& image) {
    if (image || host.bytes == 0) return true;
    image = Image::of(memory, host);
    return image != nullptr;
  }

  void store(std::uint64_t address, const Binding& from) { device->store(address, {from.data, from.bytes}); }

  void ring(const CallDescriptor& descriptor) {
    std::array<std::uint32_t, 32> words{};
    const auto encoded = encode(descriptor);
    for (std::size_t i = 0; i < encoded.size(); ++i) {
      words[2 * i] = static_cast<std::uint32_t>(encoded[i]);
      words[2 * i + 1] = static_cast<std::uint32_t>(encoded[i] >> 32U);
    }
    // At most as many calls are out as the device has entries, so it takes the last one soon.
    for (int i = 0; (device->read(exchange::kStatus) & registers::kStatusSlotTaken) != 0; ++i) {
      if (i == kDevicePatience)
        lost("it does not take a call (status " + hexadecimal(device->read(exchange::kStatus)) + ")");
    }
    device->write(exchange::kCallSlot, words);
    device->write(exchange::kDoorbell, 1);
  }

  // ------------------------------------------------------------------------------------------------- ends

  /// Reads what the device has completed. Returns whether there was anything.
  bool harvest() {
    bool any = false;
    use([&] {
      while (!running.empty() && (device->read(exchange::kStatus) & registers::kStatusCompletion) != 0) {
        const std::uint32_t number = device->read(exchange::kCompleted);
        const std::uint32_t answer = device->read(exchange::kCompletedCode);
        const auto found = running.find(number);
        if (found == running.end() || (answer & registers::kCodeGiven) == 0) {
          lost(formatted("it answered a call that it was not given ({}, {})", number, hexadecimal(answer)));
        }
        any = true;
        // Before the call's own result, which may lie in a window.
        if ((answer & 0xffffU) == 0) {
          for (const auto& [other, of] : groups) pull_window(*of);
        }
        complete(*found->second, answer & 0xffffU);
      }
    });
    return any;
  }

  void complete(Work& work, std::uint32_t number) {
    const ErrorCode code = number == 0 ? ErrorCode::kOk : cclo::error_code(number);
    const bool awaited = work.state != Work::State::kEnded;
    const Binding dst = work.region(Region::kDst);
    const bool root_of_bcast = work.call->call.collective == Collective::kBcast && reads_dst(work.call->call);
    if (awaited && number == 0 && work.dst && !root_of_bcast) {
      device->load(work.dst->address + static_cast<std::uint64_t>(dst.data - work.dst->host.data),
                   {dst.data, dst.bytes});
    }
    if (number != 0) device->write(exchange::kStatus, registers::kStatusFailed);
    running.erase(work.number);
    work.with_device = false;
    if (work.program_slot) programs.leave(*work.program_slot);
    work.program_slot.reset();
    Group& of = *work.group;
    --of.on_device;
    if (!awaited) {
      settle(work);
    } else if (number == 0) {
      if (work.call->call.collective == Collective::kRecv) {
        work.result.received_bytes = dst.bytes;
        work.result.status = {work.call->call.root, work.call->tag, dst.bytes, work.call->call.dtype};
      }
      if (work.hooks) work.hooks->after(work.result.received_bytes);
      end(work, ErrorCode::kOk, {});
    } else {
      fail(work, code, reason_of(work, code));
    }
    retire(of);
  }

  std::string reason_of(const Work& work, ErrorCode code) const {
    switch (code) {
      case ErrorCode::kTimeout:
        return "timed out after " + in_words(work.timeout) + " of the device's time; the device does not tell who " +
               "keeps it waiting" + flight.absent(*work.call) + waits_at_switches(*device, *work.call);
      case ErrorCode::kRevoked:
        return "the communicator was revoked after an error of another rank; see that rank's message";
      default:
        break;
    }
    std::string text = std::string("the device ended it with ") + name_of(code) + " (" + meaning_of(code) + ")";
    if (work.point_to_point() && code == ErrorCode::kUnsupported) {
      text += "; a receive on a device must be as long as its message";
    }
    return text;
  }

  /// Ends a call in error. A collective that has ended here in error never ends elsewhere: its communicator is given
  /// up.
  void fail(Work& work, ErrorCode code, const std::string& what) {
    if (work.state == Work::State::kEnded) return;
    const std::string message = told(work, what);
    // A message that did not suit its receive concerns this pair alone.
    const bool own = work.point_to_point() && (code == ErrorCode::kTruncated || code == ErrorCode::kMismatchedCall ||
                                               code == ErrorCode::kUnsupported);
    const bool shared = (work.collective() || work.point_to_point()) && !own;
    Group& of = *work.group;
    end(work, code, message);
    if (!shared) return;
    const bool known_there = tells_itself(code);
    revoke(of, known_there ? code : ErrorCode::kRevoked, message, true);
  }

  void end(Work& work, ErrorCode code, std::string message) {
    if (work.state == Work::State::kQueued) dequeue(work);
    work.state = Work::State::kEnded;
    work.result.complete = true;
    work.result.code = code;
    work.result.message = std::move(message);
    DeviceFlight::end(*work.call, code == ErrorCode::kOk);
    if (work.call->kernel) work.call->kernel->leave();
    for (Listener& listener : work.listeners) due.emplace_back(std::move(listener), work.result);
    work.listeners.clear();
    settle(work);
  }

  /// Memory of the device is given back when the device is done with the call, even a call given up before.
  void settle(Work& work) {
    if (work.with_device) return;
    work.src.reset();
    work.dst.reset();
    work.scratch.reset();
    work.params.reset();
    work.images.clear();
    release_programs(work.prepared);
    work.prepared.clear();
    if (work.forgotten) works.erase(work.id);
  }

  void end_all(Group& of, ErrorCode code, const std::string& what) {
    std::vector<Work*> ended;
    for (auto& [id, work] : works) {
      if (work->group == &of && work->state != Work::State::kEnded) ended.push_back(work.get());
    }
    for (Work* work : ended) end(*work, code, told(*work, what));
  }

  void retire(const Group& of) {
    if (of.on_device != 0) return;
    retiring.remove_if([&](const std::unique_ptr<Group>& one) { return one.get() == &of; });
  }

  // --------------------------------------------------------------------------------------------- progress

  /// Waits for the device, a little. The wait may go on afterwards: see `waiting`.
  void pass(microseconds at_most) {
    if (WaitHook::installed()) at_most = std::min<microseconds>(at_most, WaitHook::kInterval);
    // A kernel of this process has a word for the device, or wants one, in a moment; until the wait ends it cannot.
    if (!kernels.empty() && !device->kernels()) at_most = std::min(at_most, kKernelSlice);
    const WaitHook::Quiet quiet;  // the lock is held
    use([&] { waiting = !device->wait(at_most); });
  }

  void advance() {
    listen();
    mark_revoked();
    while (harvest() || look_for_kernels()) launch_all();
    launch_all();
    look();
  }

  void listen() {
    if (!hosts || !lost_because.empty()) return;
    std::vector<Hosts::Revocation> words;
    try {
      words = hosts->heard();
    } catch (const Error&) {
      hosts.reset();  // what some host has written there is no message; the devices have a network of their own
      return;
    }
    for (const Hosts::Revocation& word : words) {
      const auto found = groups.find(word.communicator);
      const ErrorCode code = tells_itself(word.code) ? word.code : ErrorCode::kRevoked;
      const std::string reason = "the rank at " + hosts->describe(word.endpoint) + " reported: " + word.reason;
      if (found != groups.end() && found->second->state.epoch == word.epoch) {
        revoke(*found->second, code, reason, false);
      } else if (freed.count(word.communicator) == 0) {
        revoked_early.emplace(std::pair{word.communicator, word.epoch}, std::pair{code, reason});
      }
    }
  }

  /// Frames that were lost, deadlines, and hosts that have gone.
  void look() {
    use([&] { broken_ways.note(device->broken(), options.nodes, device->node()); });
    if (!lost_because.empty()) return;
    look_for_broken();
    const nanoseconds now = device->now();
    std::vector<Work*> late;
    for (auto& [id, work] : works) {
      if (work->state != Work::State::kEnded && now >= end_of(*work)) late.push_back(work.get());
    }
    for (Work* work : late) {
      const std::string after = "timed out after " + in_words(work->timeout) + " of the device's time";
      if (work->call->kernel && work->state == Work::State::kRunning) {
        const std::string waits = work->call->kernel->waits();
        fail(*work, ErrorCode::kTimeout, after + ": " + (waits.empty() ? "the kernel has not ended" : waits));
        continue;
      }
      fail(*work, ErrorCode::kTimeout,
           work->state == Work::State::kQueued
               ? after + " before it began: what it follows, or calls that fill the device, have not ended"
               : after + ", and the device has not said so within " + in_words(options.margin) +
                     " more: it may be stuck, then a new job is needed" + flight.absent(*work->call));
    }
    tell_of_waits(false);
    if (!hosts) return;
    const auto wall = Clock::now();
    if (wall < next_look) return;
    next_look = wall + kLookInterval;
    for (auto& [number, work] : std::map<std::uint32_t, Work*>(running)) {
      if (work->state != Work::State::kEnded) look_for_gone(*work, now);
    }
  }

  /// Writes into the flight records which calls do not end, and what for. `stands_still`: the device does not answer,
  /// in whose place somebody else may be computing.
  void tell_of_waits(bool stands_still) {
    const auto now = Clock::now();
    if (!options.records || now < next_record) return;
    next_record = now + kRecordPatience;
    std::map<CallId, const Work*> slow;  // the first of a communicator is told
    for (const auto& [id, work] : works) {
      if (work->state != Work::State::kEnded && now - work->began >= kRecordPatience) slow.emplace(id, work.get());
    }
    for (const auto& [id, work] : slow) {
      flight.waits(*work->call, work->state == Work::State::kRunning, stands_still, work->began);
    }
  }

  /// A call that needs a way on which something is missing does not end by itself.
  void look_for_broken() {
    if (broken_ways.none()) return;
    std::vector<std::pair<Work*, std::uint32_t>> stuck;
    std::vector<Work*> to_switch;
    for (auto& [id, work] : works) {
      if (work->state == Work::State::kEnded) continue;
      const std::optional<std::uint32_t> above = work->group->switches.above();
      if (above && by_switches(*work->call) && broken_ways.leads_to(*above)) {
        to_switch.push_back(work.get());
        continue;
      }
      if (const auto rank = broken_ways.member_of(*work->call)) stuck.emplace_back(work.get(), *rank);
    }
    std::sort(to_switch.begin(), to_switch.end(), [](const Work* a, const Work* b) { return a->id < b->id; });
    for (Work* work : to_switch) {
      fail(*work, ErrorCode::kFramesLost, broken_ways.words_of(*work->group->switches.above()));
    }
    std::sort(stuck.begin(), stuck.end(), [](const auto& a, const auto& b) { return a.first->id < b.first->id; });
    for (const auto& [work, rank] : stuck) {
      const std::uint32_t endpoint = work->group->state.peers.endpoint(rank);
      const std::string peer = hosts ? hosts->describe(endpoint) : formatted("endpoint {}", endpoint);
      fail(*work, ErrorCode::kFramesLost, broken_ways.words(*work->call, rank, peer));
    }
  }

  nanoseconds end_of(const Work& work) const {
    constexpr nanoseconds kNever = nanoseconds::max();
    if (work.timeout >= std::chrono::hours(24 * 365)) return kNever;
    return work.submitted + work.timeout + (work.state == Work::State::kQueued ? microseconds{0} : options.margin);
  }

  void look_for_gone(Work& work, nanoseconds now) {
    const bool one_sided =
        work.call->call.collective == Collective::kPut || work.call->call.collective == Collective::kGet;
    if (!work.collective() && !work.point_to_point() && !one_sided) return;
    const cclo::Communicator& state = work.group->state;
    for (std::uint32_t rank = 0; rank < state.size; ++rank) {
      if (rank == state.rank || ((work.point_to_point() || one_sided) && rank != work.call->call.root)) continue;
      const std::uint32_t endpoint = state.peers.endpoint(rank);
      const Poe::Liveness liveness = hosts->liveness(endpoint);
      if (liveness == Poe::Liveness::kAlive) continue;
      const nanoseconds since = std::max(gone.emplace(endpoint, now).first->second, work.submitted);
      const std::uint64_t bytes = (work.region(Region::kSrc).bytes + work.region(Region::kDst).bytes) * state.size;
      const nanoseconds patience =
          liveness == Poe::Liveness::kDead ? kAfterDeath : kAfterLeaving + nanoseconds(bytes / kLeastBandwidth);
      if (now - since < patience) continue;
      fail(work, ErrorCode::kPeerDead,
           formatted("rank {}, {}{}, and the call has not ended since", rank, hosts->describe(endpoint),
                     liveness == Poe::Liveness::kDead ? ", has died" : ", has left the job"));
      return;
    }
  }

  std::unique_ptr<Device> device;
  DeviceOptions options;
  DeviceFlight flight;
  std::optional<Hosts> hosts;
  std::uint64_t capability = 0;
  std::string lost_because;
  /// The device has not answered to a wait yet. Any other use begins when it has, which may be long: in a simulated
  /// cluster when the other ranks wait too.
  bool waiting = false;
  std::set<std::uint32_t> unmarked;  ///< communicators whose revocation the device does not know

  CommunicatorTable table{*device};
  DeviceMemory memory;  ///< outlives what has pieces of it
  LoadedPrograms programs{*device};
  std::map<std::uint32_t, std::unique_ptr<Group>> groups;
  std::list<std::unique_ptr<Group>> retiring;  ///< freed, but the device is still at calls of theirs
  std::set<std::uint32_t> freed;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::pair<ErrorCode, std::string>> revoked_early;

  std::unordered_map<CallId, std::unique_ptr<Work>> works;
  std::list<Work*> queue;
  std::map<std::uint32_t, Work*> running;  ///< by the device's number: all that it has not completed
  std::map<std::uint32_t, Work*> kernels;  ///< calls whose kernels run, by their numbers
  std::uint64_t removals = 0;              ///< from the queue
  CallId last_id = 0;
  std::uint32_t last_number = 0;

  cclo::KnownTuning rules;

  BrokenWays broken_ways;
  Clock::time_point next_record{};
  std::map<std::uint32_t, nanoseconds> gone;  ///< by endpoint: when it was first seen to have gone
  Clock::time_point next_look{};
  mutable TurnLock turns;
  std::vector<std::pair<Listener, CallResult>> due;  ///< to be told, once the lock has been given back
};

DeviceEngine::DeviceEngine(std::unique_ptr<Device> device, DeviceOptions options)
    : impl_(std::make_unique<Impl>(std::move(device), std::move(options))) {
  impl_->bring_up();
}

DeviceEngine::~DeviceEngine() = default;

EngineSettings DeviceEngine::within_limits(EngineSettings settings, std::uint64_t capability) {
  if (settings.deadlines != EngineSettings::Deadlines::kFail) {
    throw Error(ErrorCode::kUnsupported,
                "deadlines that warn, or none, were asked for; a device ends calls whose deadline has passed. Leave "
                "deadlines (UNISONO_DEADLINES) at fail, and give a longer timeout");
  }
  std::uint32_t most = DeviceLimits::kSegmentBytes;
  const unsigned log2 = decode_capability({capability}).log2_max_segment;
  if (log2 != 0) most = std::min(most, 1U << log2);
  settings.segment_bytes = std::clamp(settings.segment_bytes / 64 * 64, 64U, std::max(most, 64U));
  settings.eager_limit = std::min(settings.eager_limit, settings.segment_bytes);
  settings.rx_buffer_count = std::clamp(settings.rx_buffer_count, 1U, DeviceLimits::kRxBuffers);
  settings.lanes = false;
  return settings;
}

Agreement DeviceEngine::capabilities_of(std::uint64_t capability, const EngineSettings& settings) {
  NativeEngine::capabilities_of(settings);  // refuses what no engine takes, before it is cut to what this one does
  Agreement capabilities = NativeEngine::capabilities_of(within_limits(settings, capability));
  capabilities.capability = capability;
  return capabilities;
}

std::uint64_t DeviceEngine::capability_of(Device& device) { return capability_of_device(device); }

std::vector<std::vector<std::byte>> DeviceEngine::exchange(std::span<const std::byte> own,
                                                           std::chrono::milliseconds patience) {
  const std::lock_guard lock(impl_->turns);
  const std::vector<std::vector<std::byte>> met = impl_->device->meet(own);
  if (!met.empty()) {
    std::vector<std::vector<std::byte>> by_rank;
    for (const std::uint32_t node : impl_->options.nodes) by_rank.push_back(node < met.size() ? met[node] : met[0]);
    return by_rank;
  }
  if (!impl_->hosts) throw Error(ErrorCode::kInternal, "device: its host has no way to others");
  return impl_->hosts->exchange(own, patience, [&] { impl_->device->wait(kStep); });
}

void DeviceEngine::start_together(std::chrono::milliseconds patience) {
  {
    // Nodes that meet leave in the same cycle.
    const std::lock_guard lock(impl_->turns);
    if (!impl_->device->meet({}).empty()) return;
  }
  const std::uint64_t here = static_cast<std::uint64_t>(impl_->device->now().count());
  std::uint64_t last = 0;
  for (const std::vector<std::byte>& told : exchange(std::as_bytes(std::span(&here, 1)), patience)) {
    std::uint64_t time = 0;
    std::memcpy(&time, told.data(), std::min(told.size(), sizeof time));
    last = std::max(last, time);
  }
  const auto start = nanoseconds((last / kStart + 1) * kStart);
  const std::lock_guard lock(impl_->turns);
  Device& device = *impl_->device;
  // A wait of a part of a microsecond would end early, and then be followed by one of none, for ever.
  while (device.now() < start) device.wait(std::chrono::ceil<microseconds>(start - device.now()));
}

std::uint64_t DeviceEngine::write_stream(std::uint32_t port, std::span<const std::byte> bytes, microseconds at_most) {
  impl_->check_stream(port, "write to a stream");
  std::uint64_t done = 0;
  impl_->wait_until(
      [&] {
        impl_->use([&] { done += impl_->device->give(port, bytes.subspan(done)); });
        return done == bytes.size();
      },
      at_most);
  return done;
}

std::uint64_t DeviceEngine::read_stream(std::uint32_t port, std::span<std::byte> bytes, microseconds at_most) {
  impl_->check_stream(port, "read from a stream");
  std::uint64_t done = 0;
  impl_->wait_until(
      [&] {
        impl_->use([&] { done += impl_->device->take(port, bytes.subspan(done)); });
        return done == bytes.size();
      },
      at_most);
  return done;
}

bool DeviceEngine::runs_kernels() const {
  const std::lock_guard lock(impl_->turns);
  return impl_->device->kernels();
}

void DeviceEngine::pass(microseconds at_most) {
  const Turn turn(*impl_);
  impl_->pass(at_most);
}

Agreement DeviceEngine::capabilities() const {
  const std::lock_guard lock(impl_->turns);
  return capabilities_of(impl_->capability, impl_->options.settings);
}

void DeviceEngine::create_communicator(std::uint32_t number, std::uint16_t epoch,
                                       std::span<const std::uint32_t> endpoints, const Agreement& agreed,
                                       const Grouping& grouping) {
  const std::lock_guard lock(impl_->turns);
  impl_->create(number, epoch, endpoints, agreed, grouping);
}

void DeviceEngine::free_communicator(std::uint32_t number) {
  const Turn turn(*impl_);
  impl_->free(number);
}

void DeviceEngine::name_communicator(std::uint32_t communicator, const std::string& name) {
  const std::lock_guard lock(impl_->turns);
  impl_->group(communicator).state.name(name);
}

void DeviceEngine::set_timeout(std::uint32_t communicator, microseconds timeout) {
  const std::lock_guard lock(impl_->turns);
  if (timeout.count() <= 0) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("a timeout of {} us was given; it must be positive", timeout.count()));
  }
  impl_->group(communicator).state.timeout = timeout;
}

std::uint32_t DeviceEngine::rank(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->turns);
  return impl_->group(communicator).state.rank;
}

std::uint32_t DeviceEngine::size(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->turns);
  return impl_->group(communicator).state.size;
}

void DeviceEngine::bind_window(std::uint32_t communicator, Binding window) {
  const std::lock_guard lock(impl_->turns);
  impl_->bind_window(impl_->group(communicator), window);
}

CallId DeviceEngine::submit(const CallRequest& request) {
  const Turn turn(*impl_);
  const CallId id = impl_->submit(request).id;
  impl_->advance();
  return id;
}

LastAlgorithm DeviceEngine::last_algorithm(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->turns);
  return impl_->group(communicator).last;
}

CommunicatorState DeviceEngine::state(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->turns);
  const Impl::Group& of = impl_->group(communicator);
  CommunicatorState state;
  state.number = of.state.number;
  state.epoch = of.state.epoch;
  state.agreed = of.state.agreed;
  state.agreed.segment_bytes = of.state.segment_bytes;
  state.timeout = of.state.timeout;
  state.calls = of.calls;
  state.revoked = of.state.revoked;
  state.carrier = of.switches.words();
  return state;
}

void DeviceEngine::configure(const EngineSettings& settings) {
  NativeEngine::capabilities_of(settings);  // refuses what no engine takes
  const std::lock_guard lock(impl_->turns);
  impl_->options.settings = within_limits(settings, impl_->capability);
  impl_->rules.add(settings.rules);
}

EngineSettings DeviceEngine::settings() const {
  const std::lock_guard lock(impl_->turns);
  return impl_->options.settings;
}

std::size_t DeviceEngine::counters() const { return kAllCounter.size(); }

const char* DeviceEngine::counter_name(std::size_t position) const { return name_of(kAllCounter[position]); }

std::uint64_t DeviceEngine::counter(std::size_t position) const {
  const Counter counter = kAllCounter[position];
  const std::lock_guard lock(impl_->turns);
  // The read of the lower half keeps the upper one as it was.
  const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
  const std::uint64_t low = impl_->device->read(at);
  return low | std::uint64_t{impl_->device->read(at + 4)} << 32U;
}

CallResult DeviceEngine::test(CallId id) {
  const Turn turn(*impl_);
  if (CallResult known = impl_->result(id); known.complete) return known;
  if (impl_->waiting) impl_->pass(kSlice);
  if (!impl_->waiting) impl_->advance();
  return impl_->result(id);
}

CallResult DeviceEngine::wait(CallId id, microseconds at_most) {
  CallResult result;
  impl_->wait_until(
      [&] {
        result = impl_->result(id);
        return result.complete;
      },
      at_most);
  return result;
}

bool DeviceEngine::wait_any(std::span<const CallId> ids, microseconds at_most) {
  bool found = false;
  impl_->wait_until(
      [&] {
        found = std::any_of(ids.begin(), ids.end(), [&](CallId id) { return impl_->result(id).complete; });
        return found;
      },
      at_most);
  return found;
}

bool DeviceEngine::drive(microseconds at_most) {
  bool idle = false;
  impl_->wait_until(
      [&] {
        idle = impl_->idle();
        return idle;
      },
      at_most);
  return idle;
}

void DeviceEngine::when_complete(CallId id, Listener listener) {
  const Turn turn(*impl_);
  const CallResult now = impl_->result(id);
  if (now.complete) {
    impl_->due.emplace_back(std::move(listener), now);
  } else {
    impl_->find(id)->listeners.push_back(std::move(listener));
  }
}

void DeviceEngine::forget(CallId id) {
  const std::lock_guard lock(impl_->turns);
  Impl::Work* work = impl_->find(id);
  if (work == nullptr || work->forgotten) {
    result_of(nullptr, id, impl_->last_id);
    return;
  }
  if (!work->result.complete) {
    throw Error(ErrorCode::kInvalidArgument, formatted("call {} is in flight; wait for it first", id));
  }
  work->forgotten = true;
  impl_->settle(*work);
}

void DeviceEngine::progress() {
  const Turn turn(*impl_);
  impl_->advance();
}

void DeviceEngine::revoke(std::uint32_t communicator, const std::string& reason) {
  const Turn turn(*impl_);
  impl_->revoke(impl_->group(communicator), ErrorCode::kRevoked, reason, true);
}

}  // namespace unisono
