"""unisono_compute_lane: random jobs and fan-ins of several datatypes, against NumPy; every interface stalls.

Memory, the head of Rx, a kernel's streams, the plugins, the writer and Tx are models. Each job's result is computed
from its whole operands, the plugins' from the words that they get.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import cocotb
import ml_dtypes
import numpy as np
import pytest
import records
from bus import ChannelSink, ChannelSource, Pause, Port, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate

S = records.load()
D, F = S.Datatype, S.Func
TYPES: dict[int, Any] = {
    D.UINT8: np.uint8,
    D.INT16: np.int16,
    D.INT32: np.int32,
    D.UINT64: np.uint64,
    D.FP16: np.float16,
    D.BF16: ml_dtypes.bfloat16,
    D.FP32: np.float32,
    D.FP64: np.float64,
}
HALVES = (D.FP16, D.BF16)
SEGMENT = 8192
NONE, MEMORY, ACCUMULATOR, STREAM = range(4)  # op0
BYPASS = 2  # op1
LIMIT = 3000
"""Cycles without a word at the plugins and without an end, after which the lane is stuck."""

JOB = [
    *(("id", 8), ("generation", 2), ("last", 1), ("wakes", 1), ("bytes", 14), ("func", 8), ("dtype", 6), ("swap", 1)),
    *(("wide", 1), ("op0", 2), ("op0_address", 64), ("op1", 2), ("op1_address", 64), ("releases", 1)),
    *(("buffer", 10), ("accumulate", 1), ("local", 1), ("local_address", 64), ("stream", 1), ("starts", 1)),
    *(("serves", 1), ("send", 1), ("transmit", None)),
]
"""Fields of job_t from the highest bit; `transmit` has what is left."""


def combine(func: int, kind: Any, swap: int, a: bytes, b: bytes) -> bytes:
    """The function on all elements; user0 is the difference, which tells its operands apart."""
    x, y = np.frombuffer(b if swap else a, kind), np.frombuffer(a if swap else b, kind)
    with np.errstate(all="ignore"):
        table = {F.SUM: np.add, F.PROD: np.multiply, F.MAX: np.maximum, F.USER0: np.subtract}
        return np.asarray(table[func](x, y), kind).tobytes()


@dataclass
class Job:
    values: dict[str, int]
    op0: bytes = b""
    op1: bytes = b""
    result: bytes = b""
    read_bad: bool = False
    write_bad: bool = False
    delivered: dict[str, bool] = field(default_factory=dict)

    def __getattr__(self, name: str) -> int:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def writes(self) -> bool:
        """To memory."""
        return bool(self.local and self.bytes and not self.stream)

    def end(self) -> int:
        """job_end_t: id, generation, last, wakes, made, error, serves, releases, buffer."""
        raw = self.id << 2 | self.generation
        raw = (raw << 1 | self.last) << 1 | self.wakes
        raw = raw << 14 | (self.bytes if self.local else 0)
        raw = (raw << 1 | int(self.read_bad or (self.writes and self.write_bad))) << 1
        return (raw << 1 | self.releases) << 10 | self.buffer


class Commands(ChannelSink):
    """A reader, of memory or of a kernel's stream: gives the words of the job whose command this is."""

    def __init__(self, bench: Bench, name: str, place: str, data: ChannelSource) -> None:
        self.bench, self.name, self.source = bench, name, data
        self.left: deque[Job] = deque()
        super().__init__(bench.dut, f"{name}_command", (place, "bytes"))

    def _accept(self, lane, word):
        job = self.left.popleft()
        second = self.name == "op1"
        address = job.op1_address if second else job.op0_address
        if self.name == "source":
            address &= (1 << self.fields[0].width) - 1
        assert word == (address, job.bytes), f"{self.name}: {word}, not {job.values}"
        self.bench.give(self.source, job, job.op1 if second else job.op0, may_fail=self.name != "source")


