"""unisono_smi_queue: order in each channel, channels that do not hold up each other, room that is kept."""

from collections import deque

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import full, parameters, simulate


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_traffic(dut):
    rng = new_random("smi queue")
    channels, depth, slack, width = (parameters()[name] for name in ("Channels", "Depth", "Slack", "Width"))
    route_bits = parameters()["RouteBits"]
    dut.in_valid_i.value = dut.pop_i.value = 0
    await start_clock_and_reset(dut)
    inside = [deque() for _ in range(channels)]
    # A writer decides two cycles before it writes, as the kernels do.
    decided = deque([None] * slack)
    expected = None
    stalled = channels - 1
    fullest = moved = 0
    for cycle in range(6000):
        if cycle % 300 == 0:
            stalled = rng.randrange(channels)
        await ReadOnly()
        if expected is not None:
            assert int(dut.out_data_o.value) == expected
        room, heads = int(dut.room_o.value), int(dut.head_valid_o.value)
        routes = int(dut.head_route_o.value)
        for channel in range(channels):
            assert heads >> channel & 1 == bool(inside[channel])
            if inside[channel]:
                mask = (1 << route_bits) - 1
                assert routes >> channel * route_bits & mask == inside[channel][0][0]
        choice = rng.randrange(channels)
        decided.append(choice if room >> choice & 1 and rng.random() < 0.8 else None)
        write = decided.popleft()
        able = [channel for channel in range(channels) if inside[channel] and (channel != stalled or channels == 1)]
        pop = rng.choice(able) if able and rng.random() < 0.7 else None
        await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = int(write is not None)
        dut.pop_i.value = 0 if pop is None else 1 << pop
        if write is not None:
            entry = (rng.getrandbits(route_bits), rng.getrandbits(width))
            dut.in_channel_i.value = write
            dut.in_route_i.value, dut.in_data_i.value = entry
        # What is set now acts at the next edge.
        await ReadOnly()
        if expected is not None:
            assert int(dut.out_data_o.value) == expected
        await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = dut.pop_i.value = 0
        if pop is not None:
            expected = inside[pop].popleft()[1]
            moved += 1
        if write is not None:
            inside[write].append(entry)
            assert len(inside[write]) <= depth
            fullest = max(fullest, len(inside[write]))
    assert fullest >= (depth - slack if channels > 1 else 1)
    assert moved > 1000


@pytest.mark.parametrize(
    ("width", "channels", "depth", "slack"),
    [(64, 2, 16, 2), (40, 4, 8, 2), full(256, 1, 8, 0), full(64, 6, 4, 2), full(64, 2, 64, 2)],
)
def test_unisono_smi_queue(width, channels, depth, slack):
    simulate(
        "unisono_smi_queue",
        __file__,
        {"Width": width, "Channels": channels, "Depth": depth, "Slack": slack, "RouteBits": 5},
    )
