#include <smi.h>
#include "chain.h"

__kernel void pass(__global int *out, const int n, SMI_Comm comm) {
  const int rank = SMI_Comm_rank(comm);
  const int size = SMI_Comm_size(comm);
  SMI_Channel from = SMI_Open_receive_channel(n, SMI_INT, rank - 1, PORT, comm);
  SMI_Channel to = SMI_Open_send_channel(n, SMI_INT, rank + 1, PORT, comm);
  for (int i = 0; i < n; ++i) {
    int value;
    SMI_Pop(&from, &value);
    value = value * 10 + rank;
    if (rank < size - 1) SMI_Push(&to, &value);
    out[i] = value;
  }
}
