"""Tx: every packet against a model, with the C++ core's checksum."""

from __future__ import annotations

import random
from collections import defaultdict, deque
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
from headers import MAGIC, VERSION, Header, MessageType, core_seals, crc32c, random_header, sealed

Expected = tuple[int, int, bytes, bytes]
"""Session, payload bytes, header, payload."""

OWED_LATENCY = 3
LATENCY = 4


def transmit(raw_header: bytes, communicator: int, peer: int, session: int, control: int) -> int:
    """A transmit_t."""
    value = int.from_bytes(raw_header, "little")
    for part, width in ((communicator, 4), (peer, 6), (session, 16), (control, 1)):
        value = value << width | part
    return value


class Bench:
    """Sources, a model of the credit unit, and the expected packets."""

    def __init__(self, dut: Any, pauses: dict[str, Any] | None = None) -> None:
        self.dut, self.rng = dut, new_random("bench")
        given = parameters()
        self.bytes, self.sources = given.get("DataBytes", 64), given.get("Sources", 2)
        pauses = pauses or {}
        self.command = ChannelSource(
            dut, "command", ("transmit",), lanes=self.sources, pause=pauses.get("command", never)
        )
        self.payload = StreamSource(dut, "payload", lanes=self.sources, pause=pauses.get("payload", never))
        self.control = ChannelSource(dut, "control_command", ("transmit",), pause=pauses.get("control", never))
        self.control_payload = StreamSource(dut, "control_payload", pause=pauses.get("payload", never))
        self.meta = ChannelSink(dut, "meta", ("session", "bytes"), pause=pauses.get("meta", never))
        self.out = StreamSink(dut, "tx", pause=pauses.get("tx", never))
        self.owed_pause = pauses.get("owed", never)
        dut.session_open_valid_i.value = 0
        self.commands: dict[int, tuple[Header, int, int, int, bool]] = {}
        self.waiting: list[deque[tuple[int, bytes]]] = [deque() for _ in range(self.sources + 1)]
        self.sequences: dict[tuple[int, bool], int] = defaultdict(int)
        self.expected: list[deque[Expected]] = [deque(), deque()]
        self.takes: deque[tuple[int, int]] = deque()
        self.headers: list[bytes] = []
        self.errors: list[tuple[int, int]] = []
        self.taken_in: list[int] = []
        self.next_tag = 0
        cocotb.start_soon(self._watch())

    def send(self, source: int, length: int, *, actual: int | None = None, **fixed: Any) -> None:
        """One message of `length` payload bytes; with `actual`, its source gives another number of them."""
        rng = self.rng
        is_control = source == self.sources
        fixed.setdefault("type", rng.choice(list(MessageType)))
        session = fixed.pop("session", rng.randrange(8))
        header = random_header(rng, length, tag=self.next_tag, **fixed)
        self.next_tag += 1
        # Fields that Tx fills in hold noise.
        noise = bytearray(sealed(header))
        noise[:2] = rng.randbytes(2)
        noise[2] = noise[2] & 0xF0 | rng.getrandbits(4)
        for at, width in ((6, 2), (36, 4), (60, 4)):
            noise[at : at + width] = rng.randbytes(width)
        word = transmit(bytes(noise), rng.getrandbits(4), rng.getrandbits(6), session, int(is_control))
        data = rng.randbytes(length if actual is None else actual)
        self.waiting[source].append((word, data))
        self.commands[word] = (header, word >> 23 & 15, word >> 17 & 63, session, is_control)
        if is_control:
            self.control.put((word,))
        else:
            self.command.put((word,), source)
        if data:
            if is_control:
                self.control_payload.send(Packet(data))
            else:
                self.payload.send(Packet(data), source)

    async def _watch(self) -> None:
        """Follows the order in which commands are taken, and answers what is owed."""
        dut = self.dut
        answers: deque[tuple[int, int]] = deque()
        cycle = 0
        ready = 0
        pending: deque[tuple[Header, int, int, int, bool, bytes]] = deque()
        while True:
            await RisingEdge(dut.clk_i)
            if not int(dut.rst_ni.value):
                continue
            cycle += 1
            taken = int(dut.command_valid_i.value) & int(dut.command_ready_o.value)
            taken |= (int(dut.control_command_valid_i.value) & int(dut.control_command_ready_o.value)) << self.sources
            assert taken & (taken - 1) == 0, "two commands were taken in one cycle"
            if taken:
                self.taken_in.append(cycle)
                word, data = self.waiting[taken.bit_length() - 1].popleft()
                pending.append((*self.commands.pop(word), data))
            if ready and int(dut.owed_take_valid_o.value):
                header, communicator, peer, session, is_control, data = pending.popleft()
                assert int(dut.owed_take_communicator_o.value) == communicator
                assert int(dut.owed_take_peer_o.value) == peer
                credits = self.rng.choice((0, 1, self.rng.getrandbits(16)))
                answers.append((cycle + OWED_LATENCY - 1, credits))
                sequence = self.sequences[session, is_control]
                self.sequences[session, is_control] = (sequence + 1) & 0xFFFFFFFF
                raw = sealed(replace(header, credits=credits, session_sequence=sequence))
                self.expected[is_control].append((session, header.segment_bytes, raw, data))
            if answers and answers[0][0] == cycle:
                dut.owed_i.value = answers.popleft()[1]
            else:
                dut.owed_i.value = self.rng.getrandbits(16)
            ready = int(not self.owed_pause())
            dut.owed_take_ready_i.value = ready
            if int(dut.error_valid_o.value):
                self.errors.append((int(dut.error_source_o.value), int(dut.error_long_o.value)))

    async def check(self, count: int, *, exact: bool = True) -> list[tuple[Packet, bool, Expected]]:
        """Receives `count` packets and compares them with the model."""
        seen = []
        for _ in range(count):
            session, length = await self.meta.get()
            is_control, session = session >> 15, session & 0x7FFF
            packet = await self.out.receive()
            want = self.expected[is_control].popleft()
            assert session == want[0]
            assert length == 64 + want[1] == len(packet.data)
            header = packet.data[:64]
            assert header == want[2], f"header {header.hex()} instead of {want[2].hex()}"
            self.headers.append(header)
            if exact:
                assert packet.data[64:] == want[3]
            seen.append((packet, bool(is_control), want))
        return seen

    def finish(self) -> None:
        """Nothing is left over; all headers are as the C++ core seals them."""
        assert not any(self.expected)
        assert not any(self.waiting)
        assert not self.out.packets[0]
        assert not self.meta.words[0]
        assert core_seals(self.headers) == self.headers


