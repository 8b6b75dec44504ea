#include "platform/join/hexadecimal.hpp"

#include <charconv>

namespace unisono::join {

std::string hexadecimal_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text.push_back(kDigits[static_cast<unsigned>(b) >> 4U]);
    text.push_back(kDigits[static_cast<unsigned>(b) & 15U]);
  }
  return text;
}

std::optional<Blob> bytes_of_hexadecimal(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Blob bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, fault] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (fault != std::errc() || end != text.data() + i + 2) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

}  // namespace unisono::join
