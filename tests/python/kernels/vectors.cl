// Elements of vectors by their names, and structures in channels.
#include <smi.h>

struct pair {
  float value;
  int index;
};
typedef struct {
  float2 at;
  short tags[3];
} item;
channel struct pair pairs __attribute__((depth(4)));
channel item items[2];

__kernel void give(const int n, const int rank) {
  for (int i = 0; i < n; ++i) {
    struct pair p = {i * 1.5f + rank, i};
    write_channel_intel(pairs, p);
    item t;
    t.at = (float2)(i, -rank);
    t.tags[2] = i + 100;
    write_channel_intel(items[i % 2], t);
  }
}

__kernel void take(__global float *out, const int n, SMI_Comm comm) {
  const int last = SMI_Comm_size(comm) - 1;
  for (int i = 0; i < n; ++i) {
    struct pair p = read_channel_intel(pairs);
    item t = read_channel_intel(items[i % 2]);
    float4 v = (float4)(p.value, p.index, t.at);
    float4 r = v.wzyx;
    r.xy = v.zw * 2;
    r.hi += v.lo;
    v.even = r.odd;
    v.x = -v.x;
    float8 all = (float8)(v, r);
    float2 some = all.s71 + all.s62;
    all.s01 = some;
    all.s2 = t.tags[2];
    float16 wide = (float16)(all, -all);
    wide.sF = wide.sa;
    float3 three = wide.sBCD;
    wide.s345 = three.zyx / 2;
    // It goes round, so that all ranks have data of others.
    SMI_Channel to = SMI_Open_send_channel(16, SMI_FLOAT, SMI_Comm_rank(comm) == last ? 0 : SMI_Comm_rank(comm) + 1, 0, comm);
    SMI_Channel from = SMI_Open_receive_channel(16, SMI_FLOAT, SMI_Comm_rank(comm) == 0 ? last : SMI_Comm_rank(comm) - 1, 0, comm);
    for (int k = 0; k < 16; ++k) SMI_Push(&to, &wide[k]);
    for (int k = 0; k < 16; ++k) SMI_Pop(&from, &out[i * 16 + k]);
  }
}
