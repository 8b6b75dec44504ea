"""unisono_switch with a place for handlers: their packets among collectives and frames that pass."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Any

import cocotb
import pytest
from bus import ChannelSink, Packet
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, scaled, simulate
from headers import Datatype, Header
from station_bench import EXAMPLES, StationBench, compiled
from station_frames import Facts
from switch_bench import Bench
from unisono import handler

STATION = 41
FIRST = 16
NOWHERE = 50
CALLS = 3
SOURCES = tempfile.TemporaryDirectory()

SLOW = """#include <unisono_handler.h>
int payload(void) {
  uint32_t sum = us_length();
  for (uint32_t i = 0; i < TURNS; ++i) sum += i * us_packet() ^ sum >> 1;
  us_put_u32(sum);
  return US_GO_ON;
}
"""


class Came(ChannelSink):
    """Frames for handlers, as they come in."""

    def __init__(self, dut: Any, ports: int, came: Any) -> None:
        self.came = came
        self.parts: list[list[bytes]] = [[] for _ in range(ports)]
        super().__init__(dut, "in", ("data", "keep", "last", "bad", "address"), lanes=ports, passive=True, inputs=True)

    def _accept(self, lane: int, word: tuple[int, ...]) -> None:
        data, keep, last, bad, address = word
        if address != STATION:
            return
        self.parts[lane].append(data.to_bytes(64, "little")[: keep.bit_length()])
        if last:
            self.came(b"".join(self.parts[lane]), bool(bad))
            self.parts[lane].clear()


class Handled(StationBench):
    """The switch's handlers; frames go by the switch's own bench."""

    base = 0x7000
    machines_parameter, form_parameter = "Handlers", "HandlerFormat"

    def __init__(self, bench: Bench, watched: bool) -> None:
        self.bench, self.watched = bench, watched
        super().__init__(bench.dut)

    def connect(self) -> None:
        if self.watched:
            Came(self.dut, self.ports, self.came)

    def send(self, facts: Facts, payload: bytes, lane: int = 0) -> None:
        self.bench.source.send(Packet(self.frame(facts, payload), dest=STATION), lane)

    def owes(self) -> int:
        """Frames that have not left, but for those to nowhere."""
        expected = sum(len(message.frames) + 1 for message in self.row.finished)
        return expected - self.received


class HandledBench(Bench):
    """Frames of handlers are told from the unit's by their headers."""

    handled: Handled

    def took(self, port: int, packet: Packet) -> bool:
        if super().took(port, packet):
            return True
        if len(packet.data) < 64 or not Header.decode(packet.data[:64]).stream:
            return False
        assert not packet.user, "it goes on the channel for control"
        assert packet.dest % self.ports == port, f"a frame for {packet.dest} leaves by port {port}"
        self.handled.got(packet)
        return True


def slow(turns: int) -> handler.Handler:
    """Takes so many turns for each packet."""
    return compiled(f"slow{turns}", SLOW.replace("TURNS", str(turns)), Path(SOURCES.name))


async def opened(dut: Any, *, watched: bool = True) -> tuple[HandledBench, Handled]:
    bench = HandledBench(dut)
    handled = bench.handled = Handled(bench, watched)
    await bench.open()
    # Addresses of handlers' destinations: behind port p is p + FIRST, too.
    for port in range(bench.ports):
        await bench.write(0x4000 | (FIRST + port), 1 << port)
    await bench.write(0x4000 | NOWHERE, 0)
    await bench.write(0x6001, STATION)
    return bench, handled


@cocotb.test(timeout_time=80, timeout_unit="ms")
async def handlers_among_others(dut: Any) -> None:
    bench, handled = await opened(dut)
    rng = bench.rng
    await handled.load(0, handler.compile(EXAMPLES / "filter.c"), 1 << 29)
    await handled.load(1, slow(50))
    number = 0
    for call in range(CALLS):
        bench.change_paces()
        values = [[rng.getrandbits(32) for _ in range(16)] for _ in bench.members]
        before = [rng.randrange(8) for _ in bench.members]
        begun = number
        for turn in range(scaled(40, 8)):
            for rank, mine in enumerate(values):
                if before[rank] == turn:
                    bench.contribute(rank, 99 + call, mine, sequence=7 + call)
            for lane in range(bench.ports):
                bench.pass_something(lane)
                # Each slot has places for 63 of them.
                if rng.random() < 0.3 and number - begun < 60:
                    number += 1
                    facts = Facts(int(rng.random() < 0.1), 1, number, lane, 8, tag=rng.getrandbits(32),
                                  address=FIRST + rng.randrange(bench.ports))  # fmt: skip
                    payloads = [struct.pack("<8f", *(rng.gauss(0, 1) for _ in range(8))) for _ in range(3)]
                    handled.message(facts, payloads, lane)
        await bench.all_get_the_sum(values, 99 + call)
        await bench.source.drain()
        await bench.finish_passing()
        await the_rest(bench, handled)
    assert number
    assert int(dut.counter_messages_o.value) == CALLS
    assert not int(dut.counter_strays_o.value)
    assert not int(dut.counter_faults_o.value)
    assert not int(dut.counter_bad_frames_o.value)


