#include "network/shm/lanes.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "network/shm/parking.hpp"

namespace unisono::shm {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kMostCellBytes = 1024 * 1024;
constexpr std::uint32_t kLeastCellBytes = 8 * 1024;

constexpr std::uint64_t page_aligned(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Where the parts of a block begin, in bytes from its start.
struct BlockLayout {
  std::uint64_t touches, windows, visits, tails, lines, cells, small_cells, total;

  BlockLayout(std::uint64_t ranks, std::uint64_t cell_bytes) {
    const auto small = LaneSet::small_sets(static_cast<std::uint32_t>(ranks));
    constexpr auto kLarge = static_cast<std::uint64_t>(LaneSpace::kSmall);
    const std::uint64_t pairs = ranks * ranks;
    const std::uint64_t lanes = (kLarge + small) * pairs;
    touches = kPage;
    windows = touches + ranks * sizeof(TouchLine);
    windows = (windows + alignof(WindowLine) - 1) / alignof(WindowLine) * alignof(WindowLine);
    visits = windows + ranks * sizeof(WindowLine);
    tails = page_aligned(visits + ranks * WindowTable::row(ranks) * sizeof(std::uint32_t));
    lines = tails + page_aligned(lanes * sizeof(LaneTail));
    cells = lines + page_aligned(lanes * kLaneLines * sizeof(LaneLine));
    small_cells = cells + kLarge * pairs * cell_bytes;
    total = small_cells + small * pairs * LaneSet::small_cell_bytes(static_cast<std::uint32_t>(cell_bytes));
  }
};

}  // namespace

/// First page of the lanes of a communicator.
struct LaneBlock {
  std::atomic<std::uint32_t> members;  ///< that still use it
  std::uint32_t ranks;
  std::uint32_t cell_bytes;
  std::atomic<std::uint32_t> banned;  ///< nobody touches the memory of others any more
};

namespace {

/// What a directory names, which any member can write: checked before it is used. Null if no block can stand there.
LaneBlock* block_at(const Segment& segment, std::uint64_t place) {
  return place % kPage == 0 ? reinterpret_cast<LaneBlock*>(segment.at(place, sizeof(LaneBlock))) : nullptr;
}

/// A block that all have freed is used again with the pages that it has, if no more than this has to be cleared (up to
/// four ranks): to give pages back interrupts every core of the job, and then they are faulted in anew.
constexpr std::uint64_t kMostCleared = std::uint64_t{256} << 10U;

}  // namespace

std::uint32_t LaneSet::cell_bytes_for(std::uint32_t ranks, std::uint32_t others) {
  // Used by all pairs at once they stay within 16 MB for each space. Where there is room a lane is as large as a
  // second-level cache: lines that come round again have left the receiver's by then, and to write them the sender
  // takes them from the third level, four times as fast as from the other core.
  constexpr std::uint64_t kAll = std::uint64_t{16} << 20U;
  constexpr std::uint32_t kFew = 8, kSome = 32;
  std::uint32_t bytes = others < kFew ? kMostCellBytes : others < kSome ? 256 * 1024 : 32 * 1024;
  while (bytes > kLeastCellBytes && std::uint64_t{bytes} * ranks * ranks > kAll) bytes /= 2;
  return bytes;
}

std::int64_t LaneSet::small_bytes_for(std::uint32_t ranks) {
  if (small_sets(ranks) == 0) return -1;
  constexpr std::int64_t kMost = 2048;
  const std::uint32_t lane = small_cell_bytes(cell_bytes_for(ranks)) / 4;
  return std::min(kMost, std::int64_t{lane} * 2 / std::max(ranks, 2U));
}

LaneSet::LaneSet(std::shared_ptr<Segment> segment, std::shared_ptr<Arena> arena, std::uint32_t self,
                 std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints)
    : segment_(std::move(segment)),
      arena_(std::move(arena)),
      self_(self),
      key_((std::uint64_t{number} << 16U | epoch) + 1),
      cell_bytes_(cell_bytes_for(static_cast<std::uint32_t>(endpoints.size()))),
      endpoints_(endpoints.begin(), endpoints.end()),
      size_(static_cast<std::uint32_t>(endpoints.size())) {
  rank_ = static_cast<std::uint32_t>(std::find(endpoints.begin(), endpoints.end(), self) - endpoints.begin());
  arena_->settle();
  if (endpoints_.front() == self_) create();
}

LaneSet::~LaneSet() {
  const auto give_up = [segment = segment_, owner = endpoints_.front(), key = key_, size = size_] {
    try {
      std::uint32_t cell_bytes = 0;
      LaneBlock* block = find(*segment, owner, key, size, cell_bytes);
      if (block == nullptr) return false;
      block->members.fetch_sub(1, std::memory_order_acq_rel);
    } catch (const Error&) {
      // Corrupt shared memory: there is nothing to give up.
    }
    return true;
  };
  if (!give_up()) arena_->owe(give_up);
}

void LaneSet::create() {
  // Entries whose communicators everybody has freed are used again.
  DirectoryEntry* entries = segment_->directory(self_);
  std::vector<DirectoryEntry*> free;
  std::uint32_t others = 0;
  for (std::uint32_t i = 0; i < kDirectoryEntries; ++i) {
    DirectoryEntry& entry = entries[i];
    if (entry.key.load(std::memory_order_relaxed) != 0) {
      const LaneBlock* block = block_at(*segment_, entry.place.load(std::memory_order_relaxed));
      if (block == nullptr || block->members.load(std::memory_order_acquire) != 0) {
        ++others;
        continue;
      }
    }
    free.push_back(&entry);
  }
  if (free.empty()) {
    throw Error(ErrorCode::kCapacity, "endpoint " + std::to_string(self_) + " is rank 0 of " +
                                          std::to_string(kDirectoryEntries) +
                                          " communicators that are not freed on all ranks; free some first");
  }
  cell_bytes_ = cell_bytes_for(size_, others);
  const BlockLayout layout(size_, cell_bytes_);
  DirectoryEntry* own = free.front();
  std::byte* memory = nullptr;
  for (DirectoryEntry* entry : free) {
    if (entry->key.load(std::memory_order_relaxed) == 0) continue;
    entry->key.store(0, std::memory_order_relaxed);
    LaneBlock* block = block_at(*segment_, entry->place.load(std::memory_order_relaxed));
    if (memory == nullptr && block->ranks == size_ && block->cell_bytes == cell_bytes_ &&
        layout.cells <= kMostCleared) {
      own = entry;
      memory = reinterpret_cast<std::byte*>(block);
      std::memset(memory, 0, layout.cells);
    } else {
      arena_->deallocate(block);
    }
  }
  if (memory == nullptr) memory = arena_->allocate(layout.total);
  if (memory == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, "the arena of endpoint " + std::to_string(self_) + " has no " +
                                             std::to_string(layout.total) +
                                             " bytes of address space left for the lanes of a communicator");
  }
  auto* block = reinterpret_cast<LaneBlock*>(memory);
  block->members.store(size_, std::memory_order_relaxed);
  block->ranks = size_;
  block->cell_bytes = cell_bytes_;
  own->place.store(segment_->offset_of(memory, layout.total), std::memory_order_relaxed);
  own->key.store(key_, std::memory_order_release);
  // Members that came first may sleep until the lanes are there, and this one may have nothing to send to them.
  for (const std::uint32_t endpoint : endpoints_) {
    if (endpoint != self_) wake_if_parked(segment_->endpoint(endpoint));
  }
}

