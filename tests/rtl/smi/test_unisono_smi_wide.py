"""unisono_smi_transport with packets of several words: they arrive whole, and nothing comes between their words."""

from collections import defaultdict, deque

import cocotb
import pytest
from bus import ChannelSink, ChannelSource, bursts, never, new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, scaled, simulate
from smi_support import SEND, SYNCH, Packet, all_on_one_link, wide_words

LATENCY = 5
STRANGER = 9  # no rank of the tables


class Echo:
    """A cable from link 0 to itself. What arrives is for rank 0, whoever it was sent to."""

    def __init__(self, dut, size, words, channels):
        self.dut, self.size, self.words, self.channels = dut, size, words, channels
        self.crossed = 0
        cocotb.start_soon(self.run())

    async def run(self):
        dut, bits = self.dut, 8 * self.size
        width = (self.channels - 1).bit_length()
        rng = new_random("echo")
        way, signals = deque(), deque([(0, 0)] * LATENCY)
        dut.link_valid_i.value = dut.link_up_i.value = dut.link_freed_i.value = dut.link_ready_i.value = 0
        dut.link_channel_i.value = dut.link_data_i.value = 0
        cycle = ready = length = 0
        within = None  # the channel of the packet under way
        while True:
            await RisingEdge(dut.clk_i)
            # Values of before the edge: what it has moved.
            if int(dut.rst_ni.value):
                cycle += 1
                if int(dut.link_valid_o.value) & 1 & ready:
                    word = int(dut.link_data_o.value) & ((2 << bits) - 1)
                    channel = int(dut.link_channel_o.value) & ((1 << width) - 1)
                    assert within in (None, channel), "a packet of another channel comes in between"
                    if within is None:
                        word &= ~(0xFFFF << bits - 48)  # the destination
                    length += 1
                    assert length <= self.words
                    within = None if word >> bits else channel
                    length = length if within is not None else 0
                    way.append((cycle + LATENCY, word, channel))
                    self.crossed += 1
                freed = int(dut.link_freed_o.value) & ((1 << self.channels) - 1)
                signals.append((freed, int(dut.link_up_o.value) & 1))
                freed, up = signals.popleft()
                dut.link_freed_i.value, dut.link_up_i.value = freed, up
                ready = int(rng.random() < 0.8)
                dut.link_ready_i.value = ready
                dut.link_valid_i.value = 0
                if way and way[0][0] <= cycle:
                    _, word, channel = way.popleft()
                    dut.link_valid_i.value, dut.link_channel_i.value, dut.link_data_i.value = 1, channel, word


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def whole_packets(dut):
    rng = new_random("wide")
    links, ports, size, words, virtual = (
        parameters()[name] for name in ("Links", "Ports", "PacketBytes", "Words", "VirtualChannels")
    )
    ends = 2 * ports
    image_port = ChannelSource(dut, "image", ("data", "last"))
    send = ChannelSource(dut, "send", lanes=ends, pause=[rng.choice((never, bursts(rng))) for _ in range(ends)])
    receive = ChannelSink(dut, "receive", lanes=ends, pause=[rng.choice((never, bursts(rng))) for _ in range(ends)])
    echo = Echo(dut, size, words, 2 * virtual)
    await start_clock_and_reset(dut)
    image = all_on_one_link(5, 0, links, virtual, ports)
    for number, word in enumerate(image):
        image_port.put((word, int(number == len(image) - 1)))
    while not int(dut.running_o.value):
        await RisingEdge(dut.clk_i)

    expected = defaultdict(deque)  # by receiving end, source and destination: packets of the same way stay in order
    total = strays = serial = 0
    for _ in range(scaled(160)):
        for end in range(ends):
            serial += 1
            op = SEND if end < ports else SYNCH
            dst = rng.choice((0, rng.randrange(5), STRANGER if end == 1 and total > 100 else 0))
            header = Packet(1 + end, dst, rng.randrange(ports), op, serial % 4096)
            sent = wide_words(header, rng.randbytes(rng.randint(1, size * words - 8)), size)
            for word in sent:
                send.put((word,), end)
            if dst == STRANGER:
                strays += 1
                continue
            came = [sent[0] & ~(0xFFFF << 8 * size - 48), *sent[1:]]
            expected[header.port + (ports if op == SYNCH else 0), header.src, dst].append(came)
            total += 1
    got = 0
    parts = [[] for _ in range(ends)]
    while got < total:
        await receive.wait(lambda: any(receive.words))
        for end in range(ends):
            while receive.words[end]:
                parts[end].append(receive.words[end].popleft()[0])
                if not parts[end][-1] >> 8 * size:
                    continue
                src = parts[end][0] >> 8 * size - 64 & 0xFFFF
                keys = [
                    key for key, queue in expected.items() if key[:2] == (end, src) and queue and queue[0] == parts[end]
                ]
                assert keys, f"endpoint {end}: a packet from {src} that was not sent so, or not next"
                expected[keys[0]].popleft()
                parts[end] = []
                got += 1
    for _ in range(200):
        await RisingEdge(dut.clk_i)
    assert not any(receive.words)
    assert echo.crossed > total // 4
    assert int(dut.strays_o.value) == strays > 0
    named = int(dut.first_stray_o.value)
    assert (named >> 35, named >> 3 & 0xFFFF, named & 7) == (STRANGER, 2, SEND)


@pytest.mark.parametrize(
    ("links", "ports", "size", "words", "virtual"), [(4, 2, 64, 4, 2), full(2, 3, 64, 3, 1), full(1, 2, 128, 2, 1)]
)
def test_unisono_smi_transport_wide(links, ports, size, words, virtual):
    given = {"Links": links, "Ports": ports, "PacketBytes": size, "Words": words, "VirtualChannels": virtual}
    simulate("unisono_smi_transport", __file__, given | {"MaxRanks": 8})
