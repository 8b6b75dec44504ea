// Pieces of a device's memory that stand for pieces of its host's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/engine.hpp"
#include "platform/device/memory.hpp"

namespace unisono {

/// A piece of device memory that holds a copy of a piece of host memory, or is scratch.
struct DeviceImage {
  DeviceImage(DeviceMemory& of, std::uint64_t at, Binding host_memory) : owner(of), address(at), host(host_memory) {}
  ~DeviceImage() { owner.free(address); }
  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;

  /// Nothing if there is no room.
  static std::shared_ptr<DeviceImage> of(DeviceMemory& memory, const Binding& host) {
    const std::optional<std::uint64_t> address = memory.allocate(host.bytes);
    return address ? std::make_shared<DeviceImage>(memory, *address, host) : nullptr;
  }

  DeviceMemory& owner;
  std::uint64_t address;
  Binding host;
};

}  // namespace unisono
