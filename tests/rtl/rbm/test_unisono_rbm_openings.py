"""unisono_rbm_openings: messages of few sources begin, early or not, and are taken over, against a dictionary."""

from collections import Counter

import cocotb
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from hdl import scaled, simulate


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_messages(dut):
    rng, seen = new_random("openings"), Counter()
    for name in ("communicator", "source", "sequence", "begins", "begins_early", "adopted"):
        getattr(dut, f"{name}_i").value = 0
    Clock(dut.clk_i, 4, unit="ns").start()
    await FallingEdge(dut.clk_i)
    last: dict[tuple[int, int], tuple[int, bool]] = {}  # sequence of the message that began last; whether it is early
    for number in range(scaled(20000, 6000)):
        # A question, and in the cycle of its answer what happens to that source.
        source = rng.choice((0, 5, 15)), rng.choice((0, 1, 63))
        dut.communicator_i.value, dut.source_i.value = source
        dut.begins_i.value = dut.adopted_i.value = 0
        dut.sequence_i.value = rng.getrandbits(32)
        await FallingEdge(dut.clk_i)
        sequence, early = last.get(source, (0, False))
        known = sequence
        begins, adopted = rng.random() < 0.3, rng.random() < 0.3
        if begins:
            sequence, adopted = number, False
        elif rng.random() < 0.3:
            sequence ^= 1 << rng.randrange(16)
        dut.sequence_i.value = sequence | rng.getrandbits(16) << 16
        dut.begins_i.value, dut.begins_early_i.value, dut.adopted_i.value = begins, rng.random() < 0.6, adopted
        await Timer(1, "ns")
        if source in last:
            same = known == sequence
            assert int(dut.early_o.value) == (same and early), f"{number}: {source}"
            seen["early" if same and early else "not early"] += 1
            seen["another"] += early and not same
            seen["adopted"] += adopted and same and early
            if adopted and same:
                last[source] = sequence, False
        if begins:
            last[source] = sequence, bool(int(dut.begins_early_i.value))
        await FallingEdge(dut.clk_i)
    assert min(seen[what] for what in ("early", "not early", "another", "adopted")) > 50, seen


def test_unisono_rbm_openings():
    simulate("unisono_rbm_openings", __file__)
