"""Random handlers in C, whose meaning C defines: no overflow of signed numbers, no shift by too much, no end passed."""

from __future__ import annotations

from random import Random

_UNSIGNED = ("uint8_t", "uint16_t", "uint32_t", "uint64_t")
_BITS = {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "uint64_t": 64}
_HEAD = """#include <unisono_handler.h>

struct row { uint8_t a; uint16_t b; uint64_t c; uint32_t d[3]; };
static uint32_t words[64] = {3, 1, 4, 1, 5, 9};
static uint64_t longs[32];
static uint16_t shorts[32];
static uint8_t bytes[64] = "unisono";
static const int32_t few[8] = {-7, 11, -13, 17, 19, -23, 29, 31};
static float floats[64] = {0.5f, -2.25f};
static double doubles[32];
static us_fp16 halves[32];
static us_bf16 brains[32];
static struct row rows[8] = {{1, 2, 3, {4, 5, 6}}};
"""
_TAIL = """
int completion(void) {
  for (uint32_t i = 0; i < 64; i += 16) us_streamout_u32(*(us_u32x16*)(words + i), 16);
  for (int i = 0; i < 32; ++i) {
    us_put_u64(longs[i]);
    us_put_u16(shorts[i]);
    us_put_f64(doubles[i] == doubles[i] ? doubles[i] : 7);
    const float half = us_widen_fp16(halves[i]);
    us_put_f32(half == half ? half : 7);
    const float brain = us_widen_bf16(brains[i]);
    us_put_f32(brain == brain ? brain : 7);
  }
  for (int i = 0; i < 64; ++i) {
    us_put_u8(bytes[i]);
    us_put_f32(floats[i] == floats[i] ? floats[i] : 7);
  }
  for (int i = 0; i < 8; ++i) {
    us_put_u8(rows[i].a);
    us_put_u16(rows[i].b);
    us_put_u64(rows[i].c);
    for (int k = 0; k < 3; ++k) us_put_u32(rows[i].d[k]);
  }
  return US_GO_ON;
}
"""


