// Factors of reductions: what a rank gives is multiplied before it is folded, the result when it is there.
//
// As a compressed call, a call with factors is the plain one between two stages: a scaled copy of the input as it
// begins, and the result multiplied as it succeeds. So all engines, algorithms and switches carry it out with the same
// bits (docs/decisions/0071-factors-around-the-call.md).
#pragma once

#include <string>

#include "core/call.hpp"
#include "driver/objects.hpp"
#include "driver/spare_memory.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {

/// Refuses factors for an operation that has none. Throws Error.
void check_no_factors(const std::string& operation, const unisono_call& given);

/// Gives a checked call the factors of `given`, if it has some: its buffers may be copies from then on, and its hooks
/// multiply. A factor of 1 is none. Throws Error, which says what can have factors, and kOutOfMemory.
void multiply(SpareMemory& memory, const unisono_call& given, CheckedCall& checked);

}  // namespace unisono::driver
