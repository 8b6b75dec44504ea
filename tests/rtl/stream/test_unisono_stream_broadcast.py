"""unisono_stream_broadcast: every named output gets every word once."""

import cocotb
import pytest
from bus import STREAM_FIELDS, Packet, StreamSink, StreamSource, new_random, paces, random_packet, start_clock_and_reset
from hdl import full, parameters, simulate


class MaskSource(StreamSource):
    """Sends the mask where streams have their destination."""

    FIELDS = (*STREAM_FIELDS[:-1], "mask")


class Bench:
    def __init__(self, dut):
        self.rng = new_random("broadcast")
        self.outputs = parameters()["Outputs"]
        self.source = MaskSource(dut, "in")
        self.sink = StreamSink(dut, "out", lanes=self.outputs)


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_traffic(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _, idle in paces(bench.rng):
        for _ in range(4):
            bench.source.pauses = [idle]
            bench.sink.pauses = [bench.rng.choice([p for _, p in paces(bench.rng)]) for _ in range(bench.outputs)]
            sent = [[] for _ in range(bench.outputs)]
            for _ in range(20):
                mask = bench.rng.getrandbits(bench.outputs)
                packet = random_packet(
                    bench.rng, 4 * bench.source.data_bytes, user_bits=parameters()["UserBits"], dest=mask
                )
                bench.source.send(packet)
                for lane in range(bench.outputs):
                    if mask >> lane & 1:
                        sent[lane].append(packet)
            for lane, packets in enumerate(sent):
                for packet in packets:
                    got = await bench.sink.receive(lane, timeout_us=3000)
                    assert (got.data, got.user) == (packet.data, packet.user)
            await bench.source.drain()
    assert not any(bench.sink.packets)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_word_per_cycle(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    everyone = (1 << bench.outputs) - 1
    for _ in range(50):
        bench.source.send(Packet(bench.rng.randbytes(bench.source.data_bytes), 0, everyone))
    for lane in range(bench.outputs):
        got = [await bench.sink.receive(lane) for _ in range(50)]
        assert got[-1].end - got[0].start == 49


@pytest.mark.parametrize(("outputs", "data_bytes", "user_bits"), [full(1, 8, 1), (2, 64, 16), (3, 4, 2), full(8, 8, 4)])
def test_unisono_stream_broadcast(outputs, data_bytes, user_bits):
    simulate("unisono_stream_broadcast", __file__, {"Outputs": outputs, "DataBytes": data_bytes, "UserBits": user_bits})
