// What unisono_handler.h declares, for a handler that is compiled for the processor: HANDLER names its source.
#include <string.h>

#include HANDLER

static struct {
  uint32_t info[6];
  const uint8_t* payload;
  uint8_t* output;
  uint64_t written;
} now;

// What the caller sets before it calls a function of the handler, and gets after it.
void native_begin(const uint32_t* info, const uint8_t* payload, uint8_t* output) {
  memcpy(now.info, info, sizeof now.info);
  now.payload = payload;
  now.output = output;
  now.written = 0;
}
uint64_t native_written(void) { return now.written; }

uint32_t us_length(void) { return now.info[0]; }
uint32_t us_packet(void) { return now.info[1]; }
uint32_t us_packets(void) { return now.info[2]; }
uint32_t us_source(void) { return now.info[3]; }
uint32_t us_ranks(void) { return now.info[4]; }
uint32_t us_tag(void) { return now.info[5]; }

#define ELEMENT(name, type)                                 \
  type us_##name##_at(uint32_t offset) {                    \
    type value;                                             \
    memcpy(&value, now.payload + offset, sizeof value);     \
    return value;                                           \
  }                                                         \
  void us_put_##name(type value) {                          \
    memcpy(now.output + now.written, &value, sizeof value); \
    now.written += sizeof value;                            \
  }
ELEMENT(u8, uint8_t)
ELEMENT(u16, uint16_t)
ELEMENT(u32, uint32_t)
ELEMENT(u64, uint64_t)
ELEMENT(f32, float)
ELEMENT(f64, double)

// Sixteen elements of a type in the lanes of a vector, and from them.
#define VECTOR(name, type, vector, lane)                                          \
  vector us_##name##x16_at(uint32_t offset, lane pad) {                           \
    vector value;                                                                 \
    for (uint32_t i = 0; i < 16; ++i) {                                           \
      const uint32_t at = offset + i * (uint32_t)sizeof(type);                    \
      value[i] = at + sizeof(type) <= now.info[0] ? us_##name##_at(at) : pad;     \
    }                                                                             \
    return value;                                                                 \
  }                                                                               \
  void us_streamout_##name(vector value, uint32_t lanes) {                        \
    for (uint32_t i = 0; i < lanes && i < 16; ++i) us_put_##name((type)value[i]); \
  }
#define LANES(name, type, vector)                      \
  VECTOR(name, type, vector, type)                     \
  type us_sum_##name(type sum, vector value) {         \
    for (uint32_t i = 0; i < 16; ++i) sum += value[i]; \
    return sum;                                        \
  }
