#include "network/ofi/block_pool.hpp"

#include <new>
#include <utility>

namespace unisono::ofi {

BlockPool::BlockPool(std::size_t longest_frame, std::size_t blocks_at_once, Register registers)
    : stride_((Block::kFrameAt + longest_frame + 63) / 64 * 64),
      blocks_at_once_(blocks_at_once),
      register_(std::move(registers)) {}

void BlockPool::grow() {
  const std::size_t bytes = blocks_at_once_ * stride_;
  tcp::AlignedMemory memory = tcp::allocate_aligned(bytes);
  std::byte* const begin = memory.get();
  void* const descriptor = register_ ? register_(begin, bytes) : nullptr;
  chunks_.push_back(std::move(memory));
  // As many as there are: giving back never allocates.
  free_.reserve(chunks_.size() * blocks_at_once_);
  for (std::size_t i = blocks_at_once_; i > 0; --i) {
    auto* const block = new (begin + (i - 1) * stride_) Block;
    block->descriptor = descriptor;
    free_.push_back(block);
  }
}

void BlockPool::abandon() {
  for (tcp::AlignedMemory& chunk : chunks_) static_cast<void>(chunk.release());
}

Block* BlockPool::take() {
  if (free_.empty()) grow();
  Block* const block = free_.back();
  free_.pop_back();
  return block;
}

}  // namespace unisono::ofi
