"""unisono_switch_unit: a fold of few children, cycle by cycle, and calls that differ. More: tests/rtl/switch_unit."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, simulate
from headers import Datatype, Header, MessageType
from unit_bench import UnitBench

CHILD = 4  # cycles of the chain for each child, of integers
AROUND = 33  # and of all else


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_fold(dut: Any) -> None:
    bench = UnitBench(dut)
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
    bench = UnitBench(dut)
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
