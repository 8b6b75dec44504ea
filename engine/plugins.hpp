// Plugins: the streaming operators of the data path. The operators themselves are core/arithmetic.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/generated/spec.hpp"

namespace unisono::cclo {

/// out = func(a, b), or func(b, a) if `swap`, element by element. `out` may be `a` or `b`.
void plugin_combine(Func func, Datatype dtype, bool swap, const std::byte* a, const std::byte* b, std::byte* out,
                    std::uint64_t bytes);

/// out = func(func(op0, inputs[0]), inputs[1]) ..., rounded once; without op0 (null) the fold starts at inputs[0].
/// `out` may be op0 or one of the inputs.
void plugin_fold(Func func, Datatype dtype, bool swap, const std::byte* op0, std::span<const std::byte* const> inputs,
                 std::byte* out, std::uint64_t bytes);

}  // namespace unisono::cclo
