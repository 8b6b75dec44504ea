"""unisono_switch_chain: folds are bit for bit those of core/arithmetic.hpp; latency, rate, and many at once."""

from __future__ import annotations

import itertools
import json
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

import bulk
import cocotb
import numpy as np
import oracle
import pytest
from bus import ChannelSource, never, new_random, share, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, scaled, simulate
from oracle import Datatype, Func

WIDE = {Datatype.FP16: 1, Datatype.BF16: 2}
"""Those whose sums and products round once, and their cast_mode_e."""
PASS = 0


def is_computed(func: Any, dtype: Any) -> bool:
    """Whether the plugins compute this: see docs/rtl/plugin_array.md."""
    if func in (Func.SUM, Func.PROD):
        whole = dtype in oracle.INTEGERS or dtype in oracle.FORMATS
        return whole or (func == Func.SUM and dtype in oracle.PARTS)
    if func in (Func.MIN, Func.MAX):
        return dtype in oracle.INTEGERS or dtype in oracle.FORMATS or dtype == Datatype.BOOL
    if func in (Func.LOGICAL_AND, Func.LOGICAL_OR, Func.LOGICAL_XOR):
        return dtype in oracle.INTEGERS or dtype == Datatype.BOOL
    if func in (Func.BITWISE_AND, Func.BITWISE_OR, Func.BITWISE_XOR):
        return dtype in oracle.INTEGERS or dtype in (Datatype.BOOL, Datatype.BYTE)
    return func in (Func.MINLOC, Func.MAXLOC) and dtype in oracle.PAIRS


def fold(func: Any, dtype: Any, operands: list[np.ndarray]) -> np.ndarray:
    """The operators of core/arithmetic.hpp in listed order; fp16 and bf16 in fp32, if they are to be rounded."""
    if len(operands) > 1 and dtype in WIDE and func in (Func.SUM, Func.PROD):
        brain = dtype == Datatype.BF16
        values = [bulk.widen(brain, one.view(np.uint16)).view(np.uint8) for one in operands]
        dtype = Datatype.FP32
    else:
        values = operands
    result = values[0]
    for value in values[1:]:
        result = bulk.combine(int(func), int(dtype), result, value, oracle.element_bytes(dtype))
    return result


