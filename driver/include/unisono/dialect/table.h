/* The table of kernels that a library made by `unisono kernel build` has: `unisono_dialect_kernels` gives the first. */
#ifndef UNISONO_DIALECT_TABLE_H
#define UNISONO_DIALECT_TABLE_H

typedef struct unisono_dialect_kernel {
  const char* name;
  void (*run)(const void* const* arguments); /* each as its bytes */
  const unsigned* sizes;                     /* of the arguments, bytes */
  unsigned arguments;
  struct unisono_dialect_kernel* next; /* null: the last one */
} unisono_dialect_kernel;

#endif
