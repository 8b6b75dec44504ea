// CRC-32C of long pieces of memory, by the processor's own instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unisono {

/// The same value as crc32c (crc32c.hpp). Thread-safe.
std::uint32_t crc32c_long(std::span<const std::byte> bytes);

}  // namespace unisono
