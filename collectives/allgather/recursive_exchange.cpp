// All-gather by exchanges of growing ranges with k-1 partners at a time, for any number of ranks.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems", IEEE TPDS 1997 (its concatenation for k-1 ports), without its
// rotation. Cost: ceil(log_k P) alpha + (P-1) n beta, n bytes a block, if a rank has k-1 ports.
//
// Before round r rank v has the blocks v .. v+k^r-1 (mod P). It sends them (the last partner gets only as
// many as are missing) to the ranks v - j k^r and receives as many from the ranks v + j k^r, j = 1 .. k-1.
// Every block stands at once in its final place, so a message is cut where its blocks pass from P-1 to 0,
// on both sides alike. With k = 2 this is bruck.
//
// A send waits for the arrivals of all rounds before and for the first move, which puts the rank's own
// block into its place. Arrivals wait for nothing. Sends and arrivals alternate: if all sends of a round
// came first, the window could hold back the arrivals behind them, on every rank.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/radix.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUsualRadix = 4;

/// The exchanges of a rank, one after the other: exchange e is that of round e / (k-1) with partner e % (k-1) + 1.
class Exchanges {
 public:
  explicit constexpr Exchanges(const Call& call)
      : rank_(call.rank), size_(call.size), radix_(radix_of(call, kUsualRadix)), rounds_(log_ceil(call.size, radix_)) {}

  constexpr std::uint32_t count() const {
    return size_ == 1 ? 1 : (rounds_ - 1) * (radix_ - 1) + (size_ - 1) / power_of(radix_, rounds_ - 1);
  }
  /// The first exchange of e's round.
  constexpr std::uint32_t round_begin(std::uint32_t e) const { return e - e % (radix_ - 1); }
  constexpr std::uint32_t distance(std::uint32_t e) const { return (e % (radix_ - 1) + 1) * have(e); }
  constexpr std::uint32_t blocks(std::uint32_t e) const {
    const std::uint32_t missing = size_ - distance(e);
    return have(e) < missing ? have(e) : missing;
  }
  /// Of the blocks that begin with `first`, those before numbering returns to 0.
  constexpr std::uint32_t before_wrap(std::uint32_t e, std::uint32_t first) const {
    return size_ - first < blocks(e) ? size_ - first : blocks(e);
  }
  constexpr std::uint32_t sends(std::uint32_t e) const { return before_wrap(e, rank_) < blocks(e) ? 2 : 1; }
  constexpr std::uint32_t arrivals(std::uint32_t e) const {
    return before_wrap(e, plus(rank_, distance(e), size_)) < blocks(e) ? 2 : 1;
  }

  /// Makes a send of exchange e, at position `here`, wait for the arrivals of the rounds before, and for the move that
  /// puts the rank's own block into its place.
  constexpr void after_rounds(Build& move, std::uint32_t e, std::uint32_t sent, std::uint32_t here) const {
    if (round_begin(e) == 0) return;
    std::uint32_t back = sent;  // moves since the end of the exchange looked at
    for (std::uint32_t x = e; x > round_begin(e); --x) back += sends(x - 1) + arrivals(x - 1);
    for (std::uint32_t x = round_begin(e); x > 0 && back < kWindow; --x) {
      for (std::uint32_t i = 1; i <= arrivals(x - 1); ++i) move.after(back + i);
      back += sends(x - 1) + arrivals(x - 1);
    }
    move.after(here);
  }

 private:
  /// Blocks that a rank has before the round of e.
  constexpr std::uint32_t have(std::uint32_t e) const { return power_of(radix_, e / (radix_ - 1)); }

  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint32_t radix_;
  std::uint32_t rounds_;
};

void exchange(const Call& call, const Exchanges& all, std::uint32_t e, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint64_t block = call.count * element_bytes(call);
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t distance = all.distance(e);
  const std::uint32_t blocks = all.blocks(e);
  const std::uint32_t to = minus(call.rank, distance, size);
  const std::uint32_t from = plus(call.rank, distance, size);

  const std::uint32_t given = all.before_wrap(e, call.rank);
  Build low(call);
  low.send(to, 2 * e).count(given * call.count);
  if (all.round_begin(e) == 0) {
    low.take(input(call, call.rank * block));
    if (e == 0 && !call.in_place) low.keep(dst(call.rank * block));
  } else {
    low.take(dst(call.rank * block));
    all.after_rounds(low, e, 0, emit.moves());
  }
  emit(low);
  if (given < blocks) {
    Build high(call);
    high.take(dst()).send(to, 2 * e + 1).count((blocks - given) * call.count);
    all.after_rounds(high, e, 1, emit.moves());
    emit(high);
  }
  const std::uint32_t taken = all.before_wrap(e, from);
  emit(Build(call).arrive(from, 2 * e).keep(dst(from * block)).count(taken * call.count));
  if (taken < blocks) {
    emit(Build(call).arrive(from, 2 * e + 1).keep(dst()).count((blocks - taken) * call.count));
  }
}

}  // namespace

std::uint32_t allgather_recursive_exchange_steps(const Call& call) { return steps_for(Exchanges(call).count(), 4); }

void allgather_recursive_exchange_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Exchanges all(call);
  each_round(step, all.count(), 4, [&](std::uint32_t e) { exchange(call, all, e, emit); });
}

}  // namespace unisono::collectives
