/* What a communication system must offer to be measured; bench/systems/ has a file for each. The loop around it
 * (worker.c) is the same object code for all. */
#ifndef UNISONO_BENCH_WORKER_H
#define UNISONO_BENCH_WORKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "connection.h"
#include "data.h"

/* This process's rank before the system has started, from what the launcher has left in the environment. */
uint32_t system_launched_rank(void);
void system_open(int* argc, char*** argv, uint32_t* rank, uint32_t* size);
void system_close(void);
/* Registered: the memory that the system likes best. */
void* system_allocate(size_t bytes, int registered);
void system_deallocate(void* memory, int registered);
/* Called before the calls of a block; `call` stays as it is until the next one. */
void system_prepare(const struct bench_call* call);
/* One call. Failures end in bench_fail. */
void system_call(const struct bench_call* call, uint32_t turn);
void system_barrier(void);
/* The algorithm of the calls since system_prepare; null if the system does not say. */
const char* system_algorithm(void);

#ifdef __cplusplus
}
#endif

#endif
