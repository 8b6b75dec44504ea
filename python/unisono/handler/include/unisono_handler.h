/* What handlers in a switch are written with (docs/handlers.md): `unisono switch compile h.c -o h.uh`.
 *
 * A handler is a source in C with one or more of these functions, each without arguments. What they return is a
 * verdict: US_GO_ON, US_DROP (nothing more of this message is looked at), or a number of your own, with which the job
 * fails.
 *
 *     int header(void);      once at a message's first packet, before its payload
 *     int payload(void);     at each packet
 *     int completion(void);  once after a message's last packet
 *
 * Variables with static storage are the handler's memory: they stay from packet to packet and from message to message.
 * Offsets are in bytes from the begin of the packet's payload. Reading beyond its end stops the handler.
 */
#ifndef UNISONO_HANDLER_H
#define UNISONO_HANDLER_H

#include <stdint.h>

#ifdef __cplusplus
#error "handlers are written in C"
#endif

enum { US_GO_ON = 0, US_DROP = 1, US_LANES = 16, US_MOST_LENGTH = 8192 };

/* Vectors of 16 lanes; they have C's operators. A comparison gives lanes of 0 or of all ones. */
typedef uint32_t us_u32x16 __attribute__((vector_size(64)));
typedef int32_t us_i32x16 __attribute__((vector_size(64)));
typedef float us_f32x16 __attribute__((vector_size(64)));
typedef uint64_t us_u64x16 __attribute__((vector_size(128)));
typedef int64_t us_i64x16 __attribute__((vector_size(128)));
typedef double us_f64x16 __attribute__((vector_size(128)));

/* The bits of an IEEE 754 binary16 and of a bfloat16. */
typedef uint16_t us_fp16;
typedef uint16_t us_bf16;

#define US_SAME __attribute__((const, nothrow)) /* nothing that the function sees changes while a handler runs */
#define US_READS __attribute__((pure, nothrow))
#define US_DOES __attribute__((nothrow))

/* The packet, and the message that it is of. */
uint32_t us_length(void) US_SAME;  /* bytes of the payload: US_MOST_LENGTH at most, 0 in header and completion */
uint32_t us_packet(void) US_SAME;  /* number in its message, from 0 */
uint32_t us_packets(void) US_SAME; /* of the message */
uint32_t us_source(void) US_SAME;  /* rank that sends */
uint32_t us_ranks(void) US_SAME;   /* of the communicator */
uint32_t us_tag(void) US_SAME;     /* of the message */

/* An element of the payload. */
uint8_t us_u8_at(uint32_t offset) US_READS;
uint16_t us_u16_at(uint32_t offset) US_READS;
uint32_t us_u32_at(uint32_t offset) US_READS;
uint64_t us_u64_at(uint32_t offset) US_READS;
float us_f32_at(uint32_t offset) US_READS;
double us_f64_at(uint32_t offset) US_READS;

/* Sixteen of them, side by side; lanes beyond the end are `pad`, if the first is not farther
 * than that. fp16 and bf16 come as fp32; their pad is their bits.
 */
us_u32x16 us_u8x16_at(uint32_t offset, uint32_t pad) US_READS; /* bytes as numbers; a pad may be larger */
us_u32x16 us_u16x16_at(uint32_t offset, uint32_t pad) US_READS;
us_u32x16 us_u32x16_at(uint32_t offset, uint32_t pad) US_READS;
us_u64x16 us_u64x16_at(uint32_t offset, uint64_t pad) US_READS;
us_f32x16 us_f32x16_at(uint32_t offset, float pad) US_READS;
us_f64x16 us_f64x16_at(uint32_t offset, double pad) US_READS;
us_f32x16 us_fp16x16_at(uint32_t offset, us_fp16 pad) US_READS;
us_f32x16 us_bf16x16_at(uint32_t offset, us_bf16 pad) US_READS;

/* Writes to the output stream. What a function has written when it ends goes on as a packet; nothing written, no
 * packet. */
void us_put_u8(uint8_t value) US_DOES;
void us_put_u16(uint16_t value) US_DOES;
void us_put_u32(uint32_t value) US_DOES;
void us_put_u64(uint64_t value) US_DOES;
void us_put_f32(float value) US_DOES;
void us_put_f64(double value) US_DOES;

