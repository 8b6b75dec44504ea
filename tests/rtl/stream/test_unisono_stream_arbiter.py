"""unisono_stream_arbiter: packets stay whole and in order, inputs get equal shares, no cycle is lost."""

import cocotb
import pytest
from bus import (
    STREAM_FIELDS,
    Packet,
    StreamSink,
    StreamSource,
    bursts,
    never,
    new_random,
    paces,
    random_packet,
    start_clock_and_reset,
)
from hdl import full, parameters, simulate


class SourceSink(StreamSink):
    """The number of the input arrives where streams have their destination."""

    FIELDS = (*STREAM_FIELDS[:-1], "source")


class Bench:
    def __init__(self, dut):
        self.rng = new_random("arbiter")
        self.inputs = parameters()["Inputs"]
        self.source = StreamSource(dut, "in", lanes=self.inputs)
        self.sink = SourceSink(dut, "out")

    def packet(self, words):
        return random_packet(self.rng, words * self.source.data_bytes, user_bits=parameters()["UserBits"])


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _, back in paces(bench.rng):
        for _ in range(3):
            bench.sink.pauses = [back]
            bench.source.pauses = [
                bench.rng.choice([pace for _, pace in paces(bench.rng)]) for _ in range(bench.inputs)
            ]
            sent = [[bench.packet(5) for _ in range(12)] for _ in range(bench.inputs)]
            for lane, packets in enumerate(sent):
                for packet in packets:
                    bench.source.send(packet, lane)
            for _ in range(12 * bench.inputs):
                got = await bench.sink.receive(timeout_us=3000)
                wanted = sent[got.dest].pop(0)
                assert (got.data, got.user) == (wanted.data, wanted.user)
            assert not any(sent)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def equal_shares(dut):
    """All inputs always busy: strict turns, whatever the lengths and the back-pressure."""
    bench = Bench(dut)
    bench.sink.pauses = [bursts(bench.rng)]
    await start_clock_and_reset(dut)
    for lane in range(bench.inputs):
        for _ in range(10):
            bench.source.send(bench.packet(4), lane)
    order = [(await bench.sink.receive()).dest for _ in range(10 * bench.inputs)]
    for turn in range(1, 10):
        assert sorted(order[turn * bench.inputs : (turn + 1) * bench.inputs]) == list(range(bench.inputs)), order


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle(dut):
    """Packets of one word, first from all inputs, then from one alone."""
    bench = Bench(dut)
    bench.source.pauses = [never] * bench.inputs
    await start_clock_and_reset(dut)
    for lanes in (range(bench.inputs), range(1)):
        count = 0
        for lane in lanes:
            for _ in range(30):
                bench.source.send(Packet(bench.rng.randbytes(bench.source.data_bytes)), lane)
                count += 1
        first = await bench.sink.receive()
        for _ in range(count - 1):
            last = await bench.sink.receive()
        assert last.end - first.start == count - 1


@pytest.mark.parametrize(
    ("inputs", "data_bytes", "user_bits"), [full(1, 8, 2), full(2, 8, 1), (3, 4, 9), (4, 64, 16), full(8, 2, 4)]
)
def test_unisono_stream_arbiter(inputs, data_bytes, user_bits):
    simulate("unisono_stream_arbiter", __file__, {"Inputs": inputs, "DataBytes": data_bytes, "UserBits": user_bits})
