// How the files of kernels, each compiled for every instruction set, hand their kernels to the lookup.
#pragma once

#include "engine/kernels.hpp"

namespace unisono::cclo {

/// Both kernels of one operator on one datatype; null where the operator is not defined.
struct KernelPair {
  CombineKernel combine = nullptr;
  ReduceKernel reduce = nullptr;
};

/// The kernels of a group of operators, for the instruction set in use; null where the group has none.
KernelPair integer_kernels(Func func, Datatype dtype);
KernelPair bit_kernels(Func func, Datatype dtype);
KernelPair float_kernels(Func func, Datatype dtype);
KernelPair half_kernels(Func func, Datatype dtype);
KernelPair located_kernels(Func func, Datatype dtype);

/// The kernels that multiply by a factor, likewise.
ScaleKernel float_scale(Datatype dtype);
ScaleKernel half_scale(Datatype dtype);

}  // namespace unisono::cclo
