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
