// Adds sparse vectors of many messages: a packet has blocks of 16 indexes (uint32) and then 16 values (fp32), the last
// one filled up with the index 0xffffffff. When the last of the ranks' messages has ended, what is not 0 goes on, as
// tiles of 16: the tile's number, and its values.
#include <unisono_handler.h>

enum { ENTRIES = 4096, BLOCK = 128, VALUES = 64 };

static float table[ENTRIES];
static uint32_t ended;

int payload(void) {
  for (uint32_t at = 0; at + BLOCK <= us_length(); at += BLOCK) {
    us_spvacc_vv_f32(table, ENTRIES, us_u32x16_at(at, 0xffffffff), us_f32x16_at(at + VALUES, 0));
  }
  return US_GO_ON;
}

int completion(void) {
  if (++ended < us_ranks()) return US_GO_ON;
  ended = 0;
  for (uint32_t tile = 0; tile < ENTRIES / US_LANES; ++tile) {
    us_f32x16* const values = (us_f32x16*)(table + tile * US_LANES);
    const us_u32x16 used = (us_u32x16)(*values != 0) & 1;
    if (us_sum_u32(0, used) == 0) continue;
    us_put_u32(tile);
    us_streamout_f32(*values, US_LANES);
    *values = (us_f32x16){0};
  }
  return US_GO_ON;
}
