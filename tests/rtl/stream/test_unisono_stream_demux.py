"""unisono_stream_demux: each packet to its destination, strays dropped and counted."""

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, paces, random_packet, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, simulate


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.rng = new_random("demux")
        self.outputs = parameters()["Outputs"]
        self.source = StreamSource(dut, "in")
        self.sink = StreamSink(dut, "out", lanes=self.outputs)
        self.strays = 0
        cocotb.start_soon(self.count())

    async def count(self):
        while True:
            await RisingEdge(self.dut.clk_i)
            self.strays += int(self.dut.stray_o.value)


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    destinations = 1 << parameters()["DestBits"]
    strays = 0
    for _, idle in paces(bench.rng):
        for _ in range(3):
            bench.source.pauses = [idle]
            bench.sink.pauses = [bench.rng.choice([p for _, p in paces(bench.rng)]) for _ in range(bench.outputs)]
            sent = [[] for _ in range(bench.outputs)]
            for _ in range(12 * bench.outputs):
                packet = random_packet(
                    bench.rng,
                    5 * bench.source.data_bytes,
                    user_bits=parameters()["UserBits"],
                    dest=bench.rng.randrange(destinations),
                )
                bench.source.send(packet)
                if packet.dest < bench.outputs:
                    sent[packet.dest].append(packet)
                else:
                    strays += 1
            for lane, packets in enumerate(sent):
                for packet in packets:
                    assert await bench.sink.receive(lane, timeout_us=3000) == packet
            await bench.source.drain()
    for _ in range(4):
        await RisingEdge(dut.clk_i)
    assert bench.strays == strays
    assert strays or destinations == bench.outputs
    assert not any(bench.sink.packets)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle(dut):
    """Packets of one word to changing destinations."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for turn in range(60):
        bench.source.send(Packet(bench.rng.randbytes(bench.source.data_bytes), 0, turn % bench.outputs))
    ends = []
    for turn in range(60):
        ends.append((await bench.sink.receive(turn % bench.outputs)).end)
    assert ends == list(range(ends[0], ends[0] + 60))


@pytest.mark.parametrize(
    ("outputs", "data_bytes", "user_bits", "dest_bits"),
    [full(1, 8, 1, 1), full(2, 8, 3, 1), (3, 4, 2, 4), (4, 64, 16, 2), full(7, 2, 5, 3)],
)
def test_unisono_stream_demux(outputs, data_bytes, user_bits, dest_bits):
    simulate(
        "unisono_stream_demux",
        __file__,
        {"Outputs": outputs, "DataBytes": data_bytes, "UserBits": user_bits, "DestBits": dest_bits},
    )
