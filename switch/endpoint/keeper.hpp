// The connections of a process to switches, and the pools that it has asked them for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "switch/control.hpp"
#include "switch/handler_control.hpp"

namespace unisono::slots {

/// A switch keeps a pool for as long as the connection lives by which it was asked. When a switch is started anew, its
/// connections end and its pools are gone: a thread connects again and asks for them again, and members then find a new
/// generation. Thread-safe.
class Keeper {
 public:
  Keeper(std::vector<std::string> addresses, std::string secret);
  /// Ends the connections, and with them the pools.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// What the switch at an address (by its position) says of itself; connects if need be. Throws Error(kBootstrap).
  Welcome welcome(std::size_t address, join::Deadline deadline);
  /// Asks for a pool; it is kept if it was made. Throws Error(kBootstrap).
  PoolAnswer make(std::size_t address, const PoolRequest& request, join::Deadline deadline);
  /// Has a pool that was asked for fold by an operator of a user, now and whenever the switch is started anew. A
  /// sentence if the switch refuses. Throws Error(kBootstrap).
  std::string set_operator(std::size_t address, const OperatorRequest& request, join::Deadline deadline);
  /// A pool folds by an operator no longer, at any of them. Best effort.
  void take_operator(const PoolId& id, Func func, join::Deadline deadline) noexcept;
  /// The pool is not wanted any more, at any of them.
  void free(const PoolId& id);

 private:
  struct Connection {
    std::unique_ptr<ControlConnection> open;
    std::map<PoolId, PoolRequest> pools;
    std::map<PoolId, std::vector<OperatorRequest>> operators;  ///< of these pools
  };

  ControlConnection& connected(std::size_t address, join::Deadline deadline);
  void ask_again(std::size_t address, join::Deadline deadline);
  void watch();
  void look_after(std::size_t address);

  const std::vector<std::string> addresses_;
  const std::string secret_;
  std::mutex mutex_;
  std::vector<Connection> connections_;
  std::condition_variable stirred_;
  bool stopping_ = false;
  std::thread thread_;  ///< from the first pool on
};

}  // namespace unisono::slots
