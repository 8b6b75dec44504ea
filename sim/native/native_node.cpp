#include "sim/native/native_node.hpp"

#include <array>

#include "core/error.hpp"
#include "platform/device/registers.hpp"

namespace unisono::sim {

NativeNode::NativeNode(const NativeNodeConfig& config, Carrier& network)
    : poe_(network, config.node, config.nodes, config.clock_khz, config.delay),
      device_(poe_, FunctionalDevice::usual_capability(), FunctionalDevice::kMemoryBytes,
              FunctionalDevice::Peers::kHardware) {}

void NativeNode::begin(const RegisterAccess& access) {
  access_ = access;
  busy_ = true;
}

void NativeNode::evaluate() {
  const bool accessed = busy_;
  if (busy_) {
    try {
      if (access_.write) {
        device_.write(access_.offset, access_.value);
      } else {
        value_ = device_.read(access_.offset);
      }
      accepted_ = true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      accepted_ = false;
    }
    busy_ = false;
  }
  const std::uint32_t activity = poe_.activity();
  if (!accessed && !calls_ && activity == seen_) return;
  seen_ = activity;
  // Reading the registers lets the calls go on.
  interrupt_ = (device_.read(exchange::kStatus) & registers::kStatusCompletion) != 0;
  calls_ = (device_.read(exchange::kCalls) & 0xffU) != 0;
}

void NativeNode::store(std::uint64_t address, std::span<const std::byte> bytes) { device_.store(address, bytes); }

void NativeNode::load(std::uint64_t address, std::span<std::byte> bytes) const { device_.load(address, bytes); }

}  // namespace unisono::sim
