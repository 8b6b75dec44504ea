// Kernel copy: a process reads and writes memory of another through the kernel (process_vm_readv, process_vm_writev),
// so that ordinary memory travels with one copy. Source: decision 13.
//
// Whether the kernel lets one process at another's memory (user, container, ptrace scope, filters of system calls) is
// found by trial: every endpoint shows the address of two words of its own, which a peer reads and compares with what
// the endpoint has written into the segment. So a process number of another namespace, or one that has been given away
// again, is no danger: nothing is written before this has succeeded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/process.hpp"
#include "network/shm/segment.hpp"

namespace unisono::shm {

/// How one copy ended.
struct CopyOutcome {
  enum class Kind : std::uint8_t {
    kDone,
    kRefused,  ///< the kernel does not allow it, or the memory is none that it copies (a device's, or unmapped)
    kGone,     ///< the process has ended
  };
  Kind kind = Kind::kDone;
  int error = 0;                  ///< errno, if refused
  std::uint64_t address = 0;      ///< where it failed, in the other process
  std::uint64_t transferred = 0;  ///< bytes copied before
  bool done() const { return kind == Kind::kDone; }
};

/// Copies between this process's memory and that of its peers. Thread-safe.
class KernelCopy {
 public:
  /// At most so many bytes are copied in one system call, which nothing interrupts. Below that each doubling saves a
  /// fifteenth of the time, on an AMD EPYC; beyond it, nothing that matters.
  static constexpr std::uint64_t kPiece = std::uint64_t{1} << 20U;

  /// Of endpoint `self`. `refused`: nothing is copied from and to this process.
  KernelCopy(std::shared_ptr<Segment> segment, std::uint32_t self, bool refused);
  KernelCopy(const KernelCopy&) = delete;
  KernelCopy& operator=(const KernelCopy&) = delete;
  ~KernelCopy() = default;

  /// Shows peers the two words, without which their trials fail, and, where Yama lets only descendants at a process
  /// (scope 1), lets all processes of its user at this one. Once; later calls do nothing. To be called before peers are
  /// told of any memory.
  void show();
  /// The same as the endpoint joins: only where calls have the kernel copy. Elsewhere nothing but windows is reached
  /// so, and a rank that has none in ordinary memory shows nothing.
  void join();

  /// Takes process `pid` for every peer, untried: for measurements within one process.
  void take_for_peers(std::uint32_t pid);
  /// The same after this process has made a child, in the child: only the number changes.
  void name_peers(std::uint32_t pid);

  /// Whether memory of a peer can be copied. Tries it the first time after the peer has joined.
  bool reaches(std::uint32_t peer) {
    const auto known = static_cast<Trial>(peers_[peer].trial.load(std::memory_order_acquire));
    if (known == Trial::kUntried) [[unlikely]]
      return try_peer(peer);
    return known == Trial::kPassed;
  }

  /// Whether the kernel can copy this process's own memory at all, at least one byte: it cannot that of some devices,
  /// and secret memory. Tries the first and the last byte, of memory that is not registered (RegisteredMemory).
  static bool copies_own(const std::byte* memory, std::uint64_t bytes);
  /// The same, tried in any case.
  static bool tries_own(const std::byte* memory, std::uint64_t bytes);

  /// Copies bytes of a peer that `reaches`: `bytes` at `address` there to `into`.
  CopyOutcome fetch(std::uint32_t peer, std::uint64_t address, std::byte* into, std::uint64_t bytes);
  /// Copies to a peer that `reaches`: `bytes` at `from` to `address` there.
  CopyOutcome store(std::uint32_t peer, std::uint64_t address, const std::byte* from, std::uint64_t bytes);

 private:
  enum class Trial : std::uint8_t { kUntried, kPassed, kFailed };
  struct Peer {
    std::atomic<std::uint8_t> trial{0};
    std::uint32_t pid = 0;
    ProcessWatch watch;
    std::atomic<std::uint64_t> seen{0};  ///< when the process was last seen to run, in ticks
  };
  struct Nonce {
    std::uint64_t words[2];
    std::uint64_t touched;  ///< what peers write in their trials
  };

  bool try_peer(std::uint32_t peer);
  /// Whether the process still has its number, as of the last fraction of a millisecond: numbers are given away in
  /// turn, so that none is given away again so soon. One look at a counter, but once in that time a system call.
  static bool holds(Peer& peer);
  template <bool kStores>
  CopyOutcome copy(std::uint32_t peer, std::uint64_t address, std::byte* own, std::uint64_t bytes);

  std::shared_ptr<Segment> segment_;
  std::uint32_t self_;
  bool refused_;
  std::unique_ptr<Nonce> nonce_;
  std::mutex trials_;
  std::vector<Peer> peers_;
};

/// Where a buffer is, in a word that ranks show each other: nowhere that another can reach, a place in the segment, or
/// an address of the rank's process.
struct Reach {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::uint64_t kCopied = std::uint64_t{1} << 63U;  ///< with an address

  static constexpr bool by_copy(std::uint64_t word) { return word != kNone && (word & kCopied) != 0; }
  static constexpr std::uint64_t address(std::uint64_t word) { return word & ~kCopied; }
  static std::uint64_t copied(const void* address) { return reinterpret_cast<std::uintptr_t>(address) | kCopied; }
};

}  // namespace unisono::shm
