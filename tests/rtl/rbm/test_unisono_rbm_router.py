"""unisono_rbm_router: packets that differ, each with a way of its own, at every pace."""

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, paces, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate

NONE, BUFFER, BYPASS, DROP = range(4)


async def set_way(dut, way):
    """Waits until no packet is under way, and says where the next one goes."""
    await FallingEdge(dut.clk_i)
    while not int(dut.idle_o.value):
        await FallingEdge(dut.clk_i)
    dut.way_i.value = way
    await FallingEdge(dut.clk_i)
    assert not int(dut.idle_o.value)
    dut.way_i.value = NONE


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_packets(dut):
    rng, wide = new_random("router"), parameters()["DataBytes"]
    dut.way_i.value = NONE
    pause = {"payload": None, "write": None, "bypass": None}
    source = StreamSource(dut, "payload", pause=lambda: pause["payload"]())
    sinks = {
        BUFFER: StreamSink(dut, "write", pause=lambda: pause["write"]()),
        BYPASS: StreamSink(dut, "bypass", pause=lambda: pause["bypass"]()),
    }
    for port, pace in zip(pause, paces(rng), strict=False):
        pause[port] = pace[1]
    await start_clock_and_reset(dut)
    for turn in range(4):
        chosen = paces(rng)
        for offset, port in enumerate(pause):
            pause[port] = chosen[(turn + offset) % 4][1]
        want = {BUFFER: [], BYPASS: []}
        for _ in range(scaled(120, 40)):
            way = rng.choice((BUFFER, BYPASS, DROP))
            packet = Packet(rng.randbytes(rng.choice((1, wide - 1, wide, wide + 1, rng.randint(1, 6 * wide)))))
            if way != DROP:
                want[way].append(packet.data)
            # Before it has its way, a packet waits.
            source.send(packet)
            for _ in range(rng.choice((0, 0, 5))):
                await FallingEdge(dut.clk_i)
                if int(dut.idle_o.value):
                    assert not (int(dut.write_valid_o.value))
                    assert not (int(dut.bypass_valid_o.value))
                    assert not int(dut.payload_ready_o.value)
            await set_way(dut, way)
        for way, sink in sinks.items():
            assert [(await sink.receive()).data for _ in want[way]] == want[way]
        while not int(dut.idle_o.value):
            await RisingEdge(dut.clk_i)
    # A reset in the middle of a packet: the next waits for a way of its own.
    source.send(Packet(rng.randbytes(40 * wide)))
    await set_way(dut, DROP)
    source.clear()
    await reset_again(dut)
    assert int(dut.idle_o.value)
    assert not int(dut.payload_ready_o.value)


@pytest.mark.parametrize("data_bytes", [8, full(64)])
def test_unisono_rbm_router(data_bytes):
    simulate("unisono_rbm_router", __file__, {"DataBytes": data_bytes})