class Writer:
    """Writes one source; packets that it is run on have 64 bytes or more."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0
        self.numbers: list[str] = []
        self.floats: list[str] = []
        self.vectors: list[str] = []
        self.float_vectors: list[str] = []
        self.loops = 0

    def source(self) -> str:
        helper = self._function("static uint64_t helper(uint64_t p, uint32_t q)", ["p", "q"], 3, "return ")
        payload = self._function("int payload(void)", [], self.random.randint(3, 9), "")
        return _HEAD + "\n" + helper + "\n" + payload + _TAIL

    def _function(self, head: str, numbers: list[str], statements: int, last: str) -> str:
        self.numbers, self.floats, self.vectors, self.float_vectors = numbers, [], [], []
        self.helps = not numbers
        lines = self.block(statements, 1)
        if last:
            lines.append(f"  return {self.number(2)};")
        else:
            lines.append(f"  return ({self.number(1)}) == 77 ? US_DROP : US_GO_ON;")
        return "\n".join([f"{head} {{", *lines, "}"])

    def _fresh(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def block(self, statements: int, depth: int) -> list[str]:
        saved = [list(x) for x in (self.numbers, self.floats, self.vectors, self.float_vectors)]
        lines: list[str] = []
        for _ in range(statements):
            lines += self.statement(depth)
        self.numbers, self.floats, self.vectors, self.float_vectors = saved
        return ["  " * depth + line if depth == 1 else "  " + line for line in lines]

    def statement(self, depth: int) -> list[str]:
        choice = self.random.randrange(14)
        if choice < 3:
            name, kind = self._fresh(), self.random.choice(_UNSIGNED)
            made = f"{kind} {name} = {self.number(3)};"
            self.numbers.append(name)
            return [made]
        if choice == 3:
            name = self._fresh()
            made = f"float {name} = {self.float(2)};"
            self.floats.append(name)
            return [made]
        if choice == 4:
            name = self._fresh()
            made = f"us_u32x16 {name} = {self.vector(2)};"
            self.vectors.append(name)
            return [made]
        if choice == 5:
            name = self._fresh()
            made = f"us_f32x16 {name} = {self.float_vector(2)};"
            self.float_vectors.append(name)
            return [made]
        if choice == 6 and depth < 4:
            return [
                f"if ({self.condition()}) {{",
                *self.block(2, depth + 1),
                "} else {",
                *self.block(1, depth + 1),
                "}",
            ]
        if choice == 7 and depth < 3:
            return self.loop(depth)
        if choice == 8 and depth < 4:
            cases = self.random.sample(range(8), 3)
            lines = [f"switch ({self.number(1)} & 7) {{"]
            for case in cases:
                leaves = ["    break;"] if self.random.random() < 0.7 else []
                lines += [f"  case {case}: {{", *self.block(1, depth + 1), "  }", *leaves]
            return [*lines, "  default: {", *self.block(1, depth + 1), "  }", "}"]
        if choice == 9 and self.numbers and depth > 1:
            plain = [n for n in self.numbers if n.startswith("n")]
            if plain:
                return [f"{self.random.choice(plain)} = {self.number(2)};"]
        return [self.effect()]

    def loop(self, depth: int) -> list[str]:
        name = f"i{self.names}"
        self.names += 1
        inner = self.numbers
        self.numbers = [*self.numbers, name]
        body = self.block(2, depth + 1)
        self.numbers = inner
        most = self.random.randint(1, 9)
        form = self.random.randrange(7)
        if form == 0:
            return [f"for (uint32_t {name} = 0; {name} < {most}; {name}++) {{", *body, "}"]
        if form == 1:
            return [f"for (uint32_t {name} = 0; {name} < (us_length() & 15); {name}++) {{", *body, "}"]
        if form == 2:
            return [f"for (int {name} = {most}; {name} >= 0; --{name}) {{", *body, "}"]
        if form == 3:
            return [f"for (uint64_t {name} = ({self.number(1)}) & 255; {name}; {name} >>= 1) {{", *body, "}"]
        if form == 5:
            head = f"for (uint32_t {name} = 0; {name} < 60; {name} += {most} + (us_u8_at({name}) & 7)) {{"
            return [head, *body, f"  if (({self.number(1)}) == 6) return 0;", "}"]
        if form == 4:
            return [
                f"for (uint32_t {name} = 0; {name} < 20 && {name} < us_u8_at({name}); {name} += {most}) {{",
                *body,
                "}",
            ]
        return [f"for (uint32_t {name} = us_length() & 7; {name} > 0; --{name}) {{", *body,
                f"  if (({self.number(1)}) == 5) break;", "}"]  # fmt: skip

    def effect(self) -> str:
        index = f"({self.number(1)}) & 31"
        return self.random.choice((
            lambda: f"words[{index}] += {self.number(2)};",
            lambda: f"longs[{index}] ^= {self.number(2)};",
            lambda: f"shorts[{index}] = {self.number(2)};",
            lambda: f"bytes[{index}] -= {self.number(2)};",
            lambda: f"floats[{index}] = {self.float(2)};",
            lambda: f"doubles[{index}] += (double)({self.float(1)}) * {self.random.choice(('0.1', '3', '-7e5'))};",
            lambda: f"halves[{index}] = us_narrow_fp16({self.safe(self.float(1))});",
            lambda: f"brains[{index}] = us_narrow_bf16({self.safe(self.float(1))});",
            lambda: f"rows[{index} & 7].c += {self.number(1)};",
            lambda: f"rows[{index} & 7].d[({self.number(0)}) % 3u] = {self.number(1)};",
            lambda: f"{{ struct row r = rows[{index} & 7]; r.a++; r.b ^= {self.number(0)}; rows[{index} & 7] = r; }}",
            lambda: f"us_put_{self.random.choice(('u8', 'u16', 'u32', 'u64'))}({self.number(2)});",
            lambda: f"us_put_f32({self.safe(self.float(2))});",
            lambda: f"us_streamout_u32({self.vector(2)}, ({self.number(0)}) & 15);",
            lambda: f"*(us_u32x16*)(words + 16 * (({self.number(0)}) & 3)) = {self.vector(2)};",
            lambda: f"*(us_f32x16*)(floats + 16 * (({self.number(0)}) & 3)) = {self.float_vector(2)};",
            lambda: f"us_spvacc_vx_u32(words, {self.random.choice((64, 7))}, {self.vector(1)} & 99u, {self.number()});",
            lambda: f"us_spvacc_vv_f32(floats, 64, {self.vector(1)} & 63u, {self.float_vector(1)});",
            lambda: f"us_spvacc_vx_fp16(halves, 32, {self.vector(1)} & 63u, {self.float(1)});",
            lambda: f"us_spvacc_vv_bf16(brains, 32, {self.vector(1)} & 31u, {self.float_vector(1)});",
            lambda: f"us_spvacc_vx_u64(longs, 32, {self.vector(1)} & 63u, {self.number(1)});",
        ))()  # fmt: skip

    def safe(self, text: str) -> str:
        """A float that is no NaN: which NaN comes out is nobody's promise."""
        return f"({{ float s = {text}; s == s ? s : 1.0f; }})"

    def condition(self) -> str:
        signed = self.random.choice(("(int32_t)", "(int64_t)", "(int16_t)", "", ""))
        sign = self.random.choice(("<", ">", "==", "!=", "<=", ">="))
        if self.random.random() < 0.2:
            return f"({self.float(1)}) {sign} ({self.float(1)})"
        return f"{signed}({self.number(1)}) {sign} {signed}({self.number(1)})"

    def number(self, depth: int = 1) -> str:
        """An expression of an unsigned type, or one that C makes such."""
        leaves = (
            lambda: str(self.random.choice((0, 1, 2, 3, 7, 100, 255, 65535, 4294967295))) + "u",
            lambda: str(self.random.choice((1, 12345678901234567890, 1 << 63, 0x123456789))) + "ull",
            lambda: self.random.choice(self.numbers) if self.numbers else "us_length()",
            lambda: self.random.choice(self.numbers) if self.numbers else "us_packet()",
            lambda: self.random.choice(("us_length()", "us_packet()", "us_source()", "us_ranks()", "us_tag()")),
            lambda: f"us_{self.random.choice(('u8', 'u16', 'u32', 'u64'))}_at({self.random.randrange(8)})",
        )
        if depth == 0 or self.random.random() < 0.15:
            return self.random.choice(leaves)()
        a = self.number(depth - 1)
        b = self.number(depth - 1)
        kind = self.random.choice(_UNSIGNED)
        cast = f"({kind})"
        bits = _BITS[kind] - 1
        wide = "(uint64_t)"
        inner = (
            lambda: f"({wide}({a}) {self.random.choice('+-*')} {wide}({b}))",
            lambda: f"{cast}({wide}({a}) {self.random.choice('+-*')} {wide}({b}))",
            lambda: f"(({a}) {self.random.choice('&|^')} ({b}))",
            lambda: f"{cast}(({a}) {self.random.choice('/%')} ({cast}(({b}) | 1)))",
            lambda: f"{cast}({wide}{cast}({a}) << (({b}) & {bits}))",
            lambda: f"({cast}({a}) >> (({b}) & {bits}))",
            lambda: f"(uint64_t)((int64_t)({a}) >> (({b}) & 63))",
            lambda: f"(uint32_t)(({self.random.choice(('int8_t', 'int16_t', 'int32_t'))})({a}) >> (({b}) & 7))",
            lambda: f"(uint64_t)(int64_t)({self.random.choice(('int8_t', 'int16_t', 'int32_t'))})({a})",
            lambda: f"(uint32_t)((int32_t)(({a}) & 0xffff) {self.random.choice('/%')} few[({b}) & 7])",
            lambda: f"(({self.condition()}) ? ({a}) : ({b}))",
            lambda: f"({{ const {kind} x = {a}, y = {b}; ({kind})(x > y ? x - y : 0); }})",
            lambda: f"({{ const uint32_t x = {a}, y = {b}; x + y < x ? ~0u : x + y; }})",
            lambda: f"({{ const uint32_t x = {a}, y = {b}; x << 9 | y >> 23; }})",
            lambda: f"({{ const uint64_t x = {a}; const uint32_t n = ({b}) & 63; x << n | x >> (-n & 63); }})",
            lambda: f"({{ union {{ float f; uint32_t u; }} x; x.f = {self.safe(self.float(0))}; x.u ^= {a}; x.u; }})",
            lambda: self.least_or_most(f"(int32_t)({a})", f"(int32_t)({b})"),
            lambda: self.least_or_most(f"(int8_t)({a})", f"(int8_t)({b})"),
            lambda: f"{self.random.choice(('words', 'longs', 'shorts', 'bytes'))}[({a}) & 31]",
            lambda: (
                f"(uint64_t)({self.random.choice(('rows[(%s) & 7].c', 'rows[(%s) & 7].d[1]', 'rows[(%s) & 7].b')) % a})"
            ),
            lambda: f"(uint32_t)__builtin_popcountll({a})",
            lambda: f"(uint32_t)__builtin_clz((uint32_t)({a}) | 1)",
            lambda: f"(uint32_t)__builtin_ctzll(({wide}({a})) | 256)",
            lambda: f"__builtin_bswap32((uint32_t)({a}))",
            lambda: f"({self.vector(0)})[({a}) & 15]",
            lambda: f"us_sum_u32({a}, {self.vector(0)})",
            lambda: f"us_spvacc_xv_u32({a}, words, 64, {self.vector(0)} & 127u)",
            lambda: f"us_u32_at(({a}) & 31)",
            lambda: f"helper({a}, {b})" if self.helps else "q",
            lambda: f"({{ float t = {self.float(0)}; t >= 0 && t < 1e9f ? (uint32_t)t : 3u; }})",
            lambda: f"({{ float t = {self.float(0)}; t > -1e9f && t < 1e9f ? (uint32_t)(int32_t)t : 3u; }})",
        )
        return self.random.choice(inner)()

    def least_or_most(self, a: str, b: str) -> str:
        return f"({{ const int64_t x = {a}, y = {b}; (uint64_t)(x {self.random.choice('<>')} y ? x : y); }})"

    def float(self, depth: int) -> str:
        leaves = (
            lambda: self.random.choice(("0.5f", "-3.0f", "1e-3f", "16777217.0f", "-0.0f", "1e-40f")),
            lambda: self.random.choice(self.floats) if self.floats else "2.5f",
            lambda: f"(float)({self.number(0)})",
            lambda: f"(float)(int32_t)({self.number(0)})",
            lambda: f"floats[({self.number(0)}) & 63]",
            lambda: f"(float)doubles[({self.number(0)}) & 31]",
            lambda: f"us_widen_fp16(halves[({self.number(0)}) & 31])",
            lambda: f"us_widen_bf16((us_bf16)(us_u16_at({self.random.randrange(30)}) & 0xbfff))",
        )
        if depth == 0:
            return self.random.choice(leaves)()
        a, b = self.float(depth - 1), self.float(depth - 1)
        return self.random.choice((
            lambda: f"(({a}) {self.random.choice('+-*/')} ({b}))",
            lambda: f"(float)((double)({a}) {self.random.choice('+-*')} {b})",
            lambda: f"(-({a}))",
            lambda: f"us_{self.random.choice(('min', 'max'))}_f32({a}, {b})",
            lambda: f"(({self.condition()}) ? ({a}) : ({b}))",
            lambda: f"us_sum_f32({a}, {self.float_vector(0)})",
            lambda: f"us_spvacc_xv_fp16({a}, halves, 32, {self.vector(0)} & 63u)",
            lambda: f"__builtin_fabsf({a})",
        ))()  # fmt: skip

    def vector(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice((
                lambda: self.random.choice(self.vectors) if self.vectors else "us_u32x16_at(0, 9)",
                lambda: f"us_u32x16_at(({self.number(0)}) & 63, {self.random.randrange(99)})",
                lambda: f"us_u{self.random.choice((8, 16))}x16_at({self.random.randrange(64)}, {self.number(0)})",
                lambda: f"*(us_u32x16*)(words + 16 * (({self.number(0)}) & 3))",
                lambda: f"((us_u32x16){{}} + (uint32_t)({self.number(0)}))",
                lambda: "(us_u32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}",
            ))()  # fmt: skip
        a, b = self.vector(depth - 1), self.vector(depth - 1)
        return self.random.choice((
            lambda: f"({a} {self.random.choice('+-*&|^')} {b})",
            lambda: f"(({a}) {self.random.choice('/%')} (({b}) | 1u))",
            lambda: f"(({a}) {self.random.choice(('<<', '>>'))} (({b}) & 31u))",
            lambda: f"(us_u32x16)((us_i32x16)({a}) >> 3)",
            lambda: f"(us_u32x16)(({a}) {self.random.choice(('<', '==', '>='))} ({b}))",
            lambda: f"(us_u32x16)((us_i32x16)({a}) < (us_i32x16)({b}))",
            lambda: f"({{ us_u32x16 t = {a}; t[({self.number(0)}) & 15] = {self.number(0)}; t; }})",
            lambda: f"(us_u32x16)({self.float_vector(0)} > {self.float_vector(0)})",
        ))()  # fmt: skip

    def float_vector(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice((
                lambda: self.random.choice(self.float_vectors) if self.float_vectors else "((us_f32x16){} + 1.5f)",
                lambda: f"*(us_f32x16*)(floats + 16 * (({self.number(0)}) & 3))",
                lambda: f"((us_f32x16){{}} + {self.float(0)})",
                lambda: f"__builtin_convertvector(us_u32x16_at({self.random.randrange(64)}, 3), us_f32x16)",
                lambda: f"us_min_f32x16(us_fp16x16_at({self.random.randrange(64)}, 3), (us_f32x16){{}} + 4.0f)",
            ))()  # fmt: skip
        a, b = self.float_vector(depth - 1), self.float_vector(depth - 1)
        return self.random.choice((
            lambda: f"({a} {self.random.choice('+-*/')} {b})",
            lambda: f"(-{a})",
            lambda: f"us_{self.random.choice(('min', 'max'))}_f32x16({a}, {b})",
            lambda: f"({{ us_f32x16 t = {a}; t[({self.number(0)}) & 15] = {self.float(0)}; t; }})",
        ))()  # fmt: skip
