// Groups that are no ranges of ranks: collectives/by_position.hpp of the microcontroller, which stands before the other
// in the compiler's search path. A communicator of engines in hardware has none.
#pragma once

#include <cstdint>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"
#include "core/emit.hpp"

namespace unisono::build {

constexpr bool is_scattered(const Call& /*call*/) { return false; }
constexpr bool keeps_order(const Algorithm& algorithm, const Call& /*call*/) { return algorithm.ordered; }
constexpr std::uint32_t own_count_word(const Algorithm& /*algorithm*/, const Call& call) { return call.rank; }
inline constexpr bool (*admits_ranges)(const Call& call) = nullptr;

template <auto Steps>
inline constexpr auto steps_by_position = Steps;
template <auto Step>
inline constexpr auto step_by_position = Step;
template <auto ScratchBytes>
inline constexpr auto scratch_by_position = ScratchBytes;
template <auto FillParams>
inline constexpr auto fill_by_position = FillParams;
template <auto Steps, auto CountsSteps>
inline constexpr auto steps_with_counts = Steps;
template <auto Step, auto CountsStep>
inline constexpr auto step_with_counts = Step;
template <auto ScratchBytes, auto CountsScratchBytes>
inline constexpr auto scratch_with_counts = ScratchBytes;
}  // namespace unisono::build
