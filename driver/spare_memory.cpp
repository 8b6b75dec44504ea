#include "driver/spare_memory.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace unisono::driver {

namespace {
constexpr std::align_val_t kAlignment{64};
constexpr std::uint64_t kLeast = 4096;
}  // namespace

SpareMemory::Piece& SpareMemory::Piece::operator=(Piece&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(bytes_, other.bytes_);
  std::swap(block_, other.block_);
  return *this;
}

SpareMemory::Piece::~Piece() {
  if (owner_) owner_->give_back(bytes_, std::move(block_));
}

SpareMemory::~SpareMemory() {
  for (auto& [bytes, blocks] : idle_) {
    for (Allocation& block : blocks) release(block);
  }
}

SpareMemory::Piece SpareMemory::take(std::uint64_t bytes) {
  Piece piece;
  piece.bytes_ = std::bit_ceil(std::max(bytes, kLeast));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = idle_.find(piece.bytes_); found != idle_.end() && !found->second.empty()) {
      piece.block_ = std::move(found->second.back());
      found->second.pop_back();
      kept_ -= piece.bytes_;
    }
  }
  if (piece.block_.memory == nullptr) {
    try {
      piece.block_ = allocate_(piece.bytes_);
    } catch (const Error&) {
      piece.block_ = {};  // the calls then go by messages
    }
  }
  if (piece.block_.memory == nullptr) {
    piece.block_.memory = static_cast<std::byte*>(::operator new(piece.bytes_, kAlignment, std::nothrow));
    if (piece.block_.memory == nullptr) {
      throw Error(ErrorCode::kOutOfMemory,
                  std::to_string(bytes) + " bytes for the data as they travel could not be had");
    }
  }
  piece.owner_ = shared_from_this();
  return piece;
}

std::uint64_t SpareMemory::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

void SpareMemory::give_back(std::uint64_t bytes, Allocation block) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes <= kKeptBytes) {
      idle_[bytes].push_back(block);
      kept_ += bytes;
      return;
    }
  } catch (const std::bad_alloc&) {
    // then it is not kept
  }
  release(block);
}

void SpareMemory::release(Allocation& block) noexcept {
  if (block.arena) {
    block.give_back();
  } else {
    ::operator delete(block.memory, kAlignment);
  }
  block = {};
}

}  // namespace unisono::driver