class Plugins(ChannelSink):
    """The plugins: any latency, results in order; only so many inside."""

    def __init__(self, bench: Bench, results: ChannelSource) -> None:
        self.bench, self.results, self.inside = bench, results, 32
        fields = ("op0", "op1", "use0", "use1", "func", "dtype", "swap", "keep", "last")
        super().__init__(bench.dut, "plugin", fields)

    def stall(self, pause: Pause) -> Pause:
        return lambda: len(self.results.queues[0]) >= self.inside or pause()

    def _accept(self, lane, word):
        op0, op1, use0, use1, func, dtype, swap, keep, last = word
        wide, rng = self.bench.wide, self.results.rng
        count = keep.bit_length()
        assert keep + 1 == 1 << count, f"keep {keep:#x} has gaps"
        assert count, "a word without bytes"
        assert last or count == wide, f"keep {keep:#x} before the last word"
        a, b = (value.to_bytes(wide, "little")[:count] for value in (op0, op1))
        if use0 and use1:
            data = combine(func, TYPES[dtype], swap, a, b)
        else:
            assert func == F.NONE, f"function {func} of one operand"
            data = a if use0 else b
        noise = rng.getrandbits(8 * wide)
        value = int.from_bytes(data, "little") | noise >> 8 * count << 8 * count
        self.results.put((value, keep, last))
        self.bench.seen["words combined" if use0 and use1 else "words passed"] += 1


