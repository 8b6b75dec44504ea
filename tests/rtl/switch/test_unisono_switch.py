"""unisono_switch: a fold among frames that pass, damaged frames, and control beside data that waits."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, paces
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, scaled, simulate
from headers import Datatype, Header, MessageType
from unit_bench import UnitBench

OWN = 40
LATENCY = 3
CALLS = 3  # for which members have buffers: they give no credit back


class LinkSource(StreamSource):
    """Frames; `user` says that one is on the channel for control, `dest` is its address."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "control", "address")


class LinkSink(StreamSink):
    """The same."""

    FIELDS: ClassVar[tuple[str, ...]] = LinkSource.FIELDS


class Bench(UnitBench):
    """Address p is behind port p, and a group of all ports has the address after these."""

    source_type = LinkSource
    sink_type = LinkSink
    address = OWN

    async def open(self) -> None:
        self.dut.in_bad_i.value = 0
        await super().open()
        for port in range(self.ports):
            await self.write(0x4000 | port, 1 << port)
        await self.write(0x4000 | self.ports, (1 << self.ports) - 1)
        await self.write(0x6000, OWN)
        self.wanted: list[list[deque[Packet]]] = [[deque() for _ in range(2 * self.ports)] for _ in range(self.ports)]

    def pass_on(self, lane: int, address: int, length: int, *, control: bool) -> None:
        """A frame that passes through."""
        packet = Packet(self.rng.randbytes(length), int(control), address)
        self.source.send(packet, lane)
        for port in range(self.ports):
            if port != lane and address in (port, self.ports):
                self.wanted[port][2 * lane + control].append(packet)

    def took(self, port: int, packet: Packet) -> bool:
        """Whether it is the next frame that passes from some port, by its channel."""
        for waiting in self.wanted[port]:
            if waiting and waiting[0] == packet:
                waiting.popleft()
                return True
        return False

    async def next_of_unit(self, port: int) -> Header:
        """The next frame that the unit has sent; others are compared."""
        while True:
            packet = await self.sink.receive(port, timeout_us=40)
            if not self.took(port, packet):
                header = Header.decode(packet.data[:64])
                assert header.source == len(self.members), "a frame that nobody sent"
                self.payload = packet.data[64:]
                return header

    async def finish_passing(self) -> None:
        """All that passes has come, and nothing else."""
        for port in range(self.ports):
            while any(self.wanted[port]):
                assert self.took(port, await self.sink.receive(port, timeout_us=1000))


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def folds_among_others(dut: Any) -> None:
    bench = Bench(dut)
    await bench.open()
    rng = bench.rng
    for call in range(CALLS):
        some = [pace for _, pace in paces(rng)]
        bench.source.pauses = [rng.choice(some) for _ in range(bench.ports)]
        bench.sink.pauses = [rng.choice(some) for _ in range(bench.ports)]
        values = [[rng.getrandbits(32) for _ in range(16)] for _ in bench.members]
        before = [rng.randrange(8) for _ in bench.members]
        for turn in range(scaled(40, 8)):
            for rank, mine in enumerate(values):
                if before[rank] == turn:
                    bench.contribute(rank, 99 + call, mine, sequence=7 + call)
            for lane in range(bench.ports):
                address = (lane + rng.randrange(1, bench.ports)) % bench.ports
                if rng.random() < 0.1:
                    address = bench.ports
                bench.pass_on(lane, address, rng.randint(1, 400), control=rng.random() < 0.3)
        total = b"".join((sum(column) & 0xFFFFFFFF).to_bytes(4, "little") for column in zip(*values, strict=True))
        for rank, port in enumerate(bench.members):
            header = await bench.next_of_unit(port)
            while header.type == MessageType.CREDIT:
                header = await bench.next_of_unit(port)
            assert (header.destination, header.signature) == (rank, 99 + call)
            assert bench.payload == total
        await bench.finish_passing()
    assert int(dut.counter_messages_o.value) == CALLS
    assert not int(dut.counter_strays_o.value)
    assert not int(dut.counter_faults_o.value)
    assert not int(dut.counter_bad_frames_o.value)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def damaged_frames(dut: Any) -> None:
    """The unit does not fold one, whatever its length is, and what passes stays damaged."""
    bench = Bench(dut)
    await bench.open()
    dut.in_bad_i.value = (1 << bench.ports) - 1
    for values in ([1] * 16, [1] * 17, [1], []):
        bench.contribute(0, 99, values)
    await bench.source.drain()
    await ClockCycles(dut.clk_i, 30)
    bad = int(dut.counter_bad_frames_o.value) & 0xFFFFFFFF
    assert bad == 4, f"{bad} of 4 are counted"
    ended = 0
    bench.sink.empty_allowed = True
    bench.source.send(Packet(bytes(100), 0, 1), 0)
    for _ in range(20):
        await RisingEdge(dut.clk_i)
        ended |= int(dut.out_valid_o.value) & int(dut.out_bad_o.value)
    assert ended == 2
    dut.in_bad_i.value = 0
    for rank in range(len(bench.members)):
        bench.contribute(rank, 99, [rank + 1] * 16)
    total = sum(range(1, len(bench.members) + 1)).to_bytes(4, "little") * 16
    for port in bench.members:
        packet = await bench.sink.receive(port, timeout_us=20)
        assert packet.data[64:] == total


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def control_passes_data_that_waits(dut: Any) -> None:
    bench = Bench(dut)
    await bench.open()
    stopped = True
    bench.sink.pauses[1] = lambda: stopped
    bench.pass_on(0, 1, 900, control=False)
    bench.pass_on(0, 3, 900, control=False)
    bench.pass_on(0, 3, 64, control=True)
    packet = await bench.sink.receive(3, timeout_us=20)
    assert packet.user == 1, "data came, that stood behind data that waits"
    assert bench.took(3, packet)
    stopped = False
    await bench.finish_passing()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency(dut: Any) -> None:
    bench = Bench(dut)
    await bench.open()
    for control in (False, True):
        bench.source.sent[0] = 0
        bench.pass_on(0, 1, 64, control=control)
        while not bench.source.sent[0]:
            await RisingEdge(dut.clk_i)
        begin = bench.sink.cycle
        packet = await bench.sink.receive(1, timeout_us=20)
        assert packet.start - begin == LATENCY, f"{packet.start - begin} cycles"
        assert bench.took(1, packet)


@pytest.mark.parametrize("ports", [4, full(8)])
def test_unisono_switch(ports: int) -> None:
    values: dict[str, int | str] = {"Ports": ports, "BufferBytes": 256, "WindowSegments": 2, "Addresses": 64}
    values["Datatypes"] = f"24'd{1 << int(Datatype.INT32)}"
    simulate("unisono_switch", __file__, values, limit_s=300)
