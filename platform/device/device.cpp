#include "platform/device/device.hpp"

#include "core/error.hpp"

namespace unisono {

void Device::write(std::uint32_t offset, std::span<const std::uint32_t> values) {
  for (std::size_t i = 0; i < values.size(); ++i) write(offset + static_cast<std::uint32_t>(4 * i), values[i]);
}

std::size_t Device::give(std::uint32_t /*port*/, std::span<const std::byte> /*bytes*/) { return 0; }

std::size_t Device::take(std::uint32_t /*port*/, std::span<std::byte> /*bytes*/) { return 0; }

std::vector<std::vector<std::byte>> Device::meet(std::span<const std::byte> /*own*/) { return {}; }

void Device::start_kernel(std::uint32_t /*number*/, std::span<const std::byte> /*start*/) {
  throw Error(ErrorCode::kUnsupported, "this device runs no kernels");
}

}  // namespace unisono
