// A launcher's key-value store, through which the members of a job meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "platform/join/exchange.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

/// One rank's view of it. Every function throws Error(kBootstrap) if the store fails. One thread.
class Store {
 public:
  virtual ~Store() = default;
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Bytes of a value, at most.
  virtual std::size_t max_value() const = 0;
  /// A key is put once, by one rank. Keys are letters, digits and hyphens, at most kMaxKey.
  virtual void put(const std::string& key, std::span<const std::byte> value, Deadline deadline) = 0;
  /// Waits until all ranks have called it; what they have put before can be got then. False if that was not so by the
  /// deadline. A store in which `get` waits has none, and says true at once.
  virtual bool fence(Deadline deadline) = 0;
  /// What `rank` has put, or nothing if it is not there by the deadline.
  virtual std::optional<Blob> get(std::uint32_t rank, const std::string& key, Deadline deadline) = 0;
  /// The host on which a rank runs; empty if the store does not know.
  virtual std::string host_of(std::uint32_t /*rank*/) { return {}; }
  /// Ranks that have not come to a fence that failed, as far as the store knows better than by `get`.
  virtual std::optional<std::string> late() { return std::nullopt; }
};

/// Characters of a key, at most.
inline constexpr std::size_t kMaxKey = 48;

/// Jobs that this process has begun to join through stores before. All ranks count alike, so that a key is never used
/// again.
std::uint32_t next_store_job();

/// The members of `environment` meet in a store. `job` stands in the keys: the same on all ranks.
std::unique_ptr<Exchange> make_store_exchange(const JobEnvironment& environment, std::unique_ptr<Store> store,
                                              std::uint32_t job = next_store_job());

}  // namespace unisono::join
