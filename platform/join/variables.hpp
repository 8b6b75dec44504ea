// Variables of the environment, and errors about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono::join {

/// Nothing if it is not set.
std::optional<std::string> variable(const char* name);
/// Throws Error(kBootstrap) that names the variable, what it holds, and what is allowed.
[[noreturn]] void refuse(const char* name, const std::optional<std::string>& value, const std::string& allowed);
/// The variable as a number in decimal digits. Refuses everything else, and that it is not set.
std::uint32_t whole_number(const char* name, std::uint32_t least, std::uint32_t most, const std::string& allowed);
/// Without spaces, too.
bool is_printable(std::string_view text);

}  // namespace unisono::join
