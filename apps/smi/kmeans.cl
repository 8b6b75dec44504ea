// k-means (Lloyd's algorithm) of points that all ranks share: each has some, and all have the same centroids, which a
// reduction and a broadcast make anew in every round. Every lane of a word counts.
#include <smi.h>
#include "kmeans.h"

channel float16 starts __attribute__((depth(CLUSTERS * WORDS)));
channel float16 centres __attribute__((depth(CLUSTERS * WORDS)));
channel float16 points_seen __attribute__((depth(2 * WORDS)));
channel int nearest __attribute__((depth(2)));

// Gives the centroids of each round: first those of memory, then those of the round before.
__kernel void give_centres(__global volatile const float16 *restrict first, const int rounds) {
  for (int t = 0; t < rounds; ++t) {
    for (int i = 0; i < CLUSTERS * WORDS; ++i) {
      float16 word = 0;
      if (t == 0) word = first[i];
      else word = read_channel_intel(starts);
      write_channel_intel(centres, word);
    }
  }
}

__kernel void find_nearest(__global volatile const float16 *restrict points, const int count, const int rounds) {
  for (int t = 0; t < rounds; ++t) {
    float16 centre[CLUSTERS][WORDS];
    for (int k = 0; k < CLUSTERS; ++k) {
      for (int d = 0; d < WORDS; ++d) centre[k][d] = read_channel_intel(centres);
    }
    for (int p = 0; p < count; ++p) {
      float distance[CLUSTERS];
      #pragma unroll
      for (int k = 0; k < CLUSTERS; ++k) distance[k] = 0;
      for (int d = 0; d < WORDS; ++d) {
        float16 word = points[p * WORDS + d];
        write_channel_intel(points_seen, word);
        #pragma unroll
        for (int k = 0; k < CLUSTERS; ++k) {
          float16 apart = word - centre[k][d];
          float sum = 0;
          #pragma unroll
          for (int w = 0; w < W; ++w) sum += apart[w] * apart[w];
          distance[k] += sum;
        }
      }
      int best = 0;
      #pragma unroll
      for (int k = 1; k < CLUSTERS; ++k) best = distance[k] < distance[best] ? k : best;
      write_channel_intel(nearest, best);
    }
  }
}

__kernel void make_means(__global volatile float16 *restrict result, __global volatile int *restrict labels,
                         const int count, const int rounds, SMI_Comm comm) {
  for (int t = 0; t < rounds; ++t) {
    float16 sums[CLUSTERS][WORDS];
    int members[CLUSTERS];
    for (int k = 0; k < CLUSTERS; ++k) {
      members[k] = 0;
      for (int d = 0; d < WORDS; ++d) sums[k][d] = 0;
    }
    for (int p = 0; p < count; ++p) {
      const int k = read_channel_intel(nearest);
      for (int d = 0; d < WORDS; ++d) sums[k][d] += read_channel_intel(points_seen);
      members[k] += 1;
      labels[p] = k;
    }
    SMI_RChannel add_sums = SMI_Open_reduce_channel(CLUSTERS * DIMS, SMI_FLOAT, SMI_ADD, 0, 0, comm);
    SMI_BChannel all_sums = SMI_Open_bcast_channel(CLUSTERS * DIMS, SMI_FLOAT, 1, 0, comm);
    SMI_RChannel add_members = SMI_Open_reduce_channel(CLUSTERS, SMI_INT, SMI_ADD, 2, 0, comm);
    SMI_BChannel all_members = SMI_Open_bcast_channel(CLUSTERS, SMI_INT, 3, 0, comm);
    // First all that is added, then all that comes back: so one follows the other without a wait.
    int totals[CLUSTERS];
    float16 all[CLUSTERS][WORDS];
    for (int k = 0; k < CLUSTERS; ++k) SMI_Reduce(&add_members, &members[k], &totals[k]);
    for (int k = 0; k < CLUSTERS; ++k) {
      for (int d = 0; d < WORDS; ++d) SMI_Reduce_vector(&add_sums, &sums[k][d], &all[k][d], W);
    }
    for (int k = 0; k < CLUSTERS; ++k) SMI_Bcast(&all_members, &totals[k]);
    for (int k = 0; k < CLUSTERS; ++k) {
      for (int d = 0; d < WORDS; ++d) {
        float16 word = all[k][d];
        SMI_Bcast_vector(&all_sums, &word, W);
        if (totals[k] > 0) word /= totals[k];
        if (t < rounds - 1) write_channel_intel(starts, word);
        else result[k * WORDS + d] = word;
      }
    }
  }
}
