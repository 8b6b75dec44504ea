// All-reduce with several leaders in each group: each has a share of the vector.
//
// Source: Bayatpour, Chakraborty, Subramoni, Lu and Panda, "Scalable reduction collectives with data partitioning-based
// multi-leader design", SC 2017. Cost, with groups of g and m leaders in each: 2 m alpha + 2 n (g-1)/m beta +
// n (g-1)/m gamma within, log2(P/g) (alpha + n/m beta + n/m gamma) between.
//
// The vector is cut into m shares, as many as the smallest group has members, but for kMostLeaders. Member i of each
// group leads in share i: two_level, of that share alone. So all members combine, and send to other groups, at the same
// time, over connections of their own.
//
// A rank first gives the others their leaders' shares of its operand, then leads in its own, then takes the others'
// results. It may lead while its gifts still wait: what it is given arrives in moves that wait for nothing. All gifts,
// the move in which it folds, and what it takes of others stand in one window, so each rank that somebody waits for
// listens.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/allreduce/doubling.hpp"

namespace unisono::collectives {

namespace {

/// With more, a rank's gifts and the move behind them would not fit in the window.
constexpr std::uint32_t kMostLeaders = 16;

/// A share of the vector, for DoublingOf.
struct Share {
  std::uint32_t number;
  build::Split split;

  constexpr std::uint32_t leader() const { return number; }
  constexpr std::uint64_t offset(const Call& call) const { return split.begin(number) * element_bytes(call); }
  constexpr std::uint64_t count(const Call& /*call*/) const { return split.count(number); }
};

class MultiLeader {
 public:
  explicit constexpr MultiLeader(const Call& call)
      : call_(call),
        levels_(call),
        leaders_(leaders_of(levels_)),
        split_(call.count, leaders_),
        place_(call.rank - levels_.first(levels_.group_of(call.rank))) {}

  constexpr std::uint32_t rounds() const { return 2 * others() + (leads() ? share(place_).rounds() : 0); }

  constexpr std::uint64_t scratch_bytes() const { return leads() ? share(place_).scratch_bytes() : 0; }

  void round(std::uint32_t r, Emit& emit) const {
    // Gifts; the rank's own share; results.
    const std::uint32_t led = rounds() - 2 * others();
    std::uint32_t number = place_;
    std::uint32_t of_share = r - others();
    if (r < others()) {
      number = other(r);
      of_share = kGives;
    } else if (of_share >= led) {
      number = other(of_share - led);
      of_share = kTakes;
    }
    share(number).round_of(of_share, emit);  // once in the code, which the microcontroller has to hold
  }

 private:
  // Rounds of a rank in a share in which it does not lead.
  static constexpr std::uint32_t kGives = 0;
  static constexpr std::uint32_t kTakes = 1;

  // A lone group has one: two would pass their results to each other in the moves that take each other's gifts, and
  // neither would be over before the other.
  static constexpr std::uint32_t leaders_of(const build::Levels& levels) {
    if (levels.groups() == 1) return 1;
    std::uint32_t fewest = kMostLeaders;
    for (std::uint32_t group = 0; group < levels.groups(); ++group) {
      fewest = levels.members(group) < fewest ? levels.members(group) : fewest;
    }
    return fewest;
  }
  constexpr bool leads() const { return place_ < leaders_; }
  constexpr std::uint32_t others() const { return leads() ? leaders_ - 1 : leaders_; }
  // The shares in which it does not lead, so that not all begin with the same one.
  constexpr std::uint32_t other(std::uint32_t i) const {
    return leads() ? build::plus(place_, i + 1, leaders_) : build::plus(place_ % leaders_, i, leaders_);
  }
  constexpr build::DoublingOf<Share> share(std::uint32_t number) const { return {call_, levels_, {number, split_}}; }

  const Call& call_;
  build::Levels levels_;
  std::uint32_t leaders_;
  build::Split split_;
  std::uint32_t place_;  // of this rank in its group
};

}  // namespace

std::uint32_t allreduce_multi_leader_steps(const Call& call) { return build::steps_for(MultiLeader(call).rounds(), 2); }

void allreduce_multi_leader_step(const Call& call, std::uint32_t s, Emit& emit) {
  const MultiLeader program(call);
  build::each_round(s, program.rounds(), 2, [&](std::uint32_t r) { program.round(r, emit); });
}

std::uint64_t allreduce_multi_leader_scratch_bytes(const Call& call) { return MultiLeader(call).scratch_bytes(); }

}  // namespace unisono::collectives
