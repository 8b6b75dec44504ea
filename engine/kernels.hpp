// Kernels: the operators of core/arithmetic.hpp over arrays, by the widest vectors that this CPU has.
//
// core/arithmetic.hpp is the definition; a kernel gives the same bits (NaN as a class) for every length, alignment and
// instruction set. Which instruction set is used is decided once, at the first lookup.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono::cclo {

/// out[i] = func(a[i], b[i]) for `count` elements. Arrays need no alignment; `out` may be `a` or `b`, and must not
/// overlap them otherwise. Thread-safe, as all of this file.
using CombineKernel = void (*)(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count);

/// Every outputs[k][i] = sources[0..n)[i] folded in listed order, rounded once (fp16 and bf16 accumulate in fp32).
/// Reads each source once and writes each output once, all of them side by side, so that nothing but registers holds a
/// partial result. n >= 1, m >= 1. An output may be a source at the same address, not overlap one otherwise.
/// `streaming`: outputs that can be aligned are written past the caches, complete on return as ordinary stores are.
using ReduceKernel = void (*)(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs,
                              std::uint32_t m, std::uint64_t count, bool streaming);

/// out[i] = a[i] / ranks, rounded once. `out` may be `a`.
using MeanKernel = void (*)(const std::byte* a, std::byte* out, std::uint64_t count, std::uint32_t ranks);

/// out[i] = a[i] * factor, rounded once, as `scale` of core/arithmetic.hpp. `out` may be `a`.
using ScaleKernel = void (*)(const std::byte* a, std::byte* out, std::uint64_t count, double factor);

/// out[i] = in[i] in another datatype, for `count` elements. Arrays need no alignment and must not overlap.
using ConvertKernel = void (*)(const std::byte* in, std::byte* out, std::uint64_t count);

/// From fp16 or bf16 to fp32, exactly; and back, rounded to nearest even (what is too large becomes infinity, a NaN
/// stays one). Null for other datatypes.
ConvertKernel widening_kernel(Datatype narrow);
ConvertKernel narrowing_kernel(Datatype narrow);

/// The kernel of an operator; null if func is none or not defined on dtype. To be looked up at lowering. `swap`: each
/// step of the fold is func(source, accumulated), which matters to operators of the user that do not commute. Kernels
/// of the user's operators throw Error(kInvalidOp) if the function fails or has been undefined.
CombineKernel combine_kernel(Func func, Datatype dtype);
ReduceKernel reduce_kernel(Func func, Datatype dtype, bool swap = false);
/// The kernel of the function avg; null if dtype has no mean.
MeanKernel mean_kernel(Datatype dtype);
/// The kernel that multiplies by a factor; null if dtype has none.
ScaleKernel scale_kernel(Datatype dtype);

/// As memcpy, also with `out` == `in`. `streaming` writes past the caches, whatever the alignment.
void copy_bytes(std::byte* out, const std::byte* in, std::uint64_t bytes, bool streaming);

/// One source to m outputs, read once. An output may be `in`.
void copy_to_many(const std::byte* in, std::byte* const* outputs, std::uint32_t m, std::uint64_t bytes, bool streaming);

/// The instruction set in use, for instance "AVX3".
const char* kernel_target();

}  // namespace unisono::cclo
