"""unisono_smi_transport: packets of all sizes between any endpoints, in the node and over a cable that comes back."""

from collections import defaultdict, deque

import cocotb
import pytest
from bus import ChannelSink, ChannelSource, bursts, never, new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate
from smi_support import SEND, SYNCH, Packet, all_on_one_link, packet_of

LATENCY = 5


class Echo:
    """A cable from link 0 to itself. What arrives is for rank 0, whoever it was sent to."""

    def __init__(self, dut, size, channels):
        self.dut, self.size, self.channels = dut, size, channels
        self.crossed = 0
        cocotb.start_soon(self.run())

    async def run(self):
        dut = self.dut
        width = (self.channels - 1).bit_length()
        rng = new_random("echo")
        way, signals = deque(), deque([(0, 0)] * LATENCY)
        dut.link_valid_i.value = dut.link_up_i.value = dut.link_freed_i.value = dut.link_ready_i.value = 0
        dut.link_channel_i.value = dut.link_data_i.value = 0
        cycle = ready = 0
        while True:
            await RisingEdge(dut.clk_i)
            # Values of before the edge: what it has moved.
            if int(dut.rst_ni.value):
                cycle += 1
                if int(dut.link_valid_o.value) & 1 & ready:
                    packet = packet_of(int(dut.link_data_o.value) & ((1 << self.size * 8) - 1), self.size)
                    packet.dst = 0
                    way.append((cycle + LATENCY, packet, int(dut.link_channel_o.value) & ((1 << width) - 1)))
                    self.crossed += 1
                freed = int(dut.link_freed_o.value) & ((1 << self.channels) - 1)
                signals.append((freed, int(dut.link_up_o.value) & 1))
                freed, up = signals.popleft()
                dut.link_freed_i.value, dut.link_up_i.value = freed, up
                ready = int(rng.random() < 0.6)
                dut.link_ready_i.value = ready
                dut.link_valid_i.value = 0
                if way and way[0][0] <= cycle:
                    _, packet, channel = way.popleft()
                    dut.link_valid_i.value, dut.link_channel_i.value = 1, channel
                    dut.link_data_i.value = packet.word(self.size)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def every_endpoint(dut):
    rng = new_random("transport")
    links, ports, size = (parameters()[name] for name in ("Links", "Ports", "PacketBytes"))
    virtual = parameters()["VirtualChannels"]
    ends = 2 * ports
    words = ChannelSource(dut, "image", ("data", "last"))
    send = ChannelSource(dut, "send", lanes=ends, pause=bursts(rng))
    receive = ChannelSink(dut, "receive", lanes=ends, pause=[rng.choice((never, bursts(rng))) for _ in range(ends)])
    echo = Echo(dut, size, 2 * virtual)
    await start_clock_and_reset(dut)
    image = all_on_one_link(5, 0, links, virtual, ports)
    for number, word in enumerate(image):
        words.put((word, int(number == len(image) - 1)))
    while not int(dut.running_o.value):
        await RisingEdge(dut.clk_i)

    body = size - (4 if size == 32 else 8)
    expected = defaultdict(deque)
    total = strays = 0
    first = None
    for _ in range(60):
        for end in range(ends):
            op = SEND if end < ports else SYNCH
            packet = Packet(
                src=1 + end,
                dst=rng.choice((0, rng.randrange(5), 9 if end == 1 and total > 100 else 0)),
                port=rng.randrange(ports),
                op=op,
                count=rng.randrange(8),
                payload=rng.randbytes(body),
            )
            send.put((packet.word(size),), end)
            if packet.dst == 9:
                strays += 1
                first = first or packet
            else:
                to = packet.port + (ports if op == SYNCH else 0)
                # In order only by the same way.
                expected[to, end, packet.dst].append((packet.op, packet.count, packet.payload))
                total += 1
    for _ in range(total):
        await receive.wait(lambda: any(receive.words))
        to = next(i for i in range(ends) if receive.words[i])
        got = packet_of(receive.words[to].popleft()[0], size)
        assert got.dst == 0
        word = (got.op, got.count, got.payload)
        keys = [key for key, queue in expected.items() if key[:2] == (to, got.src - 1) and queue and queue[0] == word]
        assert keys, f"{got} at endpoint {to}"
        expected[keys[0]].popleft()
    for _ in range(200):
        await RisingEdge(dut.clk_i)
    await ReadOnly()
    assert not any(receive.words)
    assert echo.crossed > total // 8
    assert int(dut.strays_o.value) == strays
    if strays:
        named = int(dut.first_stray_o.value)
        assert (named >> 35, named >> 19 & 0xFFFF, named >> 3 & 0xFFFF, named & 7) == (
            9,
            first.port,
            first.src,
            first.op,
        )


@pytest.mark.parametrize(
    ("links", "ports", "size", "virtual"), [(4, 3, 32, 1), (2, 1, 64, 3), full(1, 2, 128, 2), full(8, 2, 256, 1)]
)
def test_unisono_smi_transport(links, ports, size, virtual):
    given = {"Links": links, "Ports": ports, "PacketBytes": size, "VirtualChannels": virtual, "MaxRanks": 8}
    simulate("unisono_smi_transport", __file__, given)
