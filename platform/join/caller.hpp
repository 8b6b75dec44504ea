// Functions of the program's own, through which the members of a job meet.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "platform/join/exchange.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

/// What unisono_join is given: all_gather, or put and get. They are called by the thread that joins, and throw
/// Error(kBootstrap) if they fail.
struct CallerFunctions {
  /// All give equally many bytes; `all` gets those of all, by rank.
  std::function<void(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline)> all_gather;
  std::function<void(const std::string& key, std::span<const std::byte> value, Deadline deadline)> put;
  /// Waits until somebody has put it. Writes at most value.size() bytes and says how many; nothing if it is not there
  /// by the deadline.
  std::function<std::optional<std::size_t>(const std::string& key, std::span<std::byte> value, Deadline deadline)> get;
};

/// Bytes of a value that is put, at most.
inline constexpr std::size_t kMaxPut = std::size_t{32} * 1024;

std::unique_ptr<Exchange> make_caller_exchange(const JobEnvironment& environment, const CallerFunctions& functions);

}  // namespace unisono::join
