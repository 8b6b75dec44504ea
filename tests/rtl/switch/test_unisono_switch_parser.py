"""unisono_switch_parser: sound frames pass bit for bit, bad ones never, and nothing makes it stop."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import replace
from typing import Any

import cocotb
import pytest
from bus import ChannelSink, Packet, StreamSink, StreamSource, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from hdl import scaled, simulate
from headers import MAGIC, VERSION, Header, MessageType, core_refuses, random_header, reseal, sealed

LATENCY = 5
LONGEST = 8192
CARRIES = (MessageType.EAGER, MessageType.WRITE, MessageType.AGGREGATE)
CARRIABLE = (MessageType.EAGER, MessageType.AGGREGATE)
FAULT = {"none": 0, "short": 1, "magic": 2, "version": 3, "checksum": 4, "reserved": 5, "length": 8}
KNOWN_TYPES = {int(kind) for kind in MessageType}
KNOWN_DTYPES = {int(dtype) for dtype in type(random_header(random.Random(1), 0).dtype)}


def judge(frame: bytes) -> int:
    """The frame's fault: the rules in their order, from the bytes alone."""
    if len(frame) < 64:
        return FAULT["short"]
    raw = int.from_bytes(frame[:64], "little")

    def field(at: int, width: int) -> int:
        return raw >> at & (1 << width) - 1

    if field(0, 16) != MAGIC:
        return FAULT["magic"]
    if field(16, 4) != VERSION:
        return FAULT["version"]
    kind, aggregate, trailer = field(20, 4), field(37, 1), field(36, 1)
    if kind not in KNOWN_TYPES or field(24, 8) not in KNOWN_DTYPES or field(38, 10):
        return FAULT["reserved"]
    plain = kind in {int(k) for k in CARRIABLE} and not field(34, 2) and not trailer and field(224, 32) < 1 << 24
    if aggregate and not plain:
        return FAULT["reserved"]
    if reseal(frame[:64]) != frame[:64]:
        return FAULT["checksum"]
    segment, offset, message = field(256, 32), field(384, 48), field(320, 48)
    if (len(frame) > 64) != (segment + trailer > 0):
        return FAULT["short"]
    if segment > LONGEST:
        return FAULT["length"]
    if kind in {int(k) for k in CARRIES}:
        end = offset + segment
        if end > message or (field(32, 1) and offset) or (field(33, 1) and end != message):
            return FAULT["length"]
    return FAULT["none"]


class ParserSink(StreamSink):
    """Notes which packets ended with payload_bad_o."""

    FIELDS = ("data", "keep", "last", "bad", "dest")

    def __init__(self, dut: Any, prefix: str) -> None:
        self.bad: deque[bool] = deque()
        super().__init__(dut, prefix)

    def _accept(self, lane: int, word: tuple[int, ...]) -> None:
        data, keep, last, bad, dest = word
        assert last or not bad, "bad in a word that is not the last"
        if last:
            self.bad.append(bool(bad))
        super()._accept(lane, (data, keep, last, 0, dest))


