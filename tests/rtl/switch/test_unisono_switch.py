"""unisono_switch: a fold among frames that pass, damaged frames, and control beside data that waits."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from bus import Packet
from cocotb.triggers import ClockCycles, RisingEdge
from hdl import full, scaled, simulate
from headers import Datatype
from switch_bench import Bench

LATENCY = 3
CALLS = 3  # for which members have buffers: they give no credit back


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def folds_among_others(dut: Any) -> None:
    bench = Bench(dut)
    await bench.open()
    rng = bench.rng
    for call in range(CALLS):
        bench.change_paces()
        values = [[rng.getrandbits(32) for _ in range(16)] for _ in bench.members]
        before = [rng.randrange(8) for _ in bench.members]
        for turn in range(scaled(40, 8)):
            for rank, mine in enumerate(values):
                if before[rank] == turn:
                    bench.contribute(rank, 99 + call, mine, sequence=7 + call)
            for lane in range(bench.ports):
                bench.pass_something(lane)
        await bench.all_get_the_sum(values, 99 + call)
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
