"""unisono_stream_sink: a move's segments become one packet, also when the move before it on its port had no end."""

from dataclasses import dataclass

import cocotb
import pytest
from bus import ChannelSource, StreamSink, never, new_random, paces, start_clock_and_reset
from hdl import full, parameters, simulate

FIELDS = ("data", "keep", "last", "port", "starts", "ends")


@dataclass
class Segment:
    port: int
    data: bytes
    starts: bool
    ends: bool


def put(lane: ChannelSource, segment: Segment, wide: int, rng) -> None:
    for at in range(0, len(segment.data), wide):
        part = segment.data[at : at + wide]
        value = int.from_bytes(part, "little") | rng.getrandbits(8 * wide) >> 8 * len(part) << 8 * len(part)
        last = at + wide >= len(segment.data)
        lane.put((value, (1 << len(part)) - 1, last, segment.port, segment.starts, segment.ends))


def move(rng, port: int, wide: int, whole: bool) -> tuple[list[Segment], bytes]:
    """The segments of a move, some of them missing if it is not whole; and what its kernel gets."""
    lengths = [rng.choice((1, wide, rng.randint(1, 4 * wide))) for _ in range(rng.randint(1, 4))]
    parts = [rng.randbytes(length) for length in lengths]
    segments = [Segment(port, part, i == 0, i == len(parts) - 1) for i, part in enumerate(parts)]
    if not whole:
        segments[-1].ends = False
    return segments, b"".join(parts)


class Cuts(StreamSink):
    """Keeps `cut` of each packet's last word in `user`; it may change within a packet."""

    FIELDS = ("data", "keep", "last", "cut", "dest")

    def _accept(self, lane, word):
        data, keep, last, cut, _ = word
        super()._accept(lane, (data, keep, last, 0, 0))
        if last:
            self.packets[lane][-1].user = cut
        else:
            assert not cut


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_moves(dut):
    rng = new_random("sink")
    ports = parameters()["StreamPorts"]
    lane, kernels = ChannelSource(dut, "in", FIELDS), Cuts(dut, "out", lanes=ports, empty_allowed=True)
    await start_clock_and_reset(dut)
    wide = kernels.data_bytes
    for _, idle in paces(rng):
        for _, back in paces(rng):
            lane.pauses, kernels.pauses = [idle], [back] * ports
            queues, wanted = [[] for _ in range(ports)], [[] for _ in range(ports)]
            for port in range(ports):
                count = rng.randint(1, 4)
                for number in range(count):
                    # The last one is whole, so that everything comes.
                    whole = number == count - 1 or rng.random() < 0.7
                    segments, data = move(rng, port, wide, whole)
                    queues[port] += segments
                    wanted[port].append((data, int(not whole)))
            while any(queues):
                put(lane, rng.choice([queue for queue in queues if queue]).pop(0), wide, rng)
            for port in range(ports):
                for data, cut in wanted[port]:
                    got = await kernels.receive(port)
                    assert (got.data, got.user) == (data, cut), f"port {port}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_per_cycle(dut):
    rng = new_random("throughput")
    ports = parameters()["StreamPorts"]
    lane = ChannelSource(dut, "in", FIELDS, pause=never)
    kernels = Cuts(dut, "out", lanes=ports, pause=[never] * ports)
    await start_clock_and_reset(dut)
    wide = kernels.data_bytes
    data = rng.randbytes(1 + 30 * wide)
    put(lane, Segment(0, data[:1], True, False), wide, rng)
    put(lane, Segment(0, data[1 : 1 + 15 * wide], False, False), wide, rng)
    put(lane, Segment(0, data[1 + 15 * wide :], False, True), wide, rng)
    got = await kernels.receive(0)
    assert got.data == data
    assert got.end - got.start == 30


@pytest.mark.parametrize(("ports", "data_bytes"), [full(1, 64), (3, 64), full(2, 16)])
def test_unisono_stream_sink(ports, data_bytes):
    simulate("unisono_stream_sink", __file__, {"StreamPorts": ports, "DataBytes": data_bytes, "Depth": 128})
