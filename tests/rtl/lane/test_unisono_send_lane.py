"""unisono_send_lane: random jobs through a memory that stalls, against what each must announce, send and end with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import cocotb
import pytest
from bus import ChannelSink, ChannelSource, Port, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from hdl import full, parameters, scaled, simulate

MEMORY0, MEMORY1 = 1, 1
JOB = [
    *(("id", 8), ("generation", 2), ("last", 1), ("wakes", 1), ("bytes", 14), ("func_dtype", None), ("swap", 1)),
    *(("wide", 1), ("op0", 2), ("op0_address", 64), ("op1", 2), ("op1_address", 64), ("releases", 1)),
    *(("buffer", 10), ("accumulate", 1), ("local", 1), ("local_address", 64), ("stream", 1), ("starts", 1)),
    *(("serves", 1), ("send", 1), ("transmit", None)),
]
"""Fields of job_t from the highest bit; what has no width here gets it from the ports."""


@dataclass
class Job:
    id: int
    generation: int
    last: int
    address: int
    data: bytes
    transmit: int
    serves: int
    error: bool

    def end(self) -> int:
        """job_end_t: id, generation, last, wakes, made, error, serves, releases, buffer."""
        return self.id << 31 | self.generation << 29 | self.last << 28 | int(self.error) << 12 | self.serves << 11


class Commands(ChannelSink):
    """The reader: gives the words of the job whose command this is."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.left: list[Job] = []
        super().__init__(bench.dut, "command", ("address", "bytes"))

    def _accept(self, lane, word):
        job = self.left.pop(0)
        assert word == (job.address, len(job.data)), f"{word}, not {job}"
        wide, source = self.bench.wide, self.bench.read
        for at in range(0, len(job.data), wide):
            part = job.data[at : at + wide]
            last = at + wide >= len(job.data)
            # Until the last word, the flag says nothing.
            flag = job.error if last else source.rng.getrandbits(1)
            source.put((int.from_bytes(part, "little"), (1 << len(part)) - 1, last, flag))


