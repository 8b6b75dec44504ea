// Recursive multiplying all-reduce, for any number of ranks.
//
// Source: Ruefenacht, Bull and Booth, "Generalisation of recursive doubling for AllReduce: now with
// simulation", Parallel Computing 2017. Cost: ceil(log_k P) (alpha + (k-1) n beta + (k-1) n gamma), if a
// rank has k-1 ports; where ranks are left over 2 alpha + 2 n beta + n gamma more.
//
// Q ranks take part, Q the greatest t k^m in P with t < k. In round r the k (in the last round, if t > 1, t)
// of them whose numbers differ in one digit send each other their partial sums, which then cover k times
// as many consecutive ranks. The message of a rank to itself puts its own sum at its place in the fold,
// so the fold rounds once and all get the same bits, in rank order. Of the first 2(P-Q) ranks each even
// one hands its operand to the odd one after it and gets the result in the end.
//
// As in recursive doubling (doubling.hpp) values alternate between dst and scratch, such that the last is
// in dst. Round r is two moves: *give* sends the value so far, *take* folds what arrives to the next one.
// A take waits for the give of the round before, which read the memory it overwrites; that one waits for
// takes of its round only, and so on down to round 0, whose take waits for nothing but local moves. In
// place, if round 0 would write dst while its give reads it, the operand is first copied to scratch.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/radix.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUsualRadix = 4;
constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kDown = 1;
constexpr std::uint32_t kRound = 2;

class Multiplying {
 public:
  /// Refers to `call`, which must outlive it.
  explicit constexpr Multiplying(const Call& call) : call_(call), radix_(radix_of(call, kUsualRadix)) {
    std::uint32_t power = 1;
    while (power <= call.size / radix_) {
      power *= radix_;
      ++rounds_;
    }
    last_ = call.size / power;  // participants of a round more
    extra_ = call.size - last_ * power;
    whole_rounds_ = rounds_;
    if (last_ > 1) ++rounds_;
    const bool paired = call.rank < 2 * extra_;
    rests_ = paired && call.rank % 2 == 0;
    hosts_ = paired && call.rank % 2 == 1;
    number_ = paired ? call.rank / 2 : call.rank - extra_;
  }

  constexpr std::uint32_t rounds() const { return rests_ ? 1 : 1 + rounds_; }

  constexpr std::uint64_t scratch_bytes() const {
    return !rests_ && (copies_operand() || values() > 1) ? call_.count * element_bytes(call_) : 0;
  }

  void round_of(std::uint32_t s, Emit& emit) const {
    if (rests_) {
      emit(Build(call_).take(input(call_)).send(call_.rank + 1, kUp).count(call_.count));
      emit(Build(call_).arrive(call_.rank + 1, kDown).keep(dst()).count(call_.count));
    } else if (s == 0) {
      begin(emit);
    } else {
      round(s - 1, emit);
    }
  }

 private:
  constexpr std::uint32_t rank_of(std::uint32_t number) const {
    return number < extra_ ? 2 * number + 1 : number + extra_;
  }
  constexpr std::uint32_t values() const { return (hosts_ ? 1U : 0U) + rounds_; }
  constexpr bool copies_operand() const { return call_.in_place && !hosts_ && rounds_ % 2 == 1; }
  // Where value v stands; -1 is the operand.
  constexpr Place value(std::int32_t v) const {
    if (v < 0 && !copies_operand()) return input(call_);
    return (static_cast<std::int32_t>(values()) - 1 - v) % 2 == 0 ? dst() : scratch();
  }
  // Value v is kept; the last one also goes to the rank that rests.
  void deliver(Build& move, Emit& emit, std::uint32_t v) const {
    move.keep(value(static_cast<std::int32_t>(v))).count(call_.count);
    if (hosts_ && v + 1 == values()) move.send(call_.rank - 1, kDown);
    emit(move);
  }

  void begin(Emit& emit) const {
    if (hosts_) {
      Build fold(call_);
      deliver(fold.take(input(call_)).arrive(call_.rank - 1, kUp).arrival_first(), emit, 0);
    } else if (copies_operand() || (rounds_ == 0 && !call_.in_place)) {
      emit(Build(call_).take(input(call_)).keep(rounds_ == 0 ? dst() : scratch()).count(call_.count));
    }
  }

  void round(std::uint32_t r, Emit& emit) const {
    const std::uint32_t v = (hosts_ ? 1 : 0) + r;
    const std::uint32_t stride = power_of(radix_, r);
    const std::uint32_t partners = r < whole_rounds_ ? radix_ : last_;
    const std::uint32_t first = number_ - number_ / stride % partners * stride;
    const auto peer_at = [&](std::uint32_t i) { return rank_of(first + i * stride); };
    const bool made_before = v > 0 || copies_operand();
    Build give(call_);
    give.take(value(static_cast<std::int32_t>(v) - 1)).count(call_.count).stream_after(made_before ? 1 : 0);
    send_to(give, emit, partners, kRound + r, peer_at);
    emit(give);
    Build take(call_);
    arrive_from(take, emit, partners, kRound + r, peer_at);
    if (r > 0) take.after(3);
    deliver(take, emit, v);
  }

  const Call& call_;
  std::uint32_t radix_;
  std::uint32_t rounds_ = 0;
  std::uint32_t whole_rounds_ = 0;  // of them, with all of the radix
  std::uint32_t last_ = 1;
  std::uint32_t extra_ = 0;
  bool rests_ = false;
  bool hosts_ = false;
  std::uint32_t number_ = 0;  // among those that take part; meaningless for a rank that rests
};

}  // namespace

std::uint32_t allreduce_recursive_multiplying_steps(const Call& call) {
  return steps_for(Multiplying(call).rounds(), 2);
}

void allreduce_recursive_multiplying_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Multiplying rank(call);
  each_round(step, rank.rounds(), 2, [&](std::uint32_t s) { rank.round_of(s, emit); });
}

std::uint64_t allreduce_recursive_multiplying_scratch_bytes(const Call& call) {
  return Multiplying(call).scratch_bytes();
}

}  // namespace unisono::collectives