class Bench:
    """A sender of frames, and the model."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("parser")
        self.words = StreamSource(dut, "in")
        self.meta = MetaSink(dut)
        self.payload = ParserSink(dut, "payload")
        self.expected: deque[tuple[int, bytes, bool]] = deque()
        self.passed: list[bytes] = []
        self.count: Counter[str] = Counter()
        self.faults: Counter[int] = Counter()

    def pace(self, name: str) -> None:
        for number, port in enumerate((self.words, self.meta, self.payload)):
            port.pauses = [dict(paces(new_random(f"{name} {number}")))[name]]

    def frame(self, length: int | None = None, **fixed: Any) -> bytes:
        """A sound frame, for the switch or not."""
        rng = self.rng
        if length is None:
            length = rng.choice((0, 0, rng.randint(1, 128), 64 * rng.randint(1, 6), rng.randint(1, 1000)))
        aggregate = fixed.pop("aggregate", bool(rng.getrandbits(1)))
        if aggregate:
            fixed = {
                "type": rng.choice(CARRIABLE),
                "stream": False,
                "point_to_point": False,
                "tag": rng.getrandbits(24),
                **fixed,
            }
        header = random_header(rng, length, aggregate=aggregate, **fixed)
        if not aggregate and "trailer" not in fixed and rng.random() < 0.3:
            header = replace(header, trailer=True)
        return sealed(header) + rng.randbytes(length + 4 * header.trailer)

    def send(self, frame: bytes) -> int:
        """Sends it, and tells the model what must come of it."""
        self.words.send(Packet(frame))
        fault = judge(frame)
        if fault:
            self.faults[fault] += 1
            return fault
        header = Header.decode(frame[:64])
        said = header.segment_bytes + 4 * header.trailer
        self.passed.append(frame[:64])
        self.count["aggregate" if header.aggregate else "pass"] += 1
        bad = len(frame) - 64 != said
        self.faults[FAULT["short"]] += bad
        raw = int.from_bytes(frame[:64], "little")
        self.expected.append((raw | header.aggregate << 512, frame[64 : 64 + said], bad))
        if bad:
            self.count["cut" if len(frame) - 64 > said else "ended"] += 1
        return fault

    async def settle(self) -> None:
        """Waits until what was sent has been dealt with, and compares everything."""
        while self.expected:
            raw, payload, bad = self.expected.popleft()
            (got,) = await with_timeout(self.meta.get(), 100, "us")
            assert got == raw, f"{got:x} instead of {raw:x}"
            if payload:
                packet = await self.payload.receive()
                assert self.payload.bad.popleft() == bad
                assert packet.data == payload
        await with_timeout(self.words.drain(), 100, "us")
        await ClockCycles(self.dut.clk_i, 300)
        assert not self.meta.words[0], "a header that nobody had sent"
        assert not self.payload.packets[0]
        assert not self.payload.incomplete()
        assert int(self.dut.counter_aggregate_o.value) == self.count["aggregate"]
        assert int(self.dut.counter_pass_o.value) == self.count["pass"]
        counters = int(self.dut.counter_fault_o.value)
        for fault in range(1, 10):
            counted = counters >> 32 * (fault - 1) & 0xFFFFFFFF
            assert counted == self.faults[fault], f"fault {fault}: {counted}, should be {self.faults[fault]}"

    def check_with_core(self) -> None:
        """What passed is what the C++ core accepts, too."""
        assert not any(core_refuses(self.passed)), "passed what the core refuses"


class MetaSink(ChannelSink):
    """The port is one record."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, "meta", ())
        self.fields = [type(self.valid)(dut, "meta_o", 1)]


