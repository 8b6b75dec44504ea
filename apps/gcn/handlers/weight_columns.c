// Weight stationary, lanes are columns: a row of the right-hand matrix comes with the output rows that it is added to,
// and the switch keeps all outputs. Tag 0 brings for each row the number of its indexes, its values and the indexes.
// Any other tag asks for outputs: the first one's place, and how many; they are 0 afterwards.
#include <unisono_handler.h>

enum {
  TILES = (COLUMNS + US_LANES - 1) / US_LANES,
  LAST = COLUMNS - (TILES - 1) * US_LANES,
  ROW = 4 * COLUMNS,
  MOST = US_MOST_LENGTH / 4,
  MOST_OUT = 65536 / ROW
};

static us_f32x16 outputs[ROWS * TILES];

static void add(void) {
  for (uint32_t at = 0; at + 4 + ROW <= us_length();) {
    const uint32_t count = us_u32_at(at) & (MOST - 1);
    const uint32_t values = at + 4;
    at += 4 + ROW;
    for (uint32_t i = 0; i < count && i < MOST; ++i) {
      const uint32_t to = us_u32_at(at + 4 * i) * TILES;
      for (uint32_t tile = 0; tile < TILES; ++tile) outputs[to + tile] += us_f32x16_at(values + 64 * tile, 0);
    }
    at += 4 * count;
  }
}

static void give(void) {
  const uint32_t first = us_u32_at(0);
  const uint32_t count = us_u32_at(4);
  for (uint32_t row = 0; row < count && row < MOST_OUT; ++row) {
    for (uint32_t tile = 0; tile < TILES; ++tile) {
      us_f32x16* const output = outputs + (first + row) * TILES + tile;
      us_streamout_f32(*output, tile + 1 < TILES ? US_LANES : LAST);
      *output = (us_f32x16){0};
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
