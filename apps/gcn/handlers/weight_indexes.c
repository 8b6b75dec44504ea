// Weight stationary, lanes are indexes, by spvacc.vx: a row of the right-hand matrix comes with the output rows that it
// is added to, 16 of them at once, and the switch keeps all outputs, column by column. Tag 0 brings for each row the
// number of its indexes, its values and the indexes. Any other tag asks for outputs: the first one's place, and how
// many; they are 0 afterwards.
#include <unisono_handler.h>

enum { ROW = 4 * COLUMNS, MOST = US_MOST_LENGTH / 4, MOST_OUT = 65536 / ROW };

static float outputs[COLUMNS * ROWS];
static const us_u32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void add(void) {
  for (uint32_t at = 0; at + 4 + ROW <= us_length();) {
    const uint32_t count = us_u32_at(at) & (MOST - 1);
    const uint32_t values = at + 4;
    at += 4 + ROW;
    for (uint32_t i = 0; i < count && i < MOST; i += US_LANES) {
      const us_u32x16 beyond = (us_u32x16)(lane + i >= count);  // all ones: an index that is left out
      const us_u32x16 index = us_u32x16_at(at + 4 * i, 0xffffffff) | beyond;
      for (uint32_t column = 0; column < COLUMNS; ++column) {
        us_spvacc_vx_f32(outputs + column * ROWS, ROWS, index, us_f32_at(values + 4 * column));
      }
    }
    at += 4 * count;
  }
}

static void give(void) {
  const uint32_t first = us_u32_at(0);
  const uint32_t count = us_u32_at(4);
  for (uint32_t row = 0; row < count && row < MOST_OUT; ++row) {
    for (uint32_t column = 0; column < COLUMNS; ++column) {
      float* const output = outputs + column * ROWS + first + row;
      us_put_f32(*output);
      *output = 0;
    }
  }
}

int payload(void) {
  if (us_tag() == 0) {
    add();
  } else {
    give();
  }
  return US_GO_ON;
}
