"""unisono_scoreboard_rows: random windows and rows, examined in any order; what is ready, by the moves' numbers."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

LEVELS = 5
NAMES = ("clear", "arm", "arm_unit", "arm_row", "arm_waits", "arm_trivial", "arm_levels", "pick", "pick_unit", "head",
         "armed", "unissued", "unconsumed", "unsent", "incomplete", "taken")  # fmt: skip


class Row:
    """A move that may wait: for each entry, numbered from its group's first, a level."""

    def __init__(self, levels, trivial, waits):
        self.levels, self.trivial, self.waits = levels, trivial, waits


class Call:
    """A window of moves, by their numbers."""

    def __init__(self):
        self.head = self.armed = 0
        self.rows: dict[int, Row] = {}  # by entry
        self.done: dict[int, int] = {}  # how far each entry's move is


class Bench:
    def __init__(self, dut, rng, sizes):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.count, self.window, self.rows = (sizes[name] for name in ("Calls", "Window", "Rows"))
        self.calls = [Call() for _ in range(self.count)]
        self.first = self.second = None  # a unit; a unit and what is ready of it
        self.left = None
        self.pull = 0.5

    def split(self, unit):
        return unit % self.count, unit // self.count * self.rows

    def examined(self, unit):
        """The rows that wait, those that are ready, and those from the head on, if it stands in the group."""
        slot, base = self.split(unit)
        call = self.calls[slot]
        waits, ready, upper = set(), set(), set()
        for number in range(call.head, call.armed):
            row = number % self.window - base
            if not 0 <= row < self.rows or not call.rows[number % self.window].waits:
                continue
            waits.add(row)
            own = call.rows[number % self.window]
            before = [other % self.window for other in range(call.head, number)]
            if all(own.levels[(entry - base) % self.window] <= call.done[entry] for entry in before):
                ready.add(row)
        head = call.head % self.window - base
        if 0 <= head < self.rows:
            upper = set(range(head, self.rows))
        return waits, ready, upper

    def drive_call(self, slot):
        """The window of the call in the first step, and what of it has not been done."""
        dut, call = self.dut, self.calls[slot]
        dut.head_i.value, dut.armed_i.value = call.head % (2 * self.window), call.armed % (2 * self.window)
        for level, name in enumerate(("unissued", "unconsumed", "unsent", "incomplete"), 1):
            word = sum((call.done.get(entry, 0) < level) << entry for entry in range(self.window))
            getattr(dut, f"{name}_i").value = word

    def random_change(self):
        """A row is written, something is done, or moves leave."""
        rng, dut = self.rng, self.dut
        slot = rng.randrange(self.count)
        call = self.calls[slot]
        for _ in range(rng.choice((0, 1, 2))):
            if call.armed > call.head:
                entry = rng.randrange(call.head, call.armed) % self.window
                call.done[entry] = min(LEVELS - 1, call.done[entry] + 1)
        while call.head < call.armed and call.done[call.head % self.window] == LEVELS - 1 and rng.random() < 0.5:
            if call.rows[call.head % self.window].waits:
                break
            call.head += 1
        dut.arm_i.value = 0
        for name in ("unit", "row", "waits", "trivial"):
            handle = getattr(dut, f"arm_{name}_i")
            handle.value = rng.getrandbits(len(handle))
        if call.armed - call.head == self.window or rng.random() < 0.3:
            return None
        entry = call.armed % self.window
        unit = entry // self.rows * self.count + slot
        part = rng.choice((0.0, 0.1, 0.4))
        levels = [rng.randrange(LEVELS) if rng.random() < part else 0 for _ in range(self.window)]
        row = Row(levels, rng.random() < 0.2, rng.random() < 0.9)
        dut.arm_i.value, dut.arm_unit_i.value, dut.arm_row_i.value = 1, unit, entry % self.rows
        dut.arm_waits_i.value, dut.arm_trivial_i.value = row.waits, row.trivial
        dut.arm_levels_i.value = sum(level << 3 * place for place, level in enumerate(levels))
        return slot, entry, row

    async def step(self):
        dut, rng = self.dut, self.rng
        armed = self.random_change()
        clear = rng.randrange(self.count) if rng.random() < 0.01 else None
        dut.clear_i.value = 0 if clear is None else 1 << clear
        in_steps = {self.first, self.second[0] if self.second else None}
        units = self.count * self.window // self.rows
        pick = rng.randrange(units) if rng.random() < 0.9 else None
        if pick in in_steps or (pick is not None and pick % self.count == clear):
            pick = None
        dut.pick_i.value, dut.pick_unit_i.value = pick is not None, rng.randrange(units) if pick is None else pick
        taken = rng.random() < self.pull
        dut.taken_i.value = taken
        if self.first is not None:
            self.drive_call(self.first % self.count)
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.window_valid_o.value)) == (self.first is not None)
        if self.first is not None:
            assert int(dut.window_unit_o.value) == self.first
        assert bool(int(dut.test_valid_o.value)) == (self.second is not None)
        assert bool(int(dut.left_valid_o.value)) == (self.left is not None)
        if self.left is not None:
            assert int(dut.left_unit_o.value) == self.left
        if self.second is not None:
            self.check()
        # What is written or done in this cycle counts for the first step that ends later.
        examined = None if self.first is None else (self.first, *self.examined(self.first))
        await RisingEdge(dut.clk_i)
        go = self.second is None or taken
        window_go = go or self.first is None
        self.left = None
        if go and self.second is not None:
            unit, waits, ready, _ = self.second
            if unit % self.count != clear and waits - ready:
                self.left = unit
            self.mark(unit, ready)
        if go:
            self.second = examined if examined is not None and self.first % self.count != clear else None
        elif self.second[0] % self.count == clear:
            self.second = None
        if window_go:
            self.first = pick
        elif self.first is not None and self.first % self.count == clear:
            self.first = None
        if armed is not None:
            slot, entry, row = armed
            if slot != clear:
                self.calls[slot].rows[entry] = row
                self.calls[slot].done[entry] = 0
                self.calls[slot].armed += 1
        if clear is not None:
            self.calls[clear] = Call()
            self.seen["clears"] += 1

    def check(self):
        """The unit in the second step."""
        dut = self.dut
        unit, waits, ready, upper = self.second
        assert int(dut.test_unit_o.value) == unit
        assert int(dut.ready_o.value) == sum(1 << row for row in ready)
        slot, base = self.split(unit)
        for row in ready:
            assert int(dut.trivial_o.value) >> row & 1 == self.calls[slot].rows[base + row].trivial
            assert bool(int(dut.from_head_o.value) >> row & 1) == (row in upper)
        self.seen["ready"] += bool(ready)
        self.seen["left"] += bool(waits - ready)
        self.seen["all"] += bool(ready) and not waits - ready
        self.seen["wrapped"] += bool(ready & upper) and bool(ready - upper)

    def mark(self, unit, ready):
        slot, base = self.split(unit)
        for row in ready:
            if base + row in self.calls[slot].rows:
                self.calls[slot].rows[base + row].waits = False


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_rows(dut):
    rng = new_random("rows")
    for name in NAMES:
        getattr(dut, f"{name}_i").value = 0
    bench = Bench(dut, rng, parameters())
    await start_clock_and_reset(dut)
    for cycle in range(scaled(40000, 16000)):
        if cycle % 100 == 0:
            bench.pull = rng.choice((0.2, 0.7, 1.0))
        await bench.step()
    for what in ("ready", "left", "all", "clears"):
        assert bench.seen[what] > 50, what
    assert bench.seen["wrapped"] > 5


@pytest.mark.parametrize("sizes", [(8, 32, 8), (2, 8, 8)])
def test_unisono_scoreboard_rows(sizes):
    calls, window, rows = sizes
    simulate("unisono_scoreboard_rows", __file__, {"Calls": calls, "Window": window, "Rows": rows})
