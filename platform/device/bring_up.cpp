#include "platform/device/bring_up.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "platform/device/lost.hpp"
#include "platform/device/registers.hpp"

namespace unisono {

std::uint32_t deadline_of(std::chrono::microseconds timeout) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(timeout.count(), 1, 0xffffffff));
}

std::uint64_t capability_of_device(Device& device) {
  const std::uint32_t identity = device.read(exchange::kIdentity);
  if (identity != registers::kIdentity) {
    lost("its identity is " + hexadecimal(identity) + ", not " + hexadecimal(registers::kIdentity) +
         ": it is no engine of Unisono");
  }
  const std::uint32_t version = device.read(exchange::kVersion);
  if (version != registers::kVersion) {
    throw Error(ErrorCode::kUnsupported, "device: it has version " + hexadecimal(version) + ", this library takes " +
                                             hexadecimal(registers::kVersion) +
                                             ": use a device and a library of one release");
  }
  const std::uint64_t low = device.read(exchange::kCapability);
  return low | std::uint64_t{device.read(exchange::kCapability + 4)} << 32U;
}

namespace {

void load_firmware(Device& device, std::span<const std::uint32_t> firmware) {
  device.write(exchange::kFirmwareAddress, 0);
  for (const std::uint32_t word : firmware) device.write(exchange::kFirmwareData, word);
  // The last word tells whether the memory holds the image at all.
  const auto last = static_cast<std::uint32_t>(4 * (firmware.size() - 1));
  device.write(exchange::kFirmwareAddress, last);
  if (device.read(exchange::kFirmwareData) == firmware.back()) return;
  lost(formatted("its microcontroller's memory does not hold the firmware of {} bytes", 4 * firmware.size()));
}

}  // namespace

void bring_up(Device& device, std::span<const std::uint32_t> firmware, const EngineSettings& settings) {
  device.write(exchange::kControl, registers::kControlReset);
  for (int i = 0; (device.read(exchange::kControl) & registers::kControlReset) != 0; ++i) {
    if (i == kDevicePatience) lost("its soft reset does not end");
  }
  device.write(exchange::kControl, 0);
  if (!firmware.empty()) load_firmware(device, firmware);
  device.write(exchange::kEagerLimit, settings.eager_limit);
  device.write(exchange::kSegmentBytes, settings.segment_bytes);
  device.write(exchange::kRxBufferCount, settings.rx_buffer_count);
  device.write(exchange::kRxBufferBytes, settings.segment_bytes);
  device.write(exchange::kTimeoutUs, deadline_of(settings.timeout));
  device.write(exchange::kControl, registers::kControlRun);
  for (int i = 0; (device.read(exchange::kStatus) & registers::kStatusReady) == 0; ++i) {
    if (i == kDevicePatience) {
      lost("it does not become ready (status " + hexadecimal(device.read(exchange::kStatus)) + ")");
    }
  }
}

}  // namespace unisono
