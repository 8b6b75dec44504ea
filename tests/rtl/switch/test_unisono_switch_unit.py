"""unisono_switch_unit: a fold of few children, cycle by cycle, and calls that differ. More: tests/rtl/switch_unit."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, parameters, simulate
from headers import MAGIC, VERSION, Datatype, Header, MessageType, sealed, spec

COMMUNICATOR, EPOCH, ENTRY = 0x1234567, 0x89AB, 5
CHILD = 4  # cycles of the chain for each child, of integers
AROUND = 35  # and of all else


class Bench:
    """One communicator whose members are behind ports 0, 2 and so on; the ports between have nobody."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("unit")
        self.ports = parameters()["Ports"]
        self.members = list(range(0, self.ports, 2))
        self.source, self.sink = StreamSource(dut, "in", lanes=self.ports), StreamSink(dut, "out", lanes=self.ports)
        self.dut.reg_valid_i.value = 0

    async def write(self, word: int, value: int) -> None:
        """One register."""
        dut = self.dut
        dut.reg_valid_i.value = dut.reg_write_i.value = 1
        dut.reg_word_i.value, dut.reg_data_i.value = word, value
        await RisingEdge(dut.clk_i)
        dut.reg_valid_i.value = 0

    async def open(self) -> None:
        """The table's entry and the terms, as docs/rtl/switch_unit.md says."""
        await start_clock_and_reset(self.dut)
        table, terms = 64 * ENTRY, 0x8000 | 64 * ENTRY
        count, used = len(self.members), self.members[-1] + 1
        await self.write(table + 7, 0)
        for word, value in enumerate((COMMUNICATOR, EPOCH | used << 16, count, 0, count, 0xFFFF, count)):
            await self.write(table + word, value)
        for port in range(used):
            await self.write(table + 8 + 2 * port, port // 2)
            await self.write(table + 9 + 2 * port, int(port in self.members))
        for word, value in enumerate((count, 128, 256, 4)):
            await self.write(terms + word, value)
        for rank, port in enumerate(self.members):
            await self.write(terms + 8 + 2 * port, rank)
            await self.write(terms + 9 + 2 * port, 0x100 + rank)
        await self.write(terms + 4, 0)
        await ClockCycles(self.dut.clk_i, 6)
        await self.write(table + 7, 1)

    def contribute(self, rank: int, signature: int, values: list[int]) -> None:
        """A member's short message of an all-reduce."""
        payload = b"".join(value.to_bytes(4, "little") for value in values)
        header = Header(
            magic=MAGIC,
            version=VERSION,
            type=MessageType.EAGER,
            dtype=Datatype.INT32,
            first=True,
            last=True,
            communicator=COMMUNICATOR,
            epoch=EPOCH,
            source=rank,
            destination=len(self.members),
            sequence=7,
            tag=int(spec.Func.SUM) << 6 | int(spec.Collective.ALLREDUCE) << 1,
            segment_bytes=len(payload),
            message_bytes=len(payload),
            signature=signature,
        )
        self.source.send(Packet(sealed(header) + payload), self.members[rank])


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_fold(dut: Any) -> None:
    bench = Bench(dut)
    await bench.open()
    values = [[bench.rng.getrandbits(32) for _ in range(16)] for _ in bench.members]
    # One comes when nothing else is pending.
    for rank, mine in enumerate(values):
        if rank == len(values) - 1:
            await ClockCycles(dut.clk_i, 100)
        bench.contribute(rank, 99, mine)
    while any(bench.source.sent[port] < 2 for port in bench.members):
        await RisingEdge(dut.clk_i)
    begin = bench.sink.cycle
    total = b"".join((sum(column) & 0xFFFFFFFF).to_bytes(4, "little") for column in zip(*values, strict=True))
    for rank, port in enumerate(bench.members):
        packet = await bench.sink.receive(port, timeout_us=20)
        header = Header.decode(packet.data[:64])
        assert (header.destination, header.signature, header.tag & 1) == (rank, 99, 1)
        assert packet.data[64:] == total
        cycles = packet.start - begin
        around = cycles - CHILD * len(values)
        assert around == AROUND, f"{cycles} cycles of {len(values)} children"
    assert int(dut.counter_messages_o.value) == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def calls_that_differ(dut: Any) -> None:
    """Each member is told; at ports without members, nobody is."""
    bench = Bench(dut)
    await bench.open()
    for rank in range(len(bench.members)):
        bench.contribute(rank, 99 + rank, [rank] * 16)
    await ClockCycles(dut.clk_i, 400)
    assert int(dut.counter_mismatches_o.value) == 1
    for port in range(bench.ports):
        told = [Header.decode(packet.data[:64]) for packet in bench.sink.packets[port]]
        grants = [header.signature for header in told if header.type == MessageType.GRANT]
        assert len(grants) == int(port in bench.members), f"port {port}: {told}"
        if port not in bench.members:
            assert not told
        else:
            assert grants[0] not in range(99, 99 + len(bench.members))


@pytest.mark.parametrize("ports", [4, full(8)])
def test_unisono_switch_unit(ports: int) -> None:
    # Few datatypes: the cells' arithmetic has tests of its own.
    values: dict[str, int | str] = {"Ports": ports, "BufferBytes": 256, "WindowSegments": 2}
    values["Datatypes"] = f"24'd{1 << int(Datatype.INT32)}"
    simulate("unisono_switch_unit", __file__, values, limit_s=300)
