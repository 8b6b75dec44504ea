// A device's first steps: who it is, a soft reset, its firmware, its settings (docs/rtl/cpu.md).
#pragma once

#include <cstdint>
#include <span>

#include "engine/engine.hpp"
#include "platform/device/device.hpp"

namespace unisono {

/// What the device's register of deadlines takes.
std::uint32_t deadline_of(std::chrono::microseconds timeout);

/// The capability word of a device. Throws Error(kDeviceLost) if it is no engine of Unisono, Error(kUnsupported) if it
/// is one of another version.
std::uint64_t capability_of_device(Device& device);

/// Resets the device, loads its microcontroller (`firmware`: words from address 0; empty: it needs none), writes the
/// settings, and waits until it is ready. Throws Error(kDeviceLost).
void bring_up(Device& device, std::span<const std::uint32_t> firmware, const EngineSettings& settings);

}  // namespace unisono
