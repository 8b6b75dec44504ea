"""unisono_lane_order: against counts kept in Python, before and after a reset that finds packets under way."""

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import simulate

LANES = 2
RANKS = 64
CLEARING = RANKS + 2
MOST = 17


async def run(dut, rng, cycles: int, peers: list[int], quiet: int) -> None:
    """Jobs enter and leave at random, from a lane that is empty; every answer is compared with the counts."""
    held = [[0] * RANKS for _ in range(LANES)]
    idle = [0] * LANES
    for cycle in range(cycles):
        ask = rng.choice(peers)
        enter = leave = 0
        leaves = [rng.randrange(RANKS) for _ in range(LANES)]
        for lane in range(LANES):
            if cycle >= quiet and held[lane][ask] < MOST and rng.random() < 0.5:
                enter |= 1 << lane
            there = [peer for peer in range(RANKS) if held[lane][peer]]
            if there and rng.random() < 0.45:
                leave |= 1 << lane
                leaves[lane] = rng.choice(there)
        dut.ask_peer_i.value, dut.enter_i.value, dut.leave_i.value = ask, enter, leave
        dut.leave_peer_i.value = sum(peer << 6 * lane for lane, peer in enumerate(leaves))
        await ReadOnly()
        for lane in range(LANES):
            any_there = sum(held[lane]) != 0
            assert int(dut.any_o.value) >> lane & 1 == any_there
            busy = int(dut.busy_o.value) >> lane & 1
            assert busy or held[lane][ask] == 0, f"cycle {cycle}: lane {lane} holds something for {ask}"
            # Once it has been empty for long enough, the answer is exact.
            if idle[lane] >= CLEARING:
                assert busy == (held[lane][ask] != 0), f"cycle {cycle}: lane {lane} holds nothing for {ask}"
            else:
                assert not busy or any_there
        await RisingEdge(dut.clk_i)
        for lane in range(LANES):
            if sum(held[lane]) == 0 and not enter >> lane & 1:
                idle[lane] += 1
            if enter >> lane & 1:
                held[lane][ask] += 1
            if leave >> lane & 1:
                held[lane][leaves[lane]] -= 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def against_counts(dut):
    rng = new_random("lane order")
    dut.enter_i.value = dut.leave_i.value = dut.ask_peer_i.value = dut.leave_peer_i.value = 0
    await start_clock_and_reset(dut)
    for quiet in (0, 1, 30, CLEARING, 200):
        for peers in ([3], [0, 1, 62, 63], list(range(RANKS))):
            # A reset finds what the last run left, and inputs that nobody has decided yet.
            dut.rst_ni.value = 0
            for _ in range(3):
                dut.enter_i.value, dut.leave_i.value = rng.randrange(4), rng.randrange(4)
                await RisingEdge(dut.clk_i)
            dut.rst_ni.value = 1
            await run(dut, rng, 1500, peers, quiet)


def test_unisono_lane_order():
    simulate("unisono_lane_order", __file__)
