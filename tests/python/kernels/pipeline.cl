// A program of SMI's dialect with what the dialect has: every rank scales its part of a vector, passes it through
// queues and to the next rank, and all learn the sum.
#include <smi.h>
#pragma OPENCL EXTENSION cl_intel_channels : enable

#define WIDTH 4
#define STAGE scale_stage
typedef float4 word;

channel word lanes[2] __attribute__((depth((8 / WIDTH) * 2)));
channel float narrow __attribute__((depth(3)));
channel int results;

__attribute__((max_global_work_dim(0)))
__kernel void STAGE(__global volatile const float *restrict data, const int n, const float factor) {
  #pragma unroll
  for (int i = 0; i < n / WIDTH; ++i) {
    word value = -1;
    #pragma ivdep array(value)
    for (int w = 0; w < WIDTH; ++w) value[w] = data[i * WIDTH + w];
    value = value * factor + (i % 2 == 0 ? value : 0);
    write_channel_intel(lanes[i % 2], value);
  }
}

kernel void unpack(const int n) {
  for (int i = 0; i < n / WIDTH; ++i) {
    word value = read_channel_intel(lanes[i % 2]);
    for (int w = 0; w < WIDTH; ++w) write_channel_intel(narrow, value[w]);
  }
}

/* "kernel void not_one(int n) {" in a comment, and a string "channel int x;" below, are no declarations. */
__kernel void exchange(__global float *restrict out, const int n, const char root, SMI_Comm comm) {
  const int rank = SMI_Comm_rank(comm);
  const int size = SMI_Comm_size(comm);
  SMI_Channel __attribute__((register)) to = SMI_Open_send_channel(n, SMI_FLOAT, (rank + 1) % size, 1, comm);
  SMI_Channel from = SMI_Open_receive_channel_ad(n, SMI_FLOAT, (rank + size - 1) % size, 1, comm, 16);
  SMI_RChannel sums = SMI_Open_reduce_channel(n, SMI_FLOAT, SMI_ADD, 2, root, comm);
  SMI_BChannel all = SMI_Open_bcast_channel(n, SMI_FLOAT, 3, root, comm);
  for (int i = 0; i < n; ++i) {
    float own = read_channel_intel(narrow);
    SMI_Push(&to, &own);
    float other, sum;
    SMI_Pop(&from, &other);
    SMI_Reduce(&sums, &other, &sum);
    SMI_Bcast(&all, &sum);
    out[i] = sum;
  }
  if (rank == 99) printf("channel int x;");
  write_channel_intel(results, rank * 1000 + n);
}

__kernel void poll(__global int *out) {
  bool valid = false;
  int looked = 0;
  do {
    int found = read_channel_nb_intel(results, &valid);
    if (valid) out[0] = found;
    ++looked;
  } while (!valid);
  out[1] = looked;
}

__kernel void forever(SMI_Comm comm) {
  while (1) {
    SMI_Channel from = SMI_Open_receive_channel(1, SMI_INT, 0, 9, comm);
    int value;
    SMI_Pop(&from, &value);
  }
}