/* Writes the first `lanes` lanes, 16 at most. */
void us_streamout_u8(us_u32x16 value, uint32_t lanes) US_DOES; /* the lanes' low bytes */
void us_streamout_u16(us_u32x16 value, uint32_t lanes) US_DOES;
void us_streamout_u32(us_u32x16 value, uint32_t lanes) US_DOES;
void us_streamout_u64(us_u64x16 value, uint32_t lanes) US_DOES;
void us_streamout_f32(us_f32x16 value, uint32_t lanes) US_DOES;
void us_streamout_f64(us_f64x16 value, uint32_t lanes) US_DOES;
void us_streamout_fp16(us_f32x16 value, uint32_t lanes) US_DOES; /* rounded to fp16 */
void us_streamout_bf16(us_f32x16 value, uint32_t lanes) US_DOES;

/* Sparse accumulation, lane by lane in their order; indexes of `entries` or more are left out.
 * vx: table[index] += value;  vv: table[index] += the value's lane;  xv: gives sum + table[index] + ... */
void us_spvacc_vx_u32(uint32_t* table, uint32_t entries, us_u32x16 index, uint32_t value) US_DOES;
void us_spvacc_vx_u64(uint64_t* table, uint32_t entries, us_u32x16 index, uint64_t value) US_DOES;
void us_spvacc_vx_f32(float* table, uint32_t entries, us_u32x16 index, float value) US_DOES;
void us_spvacc_vx_f64(double* table, uint32_t entries, us_u32x16 index, double value) US_DOES;
void us_spvacc_vx_fp16(us_fp16* table, uint32_t entries, us_u32x16 index, float value) US_DOES;
void us_spvacc_vx_bf16(us_bf16* table, uint32_t entries, us_u32x16 index, float value) US_DOES;
void us_spvacc_vv_u32(uint32_t* table, uint32_t entries, us_u32x16 index, us_u32x16 value) US_DOES;
void us_spvacc_vv_u64(uint64_t* table, uint32_t entries, us_u32x16 index, us_u64x16 value) US_DOES;
void us_spvacc_vv_f32(float* table, uint32_t entries, us_u32x16 index, us_f32x16 value) US_DOES;
void us_spvacc_vv_f64(double* table, uint32_t entries, us_u32x16 index, us_f64x16 value) US_DOES;
void us_spvacc_vv_fp16(us_fp16* table, uint32_t entries, us_u32x16 index, us_f32x16 value) US_DOES;
void us_spvacc_vv_bf16(us_bf16* table, uint32_t entries, us_u32x16 index, us_f32x16 value) US_DOES;
uint32_t us_spvacc_xv_u32(uint32_t sum, const uint32_t* table, uint32_t entries, us_u32x16 index) US_READS;
uint64_t us_spvacc_xv_u64(uint64_t sum, const uint64_t* table, uint32_t entries, us_u32x16 index) US_READS;
float us_spvacc_xv_f32(float sum, const float* table, uint32_t entries, us_u32x16 index) US_READS;
double us_spvacc_xv_f64(double sum, const double* table, uint32_t entries, us_u32x16 index) US_READS;
float us_spvacc_xv_fp16(float sum, const us_fp16* table, uint32_t entries, us_u32x16 index) US_READS;
float us_spvacc_xv_bf16(float sum, const us_bf16* table, uint32_t entries, us_u32x16 index) US_READS;

/* sum + lane 0 + lane 1 and so on, in this order. */
uint32_t us_sum_u32(uint32_t sum, us_u32x16 value) US_SAME;
uint64_t us_sum_u64(uint64_t sum, us_u64x16 value) US_SAME;
float us_sum_f32(float sum, us_f32x16 value) US_SAME;
double us_sum_f64(double sum, us_f64x16 value) US_SAME;

/* IEEE 754-2019 minimum and maximum: NaN wins, and -0 is less than +0. */
float us_min_f32(float a, float b) US_SAME;
float us_max_f32(float a, float b) US_SAME;
double us_min_f64(double a, double b) US_SAME;
double us_max_f64(double a, double b) US_SAME;
us_f32x16 us_min_f32x16(us_f32x16 a, us_f32x16 b) US_SAME;
us_f32x16 us_max_f32x16(us_f32x16 a, us_f32x16 b) US_SAME;
us_f64x16 us_min_f64x16(us_f64x16 a, us_f64x16 b) US_SAME;
us_f64x16 us_max_f64x16(us_f64x16 a, us_f64x16 b) US_SAME;

/* Conversions of the narrow floating-point types; to the nearest, ties to even. */
float us_widen_fp16(us_fp16 value) US_SAME;
float us_widen_bf16(us_bf16 value) US_SAME;
us_fp16 us_narrow_fp16(float value) US_SAME;
us_bf16 us_narrow_bf16(float value) US_SAME;

#endif /* UNISONO_HANDLER_H */
