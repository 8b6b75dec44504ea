// Means of the four neighbours of every cell, on a plane that all ranks share: PX by PY ranks have a tile each, of
// `rows` rows of `words` groups of B words, one of each memory bank. Cells at the rim of the plane stay as they are.
// A step reads one half of the banks and writes the other. Edges go to the neighbours while the step computes.
#include <smi.h>
#include "stencil.h"

channel float16 to_compute[B] __attribute__((depth(2 * MAX_WORDS)));
channel float16 to_write[B] __attribute__((depth(16)));
channel float16 up_edge[B] __attribute__((depth(MAX_WORDS)));
channel float16 down_edge[B] __attribute__((depth(MAX_WORDS)));
channel float16 from_up[B] __attribute__((depth(MAX_WORDS)));
channel float16 from_down[B] __attribute__((depth(MAX_WORDS)));
channel float left_edge __attribute__((depth(64)));
channel float right_edge __attribute__((depth(64)));
channel float from_left __attribute__((depth(64)));
channel float from_right __attribute__((depth(64)));
channel int written[B] __attribute__((depth(1)));

// Reads a bank: first its part of the rows at the edges, for the neighbours, then all rows in order.
inline void read_bank(const int b, __global volatile const float16 *restrict bank, const int rows, const int words,
                      const int steps, const int neighbours) {
  for (int t = 0; t < steps; ++t) {
    const int from = (t % 2) * rows * words;
    if (t > 0) read_channel_intel(written[b]);
    if (neighbours & HAS_UP) {
      for (int j = 0; j < words; ++j) write_channel_intel(up_edge[b], bank[from + j]);
    }
    if (neighbours & HAS_DOWN) {
      for (int j = 0; j < words; ++j) write_channel_intel(down_edge[b], bank[from + (rows - 1) * words + j]);
    }
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < words; ++j) {
        float16 word = bank[from + i * words + j];
        if (b == 0 && j == 0 && (neighbours & HAS_LEFT)) write_channel_intel(left_edge, word.s0);
        if (b == B - 1 && j == words - 1 && (neighbours & HAS_RIGHT)) write_channel_intel(right_edge, word.sF);
        write_channel_intel(to_compute[b], word);
      }
    }
  }
}

inline void write_bank(const int b, __global volatile float16 *restrict bank, const int rows, const int words,
                       const int steps) {
  for (int t = 0; t < steps; ++t) {
    const int to = ((t + 1) % 2) * rows * words;
    for (int i = 0; i < rows * words; ++i) bank[to + i] = read_channel_intel(to_write[b]);
    if (t < steps - 1) write_channel_intel(written[b], t);
  }
}

// With one bank only the first of these run.
__kernel void read_0(__global volatile const float16 *restrict bank, const int rows, const int words, const int steps,
                     const int neighbours) {
  read_bank(0, bank, rows, words, steps, neighbours);
}
__kernel void read_1(__global volatile const float16 *restrict bank, const int rows, const int words, const int steps,
                     const int neighbours) {
  read_bank(1 % B, bank, rows, words, steps, neighbours);
}
__kernel void read_2(__global volatile const float16 *restrict bank, const int rows, const int words, const int steps,
                     const int neighbours) {
  read_bank(2 % B, bank, rows, words, steps, neighbours);
}
__kernel void read_3(__global volatile const float16 *restrict bank, const int rows, const int words, const int steps,
                     const int neighbours) {
  read_bank(3 % B, bank, rows, words, steps, neighbours);
}
__kernel void write_0(__global volatile float16 *restrict bank, const int rows, const int words, const int steps) {
  write_bank(0, bank, rows, words, steps);
}
__kernel void write_1(__global volatile float16 *restrict bank, const int rows, const int words, const int steps) {
  write_bank(1 % B, bank, rows, words, steps);
}
__kernel void write_2(__global volatile float16 *restrict bank, const int rows, const int words, const int steps) {
  write_bank(2 % B, bank, rows, words, steps);
}
__kernel void write_3(__global volatile float16 *restrict bank, const int rows, const int words, const int steps) {
  write_bank(3 % B, bank, rows, words, steps);
}


// Takes the next B words of the tile, or of the neighbour below; without one they are not looked at.
inline void next_words(float *row, const int j, const int i, const int rows, const int neighbours) {
  #pragma unroll
  for (int b = 0; b < B; ++b) {
    float16 word = 0;
    if (i < rows) word = read_channel_intel(to_compute[b]);
    else if (neighbours & HAS_DOWN) word = read_channel_intel(from_down[b]);
    #pragma unroll
    for (int w = 0; w < W; ++w) row[(j * B + b) * W + w] = word[w];
  }
}

