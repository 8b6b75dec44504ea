// Lowering: a program becomes flat, decoded records.
//
// There are two forms. The *windowed* form keeps the moves as they are, decoded, for an executor that runs all moves
// of the window at the same time, segment by segment; large messages need it. The *straight* form is one of the orders
// that the program allows, for messages that fit their lanes: steps are simply done one after the other. Whatever waits
// for nothing comes before what awaits a message, so that no rank waits for what its peer holds back for no reason, and
// moves that belong together become one step (exchange, broadcast, fan-in).
//
// That no set of straight programs can wait in a circle is not obvious from that rule; run_lowered (model.hpp)
// executes them for all ranks, and `unisono check` does so for every algorithm.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/program.hpp"
#include "engine/counters.hpp"
#include "engine/kernels.hpp"

namespace unisono::cclo {

/// A piece of a region that the call binds.
struct Piece {
  std::uint64_t offset = 0;
  Region region = Region::kSrc;
  bool present = false;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Ranks, as a part of LoweredProgram::ranks.
struct RankList {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

/// value = own, messages of `from` in listed order, memory `reach_in` of `reach` in listed order, other: combined from
/// the left (with `swap` each step is func(next, before)); what is absent is left out. The value goes to `out`, to
/// `forward` as a message, and to memory `reach_out` of `write`.
struct Action {
  Piece own, other, out;
  Piece reach_in, reach_out;  ///< memory of peers
  RankList from, reach, forward, write;
  std::uint64_t count = 0;  ///< elements
  std::uint64_t bytes = 0;
  std::uint32_t tag_in = 0, tag_forward = 0;
  Func func = Func::kNone;
  Datatype dtype = Datatype::kByte;
  bool swap = false;
  CombineKernel combine = nullptr;  ///< of func and dtype
  ReduceKernel reduce = nullptr;    ///< likewise, and of swap
  MeanKernel mean = nullptr;        ///< the one operand is divided by `divisor`
  std::uint32_t divisor = 1;

