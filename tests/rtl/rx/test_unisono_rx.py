"""Rx: sound packets pass bit for bit, bad ones never; nothing makes it stop."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import Any

import cocotb
import pytest
from bus import (
    ChannelSink,
    ChannelSource,
    Packet,
    StreamSink,
    StreamSource,
    never,
    new_random,
    paces,
    start_clock_and_reset,
)
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, simulate
from headers import MAGIC, Header, MessageType, core_refuses, core_seals, random_header, reseal, sealed
from rx_model import FAULT, FAULTS, Arrival, Communicator, judge, random_table

LATENCY = 6


class Bench:
    """A transport, the communicator table, and the model."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("bench")
        self.bytes = parameters().get("DataBytes", 64)
        self.table = random_table(self.rng)
        self.meta = ChannelSource(dut, "meta", ("session", "bytes", "error"))
        self.words = StreamSource(dut, "rx")
        self.received = ChannelSink(dut, "received", ("message",))
        self.payload = StreamSink(dut, "payload")
        self.returned = ChannelSink(dut, "returned", ("communicator", "peer", "credits"))
        self.faults = ChannelSink(dut, "fault", ("code", "session", "communicator"))
        self.good: deque[tuple[int, bytes, bytes]] = deque()
        self.credits: list[tuple[int, int, int]] = []
        self.reports: list[tuple[int, int, int]] = []
        self.count: Counter[int] = Counter()
        self.cut = 0
        self.passed: list[bytes] = []
        self.refused: list[bytes] = []
        self.header_in: list[int] = []
        cocotb.start_soon(self._answer())

    def _find(self) -> dict[str, int]:
        number = int(self.dut.find_number_o.value)
        epoch = int(self.dut.find_epoch_o.value)
        for index, row in enumerate(self.table):
            if (row.number, row.epoch) == (number, epoch):
                return {"found_i": 1, "found_communicator_i": index}
        return {"found_i": 0, "found_communicator_i": self.rng.randrange(16)}

    async def _answer(self) -> None:
        """The tables: who it is two cycles after the request, what is known of it one cycle later; noise otherwise."""
        dut, rng = self.dut, self.rng
        pending: dict[str, int] | None = None
        found = False
        while True:
            await RisingEdge(dut.clk_i)
            entry, peer = rng.getrandbits(148), rng.getrandbits(17)
            if found and int(dut.found_i.value):
                row = self.table[int(dut.entry_communicator_o.value)]
                entry = row.entry(rng)
                assert int(dut.peer_communicator_o.value) == int(dut.entry_communicator_o.value)
                rank = int(dut.peer_rank_o.value)
                session = row.sessions[rank] if rank < row.size else rng.getrandbits(16)
                # The channel's bit of a session that stands in the table means nothing.
                peer = rng.getrandbits(16) if session is None else 1 << 16 | session | rng.getrandbits(1) << 15
            dut.entry_i.value = entry
            dut.peer_i.value = peer
            found = pending is not None
            if pending is None:
                pending = {"found_i": rng.getrandbits(1), "found_communicator_i": rng.getrandbits(4)}
            for name, value in pending.items():
                getattr(dut, name).value = value
            pending = self._find() if int(dut.rst_ni.value) and int(dut.find_valid_o.value) else None

    def pace(self, name: str, *, out: bool = True) -> None:
        """Sets the pace of all interfaces; the fault reports are always taken at once."""
        ports: list[Any] = [self.meta, self.words]
        if out:
            ports += [self.received, self.payload, self.returned]
        for number, port in enumerate(ports):
            port.pauses = [dict(paces(new_random(f"{name} {number}")))[name]]

    def message(self, length: int | None = None, row: Communicator | None = None, **fixed: Any) -> Arrival:
        """A sound packet of some member."""
        rng = self.rng
        row = rng.choice(self.table) if row is None else row
        source = rng.choice([rank for rank in range(row.size) if row.sessions[rank] is not None])
        if length is None:
            length = rng.choice(
                (0, 0, rng.randint(1, 2 * self.bytes), self.bytes * rng.randint(1, 4), rng.randint(1, 256))
            )
        fixed = {
            "communicator": row.number,
            "epoch": row.epoch,
            "source": source,
            "destination": row.rank,
            "credits": rng.choice((0, 1, rng.getrandbits(16))),
            **fixed,
        }
        header = random_header(rng, length, **fixed)
        session = row.sessions[source]
        assert session is not None
        return Arrival(session | rng.getrandbits(1) << 15, sealed(header) + rng.randbytes(length))

    def send(self, arrival: Arrival) -> None:
        """Delivers a packet and tells the model."""
        self.meta.put((arrival.session, len(arrival.data), int(arrival.error)))
        actual = arrival.data if arrival.actual is None else arrival.actual
        if actual:
            self.words.send(Packet(actual))
        if arrival.actual is not None and len(arrival.actual) <= 64 and len(arrival.data) >= 64:
            arrival = replace(arrival, error=True)
        if arrival.actual is not None and len(arrival.data) <= 64 <= len(arrival.actual):
            arrival = replace(arrival, error=True)
        fault, index, source = judge(self.table, arrival)
        raw = int.from_bytes(arrival.data[:64], "little")
        self.count[fault] += 1
        if fault:
            self.refused.append(arrival.data)
            self.reports.append((fault, arrival.session, raw >> 64 & 0xFFFFFFFF))
            return
        self.passed.append(arrival.data[:64])
        credits, kind = raw >> 48 & 0xFFFF, raw >> 20 & 15
        if credits:
            self.credits.append((index, source, credits))
        if kind != int(MessageType.CREDIT):
            session = arrival.session & 0x7FFF  # of data, whatever the message came by
            self.good.append(
                (session << 522 | raw << 10 | index << 6 | source, arrival.data[64:], arrival.actual or b"")
            )

    async def settle(self) -> None:
        """Waits until what was sent has been dealt with, and compares everything."""
        while self.good:
            message, payload, actual = self.good.popleft()
            (got,) = await self.received.get()
            assert got == message, f"{got:x} instead of {message:x}"
            if payload:
                packet = await self.payload.receive()
                if actual:
                    common = min(len(actual) - 64, len(payload))
                    assert packet.data[:common] == payload[:common]
                    assert len(packet.data) == len(payload)
                else:
                    assert packet.data == payload
        await self.words.drain()
        await self.meta.drain()
        await ClockCycles(self.dut.clk_i, 200)
        assert not self.received.words[0], "a message that nobody had sent"
        assert not self.payload.packets[0]
        assert not self.payload.incomplete()
        assert list(self.returned.words[0]) == self.credits
        assert int(self.dut.counter_good_o.value) == self.count[0]
        counters = int(self.dut.counter_fault_o.value)
        for fault in range(1, 10):
            counted = counters >> 32 * (fault - 1) & 0xFFFFFFFF
            wanted = self.count[fault] + (self.cut if fault == FAULT["transport"] else 0)
            assert counted == wanted, f"{FAULTS[fault]}: {counted}, should be {wanted}"

    def check_with_core(self) -> None:
        """What passed is what the C++ core accepts, too."""
        assert not any(core_refuses(self.passed)), "passed what the core refuses"
        assert core_seals(self.passed) == self.passed


