// The calls of an endpoint that has a device, and what it knows of the device: all of it under one lock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "engine/engine.hpp"
#include "engine/kernel_run.hpp"
#include "engine/known_tuning.hpp"
#include "engine/state.hpp"
#include "network/wait_hook.hpp"
#include "platform/device/broken_ways.hpp"
#include "platform/device/communicator_table.hpp"
#include "platform/device/device.hpp"
#include "platform/device/device_engine.hpp"
#include "platform/device/flight.hpp"
#include "platform/device/group_switches.hpp"
#include "platform/device/hosts.hpp"
#include "platform/device/image.hpp"
#include "platform/device/loaded_programs.hpp"
#include "platform/device/memory.hpp"
#include "platform/device/turn_lock.hpp"
#include "platform/device/window_image.hpp"

namespace unisono {

/// What the engine of a device is made of: it does all its work for DeviceEngine, which takes the lock (`turns`) around
/// each use. A call is queued, then launched, then ended: by the device, by its deadline, or because somebody is gone.
struct DeviceCalls {
  using microseconds = std::chrono::microseconds;
  using nanoseconds = std::chrono::nanoseconds;
  using Clock = std::chrono::steady_clock;
  using Listener = Engine::Listener;
  using Image = DeviceImage;

  /// Of the device's time: how long a waiting host leaves it alone.
  static constexpr microseconds kSlice{100};

  DeviceCalls(std::unique_ptr<Device> given, DeviceOptions with)
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

  // ---- bring-up, communicators, windows: device_communicators.cpp ----

  void bring_up();

  Group& group(std::uint32_t number);
  void create(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
              const Agreement& agreed, const Grouping& grouping);
  void free(std::uint32_t number);
  /// See Engine::settle_numbers.
  void settle(std::uint32_t below);
  void revoke(Group& of, ErrorCode code, const std::string& reason, bool tell);
  /// Tells the device which communicators were revoked.
  void mark_revoked();

  void bind_window(Group& of, const Binding& window);
  void unbind_window(Group& of);
  void push_windows();
  void pull_window(Group& of);

  // ---- the device, and waiting for it ----

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

  // ---- calls on their way to the device: device_launch.cpp ----

  /// Refuses what no device takes.
  void check_request(const CallRequest& request) const;
  /// A call that may go to the device. Throws Error.
  std::unique_ptr<Work> admitted(const CallRequest& request, Group& on);
  Work& submit(const CallRequest& request);
  /// Refuses an algorithm that a device cannot give a stream to, before anything is sent.
  [[noreturn]] static void refuse_stream(const cclo::CallState& call, const cclo::CallStreams::Bound& bound);
  /// Refuses a stream port that the device, or its host, does not have.
  void check_stream(std::uint32_t port, const std::string& operation) const;
  /// Refuses what no state of the device has room for.
  void check_size(const Work& work) const;
  /// Calls of one order begin in the order of their submission: collectives of a communicator, and its messages.
  using Order = std::pair<const Group*, bool>;
  static std::optional<Order> order_of(const Work& work);
  void launch_all();
  void dequeue(Work& work);
  /// Whether a call that this one would follow by kSwitchRuns has not ended: switches tell only so many apart, by their
  /// sequence (docs/rtl/switch_unit.md).
  bool is_too_early(const Work& work) const;
  /// Hands the call to the device, if what it needs is there.
  void launch(Work& work);
  /// Where the regions of a call stand in the device's memory; 0: they have no bytes there.
  struct Addresses {
    std::uint64_t src = 0, dst = 0, scratch = 0, params = 0;
  };

