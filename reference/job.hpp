// A job: the programs of all ranks, and the memory they run on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "core/call.hpp"
#include "core/program.hpp"

namespace unisono::reference {

inline constexpr std::size_t kRegions = kAllRegion.size();

/// Counts and displacements of one rank in a v-collective, in elements; an empty array is one the rank does not give.
struct VectorCounts {
  std::vector<std::uint64_t> send_counts;
  std::vector<std::uint64_t> send_displacements;
  std::vector<std::uint64_t> recv_counts;
  std::vector<std::uint64_t> recv_displacements;

  /// The same as pointers; valid as long as this object is not changed.
  VectorArguments view() const;
};

/// Bytes a kernel offers to one stream port of its rank.
struct StreamInput {
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
  std::vector<std::byte> bytes;
};

/// All ranks' programs with everything the interpreter needs to run them. Region sizes are in bytes, by rank and
/// Region.
struct Job {
  std::vector<Program> programs;
  std::vector<std::array<std::uint64_t, kRegions>> region_bytes;
  std::vector<std::vector<std::uint64_t>> params;  ///< initial words, by rank
  Datatype dtype = Datatype::kByte;                ///< of the elements of src, dst and window
  std::vector<StreamInput> streams;

  // Where the programs come from, or what they are meant to do; without either there is no expectation.
  const Algorithm* algorithm = nullptr;
  bool meant = false;                 ///< somebody says that programs of his do what `call` promises (meaning.hpp)
  Call call;                          ///< of rank 0 (of the sender or origin for send, put and get)
  std::vector<VectorCounts> vectors;  ///< by rank; v-collectives only

  /// Programs: of the ranks, and of the switches of `call.tree` after them.
  std::uint32_t size() const { return static_cast<std::uint32_t>(programs.size()); }
  /// Ranks that have memory.
  std::uint32_t members() const { return call.tree == nullptr ? size() : call.size; }
  /// Whether results can be compared with what `call` promises.
  bool promises() const { return algorithm != nullptr || meant; }
  /// Whether reductions are promised to be in rank order.
  bool ordered() const { return algorithm != nullptr && build::keeps_order(*algorithm, call); }
  std::uint64_t& bytes(std::uint32_t rank, Region region) {
    return region_bytes[rank][static_cast<std::size_t>(region)];
  }
  std::uint64_t bytes(std::uint32_t rank, Region region) const {
    return region_bytes[rank][static_cast<std::size_t>(region)];
  }
};

/// Whether the collective takes counts and displacements per rank.
bool is_vector(Collective collective);
/// Whether the collective has a root (for send, put and get `root` is the peer).
bool is_rooted(Collective collective);
/// Whether the collective combines elements with a function.
bool is_reduction(Collective collective);

/// Whether the collective has an in-place form that differs from the other.
bool has_in_place(Collective collective);

/// The job of `call` by `algorithm`: programs recorded for every rank, region sizes by docs/model.md rules 17 and 18.
/// `call.rank` matters for point to point and one-sided operations only: it is the origin, and `call.root` its peer;
/// the peer of a send or recv runs the first algorithm of the opposite operation. `vectors` has one entry per rank for
/// v-collectives and is empty otherwise. Throws Error(kUnsupported) if the algorithm does not admit the call, and
/// Error(kMalformedProgram) if its generator breaks its contract (more than 16 moves a step, say).
/// With `in_place_elsewhere` the ranks differ in what the root alone knows: it is what the others say of being in
/// place, and they are told no counts but their own if the algorithm does without.
Job make_job(const Algorithm& algorithm, const Call& call, const std::vector<VectorCounts>& vectors = {},
             std::optional<bool> in_place_elsewhere = std::nullopt);

/// The buffers that `own`, the call of its rank, uses, in bytes: src and dst (docs/model.md, rules 17 and 18). Of
/// `vectors` the entry of that rank is read; it is empty but for v-collectives.
std::pair<std::uint64_t, std::uint64_t> buffer_bytes(const Call& own, const std::vector<VectorCounts>& vectors);

/// A job of given programs, each rank with the same region sizes; scratch and params as the programs ask.
Job make_job(std::vector<Program> programs, Datatype dtype, std::uint64_t src_bytes, std::uint64_t dst_bytes);

/// Patterns of example counts.
enum class CountPattern : std::uint8_t {
  kZero,     ///< nothing moves at all
  kUniform,  ///< every block has the same length, packed
  kVaried,   ///< lengths from 0 upwards, with gaps between and before the blocks
  kOneRank,  ///< one rank's block holds everything
};

/// Example counts and displacements of a v-collective for every rank of `call`, about `call.count` elements a block;
/// consistent between ranks, and symmetric where in-place alltoallv needs it. Pure in its arguments.
std::vector<VectorCounts> example_counts(const Call& call, CountPattern pattern, std::uint64_t seed);

/// Whether arrivals of several ranks may be combined in any order.
bool uses_any(const Job& job);

/// One line: collective, algorithm, ranks, count, root, in place, group size.
std::string describe(const Job& job);

}  // namespace unisono::reference
