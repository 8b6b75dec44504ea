#include <smi.h>
#include "gesummv.h"

channel float from_a __attribute__((depth(W)));
channel float from_b __attribute__((depth(W)));

__kernel void product_a(__global const float16 *restrict a, __global const float16 *restrict x, const int n,
                        const float alpha) {
  for (int row = 0; row < n; ++row) {
    write_channel_intel(from_a, alpha * dot(&a[row * (n / W)], x, n / W));
  }
}

__kernel void product_b(__global const float16 *restrict b, __global const float16 *restrict x, const int n,
                        const float beta) {
  for (int row = 0; row < n; ++row) {
    float value = beta * dot(&b[row * (n / W)], x, n / W);
    write_channel_intel(from_b, value);
  }
}

__kernel void add(__global float *restrict y, const int n) {
  for (int row = 0; row < n; ++row) {
    float other = read_channel_intel(from_b);
    y[row] = read_channel_intel(from_a) + other;
  }
}
