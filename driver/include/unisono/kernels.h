/* Kernels of a library (`unisono kernel build`), called by name by a host: docs/kernels.md. What a kernel itself
 * includes is unisono/kernel.hpp. Any thread may call these. */
#ifndef UNISONO_KERNELS_H
#define UNISONO_KERNELS_H

#include "unisono/kernel_library.h"
#include "unisono/unisono.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a library of kernels for this process, which has one. Without it the one is loaded that the environment
 * variable UNISONO_KERNELS names, which `unisono run --kernels` sets. On a simulated cluster (--platform rtl) the
 * kernels of Verilated nodes are those of the library that the cluster was started with. */
UNISONO_API unisono_result unisono_kernels_load(const char* path);
/* The arguments of a kernel. They live as long as the process. */
UNISONO_API unisono_result unisono_kernel_parameters(const char* name, const unisono_kernel_parameter** parameters,
                                                     uint32_t* count);

/* An argument, of the kind and the datatype that the kernel has for it. */
typedef struct unisono_kernel_argument {
  uint32_t kind;    /* UNISONO_KERNEL_... */
  int32_t datatype; /* of the scalar, or of the elements; UNISONO_BYTE: not known */
  uint64_t bits;    /* scalar: its bytes, from the first one on */
  void* data;       /* memory: of the host; on a device the kernel gets a copy, which comes back if it writes.
                       call: the unisono_request* of unisono_prepare, not in flight when the kernel is started */
  uint64_t bytes;
  unisono_communicator* communicator;
} unisono_kernel_argument;

/* How a kernel is started. */
typedef struct unisono_kernel_options {
  size_t struct_size;               /* sizeof(unisono_kernel_options) */
  unisono_request* const* wait_for; /* requests that must complete before the kernel begins; likewise it may be one */
  size_t wait_for_count;
  double timeout_seconds; /* from now on; 0: the context's default */
} unisono_kernel_options;

/* Starts a kernel on this rank. The request is like that of a call: it is waited for, tested, and chained in the same
 * ways, and its memory stays in use until it has ended. Fails if there is no such kernel, or the arguments are not its
 * own. Kernels of a rank run side by side if their stream ports differ; one that uses a port of another that runs
 * fails. `options` may be null. */
UNISONO_API unisono_result unisono_kernel_start(unisono_context* context, const char* name,
                                                const unisono_kernel_argument* arguments, size_t arguments_count,
                                                const unisono_kernel_options* options, unisono_request** request);

#ifdef __cplusplus
}
#endif

#endif