VECTOR(u8, uint8_t, us_u32x16, uint32_t)
VECTOR(u16, uint16_t, us_u32x16, uint32_t)
LANES(u32, uint32_t, us_u32x16)
LANES(u64, uint64_t, us_u64x16)
LANES(f32, float, us_f32x16)
LANES(f64, double, us_f64x16)

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static uint32_t to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
float us_widen_bf16(us_bf16 value) { return from_bits((uint32_t)value << 16); }
us_bf16 us_narrow_bf16(float value) {
  const uint32_t bits = to_bits(value);
  if (value != value) return (us_bf16)((bits >> 16) | 0x40);
  return (us_bf16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
// By the formula, digit by digit: another way than the library's.
float us_widen_fp16(us_fp16 value) {
  const int exponent = value >> 10 & 31;
  const int fraction = value & 1023;
  float size;
  if (exponent == 31) {
    size = fraction ? from_bits(0x7fc00000) : from_bits(0x7f800000);
  } else {
    size = (float)(exponent ? fraction + 1024 : fraction);
    for (int e = exponent ? exponent : 1; e < 25; ++e) size /= 2;
    for (int e = exponent ? exponent : 1; e > 25; --e) size *= 2;
  }
  return value >> 15 ? -size : size;
}
us_fp16 us_narrow_fp16(float value) {
  const us_fp16 sign = (us_fp16)(to_bits(value) >> 31 << 15);
  const float size = from_bits(to_bits(value) & 0x7fffffff);
  if (size != size) return (us_fp16)(sign | 0x7e00);
  // The nearest of all: the one below is found by halving, then the better of two.
  uint32_t low = 0;
  uint32_t high = 0x7c00;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (us_widen_fp16((us_fp16)middle) <= size) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const double below = us_widen_fp16((us_fp16)low);
  const double above = high == 0x7c00 ? 65536.0 : us_widen_fp16((us_fp16)high);
  const double to_below = (double)size - below;
  const double to_above = above - (double)size;
  if (to_below > to_above || (to_below == to_above && (low & 1))) low = high;
  return (us_fp16)(sign | low);
}

#define NARROW(name)                                                                                           \
  us_f32x16 us_##name##x16_at(uint32_t offset, us_##name pad) {                                                \
    us_f32x16 value;                                                                                           \
    for (uint32_t i = 0; i < 16; ++i) {                                                                        \
      const uint32_t at = offset + i * 2;                                                                      \
      value[i] = us_widen_##name(at + 2 <= now.info[0] ? us_u16_at(at) : pad);                                 \
    }                                                                                                          \
    return value;                                                                                              \
  }                                                                                                            \
  void us_streamout_##name(us_f32x16 value, uint32_t lanes) {                                                  \
    for (uint32_t i = 0; i < lanes && i < 16; ++i) us_put_u16(us_narrow_##name(value[i]));                     \
  }                                                                                                            \
  void us_spvacc_vx_##name(us_##name* table, uint32_t entries, us_u32x16 index, float value) {                 \
    for (uint32_t i = 0; i < 16; ++i) {                                                                        \
      if (index[i] < entries) table[index[i]] = us_narrow_##name(us_widen_##name(table[index[i]]) + value);    \
    }                                                                                                          \
  }                                                                                                            \
  void us_spvacc_vv_##name(us_##name* table, uint32_t entries, us_u32x16 index, us_f32x16 value) {             \
    for (uint32_t i = 0; i < 16; ++i) {                                                                        \
      if (index[i] < entries) table[index[i]] = us_narrow_##name(us_widen_##name(table[index[i]]) + value[i]); \
    }                                                                                                          \
  }                                                                                                            \
  float us_spvacc_xv_##name(float sum, const us_##name* table, uint32_t entries, us_u32x16 index) {            \
    for (uint32_t i = 0; i < 16; ++i) {                                                                        \
      if (index[i] < entries) sum += us_widen_##name(table[index[i]]);                                         \
    }                                                                                                          \
    return sum;                                                                                                \
  }
NARROW(fp16)
NARROW(bf16)

#define SPARSE(name, type, vector)                                                           \
  void us_spvacc_vx_##name(type* table, uint32_t entries, us_u32x16 index, type value) {     \
    for (uint32_t i = 0; i < 16; ++i) {                                                      \
      if (index[i] < entries) table[index[i]] += value;                                      \
    }                                                                                        \
  }                                                                                          \
  void us_spvacc_vv_##name(type* table, uint32_t entries, us_u32x16 index, vector value) {   \
    for (uint32_t i = 0; i < 16; ++i) {                                                      \
      if (index[i] < entries) table[index[i]] += value[i];                                   \
    }                                                                                        \
  }                                                                                          \
  type us_spvacc_xv_##name(type sum, const type* table, uint32_t entries, us_u32x16 index) { \
    for (uint32_t i = 0; i < 16; ++i) {                                                      \
      if (index[i] < entries) sum += table[index[i]];                                        \
    }                                                                                        \
    return sum;                                                                              \
  }
SPARSE(u32, uint32_t, us_u32x16)
SPARSE(u64, uint64_t, us_u64x16)
SPARSE(f32, float, us_f32x16)
SPARSE(f64, double, us_f64x16)

#define LEAST(name, type, vector)                                  \
  type us_min_##name(type a, type b) {                             \
    if (a != a || b != b) return a + b;                            \
    if (a == b) return __builtin_signbit(a) ? a : b;               \
    return a < b ? a : b;                                          \
  }                                                                \
  type us_max_##name(type a, type b) {                             \
    if (a != a || b != b) return a + b;                            \
    if (a == b) return __builtin_signbit(a) ? b : a;               \
    return a < b ? b : a;                                          \
  }                                                                \
  vector us_min_##name##x16(vector a, vector b) {                  \
    for (int i = 0; i < 16; ++i) a[i] = us_min_##name(a[i], b[i]); \
    return a;                                                      \
  }                                                                \
  vector us_max_##name##x16(vector a, vector b) {                  \
    for (int i = 0; i < 16; ++i) a[i] = us_max_##name(a[i], b[i]); \
    return a;                                                      \
  }
LEAST(f32, float, us_f32x16)
LEAST(f64, double, us_f64x16)
