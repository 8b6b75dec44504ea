// Frames that wait to be sent: each a header and its payload, as they go over the wire.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/generated/spec.hpp"
#include "core/header.hpp"

namespace unisono::tcp {

struct FreeAligned {
  void operator()(std::byte* memory) const { std::free(memory); }
};
/// Memory that begins at a multiple of 64, uninitialised.
using AlignedMemory = std::unique_ptr<std::byte, FreeAligned>;
/// Throws Error(kOutOfMemory).
AlignedMemory allocate_aligned(std::size_t bytes);

/// Where consecutive frames lie; a piece ends where a frame ends, except the first one given, which may begin within
/// its frame.
class FrameRing {
 public:
  /// Payloads of at most `max_payload` bytes, in memory of at most `most_bytes`, which must hold two of the longest
  /// frames. `sequence_mark` is set in every session sequence, which counts below it. Costs nothing until it is used.
  FrameRing(std::uint32_t max_payload, std::size_t most_bytes, std::uint32_t sequence_mark)
      : max_payload_(max_payload), most_bytes_(most_bytes), sequence_mark_(sequence_mark) {}

  /// From now on the frames of several rings are counted together, in `sequence`, which lives as long as this.
  void count_in(std::uint32_t& sequence) { counted_in_ = &sequence; }
  /// The number of the next frame.
  std::uint32_t sequence() const { return counted_in_ == nullptr ? sequence_ : *counted_in_; }

  /// Memory for a payload, 64-byte aligned; null if there is no room. Ends an earlier reservation.
  std::byte* reserve(std::uint32_t bytes);
  /// Completes the frame reserved last, and seals its header.
  void commit(const Header& header) { enqueue(seal(header), 0); }
  /// The same in two steps, for who sends a part of the frame by himself. The first gives the frame its number, so that
  /// it must be sent; without the second, the reservation lapses.
  HeaderWords seal(Header header);
  /// The header, with its number and checksum, of a frame that does not stand here at all; it must be sent as well.
  HeaderWords number(Header header);
  /// `sent` bytes of the frame, less than all, are on their way; if that is any, nothing waits before it.
  void enqueue(const HeaderWords& words, std::size_t sent);

  bool empty() const { return waiting_ == 0; }
  /// Whether a part of the first frame is on its way.
  bool within_frame() const { return sent_ != 0; }
  std::size_t memory() const { return capacity_; }

  /// Puts what waits into `pieces`, the first frame only if `one`; returns how many pieces. Frames that lie together
  /// are one piece.
  std::size_t gather(std::span<iovec> pieces, bool one) const;
  /// Forgets the first bytes of what waits, at most `bytes`; returns how many.
  std::size_t consume(std::size_t bytes, bool one);
  void clear();

 private:
  /// Bytes that a frame takes in memory.
  static std::size_t record_bytes(std::size_t payload) { return (kHeaderBytes + payload + 63) / 64 * 64; }
  std::size_t frame_bytes(std::size_t at) const;
  /// Where a record of so many bytes can stand; nothing (false) if nowhere.
  bool place(std::size_t bytes, std::size_t& at) const;
  /// Moves all to memory with room for a record of so many bytes more; false if that would be too much.
  bool grow(std::size_t bytes);
  std::size_t next(std::size_t at) const;

  std::uint32_t max_payload_;
  std::size_t most_bytes_;
  std::uint32_t sequence_mark_;
  AlignedMemory memory_;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;     ///< the first record that waits
  std::size_t tail_ = 0;     ///< behind the last one
  std::size_t wrap_ = 0;     ///< if tail_ <= head_ and something waits: where the records before the wrap end
  std::size_t waiting_ = 0;  ///< records
  std::size_t sent_ = 0;     ///< bytes of the first record that are on their way
  std::size_t reserved_at_ = 0;
  std::uint32_t reserved_bytes_ = 0;
  bool reserved_ = false;
  std::uint32_t sequence_ = 0;
  std::uint32_t* counted_in_ = nullptr;  ///< instead of `sequence_`
};

}  // namespace unisono::tcp
