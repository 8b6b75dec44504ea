#include "cost/pins.hpp"

#include <charconv>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/quoted.hpp"
#include "core/text.hpp"
#include "cost/names.hpp"

namespace unisono::cost {
namespace {

constexpr const char* kForm =
    "allowed is a list of COLLECTIVE=ALGORITHM or COLLECTIVE=ALGORITHM:RANGE, with ALGORITHM as ring or knomial:8, and "
    "RANGE as 4K-64K, 64K- or -4K";

[[noreturn]] void refuse(std::string_view pin, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "UNISONO_ALGORITHM: " + in_quotes(pin) + ": " + what + "; " + kForm);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::uint64_t bytes_of_text(std::string_view text, std::string_view pin) {
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  unsigned shift = 0;
  if (unit == "K" || unit == "k") shift = 10;
  if (unit == "M" || unit == "m") shift = 20;
  if (unit == "G" || unit == "g") shift = 30;
  if (error != std::errc{} || (shift == 0 && !unit.empty()) || value > kAnyBytes >> (shift + 1)) {
    refuse(pin, in_quotes(text) + " is no number of bytes");
  }
  return value << shift;
}

Rule pin_of(std::string_view pin) {
  const std::size_t equals = pin.find('=');
  if (equals == std::string_view::npos) refuse(pin, "there is no =");
  const std::string_view collective = trimmed(pin.substr(0, equals));
  std::string_view name = pin.substr(equals + 1);
  std::optional<std::string_view> range;
  // What stands behind the last colon is a range if there is a dash in it, and a radix if not.
  const std::size_t colon = name.rfind(':');
  if (colon != std::string_view::npos && name.find('-', colon) != std::string_view::npos) {
    range = trimmed(name.substr(colon + 1));
    name = name.substr(0, colon);
  }
  const auto known = collective_named(collective);
  if (!known) {
    throw Error(ErrorCode::kInvalidArgument, "UNISONO_ALGORITHM: there is no collective " + in_quotes(collective) +
                                                 "; there are " + collectives_text());
  }
  Rule rule;
  try {
    const NamedAlgorithm named = algorithm_named(*known, trimmed(name));
    rule.position = static_cast<std::uint16_t>(named.position);
    rule.radix = named.radix;
    rule.switches = true;  // who pins an algorithm means it, whatever else there is
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) refuse(pin, error.what());
    throw Error(error.code(), std::string("UNISONO_ALGORITHM: ") + error.what());
  }
  if (!range) return rule;
  const std::size_t dash = range->find('-');
  if (*range == "-") refuse(pin, "\"-\" is no range");
  if (dash != 0) rule.min_bytes = bytes_of_text(range->substr(0, dash), pin);
  if (dash + 1 != range->size()) rule.max_bytes = bytes_of_text(range->substr(dash + 1), pin);
  if (rule.min_bytes > rule.max_bytes) refuse(pin, "the range ends before it begins");
  return rule;
}

}  // namespace

std::vector<Rule> parse_pins(std::string_view text) {
  std::vector<Rule> rules;
  constexpr std::size_t kMost = 256;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view pin = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (pin.empty()) continue;
    if (rules.size() == kMost) refuse(pin, formatted("there are more than {} entries", kMost));
    rules.push_back(pin_of(pin));
  }
  return rules;
}

}  // namespace unisono::cost
