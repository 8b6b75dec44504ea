#include "sim/cables/shared_cables.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>

namespace unisono::sim {

SharedCables::SharedCables(int descriptor, std::uint32_t ranks, std::uint32_t ports, std::uint32_t latency)
    : ranks_(ranks), ports_(ports), nap_(latency < 4 ? 1 : latency / 4) {
  // A node may be a latency ahead of its neighbour, which still reads what is a latency older than its own cycle.
  while (slots_ < std::size_t{2} * latency + 2) slots_ *= 2;
  const std::size_t states = sizeof(RankState) * ranks;
  const std::size_t records = sizeof(CableRecord) * slots_ * kLinks * ranks;
  const std::size_t cards = sizeof(kernels::ChannelCard) * 2 * ranks * ranks * ports * kCards;
  const auto rounded = [](std::size_t bytes) { return (bytes + 127) / 128 * 128; };
  bytes_ = states + rounded(records) + cards;
  // Every rank makes it the same size; what is there stays.
  struct stat found {};
  if (fstat(descriptor, &found) != 0 || ftruncate(descriptor, static_cast<off_t>(bytes_)) != 0) {
    throw std::runtime_error("the memory of the cables cannot be made: " + std::string(std::strerror(errno)));
  }
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("the memory of the cables cannot be mapped: " + std::string(std::strerror(errno)));
  }
  memory_ = static_cast<std::byte*>(memory);
  states_ = reinterpret_cast<RankState*>(memory_);
  records_ = reinterpret_cast<CableRecord*>(memory_ + states);
  cards_ = reinterpret_cast<kernels::ChannelCard*>(memory_ + states + rounded(records));
}

SharedCables::~SharedCables() { munmap(memory_, bytes_); }

kernels::ChannelCard& SharedCables::card(bool sends, std::uint32_t from, std::uint32_t to, std::uint32_t port,
                                         std::uint64_t sequence) const {
  const std::size_t pair = (static_cast<std::size_t>(from) * ranks_ + to) * ports_ + port;
  return cards_[(pair * 2 + (sends ? 1 : 0)) * kCards + sequence % kCards];
}

void SharedCables::publish(std::uint32_t rank, std::uint64_t done) const {
  RankState& state = states_[rank];
  state.done.store(done, std::memory_order_release);
  if (done % nap_ == 0) wake(rank);
}

void SharedCables::wake(std::uint32_t rank) const {
  RankState& state = states_[rank];
  state.tick.store(static_cast<std::uint32_t>(state.done.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
  if (state.waiters.load(std::memory_order_seq_cst) != 0) {
    syscall(SYS_futex, &state.tick, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
  }
}

bool SharedCables::await(std::uint32_t rank, std::uint64_t needed, std::uint64_t comfortable,
                         std::chrono::microseconds at_most) const {
  RankState& state = states_[rank];
  if (state.done.load(std::memory_order_acquire) >= needed) return true;
  const auto until = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    const std::uint32_t seen = state.tick.load(std::memory_order_seq_cst);
    const std::uint64_t done = state.done.load(std::memory_order_acquire);
    if (done >= comfortable) return true;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return done >= needed;
    const timespec limit{left.count() / 1000000000, left.count() % 1000000000};
    state.waiters.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &state.tick, FUTEX_WAIT, seen, &limit, nullptr, 0);
    state.waiters.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace unisono::sim
