#include "network/shm/kernel_copy.hpp"

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

#include "core/ticks.hpp"
#include "network/shm/registered.hpp"

namespace unisono::shm {
namespace {

/// Whether only a debugger that a process names may get at its memory.
bool only_named_debuggers() {
  std::FILE* file = std::fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
  if (file == nullptr) return false;
  const int scope = std::fgetc(file);
  std::fclose(file);
  return scope == '1';
}

std::uint64_t random_word() {
  std::uint64_t word = 0;
  if (getrandom(&word, sizeof word, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof word)) return word;
  // A guess is no use to anybody; it must only differ from what stands at that address in another process.
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) *
         0x9e3779b97f4a7c15ULL;
}

}  // namespace

KernelCopy::KernelCopy(std::shared_ptr<Segment> segment, std::uint32_t self, bool refused)
    : segment_(std::move(segment)),
      self_(self),
      refused_(refused || segment_->geometry().one_process != 0 || segment_->size() == 1),
      peers_(segment_->size()) {}

void KernelCopy::join() {
  if (segment_->geometry().copy_from.ever()) show();
}

void KernelCopy::show() {
  const std::lock_guard lock(trials_);
  if (refused_ || nonce_ != nullptr) return;
  if (only_named_debuggers()) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  nonce_ = std::make_unique<Nonce>(Nonce{{random_word(), random_word()}, 0});
  EndpointBlock& block = segment_->endpoint(self_);
  block.nonce[0].store(nonce_->words[0], std::memory_order_relaxed);
  block.nonce[1].store(nonce_->words[1], std::memory_order_relaxed);
  block.nonce_address.store(reinterpret_cast<std::uintptr_t>(nonce_.get()), std::memory_order_release);
}

void KernelCopy::take_for_peers(std::uint32_t pid) {
  for (Peer& peer : peers_) {
    peer.pid = pid;
    peer.watch = ProcessWatch(pid, start_time_of(pid));
    peer.trial.store(static_cast<std::uint8_t>(Trial::kPassed), std::memory_order_release);
  }
}

void KernelCopy::name_peers(std::uint32_t pid) {
  for (Peer& peer : peers_) peer.pid = pid;
}

bool KernelCopy::try_peer(std::uint32_t peer) {
  const std::lock_guard lock(trials_);
  Peer& entry = peers_[peer];
  if (static_cast<Trial>(entry.trial.load(std::memory_order_relaxed)) != Trial::kUntried) {
    return static_cast<Trial>(entry.trial.load(std::memory_order_relaxed)) == Trial::kPassed;
  }
  const EndpointBlock& block = segment_->endpoint(peer);
  if (block.state.load(std::memory_order_acquire) == EndpointState::kAbsent) return false;
  const auto passes = [&] {
    const std::uint64_t address = block.nonce_address.load(std::memory_order_acquire);
    if (refused_ || address == 0) return false;
    entry.pid = block.pid.load(std::memory_order_relaxed);
    if (entry.pid == static_cast<std::uint32_t>(getpid())) return false;
    entry.watch = ProcessWatch(entry.pid, block.start_time.load(std::memory_order_relaxed));
    Nonce seen{};
    if (!copy<false>(peer, address, reinterpret_cast<std::byte*>(&seen), sizeof seen).done()) return false;
    if (seen.words[0] != block.nonce[0].load(std::memory_order_relaxed) ||
        seen.words[1] != block.nonce[1].load(std::memory_order_relaxed)) {
      return false;
    }
    return store(peer, address + offsetof(Nonce, touched), reinterpret_cast<const std::byte*>(&seen.words[0]),
                 sizeof seen.touched)
        .done();
  };
  const Trial result = passes() ? Trial::kPassed : Trial::kFailed;
  entry.trial.store(static_cast<std::uint8_t>(result), std::memory_order_release);
  return result == Trial::kPassed;
}

bool KernelCopy::holds(Peer& peer) {
  if (!peer.watch.watching()) return true;
  const std::uint64_t now = ticks();
  if (now - peer.seen.load(std::memory_order_relaxed) < kMillisecondTicks / 4) return true;
  if (!peer.watch.running()) return false;
  peer.seen.store(now, std::memory_order_relaxed);
  return true;
}

bool KernelCopy::copies_own(const std::byte* memory, std::uint64_t bytes) {
  const std::optional<bool> known = RegisteredMemory::instance().copied(memory, bytes);
  return known ? *known : tries_own(memory, bytes);
}

bool KernelCopy::tries_own(const std::byte* memory, std::uint64_t bytes) {
  std::array<std::byte, 2> into{};
  const iovec here{into.data(), into.size()};
  auto* const first = const_cast<std::byte*>(memory);  // only read
  const std::array<iovec, 2> there{iovec{first, 1}, iovec{first + bytes - 1, 1}};
  return process_vm_readv(getpid(), &here, 1, there.data(), there.size(), 0) == static_cast<ssize_t>(into.size());
}

template <bool kStores>
CopyOutcome KernelCopy::copy(std::uint32_t peer, std::uint64_t address, std::byte* own, std::uint64_t bytes) {
  Peer& entry = peers_[peer];
  CopyOutcome outcome;
  while (outcome.transferred < bytes) {
    // A process number is given away again when its owner has ended and was waited for.
    if (!holds(entry)) {
      outcome.kind = CopyOutcome::Kind::kGone;
      return outcome;
    }
    const std::uint64_t piece = std::min(kPiece, bytes - outcome.transferred);
    const iovec here{own + outcome.transferred, piece};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
    const iovec there{reinterpret_cast<void*>(address + outcome.transferred), piece};
    const auto pid = static_cast<pid_t>(entry.pid);
    const ssize_t copied =
        kStores ? process_vm_writev(pid, &here, 1, &there, 1, 0) : process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (copied > 0) {
      outcome.transferred += static_cast<std::uint64_t>(copied);  // short of the piece, if it ran into a hole
      continue;
    }
    outcome.address = address + outcome.transferred;
    outcome.error = copied == 0 ? EFAULT : errno;
    outcome.kind = outcome.error == ESRCH || (entry.watch.watching() && !entry.watch.running())
                       ? CopyOutcome::Kind::kGone
                       : CopyOutcome::Kind::kRefused;
    // EFAULT concerns this memory; any other refusal (a filter installed meanwhile, say) concerns all of it.
    if (outcome.kind == CopyOutcome::Kind::kRefused && outcome.error != EFAULT) {
      entry.trial.store(static_cast<std::uint8_t>(Trial::kFailed), std::memory_order_release);
    }
    return outcome;
  }
  return outcome;
}

CopyOutcome KernelCopy::fetch(std::uint32_t peer, std::uint64_t address, std::byte* into, std::uint64_t bytes) {
  return copy<false>(peer, address, into, bytes);
}

CopyOutcome KernelCopy::store(std::uint32_t peer, std::uint64_t address, const std::byte* from, std::uint64_t bytes) {
  // The kernel only reads from here; iovec knows no constness.
  return copy<true>(peer, address, const_cast<std::byte*>(from), bytes);
}

}  // namespace unisono::shm
