/* What a library of kernels (`unisono kernel build`) and the program that runs its kernels are to each other.
 *
 * The library exports one function, unisono_kernel_library_open, and needs no symbol of Unisono's: what its kernels ask
 * for goes through a table of functions that it is given. So one file serves a process of the user, where libunisono
 * runs kernels, and the process of a simulated cluster, which has no libunisono. Kernels do not use this header, but
 * unisono/kernel.hpp.
 */
#ifndef UNISONO_KERNEL_LIBRARY_H
#define UNISONO_KERNEL_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "unisono/unisono.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UNISONO_KERNEL_LIBRARY_VERSION 1

/* What a kernel may ask for. Each is as the function of that name in unisono.h or smi.h; a structure of an older
 * library is shorter. Called from the kernel only. */
typedef struct unisono_kernel_services {
  uint32_t struct_size;
  uint32_t version;
  unisono_result (*start)(unisono_communicator* communicator, const unisono_call* call, unisono_request** request);
  unisono_result (*wait)(unisono_request* request);
  unisono_result (*test)(unisono_request* request, int* complete);
  void (*request_free)(unisono_request* request);
  unisono_result (*rank)(const unisono_communicator* communicator, uint32_t* rank);
  unisono_result (*size)(const unisono_communicator* communicator, uint32_t* size);
  unisono_result (*stream_write)(unisono_context* context, uint32_t port, const void* data, uint64_t bytes,
                                 double seconds, uint64_t* done);
  unisono_result (*stream_read)(unisono_context* context, uint32_t port, void* data, uint64_t bytes, double seconds,
                                uint64_t* done);
  const char* (*last_error)(void);
  const char* (*result_name)(unisono_result result);
  int (*running)(void);
  void (*yield)(int polls);
  void (*tick)(uint64_t cycles); /* simulated time passes; elsewhere other kernels go on */
  uint64_t (*cycle)(void);
  unisono_result (*request_start)(unisono_request* request); /* of a run's calls, or one that was prepared */
} unisono_kernel_services;

enum {
  UNISONO_KERNEL_SCALAR = 1,
  UNISONO_KERNEL_MEMORY = 2,
  UNISONO_KERNEL_COMMUNICATOR = 3,
  UNISONO_KERNEL_CALL = 4 /* that the host has prepared */
};

/* An argument that the host gives. */
typedef struct unisono_kernel_parameter {
  uint32_t kind;    /* UNISONO_KERNEL_... */
  int32_t datatype; /* of the scalar, or of the elements; UNISONO_BYTE: any */
  uint32_t writes;  /* 1: the kernel may write to the memory */
  uint32_t reserved;
} unisono_kernel_parameter;

/* Its value: the scalar's bytes, from the first one on; an address and bytes; or the place of a communicator, or
 * of a call. */
typedef struct unisono_kernel_value {
  uint64_t bits;
  uint64_t bytes;
} unisono_kernel_value;

/* One run of a kernel. */
typedef struct unisono_kernel_run {
  uint32_t struct_size;
  uint32_t values_count;
  const unisono_kernel_value* values;
  unisono_context* context; /* to be given to stream_write and stream_read */
  unisono_communicator* const* communicators;
  uint32_t communicators_count;
  uint32_t sentence_bytes; /* room for what it has failed with, its end included */
  char* sentence;
  unisono_request* const* calls; /* that the host has prepared */
  uint32_t calls_count;
  uint32_t reserved;
} unisono_kernel_run;

typedef struct unisono_kernel_entry {
  const char* name;
  const unisono_kernel_parameter* parameters;
  uint32_t parameters_count;
  uint32_t ports_to_engine;   /* bit p: it gives words at stream port p; */
  uint32_t ports_from_engine; /* takes words there */
  uint32_t reserved;
  unisono_result (*run)(const unisono_kernel_run* run); /* throws nothing */
} unisono_kernel_entry;

typedef struct unisono_kernel_library {
  uint32_t struct_size;
  uint32_t version;
  const unisono_kernel_entry* kernels;
  uint32_t kernels_count;
  uint32_t reserved;
} unisono_kernel_library;

/* The library's only exported function. `services` must live as long as the library is loaded; null if their version is
 * not the library's. */
typedef const unisono_kernel_library* (*unisono_kernel_library_open_function)(const unisono_kernel_services* services);

#ifdef __cplusplus
}
#endif

#endif
