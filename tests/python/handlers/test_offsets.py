"""What the compiler leaves out because an offset, or that the payload has enough, is known: bits are as before."""

from __future__ import annotations

from pathlib import Path

import pytest
from unisono import handler

from .support import EXAMPLES, Native, needs_clang

pytestmark = needs_clang

HEAD = "#include <unisono_handler.h>\n"

#: Each reads 16 numbers, or one, where the payload may end in them.
SOURCES = {
    "enough": "if (us_length() >= 69) us_streamout_u32(us_u32x16_at(5, 7), 16);",
    "one byte less": "if (us_length() >= 68) us_streamout_u32(us_u32x16_at(5, 7), 16);",
    "more than": "if (us_length() > 68) us_streamout_u32(us_u32x16_at(5, 7), 16);",
    "turned": "if (!(70 > us_length())) us_streamout_u32(us_u32x16_at(7, 7), 16);",
    "just": "if (us_length() == 68) us_streamout_u32(us_u32x16_at(5, 7), 16);",
    "blocks": """for (uint32_t at = 0; at + 128 <= us_length(); at += 128) {
    us_streamout_u32(us_u32x16_at(at, 7), 16);
    us_streamout_u32(us_u32x16_at(at + 64, 7), 16);
  }""",
    "blocks that end later": """for (uint32_t at = 0; at + 128 <= us_length(); at += 128) {
    us_streamout_u32(us_u32x16_at(at, 7), 16);
    us_streamout_u32(us_u32x16_at(at + 68, 7), 16);
  }""",
    "the last one is not whole": """for (uint32_t at = 0; at < us_length(); at += 64)
    us_streamout_u32(us_u32x16_at(at, 7), 16);""",
    "pad of the round before": """us_u32x16 sum = {0};
  for (uint32_t at = 0; at + 64 <= us_length() + 60; at += 64) {
    const us_u32x16 v = us_u32x16_at(at, at);
    sum = sum * 3 + v;
    us_streamout_u32(sum, 16);
  }""",
    "two of one counter": """uint32_t at = 0;
  for (uint32_t i = 0; i < us_length() / 4; ++i, at += 4) us_put_u32(us_u32_at(at) + us_u8_at(i) * i);""",
    "an offset that wraps": """const uint32_t below = us_u8_at(0) | 0xffffff00u;
  us_put_u32(us_u32_at(us_length() > 9 && (us_u8_at(1) & 1) ? below + 256 - us_u8_at(0) : below + 260 - us_u8_at(0)));
  us_put_u8(us_u8_at(below + 256 - us_u8_at(0)));""",
    "far from where it counts": """for (uint32_t i = 0xffffffc0u; i != 0; i += 4)
    if (i + 80 - 16 < us_length()) us_put_u8(us_u8_at(i + 64));""",
    "one behind the other": """uint32_t before = 8;
  for (uint32_t at = 0; at + 16 <= us_length(); at += 4) {
    us_put_u32(us_u32_at(before) + at);
    before = at;
  }""",
    "three that go together": """for (uint32_t at = 0; at + 4 + 12 <= us_length();) {
    const uint32_t count = us_u32_at(at) & 3;
    const uint32_t values = at + 4;
    at += 16;
    for (uint32_t i = 0; i < count && at + 4 * i < us_length() && i < 4; ++i) us_put_u8(us_u8_at(at + 4 * i));
    us_streamout_u32(us_u32x16_at(values, at), 16);
    at += 4 * count;
  }""",
    "an index that wraps": """static uint32_t table[280];
  for (uint32_t i = 0; i < 280; ++i) table[i] += i;
  us_put_u32(table[(us_u32_at(0) | 0xffffff00u) + 260]);""",
    "indexes and constants": """static uint32_t table[80];
  for (uint32_t i = 0; i < 64; ++i) table[i + 3] = table[i + 1] + us_u8_at(i & 31) * (i + 5);
  for (uint32_t i = 0; i < 40; i += 2) us_put_u32(table[2 * i + 1] ^ table[(i << 1) + 3]);
  for (int i = 20; i >= 0; --i) us_put_u32(table[i + 2] - table[i]);""",
    "a number that is there before and after": """uint32_t last = 0, before = 1;
  for (uint32_t i = 0; i < us_length(); ++i) {
    const uint32_t sum = last + before + us_u8_at(i);
    before = last;
    last = sum;
    if (sum & 64) us_put_u32(i);
    us_put_u32(sum ^ before);
  }
  us_put_u32(last - before);""",
}


@pytest.mark.parametrize("name", SOURCES)
def test_bits_are_those_of_native_code(name: str, tmp_path: Path) -> None:
    source = tmp_path / "offsets.c"
    source.write_text(f"{HEAD}int payload(void) {{\n  {SOURCES[name]}\n  return US_GO_ON;\n}}\n")
    made, native = handler.compile(source), Native(source, tmp_path)
    for length in (1, 2, 3, 67, 68, 69, 70, 71, 124, 127, 128, 129, 191, 192, 255, 256, 259, 260, 320):
        packet = bytes((17 * i * i + 5 * length) % 256 for i in range(length))
        try:
            outputs = made.run([packet]).outputs
        except handler.HandlerStopped:  # it reads beyond the end, as native code then does, too
            assert length < 68
            made.reset()
            continue
        assert outputs == native.run([packet])[0], length


def words_of(text: str, function: str) -> list[str]:
    """Names of a function's words."""
    names, here = [], False
    for line in text.splitlines():
        if not line.startswith(" "):
            here = line.startswith(function)
        elif here:
            names.append(line.split()[1])
    return names


def test_what_need_not_be_done_is_not_there(tmp_path: Path) -> None:
    text = handler.compile(EXAMPLES / "sparse_accumulate.c").text
    words = words_of(text, "payload")
    loop = words[words.index("enter") + 1 : words.index("again.zero") + 1]
    assert sorted(loop) == ["add.i32", "again.zero", "compare.i32.g", "spvacc_vv.fp32.v", *["take_lanes.i32.v"] * 2]
    assert "move.v" not in words
    # Where a lane may be missing its pad is put there.
    source = tmp_path / "pads.c"
    for length, pads in ((68, 1), (69, 0)):
        source.write_text(f"{HEAD}int payload(void) {{\n  if (us_length() >= {length})\n"
                          f"    us_streamout_u32(us_u32x16_at(5, 7), 16);\n  return US_GO_ON;\n}}\n")  # fmt: skip
        assert words_of(handler.compile(source).text, "payload").count("splat.v") == pads
