/* What the test calls in the C program. */
#ifndef UNISONO_TESTS_C_PROGRAM_H
#define UNISONO_TESTS_C_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each rank's sum; returns the first error code. */
int sum_on_two_ranks(int32_t results[2][3]);

#ifdef __cplusplus
}
#endif

#endif
