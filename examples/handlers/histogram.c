// How often each byte comes in a message. Nothing goes on but the 256 counts, after the last packet.
#include <unisono_handler.h>

static uint32_t counts[256];

int header(void) {
  for (uint32_t i = 0; i < 256; ++i) counts[i] = 0;
  return US_GO_ON;
}

int payload(void) {
  for (uint32_t i = 0; i < us_length(); ++i) ++counts[us_u8_at(i)];
  return US_GO_ON;
}

int completion(void) {
  for (uint32_t i = 0; i < 256; i += US_LANES) us_streamout_u32(*(us_u32x16*)(counts + i), US_LANES);
  return US_GO_ON;
}
