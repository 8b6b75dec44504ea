// y = alpha A x + beta B x (GESUMMV), 16 elements of a row at once.
#pragma once
#pragma OPENCL EXTENSION cl_intel_channels : enable
#define W 16
// Matrices that share a rank's memory, which gives a word in a cycle.
#ifndef MATRICES
#define MATRICES 1
#endif

// The product of a row of `words` words with x.
inline float dot(__global const float16* row, __global const float16* x, const int words) {
  float16 partial = 0;
  for (int i = 0; i < words; ++i) partial += row[i] * x[i];
#ifdef UNISONO_SMI_H
  unisono_kernel_tick(words * MATRICES);
#endif
  float sum = 0;
#pragma unroll
  for (int w = 0; w < W; ++w) sum += partial[w];
  return sum;
}
