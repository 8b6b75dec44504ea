"""What no handler can be, and where that is said; how handlers are stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from unisono import handler

from .support import needs_clang

pytestmark = needs_clang

HEAD = "#include <unisono_handler.h>\n"


def refusal(tmp_path: Path, text: str) -> str:
    """The one line by which a source is refused, without its folder."""
    source = tmp_path / "h.c"
    source.write_text(HEAD + text)
    with pytest.raises(handler.HandlerError) as caught:
        handler.compile(source)
    (line,) = str(caught.value).splitlines()
    return line.replace(str(tmp_path) + "/", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int payload(void) {\n  const uint32_t n = us_u32_at(0);\n  for (uint32_t i = 0; i < n; ++i)\n"
         "    us_put_u32(i);\n  return 0;\n}", "h.c:4: this loop may go round 429496729"),
        ("static uint32_t x;\nint payload(void) {\n  while (us_u32_at(x) != 5)\n    x += 4;\n  return 0;\n}",
         "h.c:4: this loop has no bound that is known when the handler is compiled"),
        ("static uint32_t x[9];\nint payload(void) {\n  for (uint32_t i = 0; i < 99; i += us_u8_at(i))\n"
         "    ++x[i & 7];\n  us_put_u32(x[0] + x[1]);\n  return 0;\n}", "h.c:4: this loop has no bound"),
        ("static uint32_t x[9];\nint payload(void) {\n  for (;;)\n    if (++x[us_u8_at(0) & 7] == 9)\n"
         "      return 0;\n}",
         "h.c:5: this loop has no bound"),
        ("static uint32_t x[8];\nstatic uint32_t* last;\nint payload(void) {\n  const uint32_t i = us_u8_at(0) & 7;\n"
         "  last = x + i;\n  return 0;\n}\nint completion(void) {\n  us_put_u32(*last);\n  return 0;\n}",
         "h.c:6: a pointer is kept in memory; handlers' pointers cannot escape: keep an index"),
        ("static uint32_t x[8];\nint payload(void) {\n  us_put_u64((uintptr_t)(x + us_u8_at(0)));\n  return 0;\n}",
         "h.c:4: a pointer is made a number"),
        ("static uint32_t x[2];\nstatic uint32_t* const where[2] = {x, x + 1};\nint payload(void) {\n"
         "  *where[us_u8_at(0) & 1] = 1;\n  return 0;\n}\nint completion(void) { us_put_u32(x[1]); return 0; }",
         "h.c:3: variable where: a variable that begins as an address; pointers cannot stay in memory"),
        ("static uint32_t deep(uint32_t n) {\n  if (n < 2) return us_u8_at(n);\n"
         "  return deep(n - 1) * deep(n - 2) + 1;\n"
         "}\n"
         "int payload(void) {\n  us_put_u32(deep(us_u8_at(0)));\n  return 0;\n}",
         "deep calls itself; handlers have no recursion"),
        ("static uint8_t x[20000000];\nint payload(void) {\n  ++x[us_u32_at(0)];\n  return 0;\n}",
         "h.c:2: its variables have 20000000 bytes; allowed are 16777216"),
        ("int printf(const char*, ...);\nint payload(void) {\n  printf(\"x\");\n  return 0;\n}",
         "h.c:4: printf is called; a handler can call what unisono_handler.h declares"),
        ("typedef float wide __attribute__((vector_size(128)));\nstatic wide x;\nint payload(void) {\n"
         "  x = x * us_f32_at(0);\n  return 0;\n}", "h.c:5: a vector of 32 lanes; vectors have 16"),
        ("int payload(void) {\n  asm volatile(\"nop\");\n  return 0;\n}", "h.c:3: assembly"),
        ("static uint32_t x;\nint payload(void) {\n  __atomic_fetch_add(&x, us_u8_at(0), 0);\n  return 0;\n}\n"
         "int completion(void) { us_put_u32(x); return 0; }",
         "h.c:4: an atomic operation; a handler has its memory alone"),
        ("int other(void) {\n  us_put_u8(1);\n  return 0;\n}\nint payload(void) { return 0; }",
         "h.c:2: other is a function that the compiler does not put in place of its calls, or that nobody calls"),
        ("static int unused(void) { return 0; }", "h.c: there is no function header, payload or completion"),
        ("int payload(int n) {\n  return n;\n}", "h.c:2: payload must be `int payload(void)`"),
        ("float completion(void) {\n  return 1;\n}", "h.c:2: completion must be `int completion(void)`"),
        ("int payload(void) {\n  return 0\n}", "h.c:3:11: expected ';' after return statement"),
        ("extern uint32_t far;\nint payload(void) {\n  us_put_u32(far);\n  return 0;\n}",
         "h.c:2: the variable far is not defined in the source"),
        ("typedef int (*f)(void);\nstatic int a(void) { return us_u8_at(0); }\n"
         "static int b(void) { return us_u8_at(1); }"
         "\n"
         "int payload(void) {\n  const f fs[2] = {a, b};\n  return fs[us_u8_at(2) & 1]();\n}", "h.c"),
        ("int payload(void) {\n  uint32_t n[us_u8_at(0)];\n  for (int i = 0; i < 9; ++i) n[us_u8_at(i)] = i;\n"
         "  us_put_u32(n[us_u8_at(9)]);\n  return 0;\n}",
         "h.c:3:13: variable length arrays are not supported"),
        ("#include <math.h>\nint payload(void) { us_put_f32(sqrtf(us_f32_at(0))); return 0; }",
         "h.c:2:10: 'math.h' file not found"),
        ("int payload(void) {\n  return total();\n}", "h.c:3:10: implicit declaration of function 'total'"),
        ("struct node {\n  struct node* next;\n  uint32_t value;\n};\nstatic struct node list[4];\n"
         "int payload(void) {\n  list[us_u8_at(0) & 3].next = &list[us_u8_at(1) & 3];\n  return 0;\n}\n"
         "int completion(void) {\n  us_put_u32(list[us_tag() & 3].next->value);\n  return 0;\n}",
         "h.c:8: a pointer is kept in memory"),
        ("static const char* const names[] = {\"a\", \"b\"};\nint payload(void) {\n"
         "  us_put_u8(names[us_u8_at(0) & 1][0]);\n  return 0;\n}", "pointers cannot stay in memory"),
        ("int payload(void) {\n  void* places[2] = {&&one, &&two};\n  goto* places[us_u8_at(0) & 1];\n"
         "one:\n  us_put_u8(1);\n  return 0;\ntwo:\n  us_put_u8(2);\n  return 0;\n}",
         "h.c:3: variable places: a variable that begins as an address; pointers cannot stay in memory"),
        ("static int last(int n, ...) {\n  __builtin_va_list list;\n  __builtin_va_start(list, n);\n"
         "  return __builtin_va_arg(list, int);\n}\nint payload(void) {\n  return last(1, us_u8_at(0));\n}", "h.c"),
        ("int payload(void) {\n  const __int128 x = (__int128)us_u64_at(0) * us_u64_at(8);\n"
         "  us_put_u64((uint64_t)(x >> 64));\n  return 0;\n}", "h.c:3: "),
    ],
)  # fmt: skip
def test_refusals_say_where_and_why(tmp_path: Path, text: str, expected: str) -> None:
    said = refusal(tmp_path, text)
    assert said.startswith("h.c"), said
    assert expected in said


def made(tmp_path: Path, text: str) -> handler.Handler:
    source = tmp_path / "h.c"
    source.write_text(HEAD + text)
    return handler.compile(source)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("us_put_u32(us_u32_at(61));", "h.c:3: payload is stopped at packet 1: it reads beyond the payload's 64 bytes"),
        ("us_put_u32(++x[us_u32_at(0)]);", "h.c:3: payload is stopped at packet 1: it reaches beyond its memory"),
        ("us_put_u32(9 / us_u8_at(4));", "h.c:3: payload is stopped at packet 1: it divides by 0"),
        ("for (int i = 0; i < 5000; ++i) us_streamout_u32(us_u32x16_at(0, 0), 16);",
         "h.c:3: payload is stopped at packet 1: it writes more than the output stream has room for"),
        ("for (uint32_t i = us_u8_at(5); i != us_u8_at(6); ++i) ++x[i & 3];",
         "h.c:3: payload is stopped at packet 1: the loop has gone round more often than its bound"),
        ("for (int i = 0; i < 100000; ++i) ++x[us_u8_at(i & 3) & 3];",
         "payload is stopped at packet 1: it has executed 20000 instructions, which is its budget"),
        ("if (us_packet() == 1) return 42;", "h.c:4: payload fails at packet 1 with 42"),
    ],
)  # fmt: skip
def test_stopped_handlers_say_where_and_why(tmp_path: Path, body: str, expected: str) -> None:
    ours = made(
        tmp_path, f"static uint32_t x[4]; int payload(void) {{ if (us_packet() < 1) return 0;\n{body}\nreturn 0; }}"
    )
    with pytest.raises(handler.HandlerStopped) as caught:
        ours.run([bytes(64), b"\xff\xff\xff\xff\x00\x09\x03" + bytes(57)], budget=20000)
    assert expected in str(caught.value)


def test_a_dropped_message_ends_at_its_packet(tmp_path: Path) -> None:
    ours = made(tmp_path, "int header(void) { return us_tag() == 3; }\n"
                          "int payload(void) { us_put_u8(us_packet()); return us_u8_at(0); }\n"
                          "int completion(void) { us_put_u8(99); return 0; }")  # fmt: skip
    assert ours.run([b"\0", b"\0"]).outputs == [b"\0", b"\1", b"c"]
    result = ours.run([b"\0", b"\1", b"\0"])
    assert (result.outputs, result.dropped) == ([b"\0", b"\1"], True)
    assert ours.run([b"\0"], tag=3) == handler.Result([], True, 2 + 1)


def test_memory_stays_until_it_is_reset(tmp_path: Path) -> None:
    ours = made(tmp_path, "static uint32_t x[4] = {5};\nint payload(void) { us_put_u32(x[0]++); return 0; }")
    assert ours.run([b"", b""]).outputs == [b"\5\0\0\0", b"\6\0\0\0"]
    assert ours.run([b""]).outputs == [b"\7\0\0\0"]
    ours.reset()
    assert ours.run([b""]).outputs == [b"\5\0\0\0"]


def test_bounds_of_loops_in_loops(tmp_path: Path) -> None:
    ours = made(
        tmp_path,
        """static uint32_t x[8];
