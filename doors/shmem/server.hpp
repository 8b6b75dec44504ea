// Put, get and atomics on PEs of other hosts: the side that carries them out.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "doors/shmem/wire.hpp"
#include "unisono/unisono.h"

namespace unisono::shmem {

/// A helper thread that carries out what PEs of other hosts ask of this one's memory. There is one only in jobs of
/// several hosts. It sleeps in libunisono while nothing is asked.
class Server {
 public:
  /// Serves requests on the communicator, which must outlive it.
  explicit Server(unisono_communicator* communicator);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Waits until it has ended: by a request to stop, or by an error.
  void join();
  /// Throws Failure with what ended it, if that was an error.
  void check(const char* operation) const;

 private:
  void work() noexcept;
  /// False: it was asked to stop.
  bool serve(const unisono_status& status);
  void carry_out(const Request& request, std::int64_t source, std::span<const std::byte> inlined);
  void answer(std::int64_t source, std::uint32_t tag, const void* bytes, std::uint64_t count);

  unisono_communicator* communicator_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  ///< of `sentence_`
  std::string sentence_;
  std::thread thread_;
};

}  // namespace unisono::shmem
