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
/* Whether the system can be measured with such memory. Called before system_open, too. */
int system_offers(enum bench_kind kind);
/* Allocated: of the system's own allocator, which gives the memory that it likes best. */
void* system_allocate(size_t bytes, enum bench_kind kind);
void system_deallocate(void* memory, enum bench_kind kind);
/* Memory that the other ranks reach by put and get. Collective; one at a time, of equal size on all ranks. */
void* system_expose(size_t bytes, enum bench_kind kind);
void system_withdraw(void* memory, enum bench_kind kind);
/* Called before the calls of a block; `call` stays as it is until the next one. */
void system_prepare(const struct bench_call* call);
/* One call, with a set of the counts. Failures end in bench_fail. */
void system_call(const struct bench_call* call, uint32_t turn, uint32_t set);
void system_barrier(void);
/* A barrier after which this rank sees what others have put into its window. */
void system_settle(void);
/* The algorithm of the calls since system_prepare; null if the system does not say. */
const char* system_algorithm(void);

#ifdef __cplusplus
}
#endif

#endif
