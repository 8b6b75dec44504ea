"""unisono_stream_switch: every pair of ports, order per pair, full rate without conflicts, independence."""

import cocotb
import pytest
from bus import Packet, StreamSink, StreamSource, new_random, paces, random_packet, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, simulate


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.rng = new_random("switch")
        self.inputs, self.outputs = parameters()["Inputs"], parameters()["Outputs"]
        self.source = StreamSource(dut, "in", lanes=self.inputs)
        self.sink = StreamSink(dut, "out", lanes=self.outputs)
        self.strays = 0
        cocotb.start_soon(self.count())

    async def count(self):
        while True:
            await RisingEdge(self.dut.clk_i)
            self.strays += int(self.dut.stray_o.value).bit_count()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    user_bits = parameters()["UserBits"]
    strays = 0
    for _ in range(6):
        some = [pace for _, pace in paces(bench.rng)]
        bench.source.pauses = [bench.rng.choice(some) for _ in range(bench.inputs)]
        bench.sink.pauses = [bench.rng.choice(some) for _ in range(bench.outputs)]
        # The sender's number is the beginning of user, so a packet tells where it came from.
        sent = {}
        total = [0] * bench.outputs
        for lane in range(bench.inputs):
            for _ in range(20):
                dest = bench.rng.randrange(min(bench.outputs + 1, 1 << parameters()["DestBits"]))
                packet = random_packet(bench.rng, 5 * bench.source.data_bytes, user_bits=user_bits, dest=dest)
                packet.user = packet.user >> 4 << 4 | lane
                bench.source.send(packet, lane)
                if dest < bench.outputs:
                    sent.setdefault((lane, dest), []).append(packet)
                    total[dest] += 1
                else:
                    strays += 1
        for output, count in enumerate(total):
            for _ in range(count):
                got = await bench.sink.receive(output, timeout_us=4000)
                assert got.dest == output
                assert got == sent[got.user & 15, output].pop(0)
        assert not any(sent.values())
        await bench.source.drain()
    for _ in range(4):
        await RisingEdge(dut.clk_i)
    assert bench.strays == strays


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def no_conflict_no_loss(dut):
    """A permutation of destinations: every port runs at one word per cycle at the same time."""
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    ports = min(bench.inputs, bench.outputs)
    words = 40
    for lane in range(ports):
        for _ in range(words):
            bench.source.send(Packet(bench.rng.randbytes(bench.source.data_bytes), lane, (lane + 1) % ports), lane)
    for output in range(ports):
        got = [await bench.sink.receive(output) for _ in range(words)]
        assert got[-1].end - got[0].start == words - 1
        assert {packet.user for packet in got} == {(output - 1) % ports}


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_blocked_output_stops_only_its_packets(dut):
    bench = Bench(dut)
    if bench.outputs < 2 or bench.inputs < 2:
        return
    bench.sink.pauses = [lambda: True] + [lambda: False] * (bench.outputs - 1)
    await start_clock_and_reset(dut)
    words = 6 * bench.source.data_bytes
    bench.source.send(Packet(bench.rng.randbytes(words), 0, 0), 0)
    for _ in range(20):
        bench.source.send(Packet(bench.rng.randbytes(words), 1, 1), 1)
    for _ in range(20):
        await bench.sink.receive(1)
    assert not bench.sink.packets[0]


@pytest.mark.parametrize(
    ("inputs", "outputs", "data_bytes", "dest_bits"),
    [full(2, 2, 8, 1), (3, 5, 4, 4), (4, 4, 64, 2), full(5, 3, 2, 2), full(1, 4, 8, 2)],
)
def test_unisono_stream_switch(inputs, outputs, data_bytes, dest_bits):
    simulate(
        "unisono_stream_switch",
        __file__,
        {"Inputs": inputs, "Outputs": outputs, "DataBytes": data_bytes, "UserBits": 12, "DestBits": dest_bits},
    )
