#include "engine/plugins.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "engine/kernels.hpp"

namespace unisono::cclo {
namespace {

/// Fans of up to this many inputs, op0 included, are folded in one pass.
constexpr std::size_t kFan = 64;

[[noreturn]] void freed(Func func) {
  throw Error(ErrorCode::kInvalidOp, "op " + operator_name(func) + " was freed while a call needed it");
}

/// A fold of any number of inputs, by blocks, so that the wide accumulator stays in the first-level cache.
void fold_by_blocks(Func func, Datatype dtype, bool swap, const std::byte* op0,
                    std::span<const std::byte* const> inputs, std::byte* out, std::uint64_t count) {
  constexpr std::uint64_t kBlock = 1024;
  std::array<std::byte, kBlock * 16> accumulator;
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const std::uint64_t n = std::min(kBlock, count - begin);
    const std::uint64_t offset = begin * bytes_of(dtype);
    std::size_t next = 0;
    const std::byte* first = op0 != nullptr ? op0 : inputs[next++];
    fold_begin(dtype, first + offset, accumulator.data(), n);
    for (; next < inputs.size(); ++next) {
      fold_step(func, dtype, swap, accumulator.data(), inputs[next] + offset, n);
    }
    fold_end(dtype, accumulator.data(), out + offset, n);
  }
}

}  // namespace

void plugin_combine(Func func, Datatype dtype, bool swap, const std::byte* a, const std::byte* b, std::byte* out,
                    std::uint64_t bytes) {
  if (swap) std::swap(a, b);
  // Programs were examined when their operators existed; one of the user's may have been freed since.
  const CombineKernel kernel = combine_kernel(func, dtype);
  if (kernel == nullptr) freed(func);
  kernel(a, b, out, bytes / bytes_of(dtype));
}

void plugin_fold(Func func, Datatype dtype, bool swap, const std::byte* op0, std::span<const std::byte* const> inputs,
                 std::byte* out, std::uint64_t bytes) {
  const std::uint64_t count = bytes / bytes_of(dtype);
  const std::size_t first = op0 != nullptr ? 1 : 0;
  if (first + inputs.size() > kFan) {
    fold_by_blocks(func, dtype, swap, op0, inputs, out, count);
    return;
  }
  std::array<const std::byte*, kFan> sources;
  sources[0] = op0;
  std::copy(inputs.begin(), inputs.end(), sources.begin() + static_cast<std::ptrdiff_t>(first));
  const ReduceKernel kernel = reduce_kernel(func, dtype, swap);
  if (kernel == nullptr) freed(func);
  kernel(sources.data(), static_cast<std::uint32_t>(first + inputs.size()), &out, 1, count, false);
}

}  // namespace unisono::cclo
