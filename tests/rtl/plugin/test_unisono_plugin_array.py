"""unisono_plugin_array: words of all operators mixed, idle cycles and back-pressure; rates; capability word."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import oracle
import pytest
from bus import ChannelSink, ChannelSource, Word, bursts, new_random, paces, reset_again, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge, with_timeout
from hdl import full, parameters, simulate
from oracle import Datatype, Func

IN = ("op0", "op1", "func", "dtype", "swap", "use0", "use1", "keep", "last", "user")
OUT = ("data", "keep", "last", "user", "refused")
FLOATS = set(oracle.FORMATS)
TRUTH_FUNCS = {Func.MIN, Func.MAX, *(Func(n) for n in range(5, 11))}
LATENCY = {"alu": 3, "sum": 8, "prod": 11}


def is_defined(func: Any, dtype: Any) -> bool:
    """Rule 27 of docs/model.md."""
    if func in (Func.SUM, Func.PROD):
        return dtype in oracle.INTEGERS or dtype in FLOATS or dtype in oracle.PARTS
    if func in (Func.MIN, Func.MAX):
        return dtype in oracle.INTEGERS or dtype in FLOATS or dtype == Datatype.BOOL
    if func in (Func.LOGICAL_AND, Func.LOGICAL_OR, Func.LOGICAL_XOR):
        return dtype in oracle.INTEGERS or dtype == Datatype.BOOL
    if func in (Func.BITWISE_AND, Func.BITWISE_OR, Func.BITWISE_XOR):
        return dtype in oracle.INTEGERS or dtype in (Datatype.BOOL, Datatype.BYTE)
    return func in (Func.MINLOC, Func.MAXLOC) and dtype in oracle.PAIRS


def is_computed(func: Any, dtype: Any) -> bool:
    """All that is defined, but products of complex numbers."""
    return is_defined(func, dtype) and not (func == Func.PROD and dtype in oracle.PARTS)


class TimedSink(ChannelSink):
    """Remembers when each word came."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.cycles: list[int] = []
        super().__init__(*arguments, **named)

    def _accept(self, lane: int, word: Word) -> None:
        self.cycles.append(self.cycle)
        super()._accept(lane, word)


