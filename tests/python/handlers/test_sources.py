"""Sources as people write them, run by the interpreter, against the same C compiled for the processor."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from unisono import handler

from .support import Native, needs_clang

pytestmark = needs_clang

HEAD = "#include <unisono_handler.h>\n"

SOURCES = {
    # No variable, not even the first one in memory, is where a null pointer points.
    "null": """
struct entry { uint32_t key, times; };
static struct entry table[16];
static struct entry* find(uint32_t key) {
  for (uint32_t i = 0; i < 16; ++i) {
    struct entry* const entry = &table[(key + i) & 15];
    if (entry->key == key || entry->key == 0) return entry;
  }
  return 0;
}
int payload(void) {
  for (uint32_t i = 0; i < 40; ++i) {
    struct entry* const entry = find(1 + (us_u8_at(i) & 31));
    if (entry == 0) {
      us_put_u32(0xdead);
      continue;
    }
    entry->key = 1 + (us_u8_at(i) & 31);
    us_put_u32(++entry->times);
  }
  return 0;
}""",
    "text": r"""
static const char text[] = "a \"word\" \\ \\5c \n\x80\\";
int payload(void) {
  for (uint32_t i = 0; i < 40; ++i) us_put_u8(text[us_u8_at(i) % sizeof text]);
  return 0;
}""",
    "lanes": """
int payload(void) {
  const us_u64x16 v = us_u64x16_at(0, 5);
  us_streamout_u64(v * 0x123456789abcdefu ^ (v >> 3 & 0xffffffff00u), 16);
  us_streamout_u64((us_u64x16)(v > 0x8000000000000000u), 16);
  us_streamout_f64(__builtin_convertvector((us_i64x16)v >> 7, us_f64x16) * 0.5 + 0.1, us_u8_at(0) & 15);
  return 0;
}""",
    # Lanes of 64 bits, of which LLVM takes parts.
    "parts of lanes": """
static us_u64x16 v;
static us_u32x16 w;
int payload(void) {
  v = v * 3 ^ us_u64x16_at(0, 5);
  for (uint32_t i = 0; i < 8; ++i) us_put_u32((uint32_t)v[us_u8_at(i) & 15] + (uint8_t)(v[us_u8_at(i + 8) & 15] >> 16));
  w = ((us_u32x16){} + (uint32_t)v[14]) ^ us_u32x16_at(3, 1);
  w += __builtin_convertvector(v >> 32, us_u32x16) * (uint32_t)v[us_u8_at(1) & 15];
  us_streamout_u32(w, 16);
  return 0;
}""",
    "large structures": """
struct row { uint32_t v[200]; uint8_t rest[7]; };
static struct row a, b;
int payload(void) {
  uint32_t counts[256] = {0};
  uint8_t ones[301];
  __builtin_memset(ones, 0xa5, sizeof ones);
  for (uint32_t i = 0; i < us_length(); ++i) ++counts[us_u8_at(i)];
  a.v[us_u8_at(0) % 200] += 3;
  a.rest[us_u8_at(1) % 7] ^= us_u8_at(2);
  b = a;
  b.v[3] ^= 1;
  a = a;
  for (int i = 0; i < 256; ++i) us_put_u32(counts[i]);
  for (int i = 0; i < 200; ++i) us_put_u32(b.v[i]);
  for (int i = 0; i < 7; ++i) us_put_u8(b.rest[i]);
  us_put_u8(ones[us_u8_at(4)] + ones[300]);
  return 0;
}""",
    "overflows": """
