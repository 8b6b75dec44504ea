// Output stationary, lanes are columns: the switch keeps rows of the right-hand matrix, hosts send column indexes, and
// each output row is one sum that ends at the index whose top bit is set. Tag 0 brings rows, after the number of the
// first one's place; any other tag brings indexes. COLUMNS, ROWS and RANKS are given when it is
// compiled.
#include <unisono_handler.h>

enum { TILES = (COLUMNS + US_LANES - 1) / US_LANES, LAST = COLUMNS - (TILES - 1) * US_LANES, ROW = 4 * COLUMNS };

static us_f32x16 table[ROWS * TILES];
static us_f32x16 sums_of[RANKS * TILES];  // stay from packet to packet, for a row may go on in its sender's next one

static void keep(void) {
  uint32_t to = us_u32_at(0) * TILES;
  for (uint32_t at = 4; at + ROW <= us_length(); at += ROW) {
    // Lanes beyond the last column hold what follows it. They are never sent.
    for (uint32_t tile = 0; tile < TILES; ++tile) table[to++] = us_f32x16_at(at + 64 * tile, 0);
  }
}

static void add(void) {
  us_f32x16* const sums = sums_of + us_source() * TILES;
  for (uint32_t at = 0; at + 4 <= us_length(); at += 4) {
    const uint32_t word = us_u32_at(at);
    const uint32_t from = (word & 0x7fffffff) * TILES;
    for (uint32_t tile = 0; tile < TILES; ++tile) sums[tile] += table[from + tile];
    if (word >> 31 == 0) continue;
    for (uint32_t tile = 0; tile < TILES; ++tile) {
      us_streamout_f32(sums[tile], tile + 1 < TILES ? US_LANES : LAST);
      sums[tile] = (us_f32x16){0};
    }
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
