#include "platform/device/group_switches.hpp"

#include <algorithm>
#include <utility>

#include "collectives/algorithm.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"

namespace unisono {

void GroupSwitches::ask(Device& device, cclo::Communicator& communicator, std::span<const std::uint32_t> nodes,
                        std::uint32_t most) {
  if (communicator.size < 2) return;
  const Device::Tree tree = device.join_tree({communicator.number, communicator.epoch, communicator.agreed.eager_limit,
                                              communicator.segment_bytes, communicator.agreed.rx_buffer_count, nodes});
  asked_ = !tree.text.empty() || !tree.reason.empty();
  if (!tree.reason.empty()) {
    words_ = "none: " + tree.reason;
    if (communicator.rank != 0) return;
    log(LogLevel::kInfo, formatted("the collectives of {} run among its ranks: {}", communicator.title(), tree.reason));
  }
  if (tree.text.empty()) return;
  const CallTree* const known = parse_tree(tree.text, false);
  const bool fits =
      known->members == communicator.size && known->switches == tree.switches.size() && known->in_rank_order &&
      communicator.size + known->switches <= most &&
      std::all_of(tree.switches.begin(), tree.switches.end(), [&](std::uint32_t session) { return session < most; });
  if (!fits) {
    throw Error(ErrorCode::kDeviceLost,
                formatted("device: it names switches for communicator {} that it cannot have", communicator.number));
  }
  communicator.tree = known;
  above_ = tree.switches[known->parent[communicator.rank] - communicator.size];
  words_ = "switches in the network: " + tree.text;
}

void GroupSwitches::leave(Device& device, const cclo::Communicator& communicator) {
  if (std::exchange(asked_, false)) device.leave_tree(communicator.number, communicator.epoch);
}

std::string waits_at_switches(Device& device, const cclo::CallState& call) {
  if (!by_switches(call)) return {};
  std::string text;
  const std::string lines = device.tree_waits(call.communicator->number, call.communicator->epoch);
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    text += (text.empty() ? ". Switches say: " : "; ") + lines.substr(at, end - at);
    at = end + 1;
  }
  return text;
}

}  // namespace unisono
