// Memory of a host that peers reach, where it is on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "platform/device/device.hpp"
#include "platform/device/image.hpp"

namespace unisono {

/// Peers reach an image of the window in the device. Before a call begins, what the host has changed since goes there;
/// when one has ended, what peers have changed comes here. A copy of what was alike last tells both. Not thread-safe.
class WindowImage {
 public:
  /// Both are alike now.
  WindowImage(Device& device, std::shared_ptr<DeviceImage> image);
  /// What the host has changed goes to the device.
  void push();
  /// What peers have changed comes to the host.
  void pull();
  std::uint64_t address() const { return image_->address; }

 private:
  Device& device_;
  std::shared_ptr<DeviceImage> image_;
  std::vector<std::byte> alike_;  ///< what both held when they were made alike last
};

}  // namespace unisono