async def start(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    return bench


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def sound_frames(dut: Any) -> None:
    """At every pace, of all lengths."""
    bench = await start(dut)
    for name in ("free", "random", "slow", "bursts"):
        bench.pace(name)
        lengths = [None] * scaled(240) + ([LONGEST, LONGEST - 1, 63, 64, 65] if name == "free" else [])
        for length in lengths:
            assert bench.send(bench.frame(length)) == 0
        bench.send(bench.frame(LONGEST, aggregate=False, trailer=True))
        await bench.settle()
    bench.check_with_core()
    assert min(bench.count["aggregate"], bench.count["pass"]) > 50


@cocotb.test(timeout_time=300, timeout_unit="us")
async def latency_and_rate(dut: Any) -> None:
    bench = await start(dut)
    bench.send(bench.frame(0))
    while not bench.words.sent[0]:
        await RisingEdge(dut.clk_i)
    begin = bench.meta.cycle
    while not bench.meta.taken[0]:
        await RisingEdge(dut.clk_i)
    assert bench.meta.cycle - begin == LATENCY, f"{bench.meta.cycle - begin} cycles"
    await bench.settle()
    for length in (0, 3, 64, 640):
        before, words = bench.meta.taken[0], 1 + (length + 63) // 64
        for _ in range(64):
            bench.send(bench.frame(length, aggregate=True))
        while bench.meta.taken[0] < before + 8:
            await RisingEdge(dut.clk_i)
        begin = bench.meta.cycle
        while bench.meta.taken[0] < before + 60:
            await RisingEdge(dut.clk_i)
        assert bench.meta.cycle - begin == 52 * words, f"{bench.meta.cycle - begin} cycles for 52 frames of {length}"
        await bench.settle()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def each_fault(dut: Any) -> None:
    """Every rule is broken alone; each fault is counted, and a sound frame passes after it."""
    bench = await start(dut)
    rng = bench.rng

    def changed(length: int = 40, **fields: Any) -> bytes:
        frame = bench.frame(length, aggregate=True, first=False, last=False)
        return sealed(replace(Header.decode(frame[:64]), **fields)) + frame[64:]

    def bits(at: int, width: int, value: int) -> bytes:
        frame = bench.frame(40, aggregate=False, trailer=False, type=MessageType.WRITE)
        raw = int.from_bytes(frame[:64], "little")
        raw = raw & ~(((1 << width) - 1) << at) | value << at
        return reseal(raw.to_bytes(64, "little")) + frame[64:]

    base = bench.frame(40, aggregate=True)
    empty = bench.frame(0, aggregate=True)
    cases = [
        ("short", base[:63]),
        ("short", base[:1]),
        ("short", base[:64]),
        ("short", empty + b"x"),
        ("short", empty + bytes(200)),
        ("magic", bits(0, 16, MAGIC ^ 0x8000)),
        ("version", bits(16, 4, 2)),
        ("reserved", bits(20, 4, 8)),
        ("reserved", bits(24, 8, 21)),
        ("reserved", bits(24, 8, 64 + 6)),
        ("reserved", bits(38, 10, 512)),
        ("reserved", bits(38, 10, 1)),
        ("reserved", changed(type=MessageType.WRITE)),
        ("reserved", changed(type=MessageType.CREDIT)),
        ("reserved", changed(stream=True)),
        ("reserved", changed(point_to_point=True)),
        ("reserved", changed(trailer=True)),
        ("reserved", changed(tag=1 << 24)),
        ("reserved", changed(tag=1 << 31)),
        ("checksum", base[:60] + bytes(x ^ 0x40 for x in base[60:64]) + base[64:]),
        ("checksum", base[:63] + bytes([base[63] ^ 0x80]) + base[64:]),
        ("length", changed(offset=5, message_bytes=44)),
        ("length", changed(first=True, offset=5, message_bytes=45)),
        ("length", changed(last=True, offset=5, message_bytes=46)),
        ("length", changed(offset=(1 << 48) - 20, message_bytes=(1 << 48) - 1)),
        ("length", bench.frame(LONGEST + 1, aggregate=True)),
        ("length", bench.frame(LONGEST + 64, aggregate=False)),
        ("length", changed(segment_bytes=1 << 31, message_bytes=1 << 32)),
        ("none", base + b"x"),
        ("none", bench.frame(64, aggregate=True) + b"x"),
        ("none", bench.frame(64, aggregate=False, trailer=False) + bytes(300)),
        ("none", bench.frame(300, aggregate=True)[: 64 + 299]),
        ("none", bench.frame(300, aggregate=True)[: 64 + 64]),
        ("none", bench.frame(300, aggregate=True)[: 64 + 256]),
        ("none", bench.frame(300, aggregate=True)[: 64 + 300] + bytes(20)),
    ]
    for name in ("free", "bursts"):
        bench.pace(name)
        rng.shuffle(cases)
        for wanted, frame in cases:
            assert bench.send(frame) == FAULT[wanted], wanted
            bench.send(bench.frame())
            await bench.settle()
    assert {name for name, _ in cases} == set(FAULT)
    assert min(bench.count["cut"], bench.count["ended"]) > 3
    bench.check_with_core()


@cocotb.test(timeout_time=6, timeout_unit="ms")
async def fuzz(dut: Any) -> None:
    """Bit flips, random bytes, truncated and overlong frames among sound ones."""
    bench = await start(dut)
    rng = bench.rng
    for name in ("free", "random", "bursts"):
        bench.pace(name)
        for _ in range(scaled(600)):
            data = bytearray(bench.frame())
            kind = rng.randrange(7)
            if kind in (0, 1):
                for _ in range(rng.choice((1, 1, 2, 5))):
                    bit = rng.randrange(512)
                    data[bit // 8] ^= 1 << bit % 8
                if kind == 1:  # what the checksum does not show
                    data = bytearray(reseal(bytes(data)))
            elif kind == 2:
                data = bytearray(data[: rng.randint(1, len(data))])
            elif kind == 3:
                data += rng.randbytes(rng.randint(1, 200))
            elif kind == 4:
                data = bytearray(rng.randbytes(rng.randint(1, 400)))
            bench.send(bytes(data))
        await bench.settle()
    assert len(bench.faults) >= 6, bench.faults
    bench.check_with_core()


@pytest.mark.parametrize(("queue", "words"), [(16, 32), (8, 16)])
def test_unisono_switch_parser(queue: int, words: int) -> None:
    simulate("unisono_switch_parser", __file__, {"Queue": queue, "PayloadWords": words}, limit_s=300)
