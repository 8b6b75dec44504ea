// Kernels: what the data path does to bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono::cclo {
using CombineKernel = void (*)(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count);
using ReduceKernel = void (*)(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs,
                              std::uint32_t m, std::uint64_t count, bool streaming);
CombineKernel combine_kernel(Func func, Datatype dtype);
ReduceKernel reduce_kernel(Func func, Datatype dtype);
void copy_bytes(std::byte* out, const std::byte* in, std::uint64_t bytes, bool streaming);
void copy_to_many(const std::byte* in, std::byte* const* outputs, std::uint32_t m, std::uint64_t bytes, bool streaming);
const char* kernel_target();
}  // namespace unisono::cclo