  /// What the device is asked for; number, deadline and what it follows are left out.
  CallDescriptor described(const Work& work, const Addresses& at) const;
  /// Of the device's memory, for the program of a call that must be loaded first.
  std::uint64_t bytes_to_load(const Work& work) const;
  /// See LoadedPrograms::take.
  std::optional<std::uint32_t> slot_of(const Work& work, std::shared_ptr<Image> rest);
  /// The result of a call in flight, where `wanted` lies in it: then both share it, and the device need not bring it to
  /// the host and back. `hold`: it overlaps with results in another way, and must wait until these are on the host.
  std::shared_ptr<Image> image_in_flight(const Binding& wanted, bool& hold) const;
  /// Provides memory for `host` in `image`, unless there is some. False if there is no room.
  bool place(const Binding& host, std::shared_ptr<Image>& image);
  void store(std::uint64_t address, const Binding& from) { device->store(address, {from.data, from.bytes}); }
  void ring(const CallDescriptor& descriptor);

  // ---- calls of kernels: device_kernels.cpp ----

  /// Lets the kernel of a call go: on the device, if that runs kernels, or in this process.
  void launch_kernel(Work& work);
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
  bool place_all(std::vector<Binding> wanted, std::vector<std::shared_ptr<Image>>& images);
  /// Checks the calls that the host has prepared for a kernel. Throws Error.
  void admit_prepared(const KernelRun& kernel, std::vector<std::unique_ptr<Work>>& prepared);
  /// Provides scratch, params and programs of these calls. False if there is no room now.
  bool place_prepared(std::vector<std::unique_ptr<Work>>& prepared);
  void release_programs(std::vector<std::unique_ptr<Work>>& prepared);
  /// Brings what the kernel reads to the device. False if there is no room for it now, or never.
  bool start_on_device(Work& work, const KernelRun& kernel);
  /// Looks which kernels have ended. Returns whether any has.
  bool look_for_kernels();

  // ---- what has ended: device_ends.cpp ----

  void lose(const std::string& why);
  static std::string told(const Work& work, const std::string& what);
  Work* find(CallId id);
  CallResult result(CallId id) const;
  /// Whether no call is in flight.
  bool idle() const;
  /// Reads what the device has completed. Returns whether there was anything.
  bool harvest();
  void complete(Work& work, std::uint32_t number);
  std::string reason_of(const Work& work, ErrorCode code) const;
  /// Ends a call in error. A collective that has ended here in error never ends elsewhere: its communicator is given
  /// up.
  void fail(Work& work, ErrorCode code, const std::string& what);
  void end(Work& work, ErrorCode code, std::string message);
  /// Memory of the device is given back when the device is done with the call, even a call given up before.
  void settle(Work& work);
  void end_all(Group& of, ErrorCode code, const std::string& what);
  void retire(const Group& of);

  // ---- looking after calls: device_watch.cpp ----

  /// Waits for the device, a little. The wait may go on afterwards: see `waiting`.
  void pass(microseconds at_most);
  void advance();
  void listen();
  /// Frames that were lost, deadlines, and hosts that have gone.
  void look();
  /// Writes into the flight records which calls do not end, and what for. `stands_still`: the device does not answer,
  /// in whose place somebody else may be computing.
  void tell_of_waits(bool stands_still);
  /// A call that needs a way on which something is missing does not end by itself.
  void look_for_broken();
  nanoseconds end_of(const Work& work) const;
  void look_for_gone(Work& work, nanoseconds now);

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
  std::set<std::uint32_t> freed;               ///< from `settled` on
  std::uint32_t settled = 0;                   ///< communicators of lower numbers are not made any more
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

/// The result of a call that nobody has forgotten, or `known` is null. Throws Error(kInvalidArgument) if there is none
/// of this number; `last` is that of the last call.
CallResult result_of(const CallResult* known, CallId id, CallId last);

std::string in_words(std::chrono::microseconds time);

/// Whether an error concerns all ranks of a communicator as it is, rather than as that of another rank.
inline bool tells_itself(ErrorCode code) { return code == ErrorCode::kPeerDead || code == ErrorCode::kFramesLost; }

/// Whether a rank's dst has to be on the device before the call: it is read, or not all of it is written.
bool reads_dst(const Call& call);

}  // namespace unisono
