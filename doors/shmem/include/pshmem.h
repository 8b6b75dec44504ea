/* The profiling interface: each function of shmem.h also by its name with a p in front, pshmem_putmem for shmem_putmem.
 * A tool defines shmem_putmem itself, in the program or in a library that is loaded before this one, and calls
 * pshmem_putmem in it. No function of this library calls another by a name that a tool may have taken. Included by
 * shmem.h. */
#include "shmem.h" /* which includes this once it has declared everything, but for what C++ overloads */

#ifndef UNISONO_PSHMEM_H
#define UNISONO_PSHMEM_H

#include "unisono_shmem/names.h"

#if defined(__GNUC__)
#ifdef __cplusplus
extern "C" {
#endif
#define UNISONO_SHMEM_NAME(N) UNISONO_SHMEM_API extern __typeof__(shmem_##N) pshmem_##N;
UNISONO_SHMEM_NAMES_SETUP
UNISONO_SHMEM_NAMES_ACCESS
UNISONO_SHMEM_NAMES_ATOMICS
UNISONO_SHMEM_NAMES_WAITS
UNISONO_SHMEM_NAMES_TEAMS
UNISONO_SHMEM_NAMES_COLLECTIVES
#undef UNISONO_SHMEM_NAME
#ifdef __cplusplus
}
#endif
#endif

#endif
