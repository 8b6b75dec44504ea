// The call as a collective sees it. Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/generated/spec.hpp"
#include "core/groups.hpp"
#include "core/tree.hpp"

namespace unisono {

/// Whether a function is one of the user's, defined or not.
constexpr bool is_user(Func func) { return func >= Func::kUser0 && func <= Func::kOrdered7; }
/// Whether operands must not change places: the algorithm must fold in rank order.
constexpr bool needs_order(Func func) { return func >= Func::kOrdered0 && func <= Func::kOrdered7; }

/// `Call::count` of a v-collective whose sum, or bound, of counts not every rank knows.
inline constexpr std::uint64_t kUnknownCount = ~std::uint64_t{0};

/// What a collective may look at when it generates one rank's program.
///
/// Everything here is equal on all ranks of the communicator, except `rank`. It is the key of a
/// program: two calls with equal `Call` run the same moves. Addresses, communicator number,
/// sequence, user tag and deadline are bound at launch and are not visible here.
struct Call {
  Collective collective = Collective::kNop;
  Func func = Func::kNone;  ///< reduction operator; none where nothing is reduced
  Datatype dtype = Datatype::kByte;
  /// The input stands in dst (see docs/model.md, "In place"). Where the root alone acts on it (in_place_at_root), the
  /// others may have it false though it is true on the root.
  bool in_place = false;
  /// Direct access (docs/model.md): every rank has entered the call, and every rank can reach src and dst of all.
  bool direct = false;
  /// Of an algorithm that takes one: 2 to 255, or 0 for its default (Algorithm::default_radix), which is never written
  /// out. 0 with all others.
  std::uint8_t radix = 0;
  /// rank and root are positions in `groups` (collectives/by_position.hpp). Within algorithms only.
  bool by_position = false;
  std::uint32_t rank = 0;        ///< this rank, 0 .. size-1; of a switch (`tree`) more
  std::uint32_t size = 1;        ///< ranks of the communicator
  std::uint32_t root = 0;        ///< root; the peer for send, recv, put and get
  std::uint32_t group_size = 0;  ///< ranks of a group (contiguous; the last may be smaller); 0 = one level
  [[no_unique_address]] GroupsOfCall groups{};  ///< groups of any kind, or null; group_size is 0 then
  /// The switches that take part, or null. They are ranks from `size` on, unless members stand in for them.
  [[no_unique_address]] TreeOfCall tree{};
  /// Elements. Of the whole vector for bcast, reduce, allreduce, scan, exscan, send, recv, put, get,
  /// copy, combine; of one rank's block for reduce_scatter, allgather, gather, scatter, alltoall.
  /// For gatherv, scatterv, allgatherv and reduce_scatterv: the sum of all counts. For alltoallv in place: at least the
  /// largest block of all ranks, as they have agreed beforehand. kUnknownCount where not every rank need know it, as of
  /// gatherv and scatterv, unless the algorithm that was named uses it. For alltoallv otherwise 0.
  std::uint64_t count = 0;

  friend constexpr bool operator==(const Call&, const Call&) = default;
};

namespace call_detail {

/// bytes_of, of every value a byte can have: generators ask in each step, and a look-up needs no comparison.
inline constexpr auto kElementBytes = [] {
  std::array<std::uint8_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(bytes_of(static_cast<Datatype>(i)));
  }
  return table;
}();

}  // namespace call_detail

/// Bytes of one element.
constexpr std::uint64_t element_bytes(const Call& call) {
  return call_detail::kElementBytes[static_cast<std::uint8_t>(call.dtype)];
}

/// Counts and displacements of a v-collective, in elements, one per rank of the communicator.
/// Arrays that a collective does not use, or a rank does not know, are null.
struct VectorArguments {
  const std::uint64_t* send_counts = nullptr;
  const std::uint64_t* send_displacements = nullptr;
  const std::uint64_t* recv_counts = nullptr;
  const std::uint64_t* recv_displacements = nullptr;
  /// Of gatherv and scatterv, on a rank whose counts are null because the root alone knows them: this rank's own.
  std::uint64_t own = 0;
};

}  // namespace unisono