int payload(void) {
  for (uint32_t i = 0; i < us_u8_at(0) % 20; ++i)
    for (uint32_t k = 0; k < i; ++k)
      for (uint32_t m = k; m < i + 3; m += 2)
        x[m & 7] += us_u8_at(k & 7) * i;
  us_put_u32(x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7]);
  return 0;
}""",
    )
    total = 0
    for i in range(19):
        for k in range(i):
            total += len(range(k, i + 3, 2)) * (19 if k & 7 == 0 else 1) * i
    result = ours.run([bytes([19, *[1] * 7])])
    assert result.outputs == [total.to_bytes(4, "little")]
    assert result.executed <= ours.most_executed("payload") < 19 * 19 * 12 * 20


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("for (uint32_t i = 0; i < us_length(); ++i)", 8191),
        ("for (uint32_t i = 0; i + 64 <= us_length(); i += 64)", 127),
        ("for (uint32_t i = 0; i < us_length() / 4 && i < 100; ++i)", 99),
        ("for (int i = us_u8_at(0); i >= 0; --i)", 255),
        ("for (uint32_t i = us_u16_at(0); i > 0; i >>= 2)", 32),
        ("for (uint64_t i = us_u8_at(0) & 31; i; i &= i - 1)", 64),
        ("for (uint32_t i = 0; i < (us_u32_at(0) & 63) + 2; ++i)", 64),
        ("for (uint32_t i = 0; i < us_length() % 10; ++i)", 8),
        ("for (uint32_t i = 0; i + 8 <= us_length(); i += 4 + us_u8_at(i))", 2046),
        ("for (uint32_t i = 0; i < us_length(); i += us_u8_at(i) > 9 ? 16 : 2)", 4095),
        ("for (uint32_t i = 0; i < us_length(); i += us_u8_at(i) | 32)", 255),
        ("for (uint32_t i = 0, n; i < us_length(); i += n + 1) if ((n = us_u8_at(i)) > 99) return 2; else", 8191),
        ("for (int i = -3; i < 8; i += 2) if (us_u8_at(3))", 5),
    ],
)
def test_bounds_of_loops(tmp_path: Path, loop: str, rounds: int) -> None:
    ours = made(
        tmp_path, f"static uint64_t x[8];\nint payload(void) {{ {loop} x[i & 7] += us_u8_at(i & 7); return 0; }}"
    )
    (bound,) = [
        int(line.split("loop 0, ")[1].split(" times")[0]) for line in ours.text.splitlines() if " enter " in line
    ]
    assert rounds <= bound <= rounds + 2
