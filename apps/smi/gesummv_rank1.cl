#include <smi.h>
#include "gesummv.h"

__kernel void product_b(__global const float16 *restrict b, __global const float16 *restrict x, const int n,
                        const float beta, SMI_Comm comm) {
  SMI_Channel to_a = SMI_Open_send_channel(n, SMI_FLOAT, 0, 0, comm);
  for (int row = 0; row < n; ++row) {
    float value = beta * dot(&b[row * (n / W)], x, n / W);
    SMI_Push(&to_a, &value);
  }
}
