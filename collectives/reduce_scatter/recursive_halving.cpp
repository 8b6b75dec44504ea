// Recursive halving reduce-scatter, for any number of ranks.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: log2(P) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block; if P is no
// power of two, 2 alpha + (P+1) n beta + P n gamma more.
//
// Fold: of the first 2(P-Q) ranks, Q the greatest power of two in P, each even one hands its whole
// input to the odd one after it and rests; Q core ranks remain. Blocks of consecutive cores are
// consecutive, so every exchange is one message. Level by level a core and its partner at half the
// distance split the range they share: each sends the half the other keeps and adds what arrives to
// its own. After log2(Q) levels a core has its block, and a core that speaks for two ranks has both:
// its last exchange is two messages, of which it passes the first sum straight on to the resting rank.
//
// Order: everything of a level waits for the sum of the level before (or the fold). Sums are kept in
// scratch in the half that is never sent again, so no write meets a read of an earlier send, and
// arrivals never wait for a send of their own level. In place, the result overwrites block 0 of the
// input, so it waits for the sends of the first level if these read it: only cores of the upper half
// do, whose first partners are of the lower half and receive without waiting for a send.
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

/// The power of two of core ranks that do the halving.
struct Cores {
  std::uint32_t size;
  std::uint32_t levels;
  std::uint32_t pairs;  ///< cores that speak for two ranks; they are the first

  explicit constexpr Cores(std::uint32_t ranks)
      : size(std::uint32_t{1} << log2_floor(ranks)), levels(log2_floor(ranks)), pairs(ranks - size) {}
  constexpr bool rests(std::uint32_t rank) const { return rank < 2 * pairs && rank % 2 == 0; }
  constexpr std::uint32_t core_of(std::uint32_t rank) const { return rank < 2 * pairs ? rank / 2 : rank - pairs; }
  constexpr std::uint32_t rank_of(std::uint32_t core) const { return core < pairs ? 2 * core + 1 : core + pairs; }
  /// First block of a core; `size` gives the number of blocks.
  constexpr std::uint32_t first_block(std::uint32_t core) const { return core < pairs ? 2 * core : core + pairs; }
};

}  // namespace

std::uint64_t reduce_scatter_recursive_halving_scratch_bytes(const Call& call) {
  const Cores cores(call.size);
  if (cores.levels == 0 || cores.rests(call.rank)) return 0;
  return call.size * call.count * element_bytes(call);
}

namespace {

constexpr std::uint32_t rounds_of(const Cores& cores) { return cores.levels + 1; }

void round_of(const Call& call, const Cores& cores, std::uint32_t s, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint32_t result_tag = cores.levels + 2;
  if (cores.rests(call.rank)) {
    if (s == 0) emit(Build(call).take(input(call)).send(call.rank + 1, 0).count(call.size * call.count));
    // In place, the result overwrites what the fold sends.
    if (s == 1) emit(Build(call).arrive(call.rank + 1, result_tag).keep(dst()).count(call.count).after(call.in_place));
    return;
  }
  const bool speaks_for_two = call.rank < 2 * cores.pairs;
  if (s == 0) {  // fold
    if (speaks_for_two) {
      emit(Build(call).take(input(call)).arrive(call.rank - 1, 0).keep(scratch()).count(call.size * call.count));
    } else if (call.size == 1 && !call.in_place) {
      emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    }
    return;
  }
  const std::uint32_t core = cores.core_of(call.rank);
  const std::uint32_t half = cores.size >> s;
  const std::uint32_t partner = core ^ half;
  const std::uint32_t peer = cores.rank_of(partner);
  const std::uint32_t kept = cores.first_block(core & ~(half - 1));
  const std::uint32_t kept_end = cores.first_block((core & ~(half - 1)) + half);
  const std::uint32_t given = cores.first_block(partner & ~(half - 1));
  const std::uint32_t given_end = cores.first_block((partner & ~(half - 1)) + half);
  const bool untouched = s == 1 && !speaks_for_two;  // the sum so far is this rank's input
  const Place sum = untouched ? input(call) : scratch();
  const std::uint32_t before = emit.moves();  // the move before is the sum of the last level, or the fold

  const auto ordered = [&](Build move) {
    if (!untouched) move.after(emit.moves() - before + 1);
    emit(move);
  };
  const auto give = [&](std::uint32_t from, std::uint32_t to, std::uint32_t tag) {
    ordered(Build(call).take(sum + from * block).send(peer, tag).count((to - from) * call.count));
  };
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t tag) {
    return Build(call).take(sum + from * block).arrive(peer, tag).count((to - from) * call.count);
  };

  if (s < cores.levels) {
    give(given, given_end, s);
    ordered(add(kept, kept_end, s).keep(scratch(kept * block)));
    return;
  }
  give(given, given + 1, s);
  if (given_end > given + 1) give(given + 1, given_end, s + 1);
  if (speaks_for_two) ordered(add(kept, kept + 1, s).send(call.rank - 1, result_tag));
  Build result = add(kept_end - 1, kept_end, speaks_for_two ? s + 1 : s).keep(dst());
  if (call.in_place && !speaks_for_two && (core & (cores.size / 2)) != 0) {
    result.after(emit.moves());  // the first send is the first move
    if (s == 1 && emit.moves() == 2) result.after(1);
  }
  ordered(result);
}

}  // namespace

std::uint32_t reduce_scatter_recursive_halving_steps(const Call& call) {
  return steps_for(rounds_of(Cores(call.size)), 4);
}

void reduce_scatter_recursive_halving_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Cores cores(call.size);
  each_round(step, rounds_of(cores), 4, [&](std::uint32_t round) { round_of(call, cores, round, emit); });
}

}  // namespace unisono::collectives
