#include "platform/device/device.hpp"

namespace unisono {

void Device::write(std::uint32_t offset, std::span<const std::uint32_t> values) {
  for (std::size_t i = 0; i < values.size(); ++i) write(offset + static_cast<std::uint32_t>(4 * i), values[i]);
}

std::vector<std::vector<std::byte>> Device::meet(std::span<const std::byte> /*own*/) { return {}; }

}  // namespace unisono
