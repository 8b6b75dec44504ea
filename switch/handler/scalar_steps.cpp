// Instructions on scalar registers, and those that say where to go on.
#include "switch/handler/step.hpp"

namespace unisono::handler {
namespace {

template <bool kNumber>
const Step* end(State& state, const Step* step, std::uint64_t fuel) {
  state.verdict = static_cast<std::uint32_t>(second<kNumber>(state, *step));
  return stopped(state, step, fuel, Stop::kNone);
}

const Step* jump(State& state, const Step* step, std::uint64_t fuel) { return go_on(state, step + step->number, fuel); }

template <bool kIfZero>
const Step* branch(State& state, const Step* step, std::uint64_t fuel) {
  return go_on(state, (state.scalar[step->ra] == 0) == kIfZero ? step + step->number : step + 1, fuel);
}

const Step* enter(State& state, const Step* step, std::uint64_t fuel) {
  state.rounds[step->rd] = static_cast<std::uint32_t>(step->number);
  return go_on(state, step + 1, fuel);
}

template <std::size_t kAux>
const Step* again(State& state, const Step* step, std::uint64_t fuel) {
  if (kAux != 2 && (state.scalar[step->ra] == 0) != (kAux == 1)) return go_on(state, step + 1, fuel);
  std::uint32_t& rounds = state.rounds[step->rd];
  if (rounds == 0) return stopped(state, step, fuel, Stop::kLoopBound);
  --rounds;
  return go_on(state, step + step->number, fuel);
}

template <Op kOp>
const Step* simple(State& state, const Step* step, std::uint64_t fuel) {
  std::uint64_t& rd = state.scalar[step->rd];
  if constexpr (kOp == Op::kSet) {
    rd = number_of(*step);
  } else if constexpr (kOp == Op::kSetHigh) {
    rd = (rd & 0xffffffffU) | number_of(*step) << 32U;
  } else if constexpr (kOp == Op::kMove) {
    rd = state.scalar[step->ra];
  } else if constexpr (kOp == Op::kInfo) {
    rd = state.around.info[static_cast<std::size_t>(step->number)];
  } else {
    rd = state.scalar[step->ra] != 0 ? state.scalar[step->rb] : state.scalar[step->rc];
  }
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes>
const Step* load(State& state, const Step* step, std::uint64_t fuel) {
  const std::byte* const from = place(state, *step, state.around.memory, kBytes);
  if (from == nullptr) return stopped(state, step, fuel, Stop::kMemory);
  state.scalar[step->rd] = read<kBytes>(from);
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes>
const Step* store(State& state, const Step* step, std::uint64_t fuel) {
  std::byte* const to = place(state, *step, state.around.memory, kBytes);
  if (to == nullptr) return stopped(state, step, fuel, Stop::kMemory);
  std::memcpy(to, &state.scalar[step->rd], kBytes);
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes>
const Step* take(State& state, const Step* step, std::uint64_t fuel) {
  const std::byte* const from = place(state, *step, state.around.payload, kBytes);
  if (from == nullptr) return stopped(state, step, fuel, Stop::kPayload);
  state.scalar[step->rd] = read<kBytes>(from);
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes>
const Step* put(State& state, const Step* step, std::uint64_t fuel) {
  if (!write<kBytes>(state, state.scalar[step->ra])) return stopped(state, step, fuel, Stop::kOutput);
  return go_on(state, step + 1, fuel);
}

template <Op kOp, Element kElement, bool kNumber>
[[gnu::flatten]] const Step* compute(State& state, const Step* step, std::uint64_t fuel) {
  const std::uint64_t b = second<kNumber>(state, *step);
  if (divides(kOp) && is_zero<kElement>(b)) return stopped(state, step, fuel, Stop::kDivide);
  state.scalar[step->rd] = evaluate(kOp, kElement, step->aux, state.scalar[step->ra], b);
  return go_on(state, step + 1, fuel);
}

template <Op kOp, Element kElement, Element kFrom>
[[gnu::flatten]] const Step* convert(State& state, const Step* step, std::uint64_t fuel) {
  state.scalar[step->rd] = compute::converted(kOp, kElement, kFrom, state.scalar[step->ra]);
  return go_on(state, step + 1, fuel);
}

struct Choose {
  template <Op kOp, Element kElement, std::size_t kVariant>
  static constexpr Step::Does step() {
    constexpr std::uint32_t kBytes = bytes_of(kElement);
    constexpr bool kNumber = kVariant == 1;
    if constexpr (!has(kOp, kElement)) {
      return nullptr;
    } else if constexpr (is_convert(kOp)) {
      return convert<kOp, kElement, static_cast<Element>(kVariant)>;
    } else if constexpr (kOp == Op::kAgain) {
      return kVariant < 3 ? again<kVariant> : nullptr;
    } else if constexpr (kVariant > 1) {
      return nullptr;
    } else {
      switch (kOp) {
        case Op::kEnd:
          return end<kNumber>;
        case Op::kJump:
          return jump;
        case Op::kBranch:
          return branch<kNumber>;
        case Op::kEnter:
          return enter;
        case Op::kSet:
        case Op::kSetHigh:
        case Op::kMove:
        case Op::kInfo:
        case Op::kSelect:
          return simple<kOp>;
        case Op::kLoad:
          return load<kBytes>;
        case Op::kStore:
          return store<kBytes>;
        case Op::kTake:
          return take<kBytes>;
        case Op::kPut:
          return put<kBytes>;
        default:
          return kOp >= Op::kAdd && kOp <= Op::kTruncate ? compute<kOp, kElement, kNumber> : nullptr;
      }
    }
  }
};

}  // namespace

constinit const StepTable kScalarSteps = make_step_table<Choose>();

}  // namespace unisono::handler
