"""unisono_switch_runs: who has all that it waits for goes first, and nothing that has come is forgotten."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate
from unit_records import ENTRIES, RUNS

#: The runs that are used, so that events meet.
FIRST, USED = ENTRIES * RUNS - 6, 6
URGENT_MOST = 8


@dataclass
class Way:
    """What one way of a run was left with."""

    any: bool = True
    lacks: set[int] = field(default_factory=set)
    urgent: bool = False

    def hears(self, ports: set[int]) -> bool:
        """Whether this is what it waited for."""
        hit = bool(self.lacks & ports) if self.any else bool(self.lacks) and self.lacks <= ports
        if hit:
            self.any, self.lacks, self.urgent = False, set(), True
        elif not self.any:
            self.lacks -= ports
        return hit


class Model:
    """The same in Python, a cycle at a time."""

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.ways = [[self.fresh(), self.fresh()] for _ in range(USED)]
        self.pending = [False] * USED
        self.looked = (0, 0)
        self.since: set[int] = set()
        self.left: tuple[int, int, Way] | None = None  # in the cycle before
        self.before: dict[int, int] = {}
        self.count = 0

    def fresh(self) -> Way:
        """As if all were unknown: whatever comes matters."""
        return Way(lacks=set(range(self.ports)))

    def urgent(self) -> set[int]:
        """Runs that have an urgent way."""
        return {run for run in range(USED) if any(way.urgent for way in self.ways[run])}

    def choice(self) -> tuple[set[int], bool, bool]:
        """Runs of which one is chosen; whether by urgency, and whether it yields."""
        due, urgent = self.count == URGENT_MOST - 1, self.urgent()
        waiting = {run for run in range(USED) if self.pending[run]}
        by_urgent = bool(urgent) and not (due and bool(waiting))
        return (urgent if by_urgent else waiting), by_urgent, not by_urgent and not due


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_events(dut: Any) -> None:
    rng = new_random("runs")
    ports = parameters()["Ports"]
    levels = ("open_valid", "event_valid", "ended_valid", "leave", "leave_any", "leave_ports", "again_way", "again_run")
    for name in (*levels, "open_run", "event_run", "ended_way", "take"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    model, seen, width = Model(ports), Counter[str](), (ENTRIES * RUNS - 1).bit_length()
    dut.way_i.value = 2 * FIRST
    just_taken = False
    for _ in range(scaled(8000)):
        await FallingEdge(dut.clk_i)
        runs, by_urgent, yields = model.choice()
        assert bool(int(dut.valid_o.value)) == bool(runs)
        takes, chosen = bool(runs) and rng.random() < 0.3, 0
        if runs:
            chosen, down = (int(dut.way_o.value) >> 1) - FIRST, int(dut.way_o.value) & 1
            assert chosen in runs
            assert bool(int(dut.urgent_o.value)) == by_urgent
            assert bool(int(dut.yields_o.value)) == yields
            assert down == int(by_urgent and not model.ways[chosen][0].urgent)
        # What comes, what is left, what is over.
        events = {p: rng.randrange(USED) for p in range(ports) if rng.random() < 0.08}
        run, way = model.looked
        # No way is left in the cycle after its choice.
        leaves, leave_any = not just_taken and rng.random() < 0.35, rng.random() < 0.4
        leave_ports = {p for p in range(ports) if rng.random() < rng.choice((0.0, 0.3, 0.7))}
        again_way, again_run = rng.random() < 0.05, rng.random() < 0.05
        ended = (rng.randrange(USED), rng.randrange(2)) if rng.random() < 0.05 else None
        opened = rng.randrange(USED) if rng.random() < 0.02 else None
        dut.take_i.value, just_taken = int(takes), takes
        dut.event_valid_i.value = sum(1 << p for p in events)
        dut.event_run_i.value = sum(FIRST + one << width * p for p, one in events.items())
        dut.leave_i.value, dut.leave_any_i.value = int(leaves), int(leave_any)
        dut.leave_ports_i.value = sum(1 << p for p in leave_ports)
        dut.again_way_i.value, dut.again_run_i.value = int(again_way), int(again_run)
        dut.ended_valid_i.value = int(ended is not None)
        dut.ended_way_i.value = 2 * (FIRST + ended[0]) + ended[1] if ended else 0
        dut.open_valid_i.value, dut.open_run_i.value = int(opened is not None), FIRST + (opened or 0)
        # The same, here.
        waits = any(model.pending)
        model.since |= {p for p, one in [*events.items(), *model.before.items()] if one == run}
        if takes and by_urgent:
            model.ways[chosen][down].urgent = False
        elif takes:
            model.pending[chosen] = False
        left, model.left = model.left, None
        if leaves and opened != run:
            model.left = (run, way, Way(any=leave_any, lacks=set(leave_ports)))
            model.left[2].hears(model.since)
        for one in range(USED):
            came, hits = {p for p, of in events.items() if of == one}, 0
            for other in range(2):
                mine, hit = model.ways[one][other], False
                if left and left[:2] == (one, other):
                    mine.any, mine.lacks, hit = left[2].any, left[2].lacks, left[2].urgent
                hit = mine.hears(came) or hit
                mine.urgent = mine.urgent or hit
                hits += hit
            if came and not hits:
                model.pending[one] = True
                seen["later"] += 1
            seen["urgent"] += hits
        model.ways[run][way].urgent |= again_way
        model.pending[run] |= again_run
        if ended:
            model.ways[ended[0]][ended[1]].urgent = True
        if opened is not None:
            model.ways[opened], model.pending[opened] = [model.fresh(), model.fresh()], False
        if not waits or (takes and not by_urgent):
            model.count = 0
        elif takes and model.count < URGENT_MOST - 1:
            model.count += 1
        seen["due"] += takes and not by_urgent and not yields
        model.before = events
        if takes:
            model.looked, model.since = (chosen, down), set()
        await RisingEdge(dut.clk_i)
        if takes:
            dut.way_i.value = 2 * (FIRST + chosen) + down
    assert min(seen["urgent"], seen["later"]) > 100
    assert seen["due"] > 5


@pytest.mark.parametrize("ports", [8, full(28)])
def test_unisono_switch_runs(ports: int) -> None:
    simulate("unisono_switch_runs", __file__, {"Ports": ports})
