#include "platform/join/variables.hpp"

#include <charconv>
#include <cstdlib>

#include "core/error.hpp"
#include "core/quoted.hpp"

namespace unisono::join {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void refuse(const char* name, const std::optional<std::string>& value, const std::string& allowed) {
  throw Error(ErrorCode::kBootstrap, std::string("environment variable ") + name + " is " +
                                         (value ? in_quotes(*value) : "not set") + ", but should be " + allowed);
}

std::uint32_t whole_number(const char* name, std::uint32_t least, std::uint32_t most, const std::string& allowed) {
  const auto value = variable(name);
  std::uint32_t number = 0;
  if (!value) refuse(name, value, allowed);
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, number);
  if (fault != std::errc() || stop != end || number < least || number > most) refuse(name, value, allowed);
  return number;
}

bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

}  // namespace unisono::join