LaneBlock* LaneSet::find(const Segment& segment, std::uint32_t owner, std::uint64_t key, std::uint32_t size,
                         std::uint32_t& cell_bytes) {
  const DirectoryEntry* entries = segment.directory(owner);
  for (std::uint32_t i = 0; i < kDirectoryEntries; ++i) {
    if (entries[i].key.load(std::memory_order_acquire) != key) continue;
    const std::uint64_t place = entries[i].place.load(std::memory_order_relaxed);
    LaneBlock* block = block_at(segment, place);
    cell_bytes = block == nullptr ? 0 : block->cell_bytes;  // read once
    const bool possible = std::has_single_bit(cell_bytes) && cell_bytes >= kLeastCellBytes &&
                          cell_bytes <= kMostCellBytes && block->ranks == size;
    if (!possible || segment.at(place, BlockLayout(size, cell_bytes).total) == nullptr) {
      throw Error(ErrorCode::kCorruptMessage, "the directory of endpoint " + std::to_string(owner) +
                                                  " names lanes that cannot be those of this communicator");
    }
    return block;
  }
  return nullptr;
}

bool LaneSet::open() {
  if (block_ != nullptr) return true;
  block_ = find(*segment_, endpoints_.front(), key_, size_, cell_bytes_);
  if (block_ == nullptr) return false;
  // Few ranks fill their cells; of many, most lanes are never used, and huge pages would be.
  constexpr std::uint32_t kFew = 8;
  if (size_ <= kFew && cell_bytes_ == cell_bytes_for(size_))
    madvise(block_, BlockLayout(size_, cell_bytes_).total, MADV_HUGEPAGE);  // advice
  return true;
}

