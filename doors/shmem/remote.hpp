// Put, get and atomics on PEs of other hosts: the side that asks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "doors/shmem/atomics.hpp"
#include "doors/shmem/reach.hpp"
#include "doors/shmem/server.hpp"
#include "doors/shmem/wire.hpp"
#include "unisono/unisono.h"

namespace unisono::shmem {

/// Messages to the servers of PEs on other hosts, and this PE's own server. Thread-safe. All functions throw Failure;
/// the deadlines are those of the communicator.
class Remote {
 public:
  /// Collective over the communicator of all PEs.
  Remote(unisono_context* context, unisono_communicator* world, int rank, int size);
  /// Ends the server. The PEs must have come to their last barrier.
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  /// The source may be used again when it returns. The put is done after the next quiet.
  void put(const char* operation, const Target& target, int pe, const void* source, std::uint64_t bytes);
  void get(const char* operation, const Target& target, int pe, void* dest, std::uint64_t bytes);
  /// What stood there before, if `fetches`; else 0, and it is done after the next quiet.
  std::uint64_t atomic(const char* operation, Atomic what, std::uint32_t width, const Target& target, int pe,
                       std::uint64_t operand, std::uint64_t comparand, bool fetches);
  /// Until all that was put is done.
  void quiet(const char* operation);
  /// Ends the PEs of other hosts, as far as they can be told.
  void exit(int status);
  /// Throws Failure if the server has ended by an error.
  void check(const char* operation) const { server_->check(operation); }

 private:
  void send(const char* operation, int pe, const Request& request, const void* inlined, const void* payload);
  void receive(const char* operation, int pe, std::uint32_t tag, void* into, std::uint64_t bytes);
  std::uint32_t next_reply() {
    return kFirstReplyTag + (replies_.fetch_add(1, std::memory_order_relaxed) % kReplyTags);
  }

  unisono_communicator* communicator_ = nullptr;
  int rank_;
  std::unique_ptr<std::mutex[]> order_;           ///< by PE: a payload comes right behind its request
  std::vector<std::atomic<std::uint64_t>> sent_;  ///< by PE: what was sent that nobody answers by itself
  std::vector<std::atomic<std::uint64_t>> done_;  ///< by PE: how many of these are known to be done
  std::atomic<std::uint32_t> replies_{0};
  std::unique_ptr<Server> server_;
};

}  // namespace unisono::shmem