def lengths(rng: random.Random, data_bytes: int) -> int:
    """Payload lengths: none, short, around whole words, up to the largest segment."""
    return rng.choice(
        (
            0,
            0,
            rng.randint(1, 2 * data_bytes),
            data_bytes * rng.randint(1, 4) + rng.choice((-1, 0, 1)),
            rng.randint(1, 700),
        )
    )


async def start(dut: Any, pauses: dict[str, Any] | None = None) -> Bench:
    """A bench after reset and after the clearing of the session table."""
    bench = Bench(dut, pauses)
    await start_clock_and_reset(dut)
    return bench


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def random_messages(dut: Any) -> None:
    """Messages of all sources at every pace."""
    rng = new_random("messages")
    bench = await start(dut)
    for name in ("free", "random", "slow", "bursts"):
        for port in (bench.command, bench.payload, bench.control, bench.control_payload, bench.meta, bench.out):
            port.pauses = [dict(paces(new_random(f"{name} {lane}")))[name] for lane in range(port.lanes)]
        bench.owed_pause = dict(paces(new_random(f"{name} owed")))[name]
        count = 60
        for _ in range(count):
            bench.send(rng.randrange(bench.sources + 1), lengths(rng, bench.bytes))
        await bench.check(count)
    bench.send(0, 8192)
    bench.send(bench.sources - 1, 8191)
    await bench.check(2)
    bench.finish()
    assert not bench.errors


