"""unisono_counters: random events against sums in Python, read at random times; a reset begins all of them anew.

With Skips an edge stands for any number of cycles, also for none.
"""

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import parameters, simulate

COUNTERS = 64
HIGHEST = 26  # of the specification: buffers_high
LATENCY = 2


async def run(dut, rng, cycles: int) -> int:
    """Counts from a reset on; every value that is read is compared. Returns how many were."""
    sums = [0] * COUNTERS
    highest = 0
    rates = [rng.choice([0, 0.02, 0.5, 1]) for _ in range(COUNTERS)]
    due: list[tuple[int, int]] = []  # cycle in which the value is there, value
    compared = 0
    reads_before = False
    skips = parameters()["Skips"]
    favourite = rng.randrange(COUNTERS)
    for cycle in range(cycles):
        events = sum(1 << c for c in range(COUNTERS) if rng.random() < rates[c])
        level = rng.randrange(rng.choice([2, 50, 1025]))
        # At most every second cycle; often the same counter again.
        reads = not reads_before and rng.random() < 0.7
        index = favourite if rng.random() < 0.3 else rng.randrange(COUNTERS)
        # Without Skips nobody looks at what cycles_i says.
        passed = rng.choice([0, 1, 1, 1, 2, 700, 10_000_000])
        dut.cycles_i.value = passed
        dut.events_i.value, dut.level_i.value = events, level
        dut.read_i.value, dut.index_i.value = reads, index
        await ReadOnly()
        if due and due[0][0] == cycle:
            assert int(dut.value_o.value) == due[0][1]
            compared += 1
            due.pop(0)
        if reads:
            # What happens in this cycle counts only for the level, which is looked at when the sum is.
            value = max(highest, level) if index == HIGHEST else sums[index]
            due.append((cycle + LATENCY, value))
        await RisingEdge(dut.clk_i)
        highest = max(highest, level)
        sums = [count + (events >> c & 1) * (passed if skips else 1) for c, count in enumerate(sums)]
        reads_before = reads
    return compared


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_sums(dut):
    rng = new_random("counters")
    dut.events_i.value = dut.level_i.value = dut.read_i.value = dut.index_i.value = dut.cycles_i.value = 0
    await start_clock_and_reset(dut)
    for cycles in (5, 70, 4000, 1500):
        dut.rst_ni.value = 0
        for _ in range(3):
            dut.events_i.value = rng.getrandbits(COUNTERS)
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        compared = await run(dut, rng, cycles)
        assert compared >= cycles // 5


@pytest.mark.parametrize("skips", [0, 1])
def test_unisono_counters(skips):
    simulate("unisono_counters", __file__, {"Skips": skips})
