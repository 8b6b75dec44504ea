#include "engine/kernels.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "engine/kernel_table.hpp"

namespace unisono::cclo {
namespace {

KernelPair kernels(Func func, Datatype dtype) {
  for (const auto group : {&float_kernels, &half_kernels, &integer_kernels, &bit_kernels, &located_kernels}) {
    const KernelPair pair = group(func, dtype);
    if (pair.combine != nullptr) return pair;
  }
  return {};
}

[[noreturn]] void undefined(Func func) {
  throw Error(ErrorCode::kInvalidOp, "op " + operator_name(func) + " was freed while a call needed it");
}

void user_fold(Func func, Datatype dtype, bool swap, const std::byte* const* sources, std::uint32_t n,
               std::byte* const* outputs, std::uint32_t m, std::uint64_t count) {
  constexpr std::uint64_t kBlock = 256;
  std::array<std::byte, kBlock * 16> accumulator;
  const std::uint64_t element = bytes_of(dtype);
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const std::uint64_t elements = std::min(kBlock, count - begin);
    const std::uint64_t offset = begin * element;
    fold_begin(dtype, sources[0] + offset, accumulator.data(), elements);
    for (std::uint32_t k = 1; k < n; ++k) {
      if (!fold_step(func, dtype, swap, accumulator.data(), sources[k] + offset, elements)) undefined(func);
    }
    for (std::uint32_t k = 0; k < m; ++k) fold_end(dtype, accumulator.data(), outputs[k] + offset, elements);
  }
}

// A kernel is a plain function, so there is one for each number and datatype.

template <Func F, Datatype D>
void user_combine(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count) {
  if (!combine_user(F, D, a, b, out, count)) undefined(F);
}

template <Func F, Datatype D, bool kSwap>
void user_reduce(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs, std::uint32_t m,
                 std::uint64_t count, bool /*streaming*/) {
  user_fold(F, D, kSwap, sources, n, outputs, m, count);
}

constexpr std::size_t kUserOps = 16;
constexpr auto kFirstUserOp = static_cast<std::size_t>(Func::kUser0);

template <bool kSwap, std::size_t... I>
constexpr std::array<KernelPair, sizeof...(I)> user_table(std::index_sequence<I...> /*numbers*/) {
  constexpr std::size_t kTypes = kAllDatatype.size();
  return {{{&user_combine<static_cast<Func>(kFirstUserOp + I / kTypes), kAllDatatype[I % kTypes]>,
            &user_reduce<static_cast<Func>(kFirstUserOp + I / kTypes), kAllDatatype[I % kTypes], kSwap>}...}};
}

KernelPair user_kernels(Func func, Datatype dtype, bool swap) {
  using All = std::make_index_sequence<kUserOps * kAllDatatype.size()>;
  static constexpr auto kStraight = user_table<false>(All{});
  static constexpr auto kSwapped = user_table<true>(All{});
  if (!is_defined(func, dtype)) return {};
  const std::size_t at =
      (static_cast<std::size_t>(func) - kFirstUserOp) * kAllDatatype.size() + static_cast<std::size_t>(dtype);
  return swap ? kSwapped[at] : kStraight[at];
}

template <Datatype D>
void mean_of(const std::byte* a, std::byte* out, std::uint64_t count, std::uint32_t ranks) {
  mean(D, a, out, count, ranks);
}

}  // namespace

CombineKernel combine_kernel(Func func, Datatype dtype) {
  return is_user(func) ? user_kernels(func, dtype, false).combine : kernels(func, dtype).combine;
}

ReduceKernel reduce_kernel(Func func, Datatype dtype, bool swap) {
  return is_user(func) ? user_kernels(func, dtype, swap).reduce : kernels(func, dtype).reduce;
}

MeanKernel mean_kernel(Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp16:
      return &mean_of<Datatype::kFp16>;
    case Datatype::kBf16:
      return &mean_of<Datatype::kBf16>;
    case Datatype::kFp32:
      return &mean_of<Datatype::kFp32>;
    case Datatype::kFp64:
      return &mean_of<Datatype::kFp64>;
    case Datatype::kComplex64:
      return &mean_of<Datatype::kComplex64>;
    case Datatype::kComplex128:
      return &mean_of<Datatype::kComplex128>;
    default:
      return nullptr;
  }
}

ScaleKernel scale_kernel(Datatype dtype) {
  const ScaleKernel half = half_scale(dtype);
  return half != nullptr ? half : float_scale(dtype);
}

}  // namespace unisono::cclo