  /// Whether it is own -> one rank, or own -> out and one rank, and no more.
  bool only_sends() const {
    return own.present && forward.count == 1 && from.count + reach.count + write.count == 0 && !other.present &&
           mean == nullptr;
  }
  /// Whether it is one message -> out, and no more.
  bool only_stores() const {
    return from.count == 1 && out.present && reach.count + forward.count + write.count == 0 && !own.present &&
           !other.present && mean == nullptr;
  }
};

/// One step of the straight form: `send`, then `take`, as far as the kind has them.
struct Step {
  enum class Kind : std::uint8_t {
    kSend,      ///< `send` only
    kExchange,  ///< `send` and a `take` of one message that is stored or combined with `own`
    kTake,      ///< such a `take` only
    kCopy,      ///< `take` copies `own` to `out`, and concerns nobody else
    kGeneral,   ///< `take` is any action
    kNothing,   ///< neither: with the counts of this launch there is nothing to do
  };
  Kind kind = Kind::kGeneral;
  std::uint32_t moves = 1;  ///< that this step stands for
  Action send;              ///< own -> forward
  Action take;
};
/// Whether a step of the kind takes one message.
constexpr bool takes_message(Step::Kind kind) { return kind == Step::Kind::kExchange || kind == Step::Kind::kTake; }

/// One move of the windowed form. `from` and `forward` have in LoweredProgram::ordinals, at the same places, which
/// message of the pair it is.
struct WindowedMove : Action {
  std::uint32_t dependencies = 0;    ///< bit i: move n-1-i
  std::uint8_t follows[2] = {0, 0};  ///< segment dependencies, as distances; 0: none
};

/// A move whose count or offsets stand in params: they are known when a call is launched (`bind`).
struct Indirect {
  static constexpr std::uint32_t kFixed = ~std::uint32_t{0};
  std::uint32_t move = 0;                                    ///< in LoweredProgram::moves
  std::uint32_t step = 0;                                    ///< in LoweredProgram::steps
  bool sends = false;                                        ///< it is the step's `send`, else its `take`
  bool signal = false;                                       ///< its messages exist even without elements
  std::uint32_t count = kFixed;                              ///< word of params
  std::uint32_t own = kFixed, other = kFixed, out = kFixed;  ///< words that hold byte offsets
  RankList from, forward;                                    ///< as they are if it has elements
};
/// A step some of whose moves are indirect, as it is if they all have elements.
struct IndirectStep {
  std::uint32_t step = 0;
  Step::Kind kind = Step::Kind::kGeneral;
  std::uint32_t moves = 1;
};

/// The lowered program of one rank.
/// What actions move, and an upper bound of what they put on one lane.
struct Totals {
  LaneLoad load;
  std::uint64_t lane_bytes = 0;
  std::uint32_t lane_messages = 0;
  std::uint64_t longest = 0;  ///< message
  void add(const Action& action) {
    const std::uint32_t lanes = action.forward.count + action.from.count;
    longest = std::max(longest, lanes != 0 ? action.bytes : 0);
    lane_messages += lanes;
    lane_bytes += lanes * action.bytes;
    load.messages += action.forward.count;
    load.bytes += action.forward.count * action.bytes;
    load.direct_bytes += std::uint64_t{action.reach.count + action.write.count} * action.bytes;
  }
};

struct LoweredProgram {
  std::vector<Step> steps;
  std::vector<WindowedMove> moves;
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint32_t> ordinals;
  std::uint64_t scratch_bytes = 0;
  std::uint32_t size = 0;             ///< ranks
  std::uint64_t most_lane_bytes = 0;  ///< payload that one lane carries in the whole program
  std::uint32_t most_lane_messages = 0;
  std::uint64_t longest_message = 0;
  bool remote_memory = false;  ///< touches memory of peers
  LaneLoad load;
  std::vector<Indirect> indirect;  ///< empty: the program is as it is in every launch
  std::vector<IndirectStep> indirect_steps;
  Totals fixed;  ///< of the moves that are not indirect
};

/// Writes counts and offsets of one launch into a program that has indirect ones, and with them what follows.
class Launcher {
 public:
  /// `params`: the call's, as its algorithm fills them; `regions`: bytes of src, dst, scratch, params, window. What
  /// lanes carry is an upper bound afterwards: straight programs can run. Throws Error(kInvalidCount) if a move would
  /// reach beyond a region, or an operand overlaps its result; the program must be bound again before it runs then.
  /// Allocates nothing.
  static void bind(LoweredProgram& program, std::span<const std::uint64_t> params,
                   const std::array<std::uint64_t, 5>& regions);
  /// After `bind`: the place of each message among those of its pair, which the windowed form needs, and exactly what
  /// each lane carries. Allocates at the first time.
  void number(LoweredProgram& program);

 private:
  struct Lane {
    std::uint64_t bytes = 0;
    std::uint32_t messages = 0;
  };
  static void count(LoweredProgram& program, const RankList& list, std::uint64_t bytes, std::vector<Lane>& lanes);
  std::vector<Lane> sends_, arrivals_;  ///< by rank
};

/// Lowers a program that `check_program` accepts for `size` ranks. Empty if it holds what lanes do not carry: streams,
/// casts, params that moves write.
std::optional<LoweredProgram> lower(const Program& program, std::uint32_t size);

/// Whether lanes carry a user's programs, those of all ranks of a communicator: if they are well formed and can be
/// lowered, touch no memory of peers, and are as they are in every launch, without params and operators of the user.
/// The rank that holds them all says so, so that all ranks find it alike. They run in the windowed form, which is bound
/// to no order, for nobody has proven that the straight one never waits in a circle.
bool lanes_carry(std::span<const std::shared_ptr<const Program>> programs);
/// Lowers one of these.
LoweredProgram lower_windowed(const Program& program, std::uint32_t size);

}  // namespace unisono::cclo
