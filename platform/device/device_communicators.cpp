#include <algorithm>

#include "platform/device/bring_up.hpp"
#include "platform/device/device_calls.hpp"
#include "platform/device/registers.hpp"

namespace unisono {

void DeviceCalls::bring_up() {
  capability = capability_of_device(*device);
  device->meanwhile([this] { tell_of_waits(true); });
  options.settings = DeviceEngine::within_limits(options.settings, capability);
  rules.add(options.settings.rules);
  unisono::bring_up(*device, options.firmware, options.settings);
}

DeviceCalls::Group& DeviceCalls::group(std::uint32_t number) {
  const auto found = groups.find(number);
  if (found != groups.end()) return *found->second;
  if (number < settled || freed.count(number) != 0) {
    throw Error(ErrorCode::kFreedCommunicator, formatted("communicator {} was freed", number));
  }
  throw Error(ErrorCode::kInvalidArgument, formatted("there is no communicator {}", number));
}

void DeviceCalls::create(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
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

void DeviceCalls::free(std::uint32_t number) {
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
  if (number >= settled) freed.insert(number);
}

void DeviceCalls::settle(std::uint32_t below) {
  settled = std::max(settled, below);
  freed.erase(freed.begin(), freed.lower_bound(settled));
  revoked_early.erase(revoked_early.begin(), revoked_early.lower_bound({settled, 0}));
}

void DeviceCalls::revoke(Group& of, ErrorCode code, const std::string& reason, bool tell) {
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

void DeviceCalls::mark_revoked() {
  for (const std::uint32_t number : std::exchange(unmarked, {})) {
    const auto found = groups.find(number);
    if (found == groups.end()) continue;
    use([&] {
      table.write_state(found->second->position, found->second->state,
                        registers::kStateValid | registers::kStateRevoked);
    });
  }
}

void DeviceCalls::bind_window(Group& of, const Binding& window) {
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
    throw Error(ErrorCode::kOutOfMemory, formatted("window on communicator {}: its {} bytes find no room in the device",
                                                   of.state.number, window.bytes));
  }
  use([&] {
    of.window.emplace(*device, std::move(image));
    table.set_window(of.position, of.window->address(), window.bytes);
  });
  check_alive();
}

void DeviceCalls::unbind_window(Group& of) {
  if (!of.window) return;
  pull_window(of);
  use([&] { table.set_window(of.position, 0, 0); });
  of.window.reset();
}

void DeviceCalls::push_windows() {
  for (const auto& [number, of] : groups) {
    if (of->window) of->window->push();
  }
}

void DeviceCalls::pull_window(Group& of) {
  if (of.window) use([&] { of.window->pull(); });
}

}  // namespace unisono
