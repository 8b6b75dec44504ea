#include "engine/plugins.hpp"

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"

namespace unisono::cclo {

void plugin_combine(Func func, Datatype dtype, bool swap, const std::byte* a, const std::byte* b, std::byte* out,
                    std::uint64_t bytes) {
  combine(func, dtype, swap ? b : a, swap ? a : b, out, bytes / bytes_of(dtype));
}

void plugin_fold(Func func, Datatype dtype, bool swap, const std::byte* op0, std::span<const std::byte* const> inputs,
                 std::byte* out, std::uint64_t bytes) {
  // By blocks, so that the wide accumulator stays in the first-level cache.
  constexpr std::uint64_t kBlock = 1024;
  std::array<std::byte, kBlock * 8> accumulator;
  const std::uint64_t element = bytes_of(dtype);
  const std::uint64_t count = bytes / element;
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const std::uint64_t n = std::min(kBlock, count - begin);
    const std::uint64_t offset = begin * element;
    std::size_t next = 0;
    const std::byte* first = op0 != nullptr ? op0 : inputs[next++];
    fold_begin(dtype, first + offset, accumulator.data(), n);
    for (; next < inputs.size(); ++next) {
      fold_step(func, dtype, swap, accumulator.data(), inputs[next] + offset, n);
    }
    fold_end(dtype, accumulator.data(), out + offset, n);
  }
}

}  // namespace unisono::cclo
