#include "engine/kernels.hpp"

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

}  // namespace

CombineKernel combine_kernel(Func func, Datatype dtype) { return kernels(func, dtype).combine; }

ReduceKernel reduce_kernel(Func func, Datatype dtype) { return kernels(func, dtype).reduce; }

}  // namespace unisono::cclo
