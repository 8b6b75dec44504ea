#include <smi.h>
#include "chain.h"

__kernel void start(const int n, SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(n, SMI_INT, 1, PORT, comm);
  for (int i = 0; i < n; ++i) {
    int value = i * STEP;
    SMI_Push(&to, &value);
  }
}
