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
  for (uint32_t i = 0; i < us_length() / 4; ++i) {
    const float value = us_f32_at(4 * i);
    if (value >= LEAST) {
      us_put_u32(before + i);
      us_put_f32(value);
    }
  }
  before += us_length() / 4;
  return US_GO_ON;
}
