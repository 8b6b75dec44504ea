// Compressed calls: what a rank holds as fp32 travels as fp16 or bf16.
//
// A compressed call *is* the call of the narrow datatype on narrowed copies: the inputs are rounded once as it begins,
// whatever it does it does with narrow elements, and the results are widened when it has succeeded. So all engines
// carry it out, all ranks get equal results, and the checker's word on the narrow call holds for it
// (docs/decisions/0011-compressed-calls.md).
#pragma once

#include "core/call.hpp"
#include "driver/objects.hpp"

namespace unisono::driver {

/// Makes the checked call, whose buffers hold fp32, one that travels as `wire`: datatype and buffers are those of the
/// copies from then on, and its hooks convert. Throws Error, which says what can be compressed, and kOutOfMemory.
void compress(const Communicator& communicator, Datatype wire, CheckedCall& checked);

}  // namespace unisono::driver
