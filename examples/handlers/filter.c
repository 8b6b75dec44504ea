// Lets numbers of fp32 pass that are at least LEAST, with their places in the message. A packet of which none is goes
// no further.
#include <unisono_handler.h>

#ifndef LEAST
#define LEAST 1.0f
#endif

static uint32_t before;  // numbers of earlier packets

int header(void) {
  before = 0;
  return US_GO_ON;
}

int payload(void) {
  const us_u32x16 bits = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  uint32_t first = before;
  before += us_length() / 4;
  for (uint32_t at = 0; at < us_length(); at += 64, first += US_LANES) {
    const us_f32x16 values = us_f32x16_at(at, __builtin_nanf(""));  // which is not at least anything
    for (uint32_t passing = us_sum_u32(0, (us_u32x16)(values >= LEAST) & bits); passing != 0; passing &= passing - 1) {
      const uint32_t lane = (uint32_t)__builtin_ctz(passing);
      us_put_u32(first + lane);
      us_put_f32(values[lane]);
    }
  }
  return US_GO_ON;
}
