// Admission of a call: the same checks, in the same order, as in engine/admit.cpp, and the choice of the algorithm.
//
// Runs once for calls with the same arguments. What depends on the single call, such as the size of its buffers, is
// checked in main.cpp.
#include <cstddef>

#include "collectives/generate.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "firmware/machine/port.hpp"
#include "firmware/plan.hpp"

namespace unisono::firmware {

namespace {

constexpr std::uint32_t bit(std::uint32_t number) { return std::uint32_t{1} << number; }

/// What is asked of a collective here, in two bytes: the table is small, and so is the code that reads it.
struct Facts {
  bool known : 1 = false;
  bool reduces : 1 = false;
  bool mean : 1 = false;
  bool rooted : 1 = false;
  bool in_place : 1 = false;
  bool data : 1 = false;
  bool vectors : 1 = false;
  bool pairwise : 1 = false;
  bool local : 1 = false;
  bool point_to_point : 1 = false;
};

constexpr auto kFacts = [] {
  std::array<Facts, 32> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    const CollectiveFacts facts = facts_of(static_cast<Collective>(i));
    table[i] = {facts.known, facts.reduces, facts.mean,       facts.rooted, facts.in_place,
                facts.data,  facts.vectors, facts.pairwise(), facts.local,  facts.point_to_point};
  }
  return table;
}();

// Flags of the descriptor, in its second word.
constexpr std::uint32_t kWireDtype = 0xff;
constexpr std::uint32_t kInPlace = bit(8);
constexpr std::uint32_t kSrcStream = bit(11);
constexpr std::uint32_t kDstStream = bit(12);

// The communicator's word about groups, and the switch above this rank.
constexpr std::uint32_t kAboveShift = 16;
constexpr std::uint32_t kGroupSize = bit(kAboveShift) - 1;

std::uint64_t bytes(std::uint64_t elements, const Call& call) {
  return elements >= kBeyondAnyBuffer / 16 ? kBeyondAnyBuffer : elements * element_bytes(call);
}

/// CRC-32C of what core/signature.hpp lists, computed by the unit; here in words.
std::uint32_t signature(const Call& call, bool pair, std::uint32_t algorithm, std::uint32_t eager_limit) {
  using namespace port;  // NOLINT(google-build-using-namespace)
  tell<kGroupCheck, kCheckBegin>();
  if (pair) {
    tell<kGroupCheck, kCheckLong>(static_cast<std::uint32_t>(Collective::kSend) | static_cast<std::uint32_t>(call.dtype)
                                                                                      << 8U);
    for (int i = 0; i < 3; ++i) tell<kGroupCheck, kCheckLong>();
  } else {
    const std::uint32_t head = static_cast<std::uint32_t>(call.collective) |
                               static_cast<std::uint32_t>(call.dtype) << 8U |
                               static_cast<std::uint32_t>(call.func) << 16U | (call.in_place ? 1U : 0U) << 24U;
    tell<kGroupCheck, kCheckLong>(head, call.size);
    tell<kGroupCheck, kCheckLong>(call.root, call.group_size);
    tell<kGroupCheck, kCheckLong>(static_cast<std::uint32_t>(call.count),
                                  static_cast<std::uint32_t>(call.count >> 32U));
    tell<kGroupCheck, kCheckLong>(algorithm, eager_limit);
  }
  // No wire datatype, no operator of the user.
  tell<kGroupCheck, kCheckWord>();
  tell<kGroupCheck, kCheckHalf>();
  return ask<kGroupCheck, kCheckValue>();
}

/// A step of a call with a mean, whose call is part of a plan.
void mean_step(const Call& call, std::uint32_t s, Emit& emit) {
  const auto* plan = reinterpret_cast<const Plan*>(reinterpret_cast<const char*>(&call) - offsetof(Plan, call));
  generation_step(*plan->algorithm, call, s, emit);
}

}  // namespace

/// Filled in by the host; read at each choice.
[[gnu::used, gnu::section(".rules")]] const volatile Rules unisono_rules{};

