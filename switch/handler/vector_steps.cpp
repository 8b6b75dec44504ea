// Instructions on vectors: loops over 16 lanes whose operation is known when they are compiled.
#include <algorithm>

#include "switch/handler/step.hpp"

namespace unisono::handler {
namespace {

const Step* move(State& state, const Step* step, std::uint64_t fuel) {
  state.lanes[step->rd] = state.lanes[step->ra];
  return go_on(state, step + 1, fuel);
}

const Step* splat(State& state, const Step* step, std::uint64_t fuel) {
  state.lanes[step->rd].fill(state.scalar[step->ra]);
  return go_on(state, step + 1, fuel);
}

template <bool kNumber>
const Step* extract(State& state, const Step* step, std::uint64_t fuel) {
  state.scalar[step->rd] = state.lanes[step->ra][second<kNumber>(state, *step) % kLanes];
  return go_on(state, step + 1, fuel);
}

template <bool kNumber>
const Step* insert(State& state, const Step* step, std::uint64_t fuel) {
  state.lanes[step->rd][second<kNumber>(state, *step) % kLanes] = state.scalar[step->ra];
  return go_on(state, step + 1, fuel);
}

/// From lane 0 on: sums round.
template <Element kElement>
[[gnu::flatten]] const Step* sum(State& state, const Step* step, std::uint64_t fuel) {
  std::uint64_t total = state.scalar[step->rd];
  for (const std::uint64_t lane : state.lanes[step->ra]) total = evaluate(Op::kAdd, kElement, 0, total, lane);
  state.scalar[step->rd] = total;
  return go_on(state, step + 1, fuel);
}

const Step* select(State& state, const Step* step, std::uint64_t fuel) {
  const Lanes condition = state.lanes[step->ra];
  const Lanes yes = state.lanes[step->rb];
  const Lanes no = state.lanes[step->rc];
  Lanes& rd = state.lanes[step->rd];
  for (std::size_t i = 0; i < kLanes; ++i) rd[i] = condition[i] != 0 ? yes[i] : no[i];
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes>
const Step* load(State& state, const Step* step, std::uint64_t fuel) {
  const std::byte* const from = place(state, *step, state.around.memory, std::uint64_t{kBytes} * kLanes);
  if (from == nullptr) return stopped(state, step, fuel, Stop::kMemory);
  Lanes& rd = state.lanes[step->rd];
  for (std::size_t i = 0; i < kLanes; ++i) rd[i] = read<kBytes>(from + i * kBytes);
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes>
const Step* store(State& state, const Step* step, std::uint64_t fuel) {
  std::byte* const to = place(state, *step, state.around.memory, std::uint64_t{kBytes} * kLanes);
  if (to == nullptr) return stopped(state, step, fuel, Stop::kMemory);
  const Lanes& rd = state.lanes[step->rd];
  for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(to + i * kBytes, &rd[i], kBytes);
  return go_on(state, step + 1, fuel);
}

/// A vector may begin anywhere up to the payload's end: lanes beyond it stay as they are.
template <std::uint32_t kBytes>
const Step* take_lanes(State& state, const Step* step, std::uint64_t fuel) {
  // A payload of no bytes may have no address, so that this is not `place`.
  const std::span<const std::byte> payload = state.around.payload;
  const std::uint64_t offset = state.scalar[step->ra] + number_of(*step);
  if (offset > payload.size()) return stopped(state, step, fuel, Stop::kPayload);
  const std::uint64_t left = payload.size() - offset;
  const std::byte* const from = payload.data() + offset;
  Lanes& rd = state.lanes[step->rd];
  if (left >= std::uint64_t{kBytes} * kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) rd[i] = read<kBytes>(from + i * kBytes);
  } else {
    for (std::size_t i = 0; i < left / kBytes; ++i) rd[i] = read<kBytes>(from + i * kBytes);
  }
  return go_on(state, step + 1, fuel);
}

template <std::uint32_t kBytes, bool kNumber>
const Step* streamout(State& state, const Step* step, std::uint64_t fuel) {
  const std::uint64_t count = std::min<std::uint64_t>(kLanes, second<kNumber>(state, *step));
  const Lanes& ra = state.lanes[step->ra];
  for (std::size_t i = 0; i < count; ++i) {
    if (!write<kBytes>(state, ra[i])) return stopped(state, step, fuel, Stop::kOutput);
  }
  return go_on(state, step + 1, fuel);
}

/// Lane by lane, so that an index that comes twice counts twice. Indexes are the low 32 bits of lanes.
template <Op kOp, Element kElement>
[[gnu::flatten]] const Step* accumulate(State& state, const Step* step, std::uint64_t fuel) {
  constexpr bool kIntoScalar = kOp == Op::kSpvaccXv;
  constexpr std::uint32_t kBytes = bytes_of(kElement);
  constexpr bool kNarrow = kBytes == 2;  // fp16 and bf16 are added in fp32, and rounded when they are stored
  constexpr Element kCarrier = kNarrow ? Element::kFp32 : kElement;
  const Lanes index = state.lanes[kIntoScalar ? step->ra : step->rd];
  const std::uint64_t table = state.scalar[kIntoScalar ? step->rb : step->ra];
  const std::uint64_t limit = state.scalar[step->rc];
  const std::span<std::byte> memory = state.around.memory;
  const std::uint64_t size = memory.size();
  // Of the table's entries, so many bytes lie within memory.
  const bool none = kBytes > size || table > size - kBytes;
  const std::uint64_t last = none ? 0 : size - kBytes - table;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint64_t which = index[i] & 0xffffffffU;
    if (which >= limit) continue;
    if (none || which * kBytes > last) return stopped(state, step, fuel, Stop::kMemory);
    std::byte* const place = memory.data() + table + which * kBytes;
    std::uint64_t entry = read<kBytes>(place);
    if constexpr (kNarrow) entry = compute::converted(Op::kConvert, Element::kFp32, kElement, entry);
    if constexpr (kIntoScalar) {
      state.scalar[step->rd] = evaluate(Op::kAdd, kCarrier, 0, state.scalar[step->rd], entry);
    } else {
      const std::uint64_t value = kOp == Op::kSpvaccVx ? state.scalar[step->rb] : state.lanes[step->rb][i];
      entry = evaluate(Op::kAdd, kCarrier, 0, entry, value);
      if constexpr (kNarrow) entry = compute::converted(Op::kConvert, kElement, Element::kFp32, entry);
      std::memcpy(place, &entry, kBytes);
    }
  }
  return go_on(state, step + 1, fuel);
}

template <Op kOp, Element kElement, bool kNumber>
[[gnu::flatten]] const Step* compute(State& state, const Step* step, std::uint64_t fuel) {
  const Lanes a = state.lanes[step->ra];
  Lanes b;
  if constexpr (kNumber) {
    b.fill(number_of(*step));
  } else {
    b = state.lanes[step->rb];
  }
  const std::uint32_t aux = step->aux;
  Lanes& rd = state.lanes[step->rd];
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (divides(kOp) && is_zero<kElement>(b[i])) return stopped(state, step, fuel, Stop::kDivide);
    rd[i] = evaluate(kOp, kElement, aux, a[i], b[i]);
  }
  return go_on(state, step + 1, fuel);
}

template <Op kOp, Element kElement, Element kFrom>
[[gnu::flatten]] const Step* convert(State& state, const Step* step, std::uint64_t fuel) {
  const Lanes a = state.lanes[step->ra];
  Lanes& rd = state.lanes[step->rd];
  for (std::size_t i = 0; i < kLanes; ++i) rd[i] = compute::converted(kOp, kElement, kFrom, a[i]);
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
    } else if constexpr (kVariant > 1) {
      return nullptr;
    } else if constexpr (kOp >= Op::kSpvaccVx) {
      return accumulate<kOp, kElement>;
    } else {
      switch (kOp) {
        case Op::kMove:
          return move;
        case Op::kSplat:
          return splat;
        case Op::kExtract:
          return extract<kNumber>;
        case Op::kInsert:
          return insert<kNumber>;
        case Op::kSum:
          return sum<kElement>;
        case Op::kSelect:
          return select;
        case Op::kLoad:
          return load<kBytes>;
        case Op::kStore:
          return store<kBytes>;
        case Op::kTakeLanes:
          return take_lanes<kBytes>;
        case Op::kStreamout:
          return streamout<kBytes, kNumber>;
        default:
          return kOp >= Op::kAdd && kOp <= Op::kTruncate ? compute<kOp, kElement, kNumber> : nullptr;
      }
    }
  }
};

}  // namespace

constinit const StepTable kVectorSteps = make_step_table<Choose>();

}  // namespace unisono::handler
