"""unisono_handler_departures: headers, lengths and checksums are new, all else is the template's; places are freed."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from typing import Any, ClassVar

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import parameters, scaled, simulate
from station_frames import UDP, Facts, frame_of, kept, read

LATENCY = 14
PLACES = 8
NAMED, BACK = 1 << 18, 1 << 17  # way_t


class Items(StreamSource):
    """Items; `user` is the place, and what is known of the packet."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "user")


class Frames(StreamSink):
    """Frames; `dest` is the address."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "user", "address")


class Bench:
    """A template for each slot. Each slot's items come by its machine's way."""

    def __init__(self, dut: Any) -> None:
        given = parameters()
        self.dut, self.rng = dut, new_random("departures")
        self.form, self.machines = given["Format"], given["Machines"]
        self.source, self.sink = Items(dut, "in", lanes=self.machines), Frames(dut, "out")
        rng = self.rng
        self.facts = [
            Facts(slot, rng.getrandbits(16), rng.getrandbits(16), rng.getrandbits(16), 1 + rng.getrandbits(15), 0, 9,
                  rng.getrandbits(32), rng.getrandbits(16), rng.getrandbits(16)) for slot in range(self.machines)
        ]  # fmt: skip
        self.templates = [
            frame_of(self.form, facts, rng.randbytes(5), random.Random(facts.slot))[:64] for facts in self.facts
        ]
        self.ways = [0] * self.machines
        self.freed: list[tuple[int, int]] = []
        self.wanted: list[deque[tuple[Facts, bytes]]] = [deque() for _ in range(self.machines)]
        dut.templates_i.value = int.from_bytes(b"".join(self.templates), "little")
        dut.ways_i.value = 0
        cocotb.start_soon(self.watch())

    async def watch(self) -> None:
        """Places that are free again."""
        while True:
            await RisingEdge(self.dut.clk_i)
            for slot in range(self.machines):
                if int(self.dut.rst_ni.value) and int(self.dut.free_valid_o.value) >> slot & 1:
                    self.freed.append((slot, int(self.dut.free_place_o.value)))

    def way(self, slot: int, way: int) -> None:
        self.ways[slot] = way
        self.dut.ways_i.value = sum(way << 19 * at for at, way in enumerate(self.ways))

    def send(self, slot: int, place: int, number: int, payload: bytes, *, end: bool = False) -> None:
        facts = replace(self.facts[slot], end=end, packet=0 if end else number, packets=number if end else 0)
        self.wanted[slot].append((facts, payload))
        known = int(end) << 112 | facts.packet << 88 | facts.packets << 64
        word = Packet(payload, (slot * PLACES + place) << 113 | known | self.rng.getrandbits(64))
        if end:  # a word that is kept or not, with a status
            self.source.put((int.from_bytes(payload, "little"), 0, 1, word.user), slot)
        else:
            self.source.send(word, slot)

    async def finish(self) -> None:
        """Every frame is one that must leave, in its slot's order, with the template's headers."""
        while any(self.wanted):
            packet = await self.sink.receive(timeout_us=400)
            found = read(self.form, packet.data)
            assert found is not None, f"a frame is not sound: {packet.data[:64].hex()}"
            facts, payload = found
            slot = facts.slot
            expected, bytes_ = self.wanted[slot].popleft()
            way, template = self.ways[slot], self.templates[slot]
            back = bool(way & BACK) and self.form == UDP
            if back:
                expected = replace(expected, address=expected.back, back=expected.address)
            if way & NAMED:
                expected = replace(expected, address=way & 0xFFFF)
            assert packet.dest == expected.address
            if self.form != UDP:
                expected = replace(expected, back=0)
            assert (facts, payload) == (expected, bytes_)
            if not back:
                assert kept(self.form, packet.data) == kept(self.form, template)
        await ClockCycles(self.dut.clk_i, 40)
        assert not self.sink.packets[0], "a frame too many"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_items(dut: Any) -> None:
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    rng = bench.rng
    for _, pace in paces(rng):
        bench.source.pauses = [rng.choice(paces(rng))[1] for _ in range(bench.machines)]
        bench.sink.pauses = [pace]
        for slot in range(bench.machines):
            bench.way(slot, rng.choice((0, NAMED, BACK, NAMED | BACK)) | rng.getrandbits(16))
        ends = []
        for number in range(scaled(120, 40)):
            slot, place = rng.randrange(bench.machines), rng.randrange(PLACES)
            length = rng.choice((1, 2, 63, 64, 65, 128, rng.randint(1, 1500), 8192 if rng.random() < 0.1 else 9))
            payload = rng.choice((rng.randbytes(length), b"\xff" * length, bytes(length)))
            end = rng.random() < 0.3
            if end:
                ends.append((slot, place))
            bench.send(slot, place, number, rng.randbytes(16) if end else payload, end=end)
        await bench.finish()
        assert sorted(bench.freed) == sorted(ends)
        bench.freed.clear()
    assert int(dut.counter_sent_o.value) == 4 * scaled(120, 40)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def checksums_that_are_zero(dut: Any) -> None:
    """UDP's is then all ones: 0 says that there is none. Two bytes of payload go through all numbers near it."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    if bench.form != UDP:
        return
    bench.send(0, 0, 0, bytes(2))
    packet = await bench.sink.receive(timeout_us=20)
    sum_of_zeros = int.from_bytes(packet.data[40:42], "big")
    bench.wanted[0].clear()
    for more in (-1, 0, 1):
        bench.send(0, 0, 0, (sum_of_zeros + more & 0xFFFF).to_bytes(2, "big"))
    found = []
    for _ in range(3):
        packet = await bench.sink.receive(timeout_us=20)
        assert read(UDP, packet.data) is not None
        found.append(packet.data[40:42].hex())
    assert found == ["0001", "ffff", "fffe"], f"{found}"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def rate_and_latency(dut: Any) -> None:
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    bench.send(0, 0, 0, bytes(64))
    while not bench.source.sent[0]:
        await RisingEdge(dut.clk_i)
    begin = bench.sink.cycle
    packet = await bench.sink.receive(timeout_us=20)
    assert packet.start - begin == LATENCY, f"{packet.start - begin} cycles"
    bench.wanted[0].clear()
    for number in range(40):
        bench.send(0, 0, number, bytes(1408))
    starts = [(await bench.sink.receive(timeout_us=20)).start for _ in range(40)]
    assert starts[-1] - starts[0] == 39 * 23, f"{(starts[-1] - starts[0]) / 39} cycles a frame"
    for number in range(40):
        bench.send(0, 0, number, bytes(64))
    starts = [(await bench.sink.receive(timeout_us=20)).start for _ in range(40)]
    assert (starts[-1] - starts[0]) / 39 <= 8, f"{(starts[-1] - starts[0]) / 39} cycles a frame"


@pytest.mark.parametrize(("form", "machines"), [(1, 1), (0, 3)])
def test_unisono_handler_departures(form: int, machines: int) -> None:
    values: dict[str, int | str] = {"Format": form, "Machines": machines, "Messages": PLACES, "Queue": 256}
    simulate("unisono_handler_departures", __file__, values)
