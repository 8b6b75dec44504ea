// Compresses sorted, or slowly changing, numbers of 32 bits: each packet becomes the differences of neighbours, the sign
// in the lowest bit, in groups of 7 bits from the lowest on; the high bit of a byte says that more follow.
#include <unisono_handler.h>

static void put_difference(uint32_t difference) {
  uint32_t left = difference << 1 ^ (uint32_t)((int32_t)difference >> 31);
  for (int i = 0; i < 4 && left >= 0x80; ++i) {
    us_put_u8((uint8_t)(left | 0x80));
    left >>= 7;
  }
  us_put_u8((uint8_t)left);
}

int payload(void) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < us_length() / 4; ++i) {
    const uint32_t value = us_u32_at(4 * i);
    put_difference(value - last);
    last = value;
  }
  return US_GO_ON;
}