@dataclass
class Start:
    """One aggregation's segment."""

    tag: int
    ports: list[int]
    func: Any
    dtype: Any
    operands: list[np.ndarray]
    taken: int = 0
    """Cycle in which the start was taken."""
    first: int = 0
    last: int = 0
    """Cycles in which the result's first and last word came."""

    @property
    def words(self) -> int:
        return -(-len(self.operands[0]) // 64)

    @property
    def wide(self) -> bool:
        return len(self.ports) > 1 and self.dtype in WIDE and self.func in (Func.SUM, Func.PROD)


class Bench:
    """Gives own words in the order of starts, collects results by tag."""

    def __init__(self, dut: Any) -> None:
        given = parameters()
        self.dut, self.rng = dut, new_random("chain")
        self.numbers = np.random.default_rng(self.rng.getrandbits(63))
        self.ports = given["Ports"]
        datatypes, funcs = given.get("Datatypes", 0x1FFFFE), given.get("Funcs", 0x1FFA)
        self.register = given["InputRegister"]
        self.slowest = (11 if funcs >> 2 & 1 else 8) + self.register
        self.cases = [
            (func, dtype)
            for func in Func
            for dtype in Datatype
            if is_computed(func, dtype) and funcs >> func & 1 and datatypes >> dtype & 1
        ]
        self.starts = ChannelSource(dut, "start", ("ports", "func", "dtype", "words", "tag"))
        self.own = ChannelSource(dut, "own", ("data", "keep"), lanes=self.ports)
        self.pending: deque[Start] = deque()
        """Offered, not taken yet."""
        self.open: dict[int, Start] = {}
        self.parts: dict[int, list[bytes]] = {}
        self.done: list[Start] = []
        self.seen: Counter[str] = Counter()
        self.cycle = 0
        self.tag = 0
        cocotb.start_soon(self._watch())

    def latency(self, func: Any, dtype: Any, children: int = 2) -> int:
        """Cycles that a cell takes: those of the plugin that combines, or of the fastest one."""
        cycles = 3
        if children > 1 and func == Func.PROD:
            cycles = 11
        elif children > 1 and func == Func.SUM and (dtype in oracle.FORMATS or dtype in oracle.PARTS):
            cycles = 8
        return cycles + self.register

    def start(self, ports: list[int], func: Any, dtype: Any, length: int) -> Start:
        """Offers a segment of about so many bytes."""
        size = oracle.element_bytes(dtype)
        count = max(1, length // size)
        pairs = [oracle.operands(self.numbers, func, dtype, max(count, 12)) for _ in range((len(ports) + 1) // 2)]
        operands = []
        for pair in pairs:
            order = self.numbers.permutation(max(count, 12))[:count]
            operands += [np.ascontiguousarray(one.reshape(-1, size)[order]).reshape(-1) for one in pair]
        one = Start(self.tag, ports, func, dtype, operands[: len(ports)])
        self.tag = (self.tag + 1) % 256
        while one.tag in self.open:
            raise AssertionError("too many segments at once")
        self.open[one.tag], self.parts[one.tag] = one, []
        self.pending.append(one)
        for port, operand in zip(ports, one.operands, strict=True):
            data = operand.tobytes()
            for at in range(0, len(data), 64):
                part = data[at : at + 64]
                noise = self.rng.getrandbits(8 * (64 - len(part))) << 8 * len(part) if len(part) < 64 else 0
                self.own.put((int.from_bytes(part, "little") | noise, (1 << len(part)) - 1), port)
        return one

    async def offer(self) -> None:
        """Starts follow their own words by some cycles: these are there when they are pulled."""
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        for one in self.pending:
            mask = sum(1 << port for port in one.ports)
            self.starts.put((mask, int(one.func), int(one.dtype), one.words, one.tag))

    async def _watch(self) -> None:
        dut, bits = self.dut, 512
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if int(dut.start_valid_i.value) and int(dut.start_ready_o.value):
                self.pending.popleft().taken = self.cycle
            valid = int(dut.result_valid_o.value)
            if not valid:
                continue
            self.seen[f"{valid.bit_count()} results"] += 1
            data, keep = int(dut.result_data_o.value), int(dut.result_keep_o.value)
            upper = int(dut.result_upper_o.value)
            last, tag, mode = (int(getattr(dut, f"result_{name}_o").value) for name in ("last", "tag", "mode"))
            for port in range(self.ports):
                if not valid >> port & 1:
                    continue
                one = self.open[tag >> 8 * port & 0xFF]
                assert port == one.ports[-1], f"the result of {one.ports} came at port {port}"
                assert mode >> 2 * port & 3 == (WIDE[one.dtype] if one.wide else PASS)
                kept = keep >> 64 * port & (1 << 64) - 1
                assert kept & (kept + 1) == 0
                assert kept
                word = (data >> bits * port & (1 << bits) - 1).to_bytes(64, "little")
                if one.wide:
                    word += (upper >> bits * port & (1 << bits) - 1).to_bytes(64, "little")
                if not self.parts[one.tag]:
                    one.first = self.cycle
                self.parts[one.tag].append(word[: kept.bit_length() << one.wide])
                if last >> port & 1:
                    one.last = self.cycle
                    self._check(one)
                    del self.open[one.tag]
                    self.done.append(one)

    def _check(self, one: Start) -> None:
        want = fold(one.func, one.dtype, one.operands)
        got = np.frombuffer(b"".join(self.parts.pop(one.tag)), np.uint8)
        where = f"{one.func!r} of {one.dtype!r} over ports {one.ports}"
        assert got.shape == want.shape, f"{where}: {got.size} bytes, not {want.size}"
        dtype = Datatype.FP32 if one.wide else one.dtype
        wrong = oracle.differs(one.func, dtype, got, want)
        assert not wrong.any(), f"{where}: element {int(np.argmax(wrong))}: {got} is not {want}"
        self.seen["wide" if one.wide else "plain"] += 1

    async def finish(self) -> None:
        """Waits until all results are there; own words are used up then."""
        await self.offer()
        for _ in range(200_000):
            if not self.open:
                break
            await RisingEdge(self.dut.clk_i)
        assert not self.open, f"no results of {[one.ports for one in self.open.values()]}"
        for _ in range(3 * self.slowest):
            await RisingEdge(self.dut.clk_i)
        assert not any(self.own.queues), "own words are left"
        assert not int(self.dut.own_valid_i.value), "own words are left"


async def begin(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    return bench


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def all_functions_mixed(dut: Any) -> None:
    """Any sets of ports, lengths and functions behind one another, dense and with pauses."""
    bench = await begin(dut)
    rng = bench.rng
    left = list(bench.cases) * 2
    rng.shuffle(left)
    while left or len(bench.done) < scaled(600, 240):
        bench.starts.pauses = [rng.choice((never, share(rng, 0.5), share(rng, 0.95)))]
        for _ in range(60):
            func, dtype = left.pop() if left else rng.choice(bench.cases)
            ports = sorted(rng.sample(range(bench.ports), rng.choice((1, 2, 2, 3, bench.ports))))
            length = rng.choice((1, rng.randint(1, 64), 64 * rng.randint(1, 4), rng.randint(1, 700)))
            bench.start(ports, func, dtype, length)
        await bench.finish()
    dut._log.info("%d folds, %s", len(bench.done), dict(bench.seen))
    assert bench.seen["plain"] > 100
    if any(dtype in WIDE for _, dtype in bench.cases):
        assert bench.seen["wide"] >= 4
    # Several aggregations at once.
    assert bench.seen["2 results"] + bench.seen["3 results"] > 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency_grows_by_a_cell_a_child(dut: Any) -> None:
    """k children take k cells at the function's pace, and three cycles."""
    bench = await begin(dut)
    for func, dtype in bench.rng.sample(bench.cases, min(6, len(bench.cases))):
        for children in range(1, bench.ports + 1):
            ports = sorted(bench.rng.sample(range(bench.ports), children))
            one = bench.start(ports, func, dtype, 64 * 5)
            await bench.finish()
            cells = children * bench.latency(func, dtype, children)
            assert one.first - one.taken == cells + 3, f"{func!r} of {dtype!r}: {one.first - one.taken} cycles"
            assert one.last - one.first == 5 - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle_and_aggregation(dut: Any) -> None:
    """Segments on the same ports follow without a gap; and others on other ports do not slow them."""
    bench = await begin(dut)
    half = bench.ports // 2
    sets = [list(range(half)), list(range(half, bench.ports))]
    halves = [(func, dtype) for func, dtype in bench.cases if dtype in WIDE and func == Func.SUM][:1]
    others = [next(case for case in bench.cases if case[1] not in WIDE)]
    for (func, dtype), used in itertools.product(halves + others, (1, 2)):
        segments = scaled(24, 12)
        done = [[bench.start(ports, func, dtype, 64 * 16) for ports in sets[:used]] for _ in range(segments)]
        await bench.finish()
        for number in range(used):
            first, last = done[0][number], done[-1][number]
            assert last.last - first.first == 16 * segments - 1, f"{last.last - first.first} cycles"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def crossing_aggregations_wait(dut: Any) -> None:
    """A start begins in the first cycle in which its words come to each cell behind those of earlier starts."""
    bench = await begin(dut)
    func, dtype = next(case for case in bench.cases if case[1] not in WIDE)
    latency = bench.latency(func, dtype)
    every, tail, head = list(range(bench.ports)), [bench.ports - 2, bench.ports - 1], [0, 1]

    def began(one: Start) -> int:
        return one.first - latency * len(one.ports)

    ahead = latency * (bench.ports - 2)
    for words in (1, 4, ahead - 1, ahead + 1, 100):
        first, second, third, last = (
            bench.start(ports, func, dtype, 64 * count)
            for ports, count in ((every, words), (tail, words), (every, 3), (head, 2))
        )
        await bench.finish()
        assert began(second) == began(first) + ahead + words
        assert began(third) == max(began(second) + 1, began(second) + words - ahead)
        assert began(last) == began(third) + 3


def precompiled() -> None:
    """The operators of C++ are compiled before simulated time runs."""
    bulk.combine(int(Func.SUM), int(Datatype.INT32), np.zeros(4, np.uint8), np.zeros(4, np.uint8), 4)


@pytest.mark.parametrize(
    ("ports", "datatypes", "funcs", "register"),
    [
        (4, 0x1FFFFE, 0x1FFE, 1),  # everything
        (5, 0x000054, 0x000A, 0),  # int32, fp16, fp32; sum, min
        full(28, 0x000044, 0x000A, 1),  # int32, fp32; sum, min
    ],
    ids=["all", "sums", "28"],
)
def test_unisono_switch_chain(ports: int, datatypes: int, funcs: int, register: int) -> None:
    precompiled()
    given: dict[str, int] = {"Ports": ports, "Datatypes": datatypes, "Funcs": funcs, "InputRegister": register}
    simulate(
        "unisono_switch_chain",
        __file__,
        {**given, "Datatypes": f"24'd{datatypes}"},
        # Cells are alike: one text for all of them takes the compiler a third of the time.
        verilator_args=["-fno-inline"],
        environment={"UNISONO_PARAMETERS": json.dumps(given)},
        limit_s=400,
    )
