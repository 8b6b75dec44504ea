// Memory for frames on their way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "network/tcp/frame_ring.hpp"

namespace unisono::ofi {

/// One frame's memory, and what belongs to it while it is with the provider.
struct alignas(64) Block {
  enum class Use : std::uint8_t {
    kMessage,
    kReceive,
    kGreeting,  ///< of a handshake
    kWord,      ///< a frame without a message
    kWrite,     ///< of a write, whose bytes stand elsewhere
    kCopy,      ///< of what came; not known to the provider
  };
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  std::array<std::byte, 64> context{};  ///< the provider's, while an operation is under way (FI_CONTEXT2)
  void* descriptor = nullptr;           ///< of its registered memory, where the provider wants one
  std::uint32_t peer = kNobody;         ///< whom it was posted to
  std::uint32_t bytes = 0;              ///< length of the frame in it
  std::uint64_t number = 0;             ///< of a write: its ticket
  Use use = Use::kMessage;
  bool large = false;

  /// Where its frame begins: so that the payload of a message begins at a multiple of 64.
  std::byte* frame() { return reinterpret_cast<std::byte*>(this) + kFrameAt; }
  const std::byte* frame() const { return reinterpret_cast<const std::byte*>(this) + kFrameAt; }
  static constexpr std::size_t kFrameAt = 128 + 32;
};
static_assert(sizeof(Block) == 128);

/// Blocks for frames of one greatest length. Grows where none is free; never gives memory back before its end.
class BlockPool {
 public:
  /// Makes memory known to the provider, and returns its descriptor.
  using Register = std::function<void*(std::byte* memory, std::size_t bytes)>;

  BlockPool(std::size_t longest_frame, std::size_t blocks_at_once, Register registers = {});

  /// A free block. Throws Error(kOutOfMemory).
  Block* take();
  void give_back(Block* block) { free_.push_back(block); }
  /// Leaves all memory as it is, for ever: in a child of fork it may not even be there, where a card had it.
  void abandon();
  std::size_t memory() const { return chunks_.size() * blocks_at_once_ * stride_; }
  std::size_t in_use() const { return chunks_.size() * blocks_at_once_ - free_.size(); }

 private:
  void grow();

  std::size_t stride_;
  std::size_t blocks_at_once_;
  Register register_;
  std::vector<tcp::AlignedMemory> chunks_;
  std::vector<Block*> free_;
};

}  // namespace unisono::ofi
