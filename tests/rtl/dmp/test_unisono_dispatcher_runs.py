"""unisono_dispatcher_runs: random moves, runs and progress of few places against dictionaries; which runs are live."""

from collections import Counter

import cocotb
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

ENTRIES, MOVES = 32, 256
MEMORIES = ("move", "run", "progress")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def against_dictionaries(dut):
    rng, seen = new_random("runs"), Counter()
    inputs = ("move_valid", "next_id", "read_move", "read_run", "id", "run_write", "progress_write")
    for name in (*inputs, *MEMORIES, "move_id", "live_raise", "live_clear"):
        getattr(dut, f"{name}_i").value = 0
    Clock(dut.clk_i, 4, unit="ns").start()
    await RisingEdge(dut.clk_i)
    kept: dict[str, dict[int, int]] = {name: {} for name in MEMORIES}
    shown: dict[str, int | None] = dict.fromkeys(MEMORIES)
    live, live_before = set(), set()
    now, changed = 0, None
    for places in ([0, 7, 8, 31], [5, 5 + ENTRIES, MOVES - 1], range(MOVES)):
        for _ in range(scaled(12000, 3000)):
            following = rng.choice(places) if rng.random() < 0.7 else now
            enters = rng.choice(places) if rng.random() < 0.5 else None
            words = {name: rng.getrandbits(len(getattr(dut, f"{name}_i"))) for name in MEMORIES}
            reads = {"move": rng.random() < 0.7, "run": rng.random() < 0.7}
            reads["progress"] = reads["run"]
            writes = {name: now if rng.random() < 0.4 else None for name in ("run", "progress")} | {"move": enters}
            quiet = changed == now // ENTRIES
            raises, clears = not quiet and rng.random() < 0.4, not quiet and rng.random() < 0.1
            dut.id_i.value, dut.next_id_i.value = now, following
            dut.read_move_i.value, dut.read_run_i.value = reads["move"], reads["run"]
            dut.move_valid_i.value, dut.move_id_i.value = enters is not None, enters or 0
            dut.run_write_i.value = writes["run"] is not None
            dut.progress_write_i.value = writes["progress"] is not None
            for name in MEMORIES:
                getattr(dut, f"{name}_i").value = words[name]
            dut.live_raise_i.value, dut.live_clear_i.value = raises and not clears, clears
            await FallingEdge(dut.clk_i)
            for name in MEMORIES:
                if shown[name] is not None:
                    assert int(getattr(dut, f"{name}_o").value) == shown[name], name
                    seen[name] += 1
            assert bool(int(dut.live_o.value)) == (now in live_before)
            seen["live"] += now in live_before
            seen["not live"] += now not in live_before and now in kept["run"]
            for name in MEMORIES:
                if reads[name]:
                    shown[name] = kept[name].get(following)
                if (place := writes[name]) is not None:
                    kept[name][place] = words[name]
            live_before = set(live)
            changed = None
            if clears:
                seen["cleared several"] += sum(one // ENTRIES == now // ENTRIES for one in live) > 1
                live = {one for one in live if one // ENTRIES != now // ENTRIES}
                changed = now // ENTRIES
            elif raises:
                seen["live again"] += now in live
                live.add(now)
                changed = now // ENTRIES
            await RisingEdge(dut.clk_i)
            now = following
    for what in (*MEMORIES, "live", "not live", "cleared several", "live again"):
        assert seen[what] > 50, what


def test_unisono_dispatcher_runs():
    simulate("unisono_dispatcher_runs", __file__)
