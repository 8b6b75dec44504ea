// How often each byte comes in a message. Nothing goes on but the 256 counts, after the last packet.
#include <unisono_handler.h>

static uint32_t counts[256];

// Bytes beyond the packet's end are 256, which is no index.
static void count(uint32_t at) { us_spvacc_vx_u32(counts, 256, us_u8x16_at(at, 256), 1); }

int header(void) {
  for (uint32_t i = 0; i < 256; i += US_LANES) *(us_u32x16*)(counts + i) = (us_u32x16){0};
  return US_GO_ON;
}

int payload(void) {
  uint32_t at = 0;
  for (; at + 64 <= us_length(); at += 64) {
    count(at);
    count(at + 16);
    count(at + 32);
    count(at + 48);
  }
  for (; at < us_length(); at += 16) count(at);
  return US_GO_ON;
}

int completion(void) {
  for (uint32_t i = 0; i < 256; i += US_LANES) us_streamout_u32(*(us_u32x16*)(counts + i), US_LANES);
  return US_GO_ON;
}
