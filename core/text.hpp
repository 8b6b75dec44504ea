// Text with values in it. {fmt} writes it, in one place: its own functions are compiled in text.cpp alone, and are no
// part of what the library exports.
#pragma once

#include <fmt/core.h>

#include <string>

namespace unisono {

/// For `formatted`.
std::string formatted_of(fmt::string_view form, fmt::format_args values);

/// `form` with each {} replaced by a value; {{ and }} are braces. The compiler refuses a form that does not fit.
/// Numbers are written in full, a bool as true or false, a double as the shortest text that is read as the same one.
template <class... Values>
std::string formatted(fmt::format_string<const Values&...> form, const Values&... values) {
  return formatted_of(form, fmt::make_format_args(values...));
}

}  // namespace unisono
