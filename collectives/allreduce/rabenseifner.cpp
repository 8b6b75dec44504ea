// Rabenseifner's all-reduce: reduce-scatter by recursive halving, all-gather by recursive doubling, for
// any number of ranks.
//
// Source: Rabenseifner, "A new optimized MPI reduce algorithm", 1997; Thakur, Rabenseifner and Gropp,
// IJHPCA 2005. Cost: 2 log2(P) alpha + 2 n (P-1)/P beta + n (P-1)/P gamma; if P is no power of two,
// folding adds 2 alpha + 2 n beta + n gamma.
//
// In round k of the halving, partners at distance 2^k split the interval they share: each gives the
// other's half and keeps the sum of its own. The doubling goes back through the rounds: partners give
// each other the interval each has completed. Partial sums cover consecutive ranks, the lower ones on
// the left, so order is kept.
//
// All sums stand in dst; there is no scratch. Why nothing is overwritten too early: a half is given
// from dst (or src) and not touched again, until the partner of that very round returns its result,
// each element of which contains the element that was given. So the arrivals of the doubling need no
// dependency, and those of the halving wait only for the round before, never for a send: nobody waits
// for a partner that waits for him. Reads do need dependencies, and full ones, for counts differ from
// round to round: a give reads what all earlier takes of its interval have written.
//
// A rank that hosts a folded one passes each piece of the result on to it in the move that makes it;
// the folded rank only listens, so that move cannot be held up by a partner's state.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"
#include "collectives/folding.hpp"
#include "collectives/powers.hpp"
#include "core/bits.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

struct Interval {
  std::uint64_t begin;
  std::uint64_t count;
};

// Cuts the vector as the halving does, into 2^rounds blocks.
class Halving {
 public:
  constexpr Halving(std::uint64_t total, std::uint32_t rounds)
      : split_(total, std::uint32_t{1} << rounds), rounds_(rounds) {}

  // What a virtual number has after `k` rounds of the halving: the lowest bits of the number are the highest of the
  // block.
  constexpr Interval after(std::uint32_t number, std::uint32_t k) const {
    const std::uint32_t chosen = number & ((std::uint32_t{1} << k) - 1);
    const std::uint32_t block = reverse_bits(chosen) >> (31 - rounds_) >> 1U;
    return {split_.begin(block), split_.count(block, std::uint32_t{1} << (rounds_ - k))};
  }

 private:
  Split split_;
  std::uint32_t rounds_;
};

// Step tags: halving round k, doubling round k, the fold, pieces of the result for a folded rank.
struct Tags {
  std::uint32_t rounds;
  constexpr std::uint32_t halving(std::uint32_t k) const { return k; }
  constexpr std::uint32_t doubling(std::uint32_t k) const { return rounds + k; }
  constexpr std::uint32_t fold() const { return 2 * rounds; }
  constexpr std::uint32_t piece(std::uint32_t k) const { return 2 * rounds + 1 + k; }
};

}  // namespace

// Fold or copy; halving; doubling. A folded rank: its operand; then a piece for each of the others'
// doubling rounds, and one before.

namespace {

std::uint32_t rounds_of(const Folding& folding) { return folding.rests ? 2 + folding.rounds : 1 + 2 * folding.rounds; }

void round_of(const Call& call, const Folding& folding, const Halving& halving, std::uint32_t s, Emit& emit) {
  const std::uint32_t rounds = folding.rounds;
  const Tags tags{rounds};
  const std::uint64_t element = element_bytes(call);
  const std::uint32_t number = folding.virtual_number;  // of the host, for a rank that rests

  if (folding.rests) {
    Build move(call);
    if (s == 0) {
      move.take(input(call)).send(call.rank + 1, tags.fold()).count(call.count);
    } else {
      // First the host's own block, then what it got in the doubling, whose first round is the last k.
      const std::uint32_t k = rounds + 1 - s;
      const Interval piece =
          s == 1 ? halving.after(number, rounds) : halving.after(number ^ (std::uint32_t{1} << k), k + 1);
      move.arrive(call.rank + 1, tags.piece(k)).keep(dst(piece.begin * element)).count(piece.count);
    }
    emit(move);
    return;
  }

  if (s == 0) {
    if (folding.hosts) {
      emit(Build(call)
               .take(input(call))
               .arrive(call.rank - 1, tags.fold())
               .arrival_first()
               .keep(dst())
               .count(call.count));
    } else if (call.size == 1 && !call.in_place) {
      emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    }
    return;
  }

  if (s <= rounds) {
    const std::uint32_t k = s - 1;
    const std::uint32_t other = number ^ (std::uint32_t{1} << k);
    const std::uint32_t partner = folding.party(other);
    const Interval keeps = halving.after(number, k + 1);
    const Interval gives = halving.after(other, k + 1);
    const Place sums = k == 0 && !folding.hosts ? input(call) : dst();
    const bool summed_before = k > 0 || folding.hosts;  // by the move just before this round's two
    emit(Build(call)
             .take(sums + gives.begin * element)
             .send(partner, tags.halving(k))
             .count(gives.count)
             .after(summed_before ? 1 : 0));
    Build take(call);
    take.take(sums + keeps.begin * element)
        .arrive(partner, tags.halving(k))
        .arrival_first(other < number)
        .keep(dst(keeps.begin * element))
        .count(keeps.count)
        .after(summed_before ? 2 : 0);
    if (s == rounds && folding.hosts) take.send(call.rank - 1, tags.piece(rounds));
    emit(take);
    return;
  }

  const std::uint32_t k = 2 * rounds - s;
  const std::uint32_t other = number ^ (std::uint32_t{1} << k);
  const std::uint32_t partner = folding.party(other);
  const Interval has = halving.after(number, k + 1);
  const Interval gets = halving.after(other, k + 1);
  const std::uint32_t rounds_before = rounds - 1 - k;  // of the doubling
  Build give(call);
  give.take(dst(has.begin * element)).send(partner, tags.doubling(k)).count(has.count);
  if (rounds_before == 0) {
    give.stream_after(1);  // the sum of the last take, element by element
  } else {
    for (std::uint32_t i = 0; i < rounds_before; ++i) give.after(2 * i + 1);  // what earlier rounds got
    give.after(2 * rounds_before + 1);                                        // the rank's own block
  }
  emit(give);
  Build get(call);
  get.arrive(partner, tags.doubling(k)).keep(dst(gets.begin * element)).count(gets.count);
  if (folding.hosts) get.send(call.rank - 1, tags.piece(k));
  emit(get);
}

}  // namespace

std::uint32_t allreduce_rabenseifner_steps(const Call& call) {
  return steps_for(rounds_of(Folding::of(call.rank, call.size)), 2);
}

void allreduce_rabenseifner_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Folding folding = Folding::of(call.rank, call.size);
  const Halving halving(call.count, folding.rounds);
  each_round(step, rounds_of(folding), 2, [&](std::uint32_t round) { round_of(call, folding, halving, round, emit); });
}

}  // namespace unisono::collectives
