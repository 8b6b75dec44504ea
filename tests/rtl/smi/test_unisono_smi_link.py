"""unisono_smi_link, _outlet, _table: places at the other end are never exceeded, and all are used."""

from collections import deque

import cocotb
import cocotb.clock
import pytest
from bus import ChannelSink, bursts, new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def places(dut):
    rng = new_random("link")
    channels, depth = parameters()["Channels"], parameters()["LinkDepth"]
    sink = ChannelSink(dut, "out", ("channel", "data"), pause=bursts(rng))
    dut.in_valid_i.value = dut.up_i.value = dut.freed_i.value = 0
    dut.in_channel_i.value = dut.in_data_i.value = 0
    await start_clock_and_reset(dut)
    for _ in range(20):
        await ReadOnly()
        assert int(dut.room_o.value) == 0
        await RisingEdge(dut.clk_i)
    dut.up_i.value = 1
    sent = [0] * channels
    freed = [0] * channels
    expected = deque()
    # A writer decides two cycles before it writes; what is set behind an edge is one cycle late by itself.
    decided = deque([None])
    fullest = 0
    stuck = channels - 1
    for cycle in range(4000):
        await ReadOnly()
        room = int(dut.room_o.value)
        choice = rng.randrange(channels)
        decided.append(choice if room >> choice & 1 else None)
        write = decided.popleft()
        await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = int(write is not None)
        if write is not None:
            data = rng.getrandbits(64)
            dut.in_channel_i.value, dut.in_data_i.value = write, data
            expected.append((write, data))
            sent[write] += 1
            assert sent[write] - freed[write] <= depth
            fullest = max(fullest, sent[write] - freed[write])
        release = 0
        for channel in range(channels):
            # Only of what has crossed; the last channel's queue stands still until the end.
            if (channel != stuck or cycle > 3000) and freed[channel] < sent[channel] - 4 and rng.random() < 0.3:
                release |= 1 << channel
                freed[channel] += 1
        dut.freed_i.value = release
    assert fullest >= depth - 2
    assert all(count > 1000 // channels for count in sent[:stuck])
    while sink.words[0]:
        assert sink.words[0].popleft() == expected.popleft()
    assert len(expected) < 16


@pytest.mark.parametrize(("channels", "depth"), [(2, 16), (6, 8), full(16, 64)])
def test_unisono_smi_link(channels, depth):
    simulate("unisono_smi_link", __file__, {"Channels": channels, "LinkDepth": depth, "Width": 64}, testcase="places")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lookups(dut):
    rng = new_random("table")
    entries, width, count = (parameters()[name] for name in ("Entries", "Width", "Lookups"))
    bits = max(1, (entries - 1).bit_length())
    dut.wr_en_i.value = 0
    clock = cocotb.clock.Clock(dut.clk_i, 4, unit="ns")
    clock.start()
    known = {}
    for cycle in range(3 * entries):
        await RisingEdge(dut.clk_i)
        address, entry = cycle % entries, rng.getrandbits(width)
        dut.wr_en_i.value, dut.wr_address_i.value, dut.wr_entry_i.value = 1, address, entry
        if known:
            asked = [rng.choice(list(known)) for _ in range(count)]
            dut.valid_i.value = (1 << count) - 1
            dut.address_i.value = sum(one << bits * i for i, one in enumerate(asked))
            await ReadOnly()
            got = int(dut.entry_o.value)
            for i, one in enumerate(asked):
                assert got >> width * i & (1 << width) - 1 == known[one]
        known[address] = entry
        # Written at the next edge.
        await RisingEdge(dut.clk_i)
        dut.wr_en_i.value = 0


@pytest.mark.parametrize(("entries", "lookups_at_once"), [(24, 5), full(128, 1)])
def test_unisono_smi_table(entries, lookups_at_once):
    given = {"Entries": entries, "Width": 7, "Lookups": lookups_at_once}
    simulate("unisono_smi_table", __file__, given, testcase="lookups")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def outlet(dut):
    rng = new_random("outlet")
    depth, slack = parameters()["Depth"], parameters()["Slack"]
    sink = ChannelSink(dut, "out", pause=bursts(rng))
    dut.in_valid_i.value = dut.in_data_i.value = 0
    await start_clock_and_reset(dut)
    decided = deque([False] * (slack - 1))
    expected = []
    for _ in range(3000):
        await ReadOnly()
        decided.append(bool(int(dut.room_o.value)))
        write = decided.popleft()
        await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = int(write)
        if write:
            expected.append(rng.getrandbits(32))
            dut.in_data_i.value = expected[-1]
    assert len(expected) - depth - 2 <= sink.taken[0] <= len(expected)
    assert sink.taken[0] > 800
    assert [word[0] for word in sink.words[0]] == expected[: sink.taken[0]]


@pytest.mark.parametrize(("depth", "slack"), [(8, 2), full(8, 1), full(64, 2)])
def test_unisono_smi_outlet(depth, slack):
    simulate("unisono_smi_outlet", __file__, {"Width": 32, "Depth": depth, "Slack": slack}, testcase="outlet")
