"""unisono_cast_narrow and unisono_cast_widen: every value that matters, in packets of all lengths and modes."""

from __future__ import annotations

import random

import bulk
import cocotb
import ml_dtypes
import numpy as np
import pytest
from bus import ChannelSource, Packet, Pause, StreamSink, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, simulate

PASS, FP16, BF16 = 0, 1, 2
NARROW = {FP16: np.float16, BF16: ml_dtypes.bfloat16}
FIELDS = ("data", "keep", "last", "user", "mode")


def narrowed(mode: int, values: np.ndarray) -> np.ndarray:
    """As the C++ has it; NumPy and ml_dtypes agree but for payloads of NaN."""
    want = bulk.narrow(mode == BF16, values)
    with np.errstate(all="ignore"):
        other = values.view(np.float32).astype(NARROW[mode])
    nan = np.isnan(values.view(np.float32))
    assert np.array_equal(other.view(np.uint16)[~nan], want[~nan])
    assert np.isnan(want.view(NARROW[mode])[nan]).all()
    return want


def widened(mode: int, values: np.ndarray) -> np.ndarray:
    want = bulk.widen(mode == BF16, values)
    other = values.view(NARROW[mode]).astype(np.float32)
    nan = np.isnan(other)
    assert np.array_equal(other.view(np.uint32)[~nan], want[~nan])
    assert np.isnan(want.view(np.float32)[nan]).all()
    return want


def narrow_values(mode: int, rng: np.random.Generator) -> np.ndarray:
    """Every number of the narrow format, every middle between two, the neighbours of both; and random bits."""
    every = widened(mode, np.arange(0x8000, dtype=np.uint16))
    step = (every[1:].astype(np.int64) - every[:-1]) // 2
    middles = (every[:-1] + step).astype(np.uint32)
    marks = np.concatenate([every, middles])
    near = np.concatenate([marks - np.uint32(1), marks, marks + np.uint32(1)])
    uniform = rng.integers(0, 1 << 32, 200_000, np.uint32)
    values = np.concatenate([near, near | np.uint32(1 << 31), uniform])
    rng.shuffle(values)
    return values


class Bench:
    """Sends packets of elements and compares what comes out."""

    def __init__(self, dut: object, idle: Pause, back: Pause) -> None:
        self.dut = dut
        self.source = ChannelSource(dut, "in", FIELDS, pause=idle)
        self.sink = StreamSink(dut, "out", pause=back)
        self.data_bytes = self.sink.data_bytes
        self.expected: list[Packet] = []

    def send(self, mode: int, data: bytes, want: bytes, user: int) -> None:
        for word, keep, last in Packet(data).words(self.data_bytes, self.source.rng):
            self.source.put((word, keep, last, user, mode))
        self.expected.append(Packet(want, user))

    async def check(self) -> None:
        for number, want in enumerate(self.expected):
            got = await self.sink.receive(timeout_us=100_000)
            assert got == want, f"packet {number}: {len(got.data)} bytes, not {len(want.data)}, or other values"
        self.expected.clear()


def pieces(rng: random.Random, values: np.ndarray, longest: int) -> list[np.ndarray]:
    found, at = [], 0
    while at < len(values):
        length = rng.choice((1, 2, rng.randint(1, 40), rng.randint(1, longest)))
        found.append(values[at : at + length])
        at += length
    return found


async def run(dut: object, idle: Pause, back: Pause, sparse: int) -> None:
    """Every `sparse`-th of all values, in packets."""
    narrowing = bool(parameters()["Narrow"])
    rng = new_random("cast")
    values = np.random.default_rng(rng.getrandbits(32))
    bench = Bench(dut, idle, back)
    await start_clock_and_reset(dut)
    packets = []
    for mode in (FP16, BF16):
        data = narrow_values(mode, values) if narrowing else values.permutation(1 << 16).astype(np.uint16)
        for part in pieces(rng, np.ascontiguousarray(data[::sparse]), 3000):
            want = narrowed(mode, part) if narrowing else widened(mode, part)
            packets.append((mode, part.tobytes(), want.tobytes()))
    packets += [(PASS, data, data) for data in (rng.randbytes(rng.randint(1, 300)) for _ in range(len(packets) // 4))]
    rng.shuffle(packets)
    for mode, data, want in packets:
        bench.send(mode, data, want, rng.getrandbits(7))
    await bench.check()


@cocotb.test(timeout_time=400, timeout_unit="ms")
async def every_value(dut):
    # Wide words make it quick; the lanes of narrow ones are the same.
    await run(dut, never, never, 1 if len(dut.in_keep_i) == 64 else 16)


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def idle_and_back_pressure(dut):
    rng = new_random("pace")
    await run(dut, bursts(rng), bursts(rng), 16)


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def slow_sink(dut):
    rng = new_random("slow")
    await run(dut, share(rng, 0.2), share(rng, 0.7), 32)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def full_rate(dut):
    """The wide side moves a word in every cycle."""
    bench = Bench(dut, never, never)
    await start_clock_and_reset(dut)
    words = 200
    data = np.random.default_rng(3).integers(0, 1 << 16, bench.data_bytes * words // 2, np.uint16)
    narrowing = bool(parameters()["Narrow"])
    if narrowing:
        data = data[: data.size // 2].astype(np.uint32) << np.uint32(8)
    want = narrowed(FP16, data) if narrowing else widened(FP16, data)
    bench.send(FP16, data.tobytes(), want.tobytes(), 1)
    got = await bench.sink.receive()
    assert got.data == want.tobytes()
    out_words = len(got.data) // bench.data_bytes
    assert got.end - got.start == (2 * (out_words - 1) if narrowing else out_words - 1)
    await RisingEdge(dut.clk_i)


@pytest.mark.parametrize("data_bytes", [full(8), 64])
@pytest.mark.parametrize("name", ["narrow", "widen"])
def test_unisono_cast(name: str, data_bytes: int) -> None:
    simulate(
        f"unisono_cast_{name}",
        __file__,
        {"DataBytes": data_bytes, "UserBits": 7},
        environment={"UNISONO_PARAMETERS": f'{{"Narrow": {int(name == "narrow")}}}'},
        limit_s=500,
    )
