// SMI's communicator in hosts: what kernels are given. Made of a rank and the number of ranks, as in SMI; it is always
// that of all ranks.
#ifndef UNISONO_DIALECT_COMMUNICATOR_H
#define UNISONO_DIALECT_COMMUNICATOR_H

#define SMI_Comm unisono_smi_comm_of_kernels
#include "unisono/smi.h"
#undef SMI_Comm

class SMI_Comm {
 public:
  SMI_Comm() = default;
  SMI_Comm(char /*rank*/, char /*ranks*/) : comm_(unisono_smi_world()) {}

 private:
  const unisono_smi_comm* comm_ = nullptr;
};

#endif
