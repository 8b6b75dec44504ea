"""unisono_switch_forward: frames to one port and to groups, in order and at full rate; strays; damaged ones."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, paces, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, scaled, simulate

LATENCY, GROUP_LATENCY = 2, 3
WORD = 64


class LinkSource(StreamSource):
    """Frames; `user` says that one is damaged, `dest` is its address."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "bad", "address")


class LinkSink(StreamSink):
    """Frames; one that is damaged lacks its last word."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "", "address")


class Bench:
    """All inputs and outputs, with a table of random groups; what each output is to get, by input."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("forward")
        self.ports, self.addresses = parameters()["Ports"], parameters()["Addresses"]
        self.source = LinkSource(dut, "in", lanes=self.ports)
        self.sink = LinkSink(dut, "out", lanes=self.ports, empty_allowed=True)
        self.table = [0] * self.addresses
        self.wanted: list[list[deque[tuple[int, bytes]]]] = [
            [deque() for _ in range(self.ports)] for _ in range(self.ports)
        ]
        self.damaged = self.seen_damaged = 0
        self.passed, self.strays = [0] * self.ports, [0] * self.ports
        dut.table_valid_i.value = 0
        dut.group_may_i.value = 1
        cocotb.start_soon(self.count())

    async def count(self) -> None:
        """Frames that end as damaged."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_i)
            taken = int(dut.out_valid_o.value) & int(dut.out_ready_i.value) & int(dut.out_last_o.value)
            if int(dut.rst_ni.value):
                self.seen_damaged += (taken & int(dut.out_bad_o.value)).bit_count()

    async def begin(self, *, groups: float) -> None:
        """Resets, and writes a table of which so large a part are groups."""
        await start_clock_and_reset(self.dut)
        for address in range(self.addresses):
            ports = 1 << self.rng.randrange(self.ports)
            if self.rng.random() < groups:
                ports = self.rng.getrandbits(self.ports)
            await self.write(address, ports)

    async def write(self, address: int, ports: int) -> None:
        """One address' ports."""
        self.table[address] = ports
        self.dut.table_valid_i.value, self.dut.table_address_i.value = 1, address
        self.dut.table_ports_i.value = ports
        await RisingEdge(self.dut.clk_i)
        self.dut.table_valid_i.value = 0

    async def begin_with_everybody(self) -> None:
        """Address 0 is the group of all ports, and each port has the address after its number."""
        await self.begin(groups=0)
        await self.write(0, (1 << self.ports) - 1)
        for port in range(self.ports):
            await self.write(1 + port, 1 << port)

    def send(self, lane: int, address: int, data: bytes, *, damaged: bool = False) -> None:
        """One frame, and what is to become of it."""
        self.source.send(Packet(data, int(damaged), address), lane)
        ports = self.table[address] & ~(1 << lane) if address < self.addresses else 0
        left = data[: (len(data) - 1) // WORD * WORD] if damaged else data
        for port in range(self.ports):
            if ports >> port & 1:
                self.wanted[port][lane].append((address, left))
                self.damaged += damaged
        (self.passed if ports else self.strays)[lane] += 1

    def take(self, port: int, packet: Packet) -> None:
        """Must be the next one of some input."""
        for waiting in self.wanted[port]:
            if waiting and waiting[0] == (packet.dest, packet.data):
                waiting.popleft()
                return
        raise AssertionError(f"port {port}: a frame that nobody sent, or not now: {packet.dest}, {packet.data[:16]!r}")

    async def finish(self) -> None:
        """Takes what is to come, and nothing else; looks at the counters."""
        for port in range(self.ports):
            while any(self.wanted[port]):
                self.take(port, await self.sink.receive(port, timeout_us=4000))
        await self.source.drain()
        await ClockCycles(self.dut.clk_i, 8)
        assert not any(self.sink.packets)
        assert not self.sink.incomplete()
        assert self.seen_damaged == self.damaged
        for name, counts in (("passed", self.passed), ("strays", self.strays)):
            value = int(getattr(self.dut, f"counter_{name}_o").value)
            assert [value >> 32 * port & 0xFFFFFFFF for port in range(self.ports)] == counts, name


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def random_traffic(dut: Any) -> None:
    bench = Bench(dut)
    rng = bench.rng
    await bench.begin(groups=0.3)
    for _ in range(scaled(6)):
        some = [pace for _, pace in paces(rng)]
        bench.source.pauses = [rng.choice(some) for _ in range(bench.ports)]
        bench.sink.pauses = [rng.choice(some) for _ in range(bench.ports)]
        for lane in range(bench.ports):
            for _ in range(20):
                address = rng.randrange(bench.addresses + 3)
                data = rng.randbytes(rng.choice((1, 63, 64, 65, rng.randint(1, 640))))
                # Of one that leaves without any bytes nobody could say from which input it came, were they of several.
                damaged = rng.random() < 0.1 and (lane == 0 or len(data) > WORD)
                bench.send(lane, address, data, damaged=damaged)
        await bench.finish()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def groups_from_everywhere(dut: Any) -> None:
    """Frames of groups with ports in common, all at once, between others: none waits for ever."""
    bench = Bench(dut)
    await bench.begin(groups=0)
    everybody = (1 << bench.ports) - 1
    await bench.write(0, everybody)
    await bench.write(1, everybody & 0x55555555)
    bench.sink.pauses = [pace for _, pace in paces(bench.rng)] * (bench.ports // 4 + 1)
    for _ in range(8):
        for lane in range(bench.ports):
            bench.send(lane, bench.rng.choice((0, 0, 1, 2)), bench.rng.randbytes(bench.rng.choice((10, 200, 300))))
    await bench.finish()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_group_waits_for_others(dut: Any) -> None:
    """For leave to begin, beside which what goes to one port goes on."""
    bench = Bench(dut)
    await bench.begin_with_everybody()
    dut.group_may_i.value = 0
    bench.send(0, 0, bench.rng.randbytes(300))
    bench.send(2, 2, bench.rng.randbytes(300))
    bench.take(1, await bench.sink.receive(1, timeout_us=20))
    await ClockCycles(dut.clk_i, 20)
    assert not any(bench.sink.packets)
    assert (int(dut.group_wants_o.value), int(dut.group_busy_o.value)) == (1, 0)
    dut.group_may_i.value = 1
    await ClockCycles(dut.clk_i, 2)
    dut.group_may_i.value = 0  # it has begun
    assert int(dut.group_busy_o.value) == 1
    await bench.finish()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def latency_and_rate(dut: Any) -> None:
    """Of one frame, of a group's; of words by all ports at once, and of a group's to all ports."""
    bench = Bench(dut)
    await bench.begin_with_everybody()
    words = 40
    for address, expected in ((2, LATENCY), (0, GROUP_LATENCY)):
        bench.source.sent[0] = 0
        bench.send(0, address, bench.rng.randbytes(words * WORD))
        while not bench.source.sent[0]:
            await RisingEdge(dut.clk_i)
        begin = bench.sink.cycle
        packet = await bench.sink.receive(1, timeout_us=20)
        bench.take(1, packet)
        assert packet.start - begin == expected, f"{packet.start - begin} cycles to address {address}"
        assert packet.end - packet.start == words - 1
        await bench.finish()
    for lane in range(bench.ports):
        for _ in range(words):
            bench.send(lane, 1 + (lane + 1) % bench.ports, bench.rng.randbytes(WORD))
    for port in range(bench.ports):
        got = [await bench.sink.receive(port, timeout_us=20) for _ in range(words)]
        assert got[-1].end - got[0].start == words - 1
        for packet in got:
            bench.take(port, packet)
    await bench.finish()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_port_that_waits_stops_its_frames_only(dut: Any) -> None:
    bench = Bench(dut)
    await bench.begin(groups=0)
    for port in range(bench.ports):
        await bench.write(port, 1 << port)
    stopped = True
    bench.sink.pauses[0] = lambda: stopped
    for lane in range(1, bench.ports):
        bench.send(lane, 0 if lane == 1 else 1, bench.rng.randbytes(300))
    for _ in range(bench.ports - 2):
        bench.take(1, await bench.sink.receive(1, timeout_us=20))
    assert not bench.sink.packets[0]
    stopped = False
    await bench.finish()


@pytest.mark.parametrize(("ports", "addresses", "queue"), [(4, 16, 4), full(8, 256, 32), full(28, 64, 32)])
def test_unisono_switch_forward(ports: int, addresses: int, queue: int) -> None:
    values = {"Ports": ports, "Addresses": addresses, "Queue": queue}
    simulate("unisono_switch_forward", __file__, values, limit_s=300)
