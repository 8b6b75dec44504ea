"""A communicator at a switch's unit, whose members are behind every other port; for tests of units and of switches."""

from __future__ import annotations

from typing import Any

from bus import Packet, StreamSink, StreamSource, new_random, start_clock_and_reset
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import parameters
from headers import MAGIC, VERSION, Datatype, Header, MessageType, sealed, spec

COMMUNICATOR, EPOCH, ENTRY = 0x1234567, 0x89AB, 5


class UnitBench:
    """One communicator whose members are behind ports 0, 2 and so on; the ports between have nobody."""

    source_type: type[StreamSource] = StreamSource
    sink_type: type[StreamSink] = StreamSink
    address = 0
    """Of the switch: side-band `dest` of what is for it."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, new_random("unit")
        self.ports = parameters()["Ports"]
        self.members = list(range(0, self.ports, 2))
        self.source, self.sink = (
            self.source_type(dut, "in", lanes=self.ports),
            self.sink_type(dut, "out", lanes=self.ports),
        )
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

    def contribute(self, rank: int, signature: int, values: list[int], *, sequence: int = 7) -> None:
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
            sequence=sequence,
            tag=int(spec.Func.SUM) << 6 | int(spec.Collective.ALLREDUCE) << 1,
            segment_bytes=len(payload),
            message_bytes=len(payload),
            signature=signature,
        )
        self.source.send(Packet(sealed(header) + payload, dest=self.address), self.members[rank])