class Bench:
    OUTPUTS = ("write", "sink", "send")

    def __init__(self, dut) -> None:
        self.dut, self.rng = dut, new_random("compute lane")
        self.numbers = np.random.default_rng(self.rng.getrandbits(63))
        self.wide = parameters()["DataBytes"]
        self.seen: Counter[str] = Counter()
        self.jobs: list[Job] = []
        self.ended = 0
        self.passed = 0  # words past the plugins
        self.cycle = 0
        self.source = ChannelSource(dut, "job", ())
        self.source.fields, self.source._noise = [Port(dut, "job_i", 1)], [0]
        reads = ("data", "keep", "last", "error")
        self.op0, self.op1 = ChannelSource(dut, "op0", reads), ChannelSource(dut, "op1", reads)
        self.kernel, self.bypass = ChannelSource(dut, "source", reads), ChannelSource(dut, "bypass", reads)
        self.results = ChannelSource(dut, "result", ("data", "keep", "last"))
        self.plugins = Plugins(self, self.results)
        self.commands = {
            "op0": Commands(self, "op0", "address", self.op0),
            "op1": Commands(self, "op1", "address", self.op1),
            "source": Commands(self, "source", "port", self.kernel),
        }
        self.writes = ChannelSink(dut, "write_command", ("address", "bytes"))
        self.transmits = ChannelSink(dut, "transmit", ())
        self.transmits.fields = [Port(dut, "transmit_o", 1)]
        self.transmit_bits = len(dut.job_i) - sum(bits or 0 for _, bits in JOB)
        assert self.transmit_bits == len(dut.transmit_o)
        assert (len(dut.plugin_func_o), len(dut.plugin_dtype_o)) == (8, 6)
        # What the watcher has not seen yet.
        self.joins: deque[Job] = deque()
        self.to_join: deque[Job] = deque()
        self.to: dict[str, deque[Job]] = {name: deque() for name in self.OUTPUTS}
        self.to_announce: deque[Job] = deque()
        self.parts = {name: bytearray() for name in self.OUTPUTS}
        self.output_pauses: dict[str, Pause] = dict.fromkeys(self.OUTPUTS, never)
        self.cycles: dict[str, list[int]] = {name: [] for name in (*self.OUTPUTS, "accepted", "command")}
        self.written_after = 1
        dut.written_valid_i.value = dut.written_error_i.value = 0
        for name in self.OUTPUTS:
            getattr(dut, f"{name}_ready_i").value = 0
        cocotb.start_soon(self.watch())

    # ------------------------------------------------------------------------------------------ jobs

    def give(self, source: ChannelSource, job: Job, data: bytes, *, may_fail: bool) -> None:
        """The words of an operand; what is not kept is noise, and so is the flag of what cannot fail."""
        rng, wide = source.rng, self.wide
        fails = may_fail and bool(job.values["fails"])
        for at in range(0, len(data), wide):
            part = data[at : at + wide]
            value = int.from_bytes(part, "little")
            value |= rng.getrandbits(8 * wide) >> 8 * len(part) << 8 * len(part)
            last = at + wide >= len(data)
            bad = fails and rng.random() < 0.3
            if bad:
                job.read_bad = True
                self.seen["error in a last word" if last else "error in a word before the last"] += 1
            source.put((value, (1 << len(part)) - 1, last, bad if may_fail else rng.getrandbits(1)))

    def operand(self, dtype: int, func: int, size: int) -> bytes:
        """Random numbers: all bits for integers, finite ones, subnormals too, for floating point."""
        kind = TYPES[dtype]
        count = size // np.dtype(kind).itemsize
        if dtype in (D.BF16, D.FP32, D.FP64):
            small = self.numbers.integers(-12, 13, count) if func == F.PROD else self.numbers.integers(-140, 100, count)
            return np.asarray(np.ldexp(self.numbers.uniform(-2, 2, count), small), kind).tobytes()
        raw = self.numbers.integers(0, 256, size, np.uint8)
        if dtype == D.FP16:
            raw[1::2] &= np.where(raw[1::2] & 0x7C == 0x7C, 0xBF, 0xFF).astype(np.uint8)  # no infinity, no NaN
        return raw.tobytes()

    def size(self, element: int) -> int:
        rng, wide = self.rng, self.wide
        near = rng.choice((element, wide // 2, wide // 2 + element, wide, wide + element, 2 * wide - element))
        most = rng.choice((2, 6, 6, 12)) * wide
        length = rng.choice((near, near, rng.randint(element, most)))
        return max(element, length // element * element)

    def put(self, **given: Any) -> Job:
        """Queues a job; fields that are not given are noise where they do not matter."""
        rng = self.rng
        op0, op1, result = (given.pop(name, b"") for name in ("data0", "data1", "result"))
        values = {name: 0 for name, _ in JOB} | {"op0_kind": NONE, "op1_kind": NONE}
        for name, bits in JOB:
            if name in ("id", "generation", "last", "wakes", "buffer", "transmit", "starts") or "address" in name:
                values[name] = rng.getrandbits(bits or self.transmit_bits)
        values["fails"] = rng.random() < 0.2
        values.update(given)
        job = Job(values, op0, op1, result, write_bad=rng.random() < 0.15)
        raw = 0
        for name, bits in JOB:
            raw = raw << (bits or self.transmit_bits) | values[name]
        self.jobs.append(job)
        if job.bytes:
            self.to_join.append(job)
            if job.op0_kind in (MEMORY, STREAM):
                self.commands["op0" if job.op0_kind == MEMORY else "source"].left.append(job)
            if job.op1_kind == MEMORY:
                self.commands["op1"].left.append(job)
            if job.op1_kind == BYPASS:
                self.give(self.bypass, job, op1, may_fail=False)
            if job.local:
                self.to["sink" if job.stream else "write"].append(job)
            if job.send:
                self.to["send"].append(job)
        if job.send:
            self.to_announce.append(job)
        self.source.put((raw,))
        return job

    def where(self) -> dict[str, int]:
        """Where a result goes."""
        local, stream, send = self.rng.choice(
            ((1, 0, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1), (0, 0, 1), (1, 0, 1), (1, 1, 1))
        )
        kind = ("", "memory", "stream")[local + stream] or "peer"
        self.seen[f"to {kind}" + (" and a peer" if send and local else "")] += 1
        return {"local": local, "stream": stream, "send": send}

    def second(self) -> dict[str, int]:
        """Where op1 comes from; in memory it may stand in a receive buffer."""
        rng = self.rng
        op1 = rng.choice((MEMORY, BYPASS))
        releases = int(op1 == MEMORY and rng.random() < 0.5)
        self.seen["releases"] += releases
        return {"op1": op1, "op1_kind": op1, "releases": releases}

    def empty(self) -> None:
        send = self.rng.getrandbits(1)
        self.seen["a header alone" if send else "nothing"] += 1
        self.put(bytes=0, send=send)

    def one(self, size: int | None = None) -> None:
        """A job that is alone: one operand passes, or two are combined."""
        rng = self.rng
        dtype, func = rng.choice(list(TYPES)), rng.choice((F.SUM, F.PROD, F.MAX, F.USER0))
        element = np.dtype(TYPES[dtype]).itemsize
        size = size or self.size(element)
        first = rng.choice((NONE, MEMORY, MEMORY, STREAM))
        second = self.second()
        if first and rng.random() < 0.3:
            second = {"op1": NONE, "op1_kind": NONE}
        data0 = self.operand(dtype, func, size) if first else b""
        data1 = self.operand(dtype, func, size) if second["op1"] else b""
        both = bool(data0 and data1)
        swap = rng.getrandbits(1) if both else 0
        wide = int(both and dtype in HALVES and func in (F.SUM, F.PROD) and rng.random() < 0.7)
        if wide:
            result = self.rounded([data0, data1], dtype, func)
        else:
            result = combine(func, TYPES[dtype], swap, data0, data1) if both else data0 or data1
        self.seen[f"op0 {first}, op1 {second['op1']}"] += 1
        self.seen["swapped differences"] += int(swap and func == F.USER0)
        self.seen["wide alone"] += wide
        self.put(
            bytes=size,
            func=int(func) if both else int(F.NONE),
            dtype=int(dtype),
            swap=swap,
            wide=wide,
            op0=first,
            op0_kind=first,
            data0=data0,
            data1=data1,
            result=result,
            **second,
            **self.where(),
        )

    def rounded(self, messages: list[bytes], dtype: int, func: int) -> bytes:
        """What is combined as fp32 and rounded once."""
        total = np.frombuffer(messages[0], TYPES[dtype]).astype(np.float32)
        with np.errstate(all="ignore"):
            for message in messages[1:]:
                operand = np.frombuffer(message, TYPES[dtype]).astype(np.float32)
                total = total + operand if func == F.SUM else total * operand
            return total.astype(TYPES[dtype]).tobytes()

    def fan_in(self, size: int | None = None, dtype: int | None = None) -> None:
        """Messages of several peers, one after the other through the accumulator."""
        rng = self.rng
        dtype = rng.choice([*TYPES, *HALVES, *HALVES]) if dtype is None else dtype
        func = rng.choice((F.SUM, F.PROD) if dtype in HALVES else (F.SUM, F.PROD, F.MAX, F.USER0))
        size = size or self.size(np.dtype(TYPES[dtype]).itemsize)
        wide = int(dtype in HALVES)
        first = rng.choice((NONE, MEMORY, STREAM))
        peers = rng.randint(2, 4)
        own = self.operand(dtype, func, size) if first else b""
        messages = [self.operand(dtype, func, size) for _ in range(peers)]
        if wide:
            result = self.rounded([own, *messages] if own else messages, dtype, func)
        else:
            result = own or messages[0]
            for message in messages if own else messages[1:]:
                result = combine(func, TYPES[dtype], 0, result, message)
        self.seen[f"fan-in of {'halves' if wide else 'words'}"] += 1
        self.seen[f"fan-in of {np.dtype(TYPES[dtype])}"] += 1
        self.seen[f"fan-in that begins with {first}"] += 1
        for number, message in enumerate(messages):
            ends = number == peers - 1
            op0 = ACCUMULATOR if number else first
            self.put(
                bytes=size,
                func=int(func) if op0 else int(F.NONE),
                dtype=int(dtype),
                wide=wide,
                op0=op0,
                op0_kind=op0,
                data0=own if not number else b"",
                data1=message,
                result=result,
                accumulate=int(not ends),
                **self.second(),
                **(self.where() if ends else {}),
            )

    # -------------------------------------------------------------------------------------- watching

    def begins(self) -> None:
        """A job is accepted: all that it concerns hears of it in this cycle."""
        dut, job = self.dut, self.jobs[self.accepted]
        self.accepted += 1
        self.cycles["accepted"].append(self.cycle)
        wants = {
            "op0_command": bool(job.bytes) and job.op0_kind == MEMORY,
            "source_command": bool(job.bytes) and job.op0_kind == STREAM,
            "op1_command": bool(job.bytes) and job.op1_kind == MEMORY,
            "write_command": job.writes,
        }
        for name, wanted in wants.items():
            assert bool(int(getattr(dut, f"{name}_valid_o").value)) == wanted, f"{name}: {job.values}"
        if job.writes:
            place = int(dut.write_command_address_o.value), int(dut.write_command_bytes_o.value)
            assert place == (job.local_address, job.bytes), f"{place}, not {job.values}"
        if job.bytes:
            self.joins.append(self.to_join.popleft())

    def waits(self) -> None:
        """Why a job is not accepted."""
        names = ("op0_command", "op1_command", "source_command", "write_command")
        held = [name for name in names if not int(getattr(self.dut, f"{name}_ready_i").value)]
        for name in names:
            assert not int(getattr(self.dut, f"{name}_valid_o").value), f"{name} for a job that is not accepted"
        if len(held) < 2:
            self.seen[f"waits for {held[0] if held else 'its queues'}"] += 1

    def word(self, name: str) -> None:
        """A word of a result is taken."""
        dut, job = self.dut, self.to[name][0]
        self.cycles[name].append(self.cycle)
        prefix = "send" if name == "send" else "write"
        data, keep, last = (int(getattr(dut, f"{prefix}_{what}_o").value) for what in ("data", "keep", "last"))
        count = keep.bit_length()
        assert keep + 1 == 1 << count, f"{name}: keep {keep:#x}"
        assert last or count == self.wide, f"{name}: keep {keep:#x} before the last word"
        if name == "send":
            assert int(dut.send_slot_o.value) == job.id >> 5
            assert job.delivered.get("transmit"), "a word of a packet that was not announced"
        if name == "sink":
            got = tuple(int(getattr(dut, f"sink_{what}_o").value) for what in ("port", "starts", "ends"))
            ports = (1 << len(dut.sink_port_o)) - 1
            assert got == (job.local_address & ports, job.starts, job.last), f"{got}: {job.values}"
        parts = self.parts[name]
        parts += data.to_bytes(self.wide, "little")[:count]
        if last:
            about = f"{name}: {TYPES.get(job.dtype)}, function {job.func}, wide {job.wide}, {job.bytes} bytes"
            kind = np.dtype(TYPES[job.dtype]).newbyteorder("<") if job.dtype else np.uint8
            assert len(parts) == job.bytes, f"{about}: {len(parts)}"
            wrong = [
                (at, x, y)
                for at, (x, y) in enumerate(
                    zip(np.frombuffer(bytes(parts), kind), np.frombuffer(job.result, kind), strict=True)
                )
                if x.tobytes() != y.tobytes() and not (x != x and y != y)
            ]
            assert not wrong, f"{about}: {wrong[:4]}"
            job.delivered[name] = True
            self.to[name].popleft()
            parts.clear()
            if name == "write":
                self.writing.append((self.cycle + self.rng.randint(1, self.written_after), job))

    def over(self, end: int) -> None:
        job = self.jobs[self.ended]
        about = f"job {self.ended}: {job.values}"
        assert end == job.end(), f"{end:#x}, not {job.end():#x}: {about}"
        wants = {"write": job.writes, "written": job.writes, "sink": bool(job.bytes and job.local and job.stream)}
        wants |= {"send": bool(job.bytes and job.send), "transmit": bool(job.send)}
        for name, wanted in wants.items():
            assert job.delivered.get(name, False) == wanted, f"{name} at the end of {about}"
        self.seen["bad read" if job.read_bad else "bad write" if job.writes and job.write_bad else "good"] += 1
        self.ended += 1

    def direct(self) -> None:
        """A word may pass the plugins by: then its one operand is taken, and its result leaves, in this cycle."""
        dut = self.dut
        names = [
            name
            for name in ("op0", "source", "op1", "bypass")
            if int(getattr(dut, f"{name}_valid_i").value) and int(getattr(dut, f"{name}_ready_o").value)
        ]
        if not names:
            return
        job = self.joins[0]
        assert len(names) == 1, f"operands {names} of a word that the plugins do not get"
        assert job.func == F.NONE, f"passes the plugins by: {job.values}"
        assert not job.wide, f"passes the plugins by: {job.values}"
        self.seen["words past the plugins"] += 1
        self.passed += 1
        if int(getattr(dut, f"{names[0]}_last_i").value):
            self.joins.popleft()

    async def watch(self) -> None:
        dut = self.dut
        self.accepted = 0
        self.writing: deque[tuple[int, Job]] = deque()
        ready = dict.fromkeys(self.OUTPUTS, False)
        held: dict[str, tuple[int, int, int] | None] = dict.fromkeys(self.OUTPUTS)
        while True:
            await RisingEdge(dut.clk_i)
            if not int(dut.rst_ni.value):
                continue
            self.cycle += 1
            if int(dut.transmit_valid_o.value) and int(dut.transmit_ready_i.value):
                job = self.to_announce.popleft()
                assert int(dut.transmit_o.value) == job.transmit
                job.delivered["transmit"] = True
            fired = [name for name in self.OUTPUTS if ready[name] and int(getattr(dut, f"{name}_valid_o").value)]
            for name in self.OUTPUTS:
                # A word for one place alone stays until it is taken.
                now = None
                if int(getattr(dut, f"{name}_valid_o").value):
                    assert self.to[name], f"{name}: a word too much"
                    prefix = "send" if name == "send" else "write"
                    now = tuple(int(getattr(dut, f"{prefix}_{what}_o").value) for what in ("data", "keep", "last"))
                before = held[name]
                assert before is None or now == before, f"{name}: the offered word changed"
                job = self.to[name][0] if self.to[name] else None
                alone = job is not None and not (job.local and job.send)
                held[name] = now if alone and not ready[name] else None
                self.seen[f"{name} held up"] += int(now is not None and not ready[name])
                if job is not None and job.local and job.send and name in fired:
                    pair = {"sink" if job.stream else "write", "send"}
                    assert pair <= set(fired), f"only {fired} of {pair}"
            for name in fired:
                self.word(name)
            if int(dut.end_valid_o.value):
                self.over(int(dut.end_o.value))
            if int(dut.written_valid_i.value):
                dut.written_valid_i.value = 0
            if int(dut.job_valid_i.value):
                if int(dut.job_ready_o.value):
                    self.begins()
                else:
                    self.waits()
            if int(dut.plugin_valid_o.value):
                if not int(dut.plugin_ready_i.value):
                    self.seen["plugins hold up"] += 1
                elif int(dut.plugin_last_o.value):
                    self.joins.popleft()
            else:
                self.direct()
            if int(dut.result_valid_i.value) and not int(dut.result_ready_o.value):
                self.seen["a result waits"] += 1
            dut.written_error_i.value = self.rng.getrandbits(1)
            if self.writing and self.writing[0][0] <= self.cycle:
                _, job = self.writing.popleft()
                dut.written_valid_i.value, dut.written_error_i.value = 1, job.write_bad
                job.delivered["written"] = True
            for name in self.OUTPUTS:
                ready[name] = not self.output_pauses[name]()
                getattr(dut, f"{name}_ready_i").value = ready[name]
            await FallingEdge(dut.clk_i)
            self.check_starves()

    def check_starves(self) -> None:
        dut, job = self.dut, self.joins[0] if self.joins else None
        wants0 = job is not None and job.op0_kind == MEMORY and not int(dut.op0_valid_i.value)
        wants1 = job is not None and job.op1_kind == MEMORY and not int(dut.op1_valid_i.value)
        assert bool(int(dut.starves_o.value)) == (wants0 or wants1), f"starves: {wants0}, {wants1}"
        self.seen["starves for op0"] += int(wants0 and not wants1)
        self.seen["starves for op1"] += int(wants1 and not wants0)
        if job is not None and not (wants0 or wants1):
            lacks = job.op1_kind == BYPASS and not int(dut.bypass_valid_i.value)
            self.seen["waits for the head of Rx"] += int(lacks)
            lacks = job.op0_kind == STREAM and not int(dut.source_valid_i.value)
            self.seen["waits for a kernel's words"] += int(lacks)

    async def all_end(self) -> None:
        moved, since = (0, 0), self.cycle
        while self.ended < len(self.jobs):
            await RisingEdge(self.dut.clk_i)
            now = self.ended, self.plugins.taken[0] + self.passed
            if now != moved:
                moved, since = now, self.cycle
            assert self.cycle - since < LIMIT, f"job {self.ended} does not end: {self.jobs[self.ended].values}"
        for _ in range(3):
            await RisingEdge(self.dut.clk_i)
        assert self.ended == len(self.jobs)
        assert not any(self.to.values()), "words that did not come"
        assert not any(self.parts.values())
        assert not self.joins
        for port in (*self.commands.values(), self.writes):
            port.words[0].clear()
        for source in (self.op0, self.op1, self.kernel, self.bypass, self.results):
            assert not source.queues[0], "words of operands that nobody took"

    def set_paces(self, free: bool = False) -> None:
        rng = self.rng

        def pace() -> Pause:
            return never if free else rng.choice([never, never, share(rng, 0.3), share(rng, 0.8), bursts(rng)])

        for port in (self.source, self.op0, self.op1, self.kernel, self.bypass, self.results, self.transmits):
            port.pauses = [pace()]
        # Four commands must be free at once.
        for port in (*self.commands.values(), self.writes):
            port.pauses = [never if free else rng.choice([never, never, share(rng, 0.5), bursts(rng)])]
        self.plugins.inside = 32 if free else rng.choice((1, 4, 32))
        self.plugins.pauses = [self.plugins.stall(pace())]
        self.output_pauses = {name: pace() for name in self.OUTPUTS}
        self.written_after = 1 if free else rng.choice((1, 5, 200))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_jobs(dut):
    bench = Bench(dut)
    rng = bench.rng
    await start_clock_and_reset(dut)
    wanted = {f"op0 {a}, op1 {b}" for a in (NONE, MEMORY, STREAM) for b in (NONE, MEMORY, BYPASS)} - {"op0 0, op1 0"}
    wanted |= {f"fan-in of {np.dtype(kind)}" for kind in TYPES.values()} | {"fan-in of halves", "fan-in of words"}
    wanted |= {f"fan-in that begins with {first}" for first in (NONE, MEMORY, STREAM)}
    wanted |= {"to memory", "to stream", "to peer", "to memory and a peer", "to stream and a peer"}
    wanted |= {"a header alone", "nothing", "wide alone", "swapped differences", "releases"}
    wanted |= {"good", "bad read", "bad write", "error in a last word", "error in a word before the last"}
    wanted |= {f"waits for {name}_command" for name in ("op0", "op1", "source", "write")} | {"waits for its queues"}
    wanted |= {"starves for op0", "starves for op1", "waits for the head of Rx", "waits for a kernel's words"}
    wanted |= {"write held up", "sink held up", "send held up", "plugins hold up", "a result waits"}
    wanted |= {"words combined", "words passed", "words past the plugins"}
    parts, part = scaled(60, 12), 0
    while part < parts or (any(bench.seen[what] < 3 for what in wanted) and part < 4 * parts):
        bench.set_paces(free=part % 8 == 5)
        for _ in range(24):
            rng.choices((bench.empty, bench.one, bench.fan_in), (2, 6, 3))[0]()
        if part % 30 == 5:
            bench.fan_in(SEGMENT, rng.choice(HALVES))  # all of the accumulator
        await bench.all_end()
        part += 1
    assert all(bench.seen[what] >= 3 for what in wanted), bench.seen


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_word_per_cycle(dut):
    """Two operands: a word per cycle, two cycles if it is widened."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    bench.set_paces(free=True)
    words, jobs = 16, 6
    for dtype, wide, per_word in ((D.INT32, 0, 1), (D.BF16, 1, 2)):
        bench.cycles["write"].clear()
        for _ in range(jobs):
            data = [bench.operand(dtype, F.SUM, words * bench.wide) for _ in range(2)]
            result = bench.rounded(data, dtype, F.SUM) if wide else combine(F.SUM, TYPES[dtype], 0, *data)
            bench.put(
                bytes=words * bench.wide,
                func=int(F.SUM),
                dtype=int(dtype),
                wide=wide,
                op0=MEMORY,
                op0_kind=MEMORY,
                op1=BYPASS,
                op1_kind=BYPASS,
                local=1,
                data0=data[0],
                data1=data[1],
                result=result,
                fails=0,
            )
        await bench.all_end()
        cycles = bench.cycles["write"]
        assert len(cycles) == jobs * words
        gaps = [later - sooner for sooner, later in pairwise(cycles)]
        between = gaps[words - 1 :: words]
        assert all(gap == per_word for at, gap in enumerate(gaps, 1) if at % words), gaps
        # What was rounded leaves the converter before words of the next job enter it.
        assert between == [7 if wide else 1] * (jobs - 1), gaps


@cocotb.test(timeout_time=200, timeout_unit="us")
async def jobs_of_one_word(dut):
    """One per cycle; every second cycle if they send, as each is announced first."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    bench.set_paces(free=True)
    for where, port, gap in (({"local": 1}, "write", 1), ({"send": 1}, "send", 2)):
        bench.cycles[port].clear()
        for _ in range(24):
            data = bench.operand(D.INT32, F.SUM, bench.wide)
            bench.put(
                bytes=bench.wide,
                dtype=int(D.INT32),
                op1=BYPASS,
                op1_kind=BYPASS,
                op0_kind=NONE,
                data1=data,
                result=data,
                **where,
            )
        await bench.all_end()
        cycles = bench.cycles[port]
        gaps = {later - sooner for sooner, later in pairwise(cycles)}
        assert gaps == {gap}, f"{port}: {gaps}"


@pytest.mark.parametrize("data_bytes", [64, full(16)])
def test_unisono_compute_lane(data_bytes):
    simulate("unisono_compute_lane", __file__, {"DataBytes": data_bytes})