@cocotb.test(timeout_time=200, timeout_unit="us")
async def throughput(dut: Any) -> None:
    """One word per cycle; with 64 bytes a header-only message per cycle."""
    bench = await start(dut)
    await ClockCycles(dut.clk_i, 2200)
    words = 64 // bench.bytes
    bench.send(0, 0)
    ((packet, _, _),) = await bench.check(1)
    latency = packet.start - bench.taken_in[0]
    assert latency == LATENCY, f"{latency} cycles from the command to its header"
    for length, payload_words in ((0, 0), (5, 1), (10 * bench.bytes, 10)):
        for _ in range(40):
            bench.send(0, length)
        seen = await bench.check(40)
        cycles = seen[-1][0].end - seen[8][0].end
        assert cycles == (len(seen) - 9) * (words + payload_words), f"{cycles} cycles for 31 messages of {length} bytes"
    bench.finish()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def control_first(dut: Any) -> None:
    """A control message passes the data that waits, but not within a packet; data sources take turns."""
    bench = await start(dut)
    await ClockCycles(dut.clk_i, 2200)
    for _ in range(12):
        for source in range(bench.sources):
            bench.send(source, 512, session=source)
    await ClockCycles(dut.clk_i, 40)
    bench.send(bench.sources, 0)
    bench.send(bench.sources, 24)
    seen = await bench.check(12 * bench.sources + 2)
    places = [place for place, (_, is_control, _) in enumerate(seen) if is_control]
    assert places[1] == places[0] + 1
    assert places[0] <= 1 + 50 * bench.bytes // 576 + 1, f"control message left after {places[0]} packets of data"
    order = [want[0] for _, is_control, want in seen if not is_control]
    assert order == list(range(bench.sources)) * 12, "data sources did not take turns"
    bench.finish()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def wrong_payloads(dut: Any) -> None:
    """A payload that is too short or too long is reported; the packet keeps its length, the next one is right."""
    rng = new_random("wrong")
    bench = await start(dut)
    wanted = []
    for _ in range(40):
        source = rng.randrange(bench.sources + 1)
        length = rng.randint(1, 400)
        actual = rng.choice([n for n in (length - 1, length + 1, 1, rng.randint(1, 600)) if n > 0])
        bench.send(source, length, actual=actual)
        if actual != length:
            wanted.append((source, int(actual > length)))
        for packet, _, want in await bench.check(1, exact=False):
            common = min(length, actual)
            assert packet.data[64 : 64 + common] == want[3][:common]
        bench.send(source, 100)
        await bench.check(1)
    await ClockCycles(dut.clk_i, 5)
    assert bench.errors == wanted
    bench.finish()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def session_opened(dut: Any) -> None:
    """A session that is opened counts from 0 on both channels; others go on."""
    rng = new_random("open")
    bench = await start(dut)
    for _ in range(6):
        for _ in range(12):
            bench.send(rng.randrange(bench.sources + 1), 0, session=rng.randrange(3))
        await bench.check(12)
        session = rng.randrange(3)
        dut.session_open_session_i.value = session
        dut.session_open_valid_i.value = 1
        await RisingEdge(dut.clk_i)
        while not int(dut.session_open_ready_o.value):
            await RisingEdge(dut.clk_i)
        dut.session_open_valid_i.value = 0
        for channel in (False, True):
            bench.sequences[session, channel] = 0
    bench.finish()


@cocotb.test(timeout_time=10, timeout_unit="us")
async def checksum_of_this_test(dut: Any) -> None:
    """The test's own CRC gives the value of RFC 3720 for "123456789"."""
    await start_clock_and_reset(dut)
    assert crc32c(b"123456789") == 0xE3069283
    assert (MAGIC, VERSION) == (0x554E, 1)


@pytest.mark.parametrize(("data_bytes", "sources"), [(64, 2), full(64, 1), full(32, 3), full(16, 2), (8, 2)])
def test_unisono_tx(data_bytes: int, sources: int) -> None:
    simulate("unisono_tx", __file__, {"DataBytes": data_bytes, "Sources": sources})
