"""unisono_core_clear: one part after the other, each only when the one before is quiet."""

from collections import Counter

import cocotb
from bus import new_random, reset_again, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

STEPS = ("idle", "drains", "window", "dispatcher", "buffers", "lanes", "done")
NAMES = {"drains": 3, "window": 2, "dispatcher": 1, "buffers": 0}
WAITS = {"drains": "front_idle", "dispatcher": "dispatcher_done", "buffers": "buffers_done", "lanes": "lanes_idle"}


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_clears(dut):
    rng, seen = new_random("clear"), Counter()
    for name in ("valid", "slot", "active", *WAITS.values()):
        getattr(dut, f"{name}_i").value = 0
    calls = len(dut.active_i)
    await start_clock_and_reset(dut)
    for _ in range(2):
        step, slot, valid, hurry, took = "idle", 0, False, 0.5, 0
        for cycle in range(scaled(16000, 5000)):
            if cycle % 60 == 0:
                hurry = rng.choice((0.1, 0.5, 1.0))
            if step == "idle":
                if not valid:
                    slot = rng.randrange(calls)
                    valid = rng.random() < 0.5
                    took = 0
            elif step == "done":
                valid = valid and rng.random() < 0.5
            ready = {name: rng.random() < hurry for name in WAITS.values()}
            active = rng.getrandbits(calls)
            dut.valid_i.value, dut.slot_i.value, dut.active_i.value = valid, slot, active
            for name, value in ready.items():
                getattr(dut, f"{name}_i").value = value
            await FallingEdge(dut.clk_i)
            assert int(dut.step_o.value) == (1 << NAMES[step] if step in NAMES else 0)
            assert bool(int(dut.done_o.value)) == (step == "done")
            assert int(dut.clearing_o.value) == (0 if step == "idle" else 1 << slot)
            assert int(dut.active_o.value) == (active & ~(1 << slot) if valid else active)
            await RisingEdge(dut.clk_i)
            took += valid
            if step in WAITS and not ready[WAITS[step]]:
                seen[f"{step} waits"] += 1
            elif (step == "idle" and valid) or (step not in ("idle", "done")):
                step = STEPS[STEPS.index(step) + 1]
                seen["at once"] += step == "done" and took == 6
            elif step == "done" and not valid:
                step = "idle"
                seen[f"slot {slot}"] += 1
        dut.valid_i.value = 0
        await reset_again(dut)
    assert min(seen[f"slot {s}"] for s in range(calls)) > 5
    for what in ("drains waits", "dispatcher waits", "buffers waits", "lanes waits", "at once"):
        assert seen[what] > 20, what


def test_unisono_core_clear():
    simulate("unisono_core_clear", __file__)