class Words(ChannelSink):
    """What goes to Tx; each word belongs to the next packet that was announced."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.parts, self.slots = bench, bytearray(), set()
        self.packets: list[tuple[bytes, set[int]]] = []
        self.whole = 0
        self.cycles: list[int] = []
        super().__init__(bench.dut, "send", ("data", "keep", "last", "slot"))

    def _accept(self, lane, word):
        data, keep, last, slot = word
        self.cycles.append(self.cycle)
        self.parts += data.to_bytes(self.bench.wide, "little")[: keep.bit_length()]
        self.slots.add(slot)
        assert self.bench.announced_with_data() > self.whole, "a word of a packet that was not announced"
        if last:
            self.whole += 1
            self.packets.append((bytes(self.parts), self.slots))
            self.parts, self.slots = bytearray(), set()


class Bench:
    def __init__(self, dut) -> None:
        self.dut, self.rng = dut, new_random("send lane")
        self.wide = parameters()["DataBytes"]
        self.jobs: list[Job] = []
        self.seen: Counter[str] = Counter()
        self.source = ChannelSource(dut, "job", ())
        self.source.fields = [Port(dut, "job_i", 1)]
        self.source._noise = [0]
        self.transmits, self.ends = ChannelSink(dut, "transmit", ()), ChannelSink(dut, "end", ())
        self.transmits.fields, self.ends.fields = [Port(dut, "transmit_o", 1)], [Port(dut, "end_o", 1)]
        self.read = ChannelSource(dut, "read", ("data", "keep", "last", "error"))
        self.commands, self.words = Commands(self), Words(self)
        self.transmit_bits = len(dut.transmit_o)
        known = sum(bits or 0 for _, bits in JOB)
        widths = {"transmit": self.transmit_bits, "func_dtype": len(dut.job_i) - known - self.transmit_bits}
        self.layout = [(name, widths[name] if bits is None else bits) for name, bits in JOB]
        self.alone = never
        dut.alone_i.value = 0
        cocotb.start_soon(self.watch())

    def announced_with_data(self) -> int:
        return sum(bool(job.data) for job in self.jobs[: self.transmits.taken[0]])

    async def watch(self) -> None:
        """Announcements come when the first word is there, or when nobody else has something to send."""
        offered = False
        while True:
            await RisingEdge(self.dut.clk_i)
            self.dut.alone_i.value = self.alone()
            await FallingEdge(self.dut.clk_i)
            valid = bool(int(self.dut.transmit_valid_o.value))
            if valid and not offered and int(self.dut.rst_ni.value):
                there, alone = int(self.dut.read_valid_i.value), int(self.dut.alone_i.value)
                job = self.jobs[self.transmits.taken[0]]
                if job.data:
                    assert there or alone, f"announced without a word: {job}"
                    self.seen["with its word" if there else "alone"] += 1
            offered = valid and not int(self.dut.transmit_ready_i.value)

    def put(self, size: int) -> None:
        rng = self.rng
        job = Job(
            id=rng.getrandbits(8),
            generation=rng.getrandbits(2),
            last=rng.getrandbits(1),
            address=rng.getrandbits(64),
            data=rng.randbytes(size),
            transmit=rng.getrandbits(self.transmit_bits),
            serves=rng.getrandbits(1),
            error=size > 0 and rng.random() < 0.2,
        )
        first = rng.random() < 0.5
        values = {
            "id": job.id,
            "generation": job.generation,
            "last": job.last,
            "bytes": size,
            "send": 1,
            "op0": MEMORY0 if size and first else 0,
            "op1": MEMORY1 if size and not first else 0,
            "op0_address": job.address if first else rng.getrandbits(64),
            "op1_address": rng.getrandbits(64) if first else job.address,
            "buffer": rng.getrandbits(10),
            "local_address": rng.getrandbits(64),
            "serves": job.serves,
            "transmit": job.transmit,
        }
        raw = 0
        for name, bits in self.layout:
            raw = raw << bits | values.get(name, 0)
        self.jobs.append(job)
        if size:
            self.commands.left.append(job)
        self.source.put((raw,))

    async def check(self, since: int) -> None:
        """Everything of the jobs from this one on."""
        for number, job in enumerate(self.jobs[since:], since):
            about = f"job {number}, {len(job.data)} bytes"
            assert (await with_timeout(self.ends.get(), 200, "us"))[0] == job.end(), about
            # What has ended has been announced, and has left.
            assert self.transmits.words[0], f"{about}: ended before it was announced"
            assert self.transmits.words[0].popleft()[0] == job.transmit, about
            if job.data:
                assert self.words.packets, f"{about}: ended before it was sent"
                assert self.words.packets.pop(0) == (job.data, {job.id >> 5}), about
                self.seen["packets"] += 1
        assert not self.words.packets
        assert not self.commands.left


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_jobs(dut):
    bench = Bench(dut)
    rng = bench.rng
    await start_clock_and_reset(dut)
    ports = (bench.source, bench.transmits, bench.ends, bench.read, bench.commands, bench.words)
    for _ in range(scaled(60, 25)):
        for port in ports:
            port.pauses = [rng.choice([never, share(rng, 0.3), share(rng, 0.8), bursts(rng)])]
        bench.alone = rng.choice([never, lambda: True, share(rng, 0.5)])
        since = len(bench.jobs)
        for _ in range(30):
            bench.put(rng.choice((0, 1, bench.wide, rng.randint(1, 4 * bench.wide), rng.randint(1, 12 * bench.wide))))
        await bench.check(since)
    for what in ("with its word", "alone", "packets"):
        assert bench.seen[what] > 20, bench.seen
    assert sum(job.error for job in bench.jobs) > 20
    assert sum(not job.data for job in bench.jobs) > 20


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_cycle_more_per_packet(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    packets, words = 20, 6
    for _ in range(packets):
        bench.put(words * bench.wide)
    await bench.check(0)
    cycles = bench.words.cycles
    assert len(cycles) == packets * words
    assert cycles[-1] - cycles[0] == packets * (words + 1) - 2


@pytest.mark.parametrize("data_bytes", [64, full(16)])
def test_unisono_send_lane(data_bytes):
    simulate("unisono_send_lane", __file__, {"DataBytes": data_bytes})