std::uint64_t LaneSet::place(LaneSpace space, std::uint32_t sender, std::uint32_t receiver) const {
  return (static_cast<std::uint64_t>(space) * size_ + receiver) * size_ + sender;
}

TouchGuard LaneSet::touch_guard() const {
  const BlockLayout layout(size_, cell_bytes_);
  auto* lines = reinterpret_cast<TouchLine*>(reinterpret_cast<std::byte*>(block_) + layout.touches);
  return {block_->banned, lines, rank_};
}

WindowTable LaneSet::windows() const {
  const BlockLayout layout(size_, cell_bytes_);
  auto* base = reinterpret_cast<std::byte*>(block_);
  return {block_->banned, reinterpret_cast<WindowLine*>(base + layout.windows),
          reinterpret_cast<std::atomic<std::uint32_t>*>(base + layout.visits), rank_, size_};
}

std::uint64_t LaneSet::cells_of(LaneSpace space, std::uint32_t sender, std::uint32_t receiver) const {
  const BlockLayout layout(size_, cell_bytes_);
  if (space < LaneSpace::kSmall) return layout.cells + place(space, sender, receiver) * cell_bytes_;
  const std::uint64_t lane = place(space, sender, receiver) - place(LaneSpace::kSmall, 0, 0);
  return layout.small_cells + lane * small_cell_bytes(cell_bytes_);
}

LaneSender LaneSet::sender(LaneSpace space, std::uint32_t peer) const {
  const BlockLayout layout(size_, cell_bytes_);
  const std::uint64_t lane = place(space, rank_, peer);
  auto* base = reinterpret_cast<std::byte*>(block_);
  LaneSender sender;
  sender.lines = reinterpret_cast<LaneLine*>(base + layout.lines) + lane * kLaneLines;
  sender.cells = base + cells_of(space, rank_, peer);
  sender.tail = reinterpret_cast<LaneTail*>(base + layout.tails) + lane;
  sender.peer = &segment_->endpoint(endpoints_[peer]);
  sender.cell_bytes = cell_bytes(space);
  return sender;
}

LaneReceiver LaneSet::receiver(LaneSpace space, std::uint32_t peer) const {
  const BlockLayout layout(size_, cell_bytes_);
  const std::uint64_t lane = place(space, peer, rank_);
  auto* base = reinterpret_cast<std::byte*>(block_);
  LaneReceiver receiver;
  receiver.lines = reinterpret_cast<LaneLine*>(base + layout.lines) + lane * kLaneLines;
  receiver.cells = base + cells_of(space, peer, rank_);
  receiver.tail = reinterpret_cast<LaneTail*>(base + layout.tails) + lane;
  receiver.peer = &segment_->endpoint(endpoints_[peer]);
  receiver.cell_bytes = cell_bytes(space);
  return receiver;
}

}  // namespace unisono::shm
