"""unisono_stream_fifo: packets pass unchanged, with their side-band, at full throughput."""

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, never, new_random, paces, random_packet, start_clock_and_reset
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_traffic(dut):
    rng = new_random("stream fifo")
    source, sink = StreamSource(dut, "in"), StreamSink(dut, "out")
    await start_clock_and_reset(dut)
    for _, idle in paces(rng):
        for _, back in paces(rng):
            source.pauses, sink.pauses = [idle], [back]
            longest = source.data_bytes * parameters()["Depth"] // 2
            sent = [random_packet(rng, longest, user_bits=parameters()["UserBits"]) for _ in range(10)]
            for packet in sent:
                source.send(packet)
            for packet in sent:
                assert await sink.receive() == packet


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle(dut):
    rng = new_random("throughput")
    source, sink = StreamSource(dut, "in", pause=never), StreamSink(dut, "out", pause=never)
    await start_clock_and_reset(dut)
    words = 3 * parameters()["Depth"] + 5
    source.send(Packet(rng.randbytes(words * source.data_bytes), 1))
    got = await sink.receive()
    assert got.end - got.start == words - 1


@pytest.mark.parametrize(
    ("data_bytes", "user_bits", "depth", "block_ram"), [(8, 3, 4, 0), full(64, 16, 32, 0), (64, 9, 256, 1)]
)
def test_unisono_stream_fifo(data_bytes, user_bits, depth, block_ram):
    simulate(
        "unisono_stream_fifo",
        __file__,
        {"DataBytes": data_bytes, "UserBits": user_bits, "Depth": depth, "BlockRam": block_ram},
    )
