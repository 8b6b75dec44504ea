#include "engine/windows.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "core/ticks.hpp"
#include "engine/kernels.hpp"
#include "network/shm/parking.hpp"

namespace unisono::cclo {
namespace {

using shm::Reach;

/// Copies the next bytes at once if both places are aligned for it.
template <class Word>
bool copy_word(std::byte*& out, const std::byte*& in, std::uint64_t& bytes) {
  const auto places = reinterpret_cast<std::uintptr_t>(out) | reinterpret_cast<std::uintptr_t>(in);
  if (bytes < sizeof(Word) || places % sizeof(Word) != 0) return false;
  __atomic_store_n(reinterpret_cast<Word*>(out), __atomic_load_n(reinterpret_cast<const Word*>(in), __ATOMIC_RELAXED),
                   __ATOMIC_RELAXED);
  out += sizeof(Word);
  in += sizeof(Word);
  bytes -= sizeof(Word);
  return true;
}

/// Writes every byte once, and an aligned element of up to 8 bytes whole. A rank that waits for a word of its window
/// may write to it as soon as it has changed; memcpy, which may write some bytes twice, would put the old value there
/// again.
void copy_once(std::byte* out, const std::byte* in, std::uint64_t bytes) {
  while (copy_word<std::uint64_t>(out, in, bytes) || copy_word<std::uint32_t>(out, in, bytes) ||
         copy_word<std::uint16_t>(out, in, bytes) || copy_word<std::uint8_t>(out, in, bytes)) {
  }
}

}  // namespace

Windows::Windows(shm::ShmPoe& network, std::uint32_t rank, std::span<const std::uint32_t> endpoints,
                 LaneTraffic traffic)
    : network_(network),
      segment_(network.segment()),
      rank_(rank),
      endpoints_(endpoints.begin(), endpoints.end()),
      traffic_(traffic),
      looked_(std::make_unique<std::atomic<std::uint64_t>[]>(endpoints.size())) {}

void Windows::open(const shm::LaneSet& lanes, bool one_process, std::uint64_t streaming_bytes) {
  const std::lock_guard lock(mutex_);
  table_ = lanes.windows();
  one_process_ = one_process;
  streaming_bytes_ = streaming_bytes;
  opened_.store(true, std::memory_order_release);
  if (window_.data != nullptr && !ended_) table_.show(place_of(window_));
}

std::string Windows::hide(std::chrono::milliseconds patience, bool for_good) {
  Binding window;
  {
    const std::lock_guard lock(mutex_);
    ended_ = ended_ || for_good;
    window = std::exchange(window_, {});
    if (!opened_.load(std::memory_order_relaxed) || window.data == nullptr) return {};
    table_.hide();
  }
  const auto until = shm::Parking::Clock::now() + patience;
  std::string staying;
  for (std::uint32_t peer = 0; peer < endpoints_.size(); ++peer) {
    while (table_.visited_by(peer) && network_.liveness(endpoints_[peer]) == Poe::Liveness::kAlive) {
      if (shm::Parking::Clock::now() >= until) {
        staying += (staying.empty() ? "rank " : ", rank ") + std::to_string(peer);
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  // What a rank that was stopped may still write shall end nowhere.
  if (!staying.empty() && !one_process_) segment_->detach(window.data, window.bytes);
  return staying;
}

void Windows::show(Binding window) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  window_ = window;
  if (opened_.load(std::memory_order_relaxed) && window.data != nullptr) table_.show(place_of(window));
}

shm::WindowTable::Place Windows::place_of(Binding window) {
  if (window.bytes == 0) return {Reach::kNone, 0};
  if (one_process_) return {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(window.data)), window.bytes};
  const std::uint64_t offset = segment_->offset_of(window.data, window.bytes);
  if (offset != 0) return {offset, window.bytes};
  const bool copied = shm::KernelCopy::copies_own(window.data, window.bytes);
  if (copied) network_.kernel_copy().show();
  return {copied ? Reach::copied(window.data) : Reach::kNone, window.bytes};
}

bool Windows::look_due(std::uint32_t peer) const {
  return ticks() - looked_[peer].load(std::memory_order_relaxed) > kMillisecondTicks ||
         segment_->endpoint(endpoints_[peer]).state.load(std::memory_order_acquire) != shm::EndpointState::kJoined;
}

bool Windows::reach_after_look(const WindowAccess& access) {
  looked_[access.peer].store(ticks(), std::memory_order_relaxed);
  return opened_.load(std::memory_order_acquire) && reach(access);
}

std::uint64_t Windows::reach_piece(const WindowAccess& access, std::uint64_t done, std::uint64_t most) {
  if (!opened_.load(std::memory_order_acquire)) return 0;
  shm::WindowTable::Place window;
  if (!table_.enter(access.peer, window)) return 0;
  const std::uint64_t bytes = std::min(access.bytes - done, most);
  // All of it is written, or nothing.
  const bool inside = access.offset <= window.bytes && access.bytes <= window.bytes - access.offset;
  const bool copied = inside && copy(access, done, bytes, window.reach);
  table_.leave(access.peer);
  if (!copied) return 0;
  traffic_.add_direct(bytes);
  return bytes;
}

/// False if the window cannot be reached from here, or no longer.
bool Windows::copy(const WindowAccess& access, std::uint64_t done, std::uint64_t bytes, std::uint64_t reach) const {
  if (reach == Reach::kNone) return false;
  std::byte* const own = access.data + done;
  const std::uint64_t offset = access.offset + done;
  if (Reach::by_copy(reach) && access.peer != rank_) {
    shm::KernelCopy& kernel = network_.kernel_copy();
    const std::uint32_t endpoint = endpoints_[access.peer];
    if (!kernel.reaches(endpoint)) return false;
    const std::uint64_t there = Reach::address(reach) + offset;
    return (access.stores ? kernel.store(endpoint, there, own, bytes) : kernel.fetch(endpoint, there, own, bytes))
        .done();
  }
  std::byte* window = nullptr;
  if (one_process_ || Reach::by_copy(reach)) {
    window = reinterpret_cast<std::byte*>(Reach::address(reach)) + offset;  // NOLINT(performance-no-int-to-ptr)
  } else {
    window = segment_->at(reach + offset, bytes);
    if (window == nullptr) return false;
  }
  std::byte* const out = access.stores ? window : own;
  const std::byte* const in = access.stores ? own : window;
  if (bytes <= shm::kInlineBytes) {
    copy_once(out, in, bytes);
  } else if (access.peer == rank_ || one_process_) {
    std::memmove(out, in, bytes);  // the user's memory may be a part of the window
  } else {
    copy_bytes(out, in, bytes, access.bytes > streaming_bytes_);
  }
  return true;
}

}  // namespace unisono::cclo
