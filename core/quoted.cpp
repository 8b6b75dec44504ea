#include "core/quoted.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace unisono {

namespace {

/// Bytes of the first characters of UTF-8 that are no more than `most`.
std::size_t whole_characters(std::string_view text, std::size_t most) {
  constexpr std::size_t kLongest = 4;
  std::size_t length = std::min(text.size(), most);
  if (length == text.size()) return length;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80; };
  while (length > 0 && most - length < kLongest && continues(length)) --length;
  return length;
}

std::string rest_of(std::string_view text, std::size_t length) {
  return length == text.size() ? std::string() : formatted("… ({} bytes)", text.size());
}

}  // namespace

std::string shortened(std::string_view text, std::size_t most) {
  const std::size_t length = whole_characters(text, most);
  return std::string(text.substr(0, length)) + rest_of(text, length);
}

std::string in_quotes(std::string_view given) {
  constexpr std::size_t kMost = 80;
  const std::size_t length = whole_characters(given, kMost);
  std::string cut(given.substr(0, length));
  for (char& c : cut) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return '"' + cut + '"' + rest_of(given, length);
}

}  // namespace unisono
