#include "core/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace unisono {
namespace {

/// By name, and as a sentence begins with it.
constexpr std::pair<std::string_view, const char*> kLevels[] = {
    {"error", "error"}, {"warn", "warning"}, {"info", "info"}, {"debug", "debug"}};

LogLevel asked_for() {
  const char* value = std::getenv("UNISONO_LOG");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  const auto level = log_level_named(value == nullptr || *value == 0 ? "warn" : value);
  if (!level) {
    std::fprintf(
        stderr, "unisono: warning: UNISONO_LOG is \"%s\"; known are error, warn (as without it), info, debug\n", value);
  }
  return level.value_or(LogLevel::kWarn);
}

}  // namespace

std::optional<LogLevel> log_level_named(std::string_view name) {
  for (std::size_t level = 0; level < std::size(kLevels); ++level) {
    if (kLevels[level].first == name) return static_cast<LogLevel>(level);
  }
  return std::nullopt;
}

bool logs(LogLevel level) noexcept {
  static const LogLevel most = asked_for();
  return level <= most;
}

void log(LogLevel level, const std::string& text, const char* who) noexcept {
  if (logs(level)) {
    std::fprintf(stderr, "%s: %s: %s\n", who, kLevels[static_cast<std::size_t>(level)].second, text.c_str());
  }
}

}  // namespace unisono
