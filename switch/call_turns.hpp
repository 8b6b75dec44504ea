// How a call is cut into turns, and what a rank gives and gets in each. The same on all ranks. No state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "network/udp/round_trip.hpp"
#include "switch/frame.hpp"

namespace unisono::slots {

using udp::Time;

/// A collective call as a member makes it. Buffers stay valid until the call has ended; `src` and `dst` may be equal.
/// Ranks are those of the tree's order. `count` is of one rank's block in reduce_scatter and allgather, as in
/// docs/model.md.
struct SlotCall {
  std::uint32_t sequence = 0;  ///< of collective calls on the communicator; all ranks say the same
  Collective collective = Collective::kBarrier;
  Func func = Func::kNone;
  Datatype dtype = Datatype::kNone;
  std::uint32_t root = 0;
  std::uint16_t factor = 0;  ///< digest of post_scale, which all ranks give alike (see factor_digest)
  std::uint64_t count = 0;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  Time deadline = Time::max();
};

/// A rank's part in one turn. Offsets are in elements.
struct Chunk {
  std::uint32_t root = 0;      ///< rank that gives or gets the data, where it is one
  std::uint32_t elements = 0;  ///< of the chunk
  std::uint64_t from = 0;      ///< in src
  std::uint64_t to = 0;        ///< in dst
  bool gives = false;          ///< its contribution has data
  bool gets = false;           ///< it stores the data of the result
};

/// The turns of a call, for one rank. A chunk lies within one block.
class CallTurns {
 public:
  CallTurns() = default;
  CallTurns(const SlotCall& call, std::uint32_t rank, std::uint32_t ranks, std::uint16_t payload_bytes)
      : collective_(call.collective), root_(call.root), rank_(rank), count_(call.count) {
    if (call.collective == Collective::kBarrier) count_ = 0;
    if (count_ == 0) return;
    most_ = payload_bytes / bytes_of(call.dtype);
    per_block_ = (count_ + most_ - 1) / most_;
    const bool blocks = collective_ == Collective::kReduceScatter || collective_ == Collective::kAllgather;
    turns_ = blocks ? per_block_ * ranks : per_block_;
  }

  /// At least one, so that calls without elements are compared, too.
  std::uint64_t turns() const { return turns_; }

  Chunk chunk(std::uint64_t index) const {
    Chunk chunk;
    chunk.root = collective_ == Collective::kAllreduce || collective_ == Collective::kBarrier ? 0 : root_;
    if (count_ == 0) return chunk;
    const std::uint64_t block = index / per_block_;
    const std::uint64_t at = index % per_block_ * most_;
    chunk.elements = static_cast<std::uint32_t>(std::min<std::uint64_t>(most_, count_ - at));
    chunk.from = at;
    chunk.to = at;
    if (collective_ == Collective::kReduceScatter || collective_ == Collective::kAllgather) {
      chunk.root = static_cast<std::uint32_t>(block);
      (collective_ == Collective::kReduceScatter ? chunk.from : chunk.to) += block * count_;
    }
    const bool own = chunk.root == rank_;
    chunk.gives = combines(collective_) || own;
    switch (collective_) {
      case Collective::kReduce:
      case Collective::kReduceScatter:
        chunk.gets = own;
        break;
      case Collective::kBcast:
        chunk.gets = !own;
        break;
      default:
        chunk.gets = true;
    }
    return chunk;
  }

 private:
  Collective collective_ = Collective::kBarrier;
  std::uint32_t root_ = 0;
  std::uint32_t rank_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t most_ = 1;  ///< elements of a chunk
  std::uint64_t per_block_ = 1;
  std::uint64_t turns_ = 1;
};

}  // namespace unisono::slots
