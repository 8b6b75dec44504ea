"""unisono_stream_width: the bytes of every packet survive, at one narrow word per cycle."""

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, never, new_random, paces, random_packet, start_clock_and_reset
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_traffic(dut):
    rng = new_random("width")
    source, sink = StreamSource(dut, "in"), StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    wide = max(source.data_bytes, sink.data_bytes)
    for _, idle in paces(rng):
        for _, back in paces(rng):
            source.pauses, sink.pauses = [idle], [back]
            sent = [random_packet(rng, 3 * wide, user_bits=parameters()["UserBits"]) for _ in range(16)]
            for packet in sent:
                source.send(packet)
            for packet in sent:
                assert await sink.receive() == packet


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def every_length(dut):
    rng = new_random("lengths")
    source, sink = StreamSource(dut, "in"), StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    wide = max(source.data_bytes, sink.data_bytes)
    sent = [Packet(rng.randbytes(length), length % 2) for length in range(1, 2 * wide + 2)]
    for packet in sent:
        source.send(packet)
    for packet in sent:
        assert await sink.receive() == packet


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def empty_packets(dut):
    """A packet without bytes (one word, nothing kept) stays a packet."""
    rng = new_random("empty")
    source, sink = StreamSource(dut, "in"), StreamSink(dut, "out", empty_allowed=True)
    await start_clock_and_reset(dut)
    wide = max(source.data_bytes, sink.data_bytes)
    sent = [Packet(rng.randbytes(rng.choice((0, 0, 1, wide, wide + 1))), 3) for _ in range(40)]
    for packet in sent:
        source.send(packet)
    for packet in sent:
        assert await sink.receive() == packet


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_narrow_word_per_cycle(dut):
    """Also across packets, whose ends leave words partly filled."""
    rng = new_random("throughput")
    source, sink = StreamSource(dut, "in", pause=never), StreamSink(dut, "out", pause=never)
    await start_clock_and_reset(dut)
    narrow = min(source.data_bytes, sink.data_bytes)
    wide = max(source.data_bytes, sink.data_bytes)
    sent = [Packet(rng.randbytes(length)) for length in (20 * wide, 3 * narrow, 1, 5 * wide + 1, narrow)]
    words = sum(-(-len(packet.data) // narrow) for packet in sent)
    for packet in sent:
        source.send(packet)
    for packet in sent[:-1]:
        assert await sink.receive() == packet
    got = await sink.receive()
    assert got == sent[-1]
    # The first wide word needs up to wide/narrow cycles to fill; then nothing waits.
    assert got.end <= words + 6


@pytest.mark.parametrize(
    ("in_bytes", "out_bytes"),
    [full(8, 64), full(64, 8), (4, 12), (12, 4), full(1, 8), full(8, 1), (32, 64), (64, 32), (16, 16)],
)
def test_unisono_stream_width(in_bytes, out_bytes):
    simulate("unisono_stream_width", __file__, {"InBytes": in_bytes, "OutBytes": out_bytes, "UserBits": 7})
