"""A cable from a node to itself, for modules that end at links of words with `last` beside."""

from collections import deque

from bus import new_random
from cocotb.triggers import RisingEdge

SIZE = 64
LATENCY = 20


async def cable(dut, links, channels):
    """A cable from link 0 to itself: what was sent to a rank comes from it, to rank 0. Returns what crossed."""
    rng = new_random("cable")
    bits, width = 8 * SIZE, (channels - 1).bit_length()
    way, signals = deque(), deque([(0, 0)] * LATENCY)
    dut.link_valid_i.value = dut.link_up_i.value = dut.link_freed_i.value = dut.link_ready_i.value = 0
    dut.link_channel_i.value = dut.link_data_i.value = dut.link_last_i.value = 0
    cycle, ready, first = 0, 0, [True] * channels
    while True:
        await RisingEdge(dut.clk_i)
        if not int(dut.rst_ni.value):
            continue
        cycle += 1
        if int(dut.link_valid_o.value) & 1 & ready:
            word = int(dut.link_data_o.value) & ((1 << bits) - 1)
            last = int(dut.link_last_o.value) & 1
            channel = int(dut.link_channel_o.value) & ((1 << width) - 1)
            if first[channel]:
                destination = word >> bits - 48 & 0xFFFF
                word = word & ~(0xFFFFFFFF << bits - 64) | destination << bits - 64
            first[channel] = bool(last)
            way.append((cycle + LATENCY, word, last, channel))
        signals.append((int(dut.link_freed_o.value) & ((1 << channels) - 1), int(dut.link_up_o.value) & 1))
        dut.link_freed_i.value, dut.link_up_i.value = signals.popleft()
        ready = int(rng.random() < 0.8)
        dut.link_ready_i.value = ready
        dut.link_valid_i.value = 0
        if way and way[0][0] <= cycle:
            _, word, last, channel = way.popleft()
            dut.link_valid_i.value, dut.link_channel_i.value = 1, channel
            dut.link_data_i.value, dut.link_last_i.value = word, last
