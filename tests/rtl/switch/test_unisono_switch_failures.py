"""unisono_switch_failures: what comes of a call that has failed is thrown away, and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ClockCycles, FallingEdge, Timer
from hdl import full, parameters, scaled, simulate
from unit_records import ENTRIES, LOOK, RUNS, pack, random_record, width_of


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_runs(dut: Any) -> None:
    """Calls of a few runs are over or fail; heads and grants are of the same calls, or of others."""
    rng, ports, seen = new_random("failures"), parameters()["Ports"], Counter[str]()
    names = (
        "open_valid",
        "open_run",
        "run",
        "look",
        "over",
        "over_sequence",
        "over_signature",
        "fails",
        "fail_sequence",
    )
    for name in names:
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    runs = rng.sample(range(ENTRIES * RUNS), 4)
    failed: dict[int, int] = {}
    latest: dict[int, tuple[int, int]] = {}
    for _ in range(scaled(4000)):
        run = rng.choice(runs)
        dut.run_i.value = run
        await ClockCycles(dut.clk_i, 2)
        await FallingEdge(dut.clk_i)
        looks = []
        for _ in range(ports):
            look = random_record(rng, LOOK)
            look["head"]["sequence"], look["grant"]["sequence"] = rng.randrange(6), rng.randrange(6)
            look["grant"]["signature"] = rng.randrange(3)
            looks.append(look)
        dut.look_i.value = sum(pack(LOOK, look) << width_of(LOOK) * p for p, look in enumerate(looks))
        await Timer(1, "ns")
        of_call = failed.get(run)
        thrown = [look["there"] and look["head"]["sequence"] == of_call for look in looks]
        grants = [look["has_grant"] and look["grant"]["sequence"] == of_call for look in looks]
        last = latest.get(run)
        differs = any(
            last
            and look["has_grant"]
            and look["grant"]["sequence"] == last[0]
            and look["grant"]["signature"] != last[1]
            for look in looks
        )
        assert int(dut.thrown_o.value) == sum(1 << p for p in range(ports) if thrown[p])
        assert int(dut.thrown_grants_o.value) == sum(1 << p for p in range(ports) if grants[p])
        if last:
            assert (int(dut.latest_sequence_o.value), int(dut.latest_signature_o.value)) == last
        seen["thrown"] += any(thrown)
        seen["grants"] += any(grants)
        seen["differs"] += differs
        # What becomes of the run, or of another one.
        what = rng.choice(("over", "fails", "open", ""))
        call = (rng.randrange(6), rng.randrange(3))
        if what == "over":
            latest[run] = call
            dut.over_i.value, dut.over_sequence_i.value, dut.over_signature_i.value = 1, *call
        elif what == "fails":
            failed[run] = call[0]
            dut.fails_i.value, dut.fail_sequence_i.value = 1, call[0]
        elif what == "open" and rng.random() < 0.3:
            opened = rng.choice(runs)
            failed.pop(opened, None)
            latest.pop(opened, None)
            dut.open_valid_i.value, dut.open_run_i.value = 1, opened
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.differs_o.value)) == differs
        dut.over_i.value = dut.fails_i.value = dut.open_valid_i.value = 0
    assert min(seen["thrown"], seen["grants"], seen["differs"]) > 50


@pytest.mark.parametrize("ports", [8, full(28)])
def test_unisono_switch_failures(ports: int) -> None:
    simulate("unisono_switch_failures", __file__, {"Ports": ports})
