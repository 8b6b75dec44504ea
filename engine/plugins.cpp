#include "engine/plugins.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/arithmetic.hpp"
#include "engine/kernels.hpp"

namespace unisono::cclo {
namespace {

/// Fans of up to this many inputs, op0 included, are folded in one pass.
constexpr std::size_t kFan = 64;

/// A fold of any number of inputs, by blocks, so that the wide accumulator stays in the first-level cache.
void fold_by_blocks(Func func, Datatype dtype, const std::byte* op0, std::span<const std::byte* const> inputs,
                    std::byte* out, std::uint64_t count) {
  constexpr std::uint64_t kBlock = 1024;
  std::array<std::byte, kBlock * 8> accumulator;
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const std::uint64_t n = std::min(kBlock, count - begin);
    const std::uint64_t offset = begin * bytes_of(dtype);
    std::size_t next = 0;
    const std::byte* first = op0 != nullptr ? op0 : inputs[next++];
    fold_begin(dtype, first + offset, accumulator.data(), n);
    for (; next < inputs.size(); ++next) {
      fold_step(func, dtype, false, accumulator.data(), inputs[next] + offset, n);
    }
    fold_end(dtype, accumulator.data(), out + offset, n);
  }
}

}  // namespace

void plugin_combine(Func func, Datatype dtype, bool swap, const std::byte* a, const std::byte* b, std::byte* out,
                    std::uint64_t bytes) {
  if (swap) std::swap(a, b);
  combine_kernel(func, dtype)(a, b, out, bytes / bytes_of(dtype));
}

void plugin_fold(Func func, Datatype dtype, bool /*swap: the operators commute*/, const std::byte* op0,
                 std::span<const std::byte* const> inputs, std::byte* out, std::uint64_t bytes) {
  const std::uint64_t count = bytes / bytes_of(dtype);
  const std::size_t first = op0 != nullptr ? 1 : 0;
  if (first + inputs.size() > kFan) {
    fold_by_blocks(func, dtype, op0, inputs, out, count);
    return;
  }
  std::array<const std::byte*, kFan> sources;
  sources[0] = op0;
  std::copy(inputs.begin(), inputs.end(), sources.begin() + static_cast<std::ptrdiff_t>(first));
  reduce_kernel(func, dtype)(sources.data(), static_cast<std::uint32_t>(first + inputs.size()), &out, 1, count, false);
}

}  // namespace unisono::cclo