def quarter_round(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        s[z] ^= s[x]
        s[z] = (s[z] << turn | s[z] >> (32 - turn)) & 0xFFFFFFFF


def chacha_block(key: bytes, nonce: bytes, block: int) -> int:
    """The key stream of one block (RFC 8439, section 2.3)."""
    parts = b"expand 32-byte k" + key + block.to_bytes(4, "little") + nonce
    start = [int.from_bytes(parts[i : i + 4], "little") for i in range(0, 64, 4)]
    state = list(start)
    for _ in range(10):
        for i in range(4):
            quarter_round(state, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter_round(state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    words = [(x + y) & 0xFFFFFFFF for x, y in zip(state, start, strict=True)]
    return int.from_bytes(b"".join(word.to_bytes(4, "little") for word in words), "little")


class Bench:
    """Makes words, knows their results, compares."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng = new_random("array")
        self.numbers = np.random.default_rng(self.rng.getrandbits(63))
        self.source = ChannelSource(dut, "in", IN)
        self.sink = TimedSink(dut, "out", OUT)
        self.data_bytes = len(dut.in_keep_i)
        self.user_bits = len(dut.in_user_i)
        self.expected: list[tuple[Any, Any, bytes | None, tuple[int, ...]]] = []
        self.key, self.nonce, self.first_block = self.rng.randbytes(32), self.rng.randbytes(12), 0xFFFFFFFE
        self.block: int | None = None

    def set_key(self) -> None:
        self.dut.key_i.value = int.from_bytes(self.key, "little")
        self.dut.nonce_i.value = int.from_bytes(self.nonce, "little")
        self.dut.first_block_i.value = self.first_block

    def operands(self, func: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        if func in Func.__members__.values() and dtype in Datatype.__members__.values() and is_defined(func, dtype):
            count = self.data_bytes // oracle.element_bytes(dtype)
            a, b = oracle.operands(self.numbers, func, dtype, max(count, 12))
            order = self.numbers.permutation(max(count, 12))[:count]
            size = oracle.element_bytes(dtype)
            return tuple(np.ascontiguousarray(x.reshape(-1, size)[order]).reshape(-1) for x in (a, b))  # type: ignore[return-value]
        a, b = self.numbers.integers(0, 256, (2, self.data_bytes), np.uint8)
        return a, b

    def send(self, func: Any, dtype: Any, *, computed: bool, last: int | None = None, op0: bytes | None = None) -> None:
        """One word; `computed` says whether its function is built."""
        rng = self.rng
        a, b = self.operands(func, dtype)
        if op0 is not None:
            a = np.frombuffer(op0, np.uint8)
        unary = func in (Func.NONE, Func.USER1)
        use0 = rng.getrandbits(1) if unary and op0 is None else 1
        use1 = 1 - use0 if unary else 1
        last = rng.getrandbits(1) if last is None else last
        kept = rng.randint(1, self.data_bytes) if last else self.data_bytes
        side = ((1 << kept) - 1, last, rng.getrandbits(self.user_bits))
        want: bytes | None
        if not computed:
            want = None
        elif unary:
            operand = (a if use0 else b).tobytes()
            want = operand
            if func == Func.USER1:
                block = self.first_block if self.block is None else self.block
                stream = chacha_block(self.key, self.nonce, block)
                want = (int.from_bytes(operand, "little") ^ stream).to_bytes(64, "little")
                self.block = None if last else (block + 1) & 0xFFFFFFFF
        elif func == Func.USER0:
            sums = a.view(np.int8).astype(np.int16) + b.view(np.int8)
            want = np.clip(sums, -128, 127).astype(np.int8).tobytes()
        else:
            want = oracle.apply(func, dtype, a, b).tobytes()
        words = [int.from_bytes(x.tobytes(), "little") for x in (a, b)]
        self.source.put((*words, int(func), int(dtype), rng.getrandbits(1), use0, use1, *side))
        self.expected.append((func, dtype, want, (*side, int(not computed))))

    async def check(self, timeout_us: int = 10_000) -> None:
        for func, dtype, want, side in self.expected:
            data, *got = await with_timeout(self.sink.get(), timeout_us, "us")
            assert tuple(got) == side, f"{func!r} of {dtype!r}: keep, last, user, refused are {got}, not {side}"
            if want is None:
                continue
            a = np.frombuffer(data.to_bytes(self.data_bytes, "little"), np.uint8)
            b = np.frombuffer(want, np.uint8)
            plain = dtype if func not in (Func.NONE, Func.USER0, Func.USER1) else Datatype.BYTE
            assert not oracle.differs(func, plain, a, b).any(), f"{func!r} of {dtype!r}: {a} is not {b}"
        self.expected.clear()


COMPUTED = [(func, dtype) for func in Func for dtype in Datatype if is_computed(func, dtype)]
REFUSED: list[tuple[Any, Any]] = [
    (Func.PROD, Datatype.COMPLEX64),
    (Func.AVG, Datatype.FP32),
    (Func.SUM, Datatype.BOOL),
    (Func.MINLOC, Datatype.FP32),
    (Func.USER2, Datatype.FP32),
    (Func.USER0, Datatype.NONE),
    (Func.SUM, 33),
    (40, Datatype.FP32),
]


def random_words(rng: random.Random, count: int) -> Iterator[tuple[Any, Any, bool]]:
    """Runs of one function and changes of it, all of them in some order first."""
    for func, dtype in rng.sample(COMPUTED, len(COMPUTED)):
        yield func, dtype, True
    while count > 0:
        kind = rng.random()
        if kind < 0.12:
            case = (*rng.choice(REFUSED), False)
        elif kind < 0.24:
            case = (Func.NONE, rng.choice(list(Datatype)), True)
        elif kind < 0.36:
            case = (Func.USER0, Datatype.INT8, True)
        elif kind < 0.48:
            case = (Func.USER1, Datatype.BYTE, True)
        else:
            case = (*rng.choice(COMPUTED), True)
        run = rng.choice((1, 1, 1, 2, 5, 20))
        for _ in range(run):
            yield case
        count -= run


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def mixed_words(dut):
    if "DataBytes" in parameters():
        return
    bench = Bench(dut)
    bench.set_key()
    await start_clock_and_reset(dut)
    rng = new_random("pace")
    for _, idle in paces(rng):
        for _, back in paces(rng):
            bench.source.pauses, bench.sink.pauses = [idle], [back]
            for func, dtype, computed in random_words(bench.rng, 150):
                bench.send(func, dtype, computed=computed)
            await bench.check()
    await RisingEdge(dut.clk_i)
    await ReadOnly()
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reset_in_flight(dut):
    """Words inside are forgotten; nothing of them comes out later."""
    if "DataBytes" in parameters():
        return
    bench = Bench(dut)
    bench.set_key()
    await start_clock_and_reset(dut)
    rng = new_random("pace")
    for _ in range(6):
        bench.sink.pauses = [bursts(rng)]
        for func, dtype, computed in random_words(bench.rng, 40):
            bench.send(func, dtype, computed=computed)
        for _ in range(rng.randint(5, 120)):
            await RisingEdge(dut.clk_i)
        bench.source.clear()
        await reset_again(dut)
        bench.sink.words[0].clear()
        bench.expected.clear()
        bench.block = None
        for func, dtype, computed in random_words(bench.rng, 20):
            bench.send(func, dtype, computed=computed)
        await bench.check()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle(dut):
    """At the latency stated, without gaps; and what a change of function costs."""
    if "DataBytes" in parameters():
        return
    bench = Bench(dut)
    bench.set_key()
    await start_clock_and_reset(dut)
    cases = [
        (Func.MIN, Datatype.FP32, LATENCY["alu"]),
        (Func.SUM, Datatype.FP16, LATENCY["sum"]),
        (Func.PROD, Datatype.FP64, LATENCY["prod"]),
        (Func.USER0, Datatype.INT8, 2),
        (Func.USER1, Datatype.BYTE, 42),
    ]
    for func, dtype, latency in cases:
        bench.sink.cycles.clear()
        for _ in range(100):
            bench.send(func, dtype, computed=True)
        await ReadOnly()
        while not (int(dut.in_valid_i.value) and int(dut.in_ready_o.value)):
            await RisingEdge(dut.clk_i)
            await ReadOnly()
        # The next edge takes the first word.
        begin = bench.sink.cycle + 1
        await bench.check()
        cycles = bench.sink.cycles
        assert cycles[-1] - cycles[0] == 99, f"{func!r}: {cycles[-1] - cycles[0]} cycles for 100 words"
        assert cycles[0] - begin == latency + 2, f"{func!r}: first result after {cycles[0] - begin} cycles"
    bench.sink.cycles.clear()
    for _ in range(50):
        bench.send(Func.PROD, Datatype.INT32, computed=True)
        bench.send(Func.SUM, Datatype.INT32, computed=True)
    await bench.check()
    gap = LATENCY["prod"] - LATENCY["alu"]
    assert bench.sink.cycles[-1] - bench.sink.cycles[0] == 49 * (1 + gap + 1) + 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def chacha_of_the_rfc(dut):
    """Section 2.4.2 of RFC 8439."""
    if "DataBytes" in parameters():
        return
    bench = Bench(dut)
    bench.key, bench.nonce, bench.first_block = bytes(range(32)), bytes.fromhex("000000000000004a00000000"), 1
    bench.set_key()
    await start_clock_and_reset(dut)
    text = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    cipher = bytes.fromhex(
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b357"
        "1639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d"
    )
    padded = text.ljust(128, b"\0")
    for at in (0, 64):
        bench.send(Func.USER1, Datatype.BYTE, computed=True, last=int(at == 64), op0=padded[at : at + 64])
    got = b"".join([(await bench.sink.get())[0].to_bytes(64, "little") for _ in range(2)])
    assert got[: len(text)] == cipher


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def capability_and_refusal(dut):
    """What the capability word names is computed, and only what the masks name."""
    given = parameters()
    datatypes = given.get("Datatypes", 0x1FFFFE)
    funcs = given.get("Funcs", 0x1FFE)
    user = "DataBytes" not in given
    bench = Bench(dut)
    await start_clock_and_reset(dut)

    def built(func: Any, dtype: Any) -> bool:
        return bool(is_computed(func, dtype) and datatypes >> dtype & 1 and funcs >> func & 1)

    want = 0
    for dtype in Datatype:
        asked = [func for func in Func if funcs >> func & 1 and is_defined(func, dtype)]
        if asked and all(built(func, dtype) for func in asked):
            want |= 1 << dtype
    assert int(dut.capability_datatypes_o.value) == want
    assert int(dut.capability_funcs_o.value) == (funcs & 0x1FFE) | (0x8000 if user else 0)
    for func in Func:
        for dtype in Datatype:
            if not (user and func in (Func.USER0, Func.USER1)):
                bench.send(func, dtype, computed=func == Func.NONE or built(func, dtype))
    await bench.check()


BENCH = Path(__file__).with_name("unisono_plugin_array_bench.sv")


def test_unisono_plugin_array() -> None:
    simulate("unisono_plugin_array_bench", __file__, {"UserBits": 9}, sources=[BENCH], limit_s=300)


@pytest.mark.parametrize(
    ("datatypes", "funcs"),
    [
        (0x000044, 0x001A),  # fp32 and int32; sum, min, max
        full(0x00F00C, 0x0004),  # products of wide integers
        full(0x000330, 0x000A),  # fp16, bf16, complex; sum, min
    ],
)
def test_masks(datatypes: int, funcs: int) -> None:
    """Arrays with less in them."""
    simulate(
        "unisono_plugin_array",
        __file__,
        {"DataBytes": 16, "UserBits": 3, "Datatypes": f"24'd{datatypes}", "Funcs": funcs},
        environment={"UNISONO_PARAMETERS": json.dumps({"DataBytes": 16, "Datatypes": datatypes, "Funcs": funcs})},
        limit_s=300,
    )
