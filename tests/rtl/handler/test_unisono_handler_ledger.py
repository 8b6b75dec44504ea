"""unisono_handler_ledger: whose next packet is due, and what becomes of all others."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import Any, ClassVar

import cocotb
from bus import Packet, StreamSink, StreamSource, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import parameters, scaled, simulate
from station_frames import UDP, Facts, frame_of

SLOT = 3
ROOM, NONE, ORDER, LATE = 32, 33, 34, 35


class Items(StreamSink):
    """Items; `user` is what is known of them, `dest` the place."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "about", "place")

    def _accept(self, lane: int, word: tuple[int, ...]) -> None:
        self.status = word[0] & (1 << 128) - 1  # of one that closes
        self.statuses = getattr(self, "statuses", [])
        super()._accept(lane, word)
        if word[2]:
            self.statuses.append(self.status)


class Bench:
    """Frames in, items out. Places are given back by hand."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("ledger")
        self.places = parameters()["Messages"]
        self.source = StreamSource(dut, "in")
        self.sink = Items(dut, "out", empty_allowed=True)
        for name in ("tick", "free_valid", "free_place", "template_place"):
            getattr(dut, f"{name}_i").value = 0
        dut.loaded_i.value = 1

    def send(self, facts: Facts, payload: bytes = b"") -> bytes:
        frame = frame_of(UDP, replace(facts, slot=SLOT), payload, random.Random(repr(facts.key)))
        self.source.send(Packet(frame))
        return frame[:64]

    async def packet(self, facts: Facts, payload: bytes = b"") -> int:
        """The next item is this packet; which place it has."""
        item = await self.sink.receive(timeout_us=20)
        self.sink.statuses.pop(0)
        assert item.data == payload
        known = (facts.packet << 24 | facts.packets) << 64 | facts.source << 48 | facts.ranks << 32 | facts.tag
        assert item.user == known, f"{item.user:#x}, must be {known:#x}"
        return item.dest

    async def closed(self, reason: int, packet: int) -> int:
        """The next item closes a message; which place it has."""
        item = await self.sink.receive(timeout_us=20)
        assert item.user >> 112 == 1
        status = self.sink.statuses.pop(0).to_bytes(16, "little")
        assert status == struct.pack("<BBBBIII", reason, SLOT, 0, 0, 0, 0, packet), status.hex()
        return item.dest

    async def free(self, place: int) -> None:
        self.dut.free_valid_i.value, self.dut.free_place_i.value = 1, place
        await RisingEdge(self.dut.clk_i)
        self.dut.free_valid_i.value = 0

    async def tick(self) -> None:
        self.dut.tick_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.tick_i.value = 0
        await ClockCycles(self.dut.clk_i, 8)

    async def template(self, place: int) -> bytes:
        self.dut.template_place_i.value = place
        await RisingEdge(self.dut.clk_i)
        await RisingEdge(self.dut.clk_i)
        return int(self.dut.template_o.value).to_bytes(64, "little")

    async def quiet(self) -> None:
        """Nothing comes any more."""
        await self.source.drain()
        await ClockCycles(self.dut.clk_i, 20)
        assert not self.sink.packets[0], "an item that should not be"

    def counts(self) -> list[int]:
        names = ("messages", "refused", "copies", "strays")
        return [int(getattr(self.dut, f"counter_{name}_o").value) for name in names]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def messages_among_each_other(dut: Any) -> None:
    """As many as there are places, at all paces; templates are those of first packets; places are used again."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    rng = bench.rng
    for turn in range(scaled(40, 12)):
        bench.source.pauses = [rng.choice(paces(rng))[1]]
        bench.sink.pauses = [rng.choice(paces(rng))[1]]
        left = []
        for number in range(bench.places - 1):
            facts = Facts(
                SLOT, turn & 1, turn, number, 1 + rng.getrandbits(15), 0, rng.randint(1, 4), rng.getrandbits(32)
            )
            left.append(facts)
        places: dict[int, int] = {}
        heads = {}
        sent = []
        while left:
            at = rng.randrange(len(left))
            facts = left[at]
            payload = rng.randbytes(rng.choice((0, 1, 64, 65, 200)))
            head = bench.send(facts, payload)
            heads.setdefault(facts.source, head)
            sent.append((facts, payload))
            left[at] = replace(facts, packet=facts.packet + 1)
            if left[at].packet == facts.packets:
                del left[at]
        for facts, payload in sent:
            place = await bench.packet(facts, payload)
            assert places.setdefault(facts.source, place) == place
        assert len(set(places.values())) == bench.places - 1
        for source, place in places.items():
            assert await bench.template(place) == heads[source]
            await bench.free(place)
    assert bench.counts() == [scaled(40, 12) * (bench.places - 1), 0, 0, 0]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def copies_gaps_and_strays(dut: Any) -> None:
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    one = Facts(SLOT, 1, 2, 3, 4, 0, 5, 6)
    bench.send(one)
    bench.send(one, b"a copy")
    bench.send(replace(one, packet=1))
    bench.send(replace(one, packet=0), b"a copy of more than a word" * 4)
    bench.send(replace(one, packet=3), b"the one before it is missing")
    bench.send(replace(one, packet=2), b"too late")
    bench.send(replace(one, job=2, packet=1), b"no such message")
    place = await bench.packet(one)
    assert await bench.packet(replace(one, packet=1)) == place
    assert await bench.closed(ORDER, 2) == place
    await bench.quiet()
    assert bench.counts() == [1, 0, 2, 2]
    await bench.free(place)
    # Another number of packets than the first said.
    bench.send(one)
    bench.send(replace(one, packet=1, packets=6))
    assert await bench.packet(one) == place
    assert await bench.closed(ORDER, 1) == place
    await bench.free(place)
    await bench.quiet()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def refusals(dut: Any) -> None:
    """One at a time has a place: the next one waits for it, and nobody else is taken meanwhile."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    spare = bench.places - 1
    for source in range(spare):
        facts = Facts(SLOT, 1, 1, source, 1, 0, 2)
        bench.send(facts)
        await bench.packet(facts)
    for source in (100, 101):
        head = bench.send(Facts(SLOT, 1, 1, source, 1, 0, 2), bytes(100))
    assert await bench.closed(ROOM, 0) == spare
    last = Facts(SLOT, 1, 1, 0, 1, 1, 2)
    bench.send(last)
    await ClockCycles(dut.clk_i, 30)
    assert not bench.sink.packets[0], "it does not wait"
    await bench.free(spare)
    assert await bench.closed(ROOM, 0) == spare
    assert await bench.template(spare) == head
    await bench.packet(last)
    await bench.free(spare)
    dut.loaded_i.value = 0
    bench.send(Facts(SLOT, 9, 1, 1))
    assert await bench.closed(NONE, 0) == spare
    await bench.quiet()
    assert bench.counts() == [spare, 3, 0, 0]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def patience(dut: Any) -> None:
    """Three ticks without a packet end a message; a frame that waits here stops the clock."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    one, other = Facts(SLOT, 1, 1, 1, 1, 0, 3), Facts(SLOT, 1, 1, 2, 1, 0, 3)
    bench.send(one)
    bench.send(other)
    places = [await bench.packet(one), await bench.packet(other)]
    for packet in (1,):
        await bench.tick()
        await bench.tick()
        bench.send(replace(one, packet=packet))
        await bench.packet(replace(one, packet=packet))
    stopped = True
    bench.sink.pauses = [lambda: stopped]
    bench.send(replace(one, packet=2), bytes(640))
    await ClockCycles(dut.clk_i, 8)
    for _ in range(5):
        await bench.tick()
    stopped = False
    await bench.packet(replace(one, packet=2), bytes(640))
    await bench.quiet()
    await bench.tick()
    assert await bench.closed(LATE, 1) == places[1]
    # The first one is complete, and waits for nobody.
    for _ in range(4):
        await bench.tick()
    bench.send(replace(other, packet=1))
    await bench.quiet()
    assert bench.counts() == [2, 0, 0, 1]


def test_unisono_handler_ledger() -> None:
    simulate("unisono_handler_ledger", __file__, {"Format": 1, "Slot": SLOT, "Messages": 8})