async def start(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    return bench


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def sound_messages(dut: Any) -> None:
    """Sound packets at every pace, sealed by the C++ core."""
    bench = await start(dut)
    for name in ("free", "random", "slow", "bursts"):
        bench.pace(name)
        arrivals = [bench.message() for _ in range(80)]
        if name == "free":
            row = next(row for row in bench.table if row.segment_bytes == 8192)
            arrivals += [bench.message(8192, row), bench.message(8191, row)]
        headers = core_seals([arrival.data[:60] + bytes(4) for arrival in arrivals])
        for arrival, header in zip(arrivals, headers, strict=True):
            bench.send(replace(arrival, data=header + arrival.data[64:]))
        await bench.settle()
    assert bench.count[0] == 322
    bench.check_with_core()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def throughput(dut: Any) -> None:
    """One word per cycle, and with 64 bytes a packet without payload every cycle."""
    bench = await start(dut)
    words = 64 // bench.bytes
    bench.send(bench.message(0, type=MessageType.EAGER))
    while bench.words.sent[0] != words:
        await RisingEdge(dut.clk_i)
    begin = bench.received.cycle
    while not bench.received.taken[0]:
        await RisingEdge(dut.clk_i)
    latency = bench.received.cycle - begin
    assert latency == LATENCY, f"{latency} cycles from the header to its message"
    await bench.settle()
    for length, payload_words in ((0, 0), (3, 1), (8 * bench.bytes, 8)):
        row = next(row for row in bench.table if row.segment_bytes >= 512)
        before = bench.received.taken[0]
        for _ in range(64):
            bench.send(bench.message(length, row, type=MessageType.WRITE))
        while bench.received.taken[0] < before + 8:
            await RisingEdge(dut.clk_i)
        begin = bench.received.cycle
        while bench.received.taken[0] < before + 60:
            await RisingEdge(dut.clk_i)
        cycles = bench.received.cycle - begin
        assert cycles == 52 * (words + payload_words), f"{cycles} cycles for 52 messages of {length} bytes"
        await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def each_fault(dut: Any) -> None:
    """Every rule is broken alone; each fault is counted and reported, and a sound packet passes after it."""
    bench = await start(dut)
    rng = bench.rng

    def changed(**fields: Any) -> Arrival:
        arrival = bench.message(40, type=MessageType.WRITE, first=False, last=False)
        header = replace(Header.decode(arrival.data[:64]), **fields)
        return replace(arrival, data=sealed(header) + arrival.data[64:])

    def bits(at: int, width: int, value: int) -> Arrival:
        arrival = bench.message(40, type=MessageType.WRITE)
        raw = int.from_bytes(arrival.data[:64], "little")
        raw = raw & ~(((1 << width) - 1) << at) | value << at
        return replace(arrival, data=reseal(raw.to_bytes(64, "little")) + arrival.data[64:])

    small = next(row for row in bench.table if row.segment_bytes == 256)
    base = bench.message(40)
    over = bench.message(small.segment_bytes + 1, small)
    other = next(row for row in bench.table if row.number != small.number)
    cases: list[tuple[str, Arrival]] = [
        ("short", replace(base, data=base.data[:63])),
        ("short", replace(base, data=b"")),
        ("short", replace(base, data=base.data[:1])),
        ("short", replace(base, data=base.data[:103])),
        ("short", replace(base, data=base.data + b"x")),
        ("short", replace(base, data=base.data[:64])),
        ("transport", replace(base, error=True)),
        ("magic", bits(0, 16, MAGIC ^ 0x8000)),
        ("version", bits(16, 4, 2)),
        ("reserved", bits(20, 4, 8)),
        ("reserved", bits(24, 8, 21)),
        ("reserved", bits(24, 8, 64 + 6)),
        ("reserved", bits(38, 10, 512)),
        ("reserved", bits(38, 10, 1)),
        ("reserved", bits(36, 1, 1)),
        ("checksum", replace(base, data=base.data[:60] + bytes(x ^ 0x40 for x in base.data[60:64]) + base.data[64:])),
        ("length", changed(offset=5, message_bytes=44)),
        ("length", changed(first=True, offset=5, message_bytes=45)),
        ("length", changed(last=True, offset=5, message_bytes=46)),
        ("length", changed(offset=(1 << 48) - 20, message_bytes=(1 << 48) - 1)),
        ("length", over),
        ("communicator", changed(communicator=12345)),
        ("communicator", changed(epoch=0xFFFF)),
        ("member", changed(destination=64 + Header.decode(bench.message(0, small).data[:64]).destination)),
        ("member", replace(base, session=base.session ^ 0x100)),
        ("member", bench.message(0, other, destination=(other.rank + 1) % 64)),
        ("member", bench.message(0, other, source=other.size)),
        ("member", bench.message(0, other, source=1 << 31)),
        ("member", bench.message(0, other, source=other.size - 1 + 64)),
    ]
    over_8192 = bench.message(8193, next(row for row in bench.table if row.segment_bytes == 8192))
    cases.append(("length", over_8192))
    for name in ("free", "bursts"):
        bench.pace(name)
        rng.shuffle(cases)
        for wanted, arrival in cases:
            before = bench.count[FAULT[wanted]]
            bench.send(arrival)
            assert bench.count[FAULT[wanted]] == before + 1, f"the test meant {wanted}: {bench.count}"
            sound = bench.message()
            bench.send(sound)
            await bench.settle()
            got = bench.faults.words[0].popleft()
            fault, session, communicator = bench.reports.pop()
            assert got[:2] == (fault, session)
            if len(arrival.data) >= 64:
                assert got[2] == communicator
            assert not bench.faults.words[0]
    assert {name for name, _ in cases} == set(FAULTS[1:])
    bench.check_with_core()


@cocotb.test(timeout_time=6, timeout_unit="ms")
async def fuzz(dut: Any) -> None:
    """Bit flips, random bytes, truncated and overlong packets, among sound ones."""
    bench = await start(dut)
    rng = bench.rng
    for name in ("free", "random", "bursts"):
        bench.pace(name)
        for _ in range(250):
            arrival = bench.message()
            data = bytearray(arrival.data)
            kind = rng.randrange(7)
            if kind == 0:
                for _ in range(rng.choice((1, 1, 2, 5))):
                    bit = rng.randrange(512)
                    data[bit // 8] ^= 1 << bit % 8
            elif kind == 1:
                # A flip that the checksum does not show.
                bit = rng.randrange(rng.choice((48, 480)))
                data[bit // 8] ^= 1 << bit % 8
                data[:] = reseal(bytes(data))
            elif kind == 2:
                data[:] = rng.randbytes(rng.randint(0, 300))
            elif kind == 3:
                data[:] = data[: rng.randint(0, len(data))]
            elif kind == 4:
                data += rng.randbytes(rng.randint(1, 200))
            elif kind == 5:
                arrival = replace(arrival, session=rng.getrandbits(16), error=rng.random() < 0.3)
            bench.send(replace(arrival, data=bytes(data)))
            bench.send(bench.message())
        await bench.settle()
    # Which of the rarer ones come is chance; each_fault has them all.
    assert sum(bench.count[fault] > 0 for fault in range(10)) >= 7, bench.count
    bench.check_with_core()
    dut._log.info(f"faults: { {FAULTS[k]: v for k, v in sorted(bench.count.items())} }")


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def broken_transport(dut: Any) -> None:
    """Packets that are not as long as their meta word says: reported, and the next one is right."""
    bench = await start(dut)
    rng = bench.rng
    for name in ("free", "bursts"):
        bench.pace(name)
        for _ in range(120):
            arrival = bench.message(rng.choice((0, rng.randint(1, 256))), type=MessageType.EAGER)
            if rng.random() < 0.5:
                actual = arrival.data[: rng.randint(1, len(arrival.data))]
            else:
                actual = arrival.data + rng.randbytes(rng.randint(1, 300))
            if actual == arrival.data:
                actual = arrival.data + b"x"
            if len(actual) > 64 and len(arrival.data) > 64:
                bench.cut += 1
            bench.send(replace(arrival, actual=actual))
            bench.send(bench.message())
        await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def newest_fault_wins(dut: Any) -> None:
    """With nobody taking reports, the first and the newest are kept, and the offered one does not change."""
    bench = await start(dut)
    bench.faults.pauses = [lambda: True]
    await ClockCycles(dut.clk_i, 2)
    base = bench.message(0)
    for session in range(100, 110):
        bench.send(replace(base, session=session, error=True))
    await bench.settle()
    bench.faults.pauses = [never]
    await ClockCycles(dut.clk_i, 10)
    assert [word[:2] for word in bench.faults.words[0]] == [(FAULT["transport"], 100), (FAULT["transport"], 109)]


@pytest.mark.parametrize("data_bytes", [64, full(32), full(16), 8])
def test_unisono_rx(data_bytes: int) -> None:
    simulate("unisono_rx", __file__, {"DataBytes": data_bytes})