ErrorCode admit(const Key& key, Plan& plan) {
  using namespace port;  // NOLINT(google-build-using-namespace)
  if ((key.state >> kCommunicatorValid & 1U) == 0) return ErrorCode::kFreedCommunicator;
  if ((key.state >> kCommunicatorRevoked & 1U) != 0) return ErrorCode::kRevoked;
  const std::uint32_t collective = key.head & 0xffU;
  if (collective >= kFacts.size() || !kFacts[collective].known) return ErrorCode::kInvalidArgument;
  const Facts& facts = kFacts[collective];
  // Programs are replayed by the engine, without this.
  if (static_cast<Collective>(collective) == Collective::kProgram) return ErrorCode::kUnsupported;

  Call& call = plan.call;
  call = Call{};
  call.collective = static_cast<Collective>(collective);
  call.rank = communicator<kCommunicatorRank>();
  call.size = communicator<kCommunicatorSize>();
  const std::uint32_t group = communicator<kCommunicatorGroup>();
  call.group_size = group & kGroupSize;
  const std::uint32_t dtype = key.head >> 24U;
  if (dtype >= kAllDatatype.size()) return ErrorCode::kInvalidDatatype;
  call.dtype = static_cast<Datatype>(dtype);
  call.func = static_cast<Func>(key.head >> 16U & 0xffU);
  if (!is_known(call.func)) return ErrorCode::kInvalidOp;
  if (facts.data && call.dtype == Datatype::kNone) return ErrorCode::kInvalidDatatype;
  const std::uint32_t wire = key.flags & kWireDtype;
  if (wire != 0 && wire != dtype) return ErrorCode::kUnsupported;
  if (facts.reduces) {
    if (call.func == Func::kNone) return ErrorCode::kInvalidOp;
    if (call.func == Func::kAvg && !facts.mean) return ErrorCode::kInvalidOp;
    // Operators of the user are not in this engine.
    if (is_user(call.func)) return ErrorCode::kUnsupported;
    const std::uint32_t func = bit(static_cast<std::uint32_t>(call.func));
    if ((kOperatorsOn[dtype] & func) == 0) return ErrorCode::kInvalidDatatype;
    if ((communicator<kCommunicatorDatatypes>() >> dtype & 1U) == 0 ||
        (communicator<kCommunicatorFuncs>() & func) == 0) {
      return ErrorCode::kUnsupported;
    }
  } else {
    call.func = Func::kNone;
  }
  call.in_place = facts.in_place && (key.flags & kInPlace) != 0;
  if (facts.rooted) {
    if (key.root >= call.size) return ErrorCode::kInvalidRoot;
    call.root = key.root;
  }
  call.count = std::uint64_t{key.count_high} << 32U | key.count_low;
  if (!facts.data) {
    call.count = 0;
    call.dtype = Datatype::kNone;
  }
  if (facts.pairwise && !call.in_place) call.count = 0;
  if (call.count > kMaxCount && !(facts.vectors && call.count == kUnknownCount)) return ErrorCode::kInvalidCount;

  const std::span<const Algorithm> table = algorithms();
  std::uint32_t number = key.head >> 8U & 0xffU;
  if (number == 0) {
    const auto* own = const_cast<const Rules*>(&unisono_rules);
    const std::uint32_t count = unisono_rules.count;
    const Tuning tuning{
        {own->rules, count < kRules ? count : kRules}, (key.state >> kCommunicatorCrowded & 1U) != 0, false};
    const int position = choose_algorithm(call, tuning);
    if (position < 0) return ErrorCode::kUnsupported;
    number = static_cast<std::uint32_t>(position) + 1;
  }
  if (number > table.size() || table[number - 1].collective != call.collective) return ErrorCode::kUnknownAlgorithm;
  const Algorithm& chosen = table[number - 1];
  // Other algorithms see no tree, as on the host: calls that differ in nothing else are alike.
  if (chosen.switched) call.tree.above = group >> kAboveShift;
  if (chosen.direct) return ErrorCode::kUnsupported;
  if (chosen.admits != nullptr && !chosen.admits(call)) return ErrorCode::kUnsupported;
  if (needs_order(call.func) && !chosen.ordered) return ErrorCode::kUnsupported;

  const Footprint used = footprint_of(call);
  plan.src_bytes = (key.flags & kSrcStream) != 0 ? 0 : bytes(used.src, call);
  plan.dst_bytes = (key.flags & kDstStream) != 0 ? 0 : bytes(used.dst, call);
  plan.scratch_bytes = chosen.scratch_bytes != nullptr ? chosen.scratch_bytes(call) : 0;
  plan.params_bytes = chosen.params_words != nullptr ? std::uint64_t{8} * chosen.params_words(call) : 0;

  plan.algorithm = &chosen;
  // Without a mean, generation_step() is the algorithm's own step.
  plan.step = call.func == Func::kAvg ? mean_step : chosen.step;
  plan.steps = generation_steps(chosen, call);
  if (plan.steps == 0) {
    // One step that does nothing, so that the dispatcher need not ask.
    plan.steps = 1;
    plan.step = [](const Call& /*call*/, std::uint32_t /*s*/, Emit& /*emit*/) {};
  }
  const std::uint32_t space = facts.point_to_point ? kSpacePointToPoint : facts.local ? kSpaceLocal : kSpaceCollective;
  plan.context = space | number << 8U | static_cast<std::uint32_t>(call.dtype) << 16U;
  if (plan.scratch_bytes != 0 || plan.params_bytes != 0) plan.context |= kNeedsMore;
  plan.signature = signature(call, facts.point_to_point, number, communicator<kCommunicatorEager>());
  return ErrorCode::kOk;
}

}  // namespace unisono::firmware
