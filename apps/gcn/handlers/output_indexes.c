// Output stationary, lanes are indexes, by spvacc.xv: the switch keeps the right-hand matrix column by column, and adds
// up 16 indexes of an output row at once. Tag 0 brings rows, after the number of the first one's place; any other tag
// brings for each output row the number of its indexes (top bit: the row ends with them) and then these. COLUMNS, ROWS
// and RANKS are given when it is compiled.
#include <unisono_handler.h>

enum { ROW = 4 * COLUMNS, MOST = US_MOST_LENGTH / 4 };

static float table[COLUMNS * ROWS];
static float sums_of[RANKS * COLUMNS];  // stay from packet to packet, for a row may go on in its sender's next one
static const us_u32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void keep(void) {
  uint32_t to = us_u32_at(0);
  for (uint32_t at = 4; at + ROW <= us_length(); at += ROW, ++to) {
    for (uint32_t column = 0; column < COLUMNS; ++column) table[column * ROWS + to] = us_f32_at(at + 4 * column);
  }
}

static void add(void) {
  float* const sums = sums_of + us_source() * COLUMNS;
  for (uint32_t at = 0; at + 4 <= us_length();) {
    const uint32_t word = us_u32_at(at);
    const uint32_t count = word & (MOST - 1);
    at += 4;
    for (uint32_t column = 0; column < COLUMNS; ++column) {
      float sum = sums[column];
      for (uint32_t i = 0; i < count && i < MOST; i += US_LANES) {
        const us_u32x16 beyond = (us_u32x16)(lane + i >= count);  // all ones: an index that is left out
        sum = us_spvacc_xv_f32(sum, table + column * ROWS, ROWS, us_u32x16_at(at + 4 * i, 0xffffffff) | beyond);
      }
      sums[column] = sum;
      if (word >> 31 == 0) continue;
      us_put_f32(sum);
      sums[column] = 0;
    }
    at += 4 * count;
  }
}

int payload(void) {
  if (us_tag() == 0) {
    keep();
  } else {
    add();
  }
  return US_GO_ON;
}
