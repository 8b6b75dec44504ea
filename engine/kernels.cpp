#include "engine/kernels.hpp"

#include "core/arithmetic.hpp"
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

template <Datatype D>
void mean_of(const std::byte* a, std::byte* out, std::uint64_t count, std::uint32_t ranks) {
  mean(D, a, out, count, ranks);
}

}  // namespace

CombineKernel combine_kernel(Func func, Datatype dtype) { return kernels(func, dtype).combine; }

ReduceKernel reduce_kernel(Func func, Datatype dtype) { return kernels(func, dtype).reduce; }

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

}  // namespace unisono::cclo
