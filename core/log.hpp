// What the library writes to standard error by itself, as much as UNISONO_LOG asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono {

enum class LogLevel : std::uint8_t {
  kError,  ///< what went wrong, and nobody else could be told
  kWarn,   ///< goes on, but not as was asked; what holds without UNISONO_LOG
  kInfo,   ///< what holds for a job: ranks, platform, rules
  kDebug,  ///< what happens to it, call of housekeeping by call
};

/// "error", "warn", "info" or "debug"; nothing for other names.
std::optional<LogLevel> log_level_named(std::string_view name);

/// Whether UNISONO_LOG, read once per process, asks for sentences of this level. A value that is no level is mentioned
/// then, and means warn. Ask before a sentence is put together; no call of the fast path does. Thread-safe.
bool logs(LogLevel level) noexcept;

/// Writes "unisono: warning: <text>", one line in one piece, if `logs(level)`. `who` is the program that says it.
/// Thread-safe.
void log(LogLevel level, const std::string& text, const char* who = "unisono") noexcept;

}  // namespace unisono
