// Put, get and atomics on PEs of other hosts: the side that carries them out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "doors/shmem/wire.hpp"
#include "unisono/unisono.h"

namespace unisono::shmem {

/// Carries out what PEs of other hosts ask of this one's memory. There is one only in jobs of several hosts. It has no
/// thread of its own: a receive is always posted, and what it gets is carried out by whichever thread makes progress, a
/// thread of the program that waits, or else the offload thread of libunisono.
class Server {
 public:
  /// Serves requests on the communicator, which must outlive it.
  Server(unisono_context* context, unisono_communicator* communicator);
  /// `stop` must have been called.
  ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Waits until a request to stop, which must have been sent, was seen, or an error. Returns false if neither comes.
  bool stop();
  /// Throws Failure with what ended it, if that was an error.
  void check(const char* operation) const;

 private:
  /// A word that is on its way to who asked for it.
  struct Word {
    Server* server;
    std::uint64_t value;
  };

  void listen();
  /// Starts a call; `then` gets `context` when it has ended.
  void start(const unisono_call& call, unisono_completion then, void* context);
  static void on_request(unisono_request* request, unisono_result result, void* self);
  static void on_payload(unisono_request* request, unisono_result result, void* self);
  static void on_bytes(unisono_request* request, unisono_result result, void* self);
  static void on_word(unisono_request* request, unisono_result result, void* word);
  void serve(const unisono_status& status);
  void put(const Request& request, std::int64_t source, std::span<const std::byte> inlined);
  void answer(std::int64_t source, std::uint32_t tag, std::uint64_t value);
  void fail_with(const std::string& sentence);
  /// False, and the failure is kept, if a call has failed. Frees its request.
  bool ended_well(unisono_request* request, unisono_result result);

  unisono_context* context_;
  unisono_communicator* communicator_;
  std::vector<std::byte> packet_;  ///< what the posted receive gets; one at a time
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint32_t> answers_{0};  ///< on their way
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  ///< of `sentence_`
  std::string sentence_;
};

}  // namespace unisono::shmem