async def the_rest(bench: HandledBench, handled: Handled) -> None:
    """Handlers' frames that have not left yet; then all are compared."""
    for _ in range(200_000):
        for port in range(bench.ports):
            while bench.sink.packets[port]:
                assert bench.took(port, bench.sink.packets[port].popleft()), "a frame that nobody sent"
        if not handled.owes():
            break
        await RisingEdge(bench.dut.clk_i)
    await ClockCycles(bench.dut.clk_i, 100)
    assert not any(bench.sink.packets), "more frames than there must be"
    finished, handled.row.finished = handled.row.finished, []
    handled.received = 0
    handled.compare_all(finished)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def who_is_refused(dut: Any) -> None:
    """A frame for a handler that is busy, and none but those: not one by the same port for somebody else."""
    bench, handled = await opened(dut, watched=False)
    await handled.load(0, slow(2000))
    handled.message(Facts(0, 1, 1, 0, address=FIRST + 1), [bytes(1408)] * 60, 0)
    await ClockCycles(dut.clk_i, 3000)
    waits = len(bench.source.queues[0])
    await ClockCycles(dut.clk_i, 500)
    assert waits == len(bench.source.queues[0]) > 0, "it takes more and more"
    assert not int(dut.in_ready_o.value) & 1
    # The link of port 0 withdraws what is refused, and offers frames to port 1 in its place, on either channel.
    for control in (0, 1):
        dut.in_address_i.value = int(dut.in_address_i.value) & ~0xFFFF | 1
        dut.in_control_i.value = control
        await RisingEdge(dut.clk_i)
        assert int(dut.in_ready_o.value) & 1, "a frame that passes is refused"
        await RisingEdge(dut.clk_i)  # the source has offered its next word, which is refused
        assert not int(dut.in_ready_o.value) & 1


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def nowhere(dut: Any) -> None:
    """What is for an address without a port is dropped and counted; before there is an address, nobody is at it."""
    bench, handled = await opened(dut)
    await handled.load(0, handler.compile(EXAMPLES / "histogram.c"))
    handled.message(Facts(0, 1, 1, 0, address=NOWHERE), [bytes(100)], 0)
    handled.message(Facts(0, 1, 2, 0, address=9999), [bytes(100)], 0)
    await ClockCycles(dut.clk_i, 4000)
    handled.row.finished.clear()
    assert await handled.read(0xFFF) == 2 * 2  # of each message a packet of counts, and an end
    handled.message(Facts(0, 1, 3, 0, address=FIRST), [bytes(100)], 0)
    await bench.source.drain()
    await ClockCycles(dut.clk_i, 100)
    await the_rest(bench, handled)


@pytest.mark.parametrize("ports", [4, full(8)])
def test_unisono_switch_station(ports: int) -> None:
    try:
        handler.compile(EXAMPLES / "histogram.c")
    except handler.HandlerError as error:
        if "clang" not in str(error):
            raise
        pytest.skip(f"handlers are not compiled here: {error}")
    values: dict[str, int | str] = {"Ports": ports, "BufferBytes": 256, "WindowSegments": 2, "Addresses": 64}
    values |= {"Datatypes": f"24'd{1 << int(Datatype.INT32)}", "Handlers": 2, "HandlerFormat": 0, "HandlerMessages": 64}
    values |= {"HandlerColumns": 1, "HandlerBanks": 1, "HandlerMemoryBytes": 4096, "HandlerElements": "8'h1f"}
    simulate("unisono_switch", __file__, values, limit_s=600)
