// Bytes as hexadecimal digits: for people, and for stores that take text only.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "platform/join/pack.hpp"

namespace unisono::join {

/// Two small digits for each byte, as sha256sum writes them.
std::string hexadecimal_of(std::span<const std::byte> bytes);
/// Nothing if the text is none.
std::optional<Blob> bytes_of_hexadecimal(std::string_view text);

}  // namespace unisono::join
