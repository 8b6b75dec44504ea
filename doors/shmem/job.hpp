// The job of this process: its memory, its PEs, its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "doors/shmem/heap.hpp"
#include "doors/shmem/patience.hpp"
#include "doors/shmem/reach.hpp"
#include "doors/shmem/remote.hpp"
#include "doors/shmem/teams.hpp"
#include "unisono/unisono.h"

namespace unisono::shmem {

/// What a PE keeps at the beginning of its heap, for the others.
struct alignas(64) Control {
  std::atomic<std::uint64_t> exit;  ///< kExits | status, once some PE has ended the job
};
inline constexpr std::uint64_t kExits = std::uint64_t{1} << 32U;

/// A process has one job at a time. Functions throw Failure and are thread-safe; those that are collective are called
/// by all PEs in one order.
class Job {
 public:
  /// Joins the job, with a heap of `heap_bytes` (0: what SHMEM_SYMMETRIC_SIZE says) and, if `statics`, the program's
  /// variables. Collective. Does nothing if there is a job. `keeps_heap`: the memory stays when the job is left, for
  /// objects that refer to it and live on.
  static void start(std::uint64_t heap_bytes, bool statics, bool keeps_heap = false);
  /// Leaves it: a barrier, and the end of its memory. Does nothing if there is none.
  static void finish();
  /// Leaves it without the barrier. The others see that this PE is gone.
  static void abandon();
  /// The job; throws if there is none.
  static Job& of(const char* operation) {
    Job* const job = if_any();
    if (job == nullptr) [[unlikely]]
      refuse(operation, nullptr, 0, 0);
    return *job;
  }
  /// The job, or null.
  static Job* if_any() { return current_.load(std::memory_order_acquire); }

  int rank() const { return reach.rank; }
  int size() const { return reach.size; }
  unisono_communicator* world() const { return world_; }
  Teams& teams() { return *teams_; }
  /// Null on one host.
  Remote* remote() { return remote_.get(); }
  /// Of waits, in seconds; 0: none. `deadline_warns`: it does not end them.
  double timeout() const { return timeout_; }
  bool deadline_warns() const { return deadline_warns_; }

  /// Symmetric memory: zeroed at first, then as it was left. Null if there is no room. Collective, as is release.
  void* allocate(const char* operation, std::uint64_t bytes, std::uint64_t alignment);
  /// Bytes of a piece; throws unless one begins there.
  std::uint64_t size_of(const char* operation, const void* memory);
  void release(const char* operation, void* memory);

  /// Until all puts and atomics of this PE are done.
  void quiet(const char* operation) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    glance(operation);
    if (remote_ != nullptr) remote_->quiet(operation);
  }
  void barrier(const char* operation);

  /// Throws if a PE has died or left, or the server has failed; ends the process if some PE has ended the job.
  void look_after_peers(const char* operation);
  /// Ends all PEs with this status. Does not return.
  [[noreturn]] void exit(int status);
  /// Tells the others why, and ends this process with status 1.
  [[noreturn]] static void die(const std::string& sentence);

 private:
  static std::atomic<Job*> current_;
  Job() = default;
  void join();
  void make_heap(std::uint64_t bytes);
  void make_statics();
  void show(std::uint32_t region, std::span<std::byte> memory, std::byte* shared);
  void leave();
  Control& control_of(std::byte* heap) const { return *reinterpret_cast<Control*>(heap); }

  unisono_context* context_ = nullptr;
  unisono_communicator* world_ = nullptr;
  double timeout_ = 0;
  bool deadline_warns_ = false;
  bool keeps_heap_ = false;
  std::mutex heap_mutex_;
  std::unique_ptr<Heap> heap_;
  void* heap_pages_ = nullptr;  ///< in which the heap lies
  std::uint64_t heap_alignment_ = 0;
  std::byte* heap_memory_ = nullptr;
  std::byte* statics_memory_ = nullptr;
  std::span<std::byte> statics_pages_;
  std::unique_ptr<Remote> remote_;
  std::unique_ptr<Teams> teams_;
};

/// Bytes that text as 64K, 256M or 2G says. Throws Failure that names `variable`.
std::uint64_t parse_size(const std::string& variable, const std::string& text);

}  // namespace unisono::shmem
