// A device that does not answer as one should.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace unisono {

[[noreturn]] inline void lost(const std::string& what) { throw Error(ErrorCode::kDeviceLost, "device: " + what); }

/// How often a register is read before the device counts as lost.
inline constexpr int kDevicePatience = 100'000;

inline std::string hexadecimal(std::uint32_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[value >> static_cast<unsigned>(shift) & 15U];
  return text;
}

}  // namespace unisono
