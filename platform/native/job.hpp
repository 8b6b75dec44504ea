// A job on one machine: how endpoints find each other and share memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/poe.hpp"
#include "network/shm/segment.hpp"

namespace unisono {

/// How a process learns of its job; `unisono run` sets these variables.
struct JobEnvironment {
  std::uint32_t rank = 0;                     ///< UNISONO_RANK
  std::uint32_t size = 1;                     ///< UNISONO_SIZE
  std::string rendezvous;                     ///< UNISONO_RENDEZVOUS: name of an abstract Unix socket rank 0 listens on
  std::string secret;                         ///< UNISONO_SECRET: hexadecimal; without it nobody can join
  std::chrono::milliseconds timeout{60'000};  ///< UNISONO_JOIN_TIMEOUT_S
  std::string observer;                       ///< UNISONO_OBSERVER: abstract Unix socket of one who looks at the job
  /// UNISONO_KERNEL_COPY: "off" (0), "auto" (nothing: what the machine does faster), or from so many bytes on.
  std::optional<std::uint64_t> kernel_copy;
  bool lines = false;  ///< UNISONO_STDOUT=lines: C's stdout is to be written line by line

  /// Reads the environment; without UNISONO_* a job of one rank. Throws Error(kBootstrap) naming the
  /// variable, what it holds and what it should.
  static JobEnvironment from_environment();
};

/// A joined job: the endpoint's network, and what every member brought (see Engine::capabilities).
struct JoinedJob {
  std::unique_ptr<Poe> poe;
  std::vector<std::vector<std::byte>> all_capabilities;  ///< by endpoint
};

/// From how many bytes on a machine has the kernel copy. Called by the process of rank 0, once all have come and wait.
using FindCopyFrom = std::function<shm::CopyFrom()>;

/// Joins as a process: rank 0 makes one sealed, nameless memfd and hands it to the others over the
/// rendezvous socket. Collective over the job. Throws Error(kBootstrap) that says who has not come. Without
/// `copy_from` what is usual holds, if the environment says nothing.
JoinedJob join_job(const JobEnvironment& environment, std::span<const std::byte> capabilities,
                   const FindCopyFrom& copy_from = {});

/// Has C's stdout, which is written in blocks if it leads into a pipe, written line by line, beginning with what it
/// holds. So a program that hangs or is killed has shown its lines.
void write_stdout_by_lines();

/// A job whose endpoints are threads of this process: same segment layout, same code.
class ThreadJob {
 public:
  explicit ThreadJob(std::uint32_t size);
  ~ThreadJob();
  ThreadJob(const ThreadJob&) = delete;
  ThreadJob& operator=(const ThreadJob&) = delete;
  /// The endpoint's network; once per rank, from any thread.
  std::unique_ptr<Poe> endpoint(std::uint32_t rank);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace unisono