#define TRY(type, op) \\
  for (uint32_t i = 0; i < 20; ++i) { \\
    type made; \\
    const type a = (type)us_u64_at(i), b = i & 1 ? (type)us_u8_at(i) - 3 : (type)us_u64_at(i + 8); \\
    us_put_u8(__builtin_##op##_overflow(a, b, &made)); \\
    us_put_u64((uint64_t)made); \\
  }
#define ALL(type) TRY(type, add) TRY(type, sub)
int payload(void) {
  ALL(uint8_t) ALL(int16_t) ALL(uint32_t) ALL(int32_t) ALL(uint64_t) ALL(int64_t)
  TRY(uint32_t, mul) TRY(int32_t, mul) TRY(uint64_t, mul) TRY(int16_t, mul)
  return 0;
}""",
    "bit-fields": """
struct three { uint32_t a : 10, b : 14; uint8_t c; };
struct five { uint64_t a : 20; int64_t b : 20; uint8_t c; };
struct seven { uint64_t a : 30, b : 26; uint8_t c; };
struct __attribute__((packed)) head { uint8_t version : 4, length : 4; uint16_t bytes; uint32_t number; };
static struct three three[4] = {{1023, 9000, 7}, {0}, {5, 6, 8}};
static struct five five[4];
static struct seven seven[4];
static struct head head[4];
int payload(void) {
  const uint32_t i = us_u8_at(0) & 3;
  three[i].a += us_u16_at(1); three[i].b ^= us_u16_at(3); three[i].c++;
  five[i].a -= us_u16_at(1); five[i].b -= us_u32_at(3); five[i].c--;
  seven[i].a *= us_u32_at(5) | 1; seven[i].b += us_u32_at(6); seven[i].c ^= us_u8_at(2);
  head[i].version += us_u8_at(1); head[i].length ^= us_u8_at(2); head[i].bytes++; head[i].number = us_u32_at(5);
  for (int k = 0; k < 4; ++k) {
    us_put_u32(three[k].a); us_put_u32(three[k].b); us_put_u8(three[k].c);
    us_put_u64(five[k].a); us_put_u64((uint64_t)(int64_t)five[k].b); us_put_u8(five[k].c);
    us_put_u64(seven[k].a); us_put_u64(seven[k].b); us_put_u8(seven[k].c);
    us_put_u8(head[k].version << 4 | head[k].length); us_put_u16(head[k].bytes); us_put_u32(head[k].number);
  }
  return 0;
}""",
    # Signed numbers wrap, too: nothing is left out because that could not be.
    "signed": """
int payload(void) {
  const int32_t a = (int32_t)us_u32_at(0), b = (int32_t)us_u32_at(4);
  const int32_t most = a | 0x7fffffff, c = (a & 0) + 0x7ffffff0 + us_u8_at(8) % 40;
  us_put_u32(a + 1 < a);
  us_put_u32(c + 20 < c);
  us_put_u32(c * 2 / 2 == c);
  us_put_u32(-(most + 1) / 3 + a * b);
  us_put_u64((uint64_t)(int64_t)(c + b));
  return 0;
}""",
    # Initialisers, which clang makes loops over pointers of, and such loops of one's own.
    "arrays": """
static uint32_t table[32];
struct row { uint16_t a; uint8_t b[5]; };
int payload(void) {
  uint8_t some[20] = {us_u8_at(3), us_u8_at(4)};
  struct row rows[6] = {{us_u8_at(1), {1, us_u8_at(2)}}, {7, {us_u8_at(5)}}};
  for (uint32_t i = 0; i < 20; ++i) some[i] += i * 3;
  some[us_u8_at(1) % 20] = us_u8_at(2);
  for (const uint8_t* p = some; p != some + 20; ++p) us_put_u8(*p);
  for (struct row* p = rows; p < rows + us_u8_at(6) % 6; ++p) us_put_u16(p->a + p->b[us_u8_at(7) % 5]);
  for (uint32_t* p = table; p < table + 32; p += 3) us_put_u32(*p += us_u8_at(8));
  for (uint32_t* p = table + 31; p >= table + 4; p -= 2) us_put_u32(*p ^= us_u8_at(9));
  return 0;
}""",
}

#: Loops: each is bounded, and no bound is too small.
LOOPS = {
    "from below zero": "for (int i = (int)us_u8_at(0) - 10; i < 20; ++i)",
    "from a negative number": "for (int i = -(int)(us_u8_at(0) & 15); i <= (int)(us_u8_at(1) & 15); ++i)",
    "from one of two": "for (int i = us_u8_at(0) & 1 ? -7 : us_u8_at(1) - 3; i < 300; i += 2)",
    "of 16 bits": "for (int16_t i = -9; i < 9; i += 3)",
    "of 16 bits, a few": "for (int16_t i = -2; i < 2; i += 3)",
    "of 16 bits, used in between": "for (int16_t i = -6; i < 6; i += 3) if (x[i & 3] == 5) break; else",
    "of 8 bits, used in between": "for (int8_t i = 100; i > -100; i -= 9) if (x[i & 3] == 5) break; else",
    "evenly": "for (int i = -6; i != 8; i += 2)",
    "around a byte": "for (uint8_t i = 250; i != 5; ++i)",
    "down around a byte": "for (uint8_t i = us_u8_at(0), k = 1; k || i; --i, k = 0)",
    "down until it is large": "for (uint32_t i = 9; i < 10; --i)",
    "down from a number until it is large": "for (uint32_t i = us_u8_at(0) & 15; i < 16; i -= 3)",
    "a bit to the left": "for (uint32_t i = 1; i; i <<= 1)",
    "doubled": "for (uint32_t i = 1; i < 32; i *= 2)",
    "doubled up to a number": "for (uint64_t i = 3; i <= us_u16_at(0); i *= 2)",
    "ten times as much": "for (uint32_t i = 1; i <= 100000; i *= 10)",
    "bounded by hand": "for (uint32_t i = 0, n = us_u32_at(0) > 50 ? 50 : us_u32_at(0); i < n; ++i)",
    "bounded by hand, signed": "for (int i = 0, n = (int)us_u32_at(0) > 50 ? 50 : (int)us_u32_at(0); i < n; ++i)",
    "bounded before": "const int m = (int)us_u32_at(0); if (m < 0 || m > 64) return US_DROP; for (int i = m; i--;)",
    "bounded by the length": "const uint32_t n = us_u16_at(0); if (2 * n > us_length()) return US_DROP; "
    "for (uint32_t i = 0; i < n; ++i)",
    "from a signed byte": "for (int i = (int8_t)us_u8_at(0); i < 20; ++i)",
    "on by a loop inside": "for (uint32_t i = 0; i < us_length(); ) "
    "for (uint32_t k = 0; k++ <= (us_u8_at(i & 31) & 3); ++i)",
}


def compare(text: str, folder: Path) -> handler.Handler:
    """Compares all that it writes, for messages of random and of equal bytes."""
    source = folder / "h.c"
    source.write_text(HEAD + text)
    ours, native = handler.compile(source), Native(source, folder)
    random = Random(5)
    messages = [[bytes(64)] * 2, [b"\xff" * 80] * 2, [bytes(i & 7 for i in range(96))] * 2]
    messages += [[random.randbytes(random.choice((64, 65, 100, 1344))) for _ in range(3)] for _ in range(4)]
    for number, packets in enumerate(messages):
        result = ours.run(packets, source=number, ranks=5, tag=9)
        outputs, dropped = native.run(packets, source=number, ranks=5, tag=9)
        assert result.outputs == outputs, f"message {number}"
        assert result.dropped == dropped
    return ours


@pytest.mark.parametrize("name", SOURCES)
def test_bits_are_those_of_native_code(name: str, tmp_path: Path) -> None:
    compare(SOURCES[name], tmp_path)


@pytest.mark.parametrize("loop", LOOPS)
def test_bounds_are_no_smaller_than_loops(loop: str, tmp_path: Path) -> None:
    compare(
        f"static uint32_t x[4];\nint payload(void) {{\n  {LOOPS[loop]} {{\n    x[i & 3] += us_u8_at(i & 31) + i;\n"
        "    us_put_u8(i);\n  }\n  us_put_u32(x[0] + 3 * x[1] + 5 * x[2] + 7 * x[3]);\n  return 0;\n}\n",
        tmp_path,
    )
