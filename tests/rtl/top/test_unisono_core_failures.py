"""unisono_core_failures: the first error of each slot, one told at a time; several causes in one cycle."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate
from records import pack

CAUSE = [("valid", 1), ("slot", 3), ("code", 16)]
BITS = sum(bits for _, bits in CAUSE)
CODES = (1, 3, 5, 8, 13, 21, 26)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_causes(dut):
    rng, seen = new_random("failures"), Counter()
    causes = parameters()["Causes"]
    dut.causes_i.value = dut.clearing_i.value = 0
    await start_clock_and_reset(dut)
    for _ in range(2):
        failed = {}  # slot: code
        often, clears = 0.1, 0.0
        for cycle in range(scaled(16000, 5000)):
            if cycle % 80 == 0:
                often, clears = rng.choice((0.01, 0.05, 0.3)), rng.choice((0.0, 0.02, 0.2))
            now = [(rng.random() < often, rng.randrange(8), rng.choice(CODES)) for _ in range(causes)]
            clearing = {rng.randrange(8)} if rng.random() < clears else set()
            value = 0
            for valid, slot, code in reversed(now):
                value = value << BITS | pack(CAUSE, {"valid": valid, "slot": slot, "code": code})
            dut.causes_i.value, dut.clearing_i.value = value, sum(1 << slot for slot in clearing)
            await FallingEdge(dut.clk_i)
            told = min(failed, default=None)
            shown = told is not None and told not in clearing
            assert bool(int(dut.fail_valid_o.value)) == shown
            if shown:
                assert int(dut.fail_slot_o.value) == told
                assert int(dut.fail_code_o.value) == failed[told]
            await RisingEdge(dut.clk_i)
            first = {}
            for valid, slot, code in now:
                if valid:
                    seen["of one slot"] += slot in first and first[slot] != code
                    first.setdefault(slot, code)
            seen["waits"] += len(failed) > 1
            seen["held"] += told is not None and told in clearing
            failed.pop(told, None)
            seen["again"] += bool(first.keys() & failed.keys())
            failed.update(first)
            for slot in clearing:
                seen["cleared"] += slot in failed
                failed.pop(slot, None)
        dut.causes_i.value = dut.clearing_i.value = 0
        await reset_again(dut)
    for what in ("of one slot", "waits", "held", "again", "cleared"):
        assert seen[what] > 20, what


def test_unisono_core_failures():
    simulate("unisono_core_failures", __file__, {"Causes": 10})
