"""unisono_stream_skid: order, stability, full throughput, and registered outputs."""

import cocotb
import pytest
from bus import StreamSink, StreamSource, bursts, never, new_random, paces, random_packet, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_traffic(dut):
    rng = new_random("skid")
    source, sink = StreamSource(dut, "in"), StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    user_bits = len(dut.in_user_i)
    for _, idle in paces(rng):
        for _, back in [*paces(rng), ("again", bursts(rng))]:
            source.pauses, sink.pauses = [idle], [back]
            sent = [random_packet(rng, 6 * source.data_bytes, user_bits=user_bits) for _ in range(12)]
            for packet in sent:
                source.send(packet)
            for packet in sent:
                assert await sink.receive() == packet


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle(dut):
    source, sink = StreamSource(dut, "in", pause=never), StreamSink(dut, "out", pause=never)
    await start_clock_and_reset(dut)
    rng = new_random("throughput")
    words = 200
    source.send(packet := random_packet(rng, 1))
    packet.data = rng.randbytes(words * source.data_bytes)
    source.send(packet)
    await sink.receive()
    got = await sink.receive()
    assert got.end - got.start == words - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ready_does_not_follow_within_the_cycle(dut):
    """`in_ready_o` depends on no input of the same cycle."""
    await start_clock_and_reset(dut)
    dut.in_valid_i.value, dut.in_last_i.value, dut.out_ready_i.value = 1, 1, 0
    for _ in range(6):
        await RisingEdge(dut.clk_i)
    assert int(dut.in_ready_o.value) == 0
    dut.out_ready_i.value = 1
    await ReadOnly()
    assert int(dut.in_ready_o.value) == 0
    await RisingEdge(dut.clk_i)
    await ReadOnly()
    assert int(dut.in_ready_o.value) == 1


@pytest.mark.parametrize(("data_bytes", "user_bits"), [(1, 1), full(8, 5), (64, 16)])
def test_unisono_stream_skid(data_bytes, user_bits):
    simulate("unisono_stream_skid", __file__, {"DataBytes": data_bytes, "UserBits": user_bits})