// While the words of a row come, those of the row above go: B of each in a cycle.
__kernel void compute(const int rows, const int words, const int steps, const int neighbours) {
  const int width = words * B * W;
  float above[MAX_WIDTH], row[MAX_WIDTH], below[MAX_WIDTH];
  for (int t = 0; t < steps; ++t) {
    for (int j = 0; j < words; ++j) {
      #pragma unroll
      for (int b = 0; b < B; ++b) {
        float16 word = 0;
        if (neighbours & HAS_UP) word = read_channel_intel(from_up[b]);
        #pragma unroll
        for (int w = 0; w < W; ++w) above[(j * B + b) * W + w] = word[w];
      }
      next_words(row, j, 0, rows, neighbours);
    }
    for (int i = 0; i < rows; ++i) {
      float left = 0, right = 0;
      if (neighbours & HAS_LEFT) left = read_channel_intel(from_left);
      if (neighbours & HAS_RIGHT) right = read_channel_intel(from_right);
      const bool rim = (i == 0 && !(neighbours & HAS_UP)) || (i == rows - 1 && !(neighbours & HAS_DOWN));
      for (int j = 0; j < words; ++j) {
        next_words(below, j, i + 1, rows, neighbours);
        #pragma unroll
        for (int b = 0; b < B; ++b) {
          float16 word;
          #pragma unroll
          for (int w = 0; w < W; ++w) {
            const int at = (j * B + b) * W + w;
            const bool kept = rim || (at == 0 && !(neighbours & HAS_LEFT)) ||
                              (at == width - 1 && !(neighbours & HAS_RIGHT));
            const float west = at == 0 ? left : row[at - 1];
            const float east = at == width - 1 ? right : row[at + 1];
            word[w] = kept ? row[at] : 0.25f * (above[at] + west + east + below[at]);
          }
          write_channel_intel(to_write[b], word);
        }
      }
      for (int k = 0; k < width; ++k) {
        above[k] = row[k];
        row[k] = below[k];
      }
    }
  }
}

// What joins a side of the tile to the neighbour there. What one sends up, the one above takes from below: at port UP.
__kernel void send_up(const int words, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel to = SMI_Open_send_channel(words * B * W, SMI_FLOAT, neighbour, UP, comm);
    for (int i = 0; i < words * B; ++i) {
      float16 word = read_channel_intel(up_edge[i % B]);
      SMI_Push_vector(&to, &word, W);
    }
  }
}
__kernel void take_down(const int words, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel from = SMI_Open_receive_channel(words * B * W, SMI_FLOAT, neighbour, UP, comm);
    for (int i = 0; i < words * B; ++i) {
      float16 word;
      SMI_Pop_vector(&from, &word, W);
      write_channel_intel(from_down[i % B], word);
    }
  }
}
__kernel void send_down(const int words, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel to = SMI_Open_send_channel(words * B * W, SMI_FLOAT, neighbour, DOWN, comm);
    for (int i = 0; i < words * B; ++i) {
      float16 word = read_channel_intel(down_edge[i % B]);
      SMI_Push_vector(&to, &word, W);
    }
  }
}
__kernel void take_up(const int words, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel from = SMI_Open_receive_channel(words * B * W, SMI_FLOAT, neighbour, DOWN, comm);
    for (int i = 0; i < words * B; ++i) {
      float16 word;
      SMI_Pop_vector(&from, &word, W);
      write_channel_intel(from_up[i % B], word);
    }
  }
}
__kernel void send_left(const int rows, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel to = SMI_Open_send_channel(rows, SMI_FLOAT, neighbour, LEFT, comm);
    for (int i = 0; i < rows; ++i) {
      float value = read_channel_intel(left_edge);
      SMI_Push(&to, &value);
    }
  }
}
__kernel void take_right(const int rows, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel from = SMI_Open_receive_channel(rows, SMI_FLOAT, neighbour, LEFT, comm);
    for (int i = 0; i < rows; ++i) {
      float value;
      SMI_Pop(&from, &value);
      write_channel_intel(from_right, value);
    }
  }
}
__kernel void send_right(const int rows, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel to = SMI_Open_send_channel(rows, SMI_FLOAT, neighbour, RIGHT, comm);
    for (int i = 0; i < rows; ++i) {
      float value = read_channel_intel(right_edge);
      SMI_Push(&to, &value);
    }
  }
}
__kernel void take_left(const int rows, const int steps, const int neighbour, SMI_Comm comm) {
  for (int t = 0; t < steps; ++t) {
    SMI_Channel from = SMI_Open_receive_channel(rows, SMI_FLOAT, neighbour, RIGHT, comm);
    for (int i = 0; i < rows; ++i) {
      float value;
      SMI_Pop(&from, &value);
      write_channel_intel(from_left, value);
    }
  }
}
