"""unisono_scoreboard_push: random moves of several calls, single peers and lists, malformed ones, and clears."""

from collections import Counter
from dataclasses import dataclass

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate

NONE, ISSUED, CONSUMED, SENT, COMPLETE = range(5)


@dataclass
class Move:
    """A move of a program."""

    number: int
    dependencies: int
    streams: int
    distance: int
    receives: int
    sends: int
    trivial: bool

    def beats(self):
        return max(1, self.receives.bit_count(), self.sends.bit_count())


class Program:
    """The moves of a call."""

    def __init__(self, window):
        self.window, self.moves = window, []

    def lapped(self):
        return len(self.moves) >= self.window

    def malformed(self, move):
        """It names moves before the first."""
        before = move.number
        return before < self.window and (move.distance > before or move.dependencies >> before != 0)

    def levels(self, move):
        """What it waits for, by the numbers of the moves in its window before it."""
        found = {}
        for back in range(1, min(move.number, self.window - 1) + 1):
            level = ISSUED if move.streams >> back - 1 & 1 else NONE
            found[move.number - back] = COMPLETE if move.dependencies >> back - 1 & 1 else level
        for peers, level in (("receives", CONSUMED), ("sends", SENT)):
            for peer in range(64):
                if not getattr(move, peers) >> peer & 1:
                    continue
                same = [one.number for one in self.moves[: move.number] if getattr(one, peers) >> peer & 1]
                if same and same[-1] in found:
                    found[same[-1]] = max(found[same[-1]], level)
        return found


class Bench:
    def __init__(self, dut, rng, sizes):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.calls, self.window, self.ranks, self.rows = (sizes[name] for name in ("Calls", "Window", "Ranks", "Rows"))
        self.programs = [Program(self.window) for _ in range(self.calls)]
        self.arms: dict[int, tuple] = {}  # by cycle
        self.errors: dict[int, tuple] = {}
        self.cycle, self.free_at, self.at_beat = 0, 0, -1

    def peers(self):
        rng = self.rng
        if rng.random() < 0.3:
            return 0
        few = [
            rng.choice((0, 1, self.ranks - 1, rng.randrange(self.ranks))) for _ in range(rng.choice((1, 1, 1, 2, 5)))
        ]
        return sum(1 << peer for peer in set(few)) if rng.random() < 0.95 else (1 << self.ranks) - 1

    def random_move(self, slot):
        rng, number = self.rng, len(self.programs[slot].moves)
        wide = 1 << self.window - 1
        mask = (1 << number) - 1 if rng.random() < 0.9 else -1  # others name moves before the first
        few = rng.getrandbits(self.window - 1) & rng.getrandbits(self.window - 1) & (wide - 1)
        return Move(
            number=number,
            dependencies=rng.choice((0, few, 1)) & mask,
            streams=rng.choice((0, 0, few)) & mask,
            distance=rng.choice((0, min(number, self.window - 1), min(number + 1, self.window - 1))),
            receives=self.peers(),
            sends=self.peers(),
            trivial=rng.random() < 0.2,
        )

    def check_arm(self):
        dut = self.dut
        wanted = self.arms.pop(self.cycle, None)
        assert bool(int(dut.arm_o.value)) == (wanted is not None)
        if wanted is None:
            return
        slot, move, program = wanted
        entry = move.number % self.window
        assert (int(dut.arm_slot_o.value), int(dut.arm_entry_o.value)) == (slot, entry)
        malformed = program.malformed(move)
        assert bool(int(dut.arm_malformed_o.value)) == malformed
        assert bool(int(dut.arm_trivial_o.value)) == move.trivial
        self.seen["armed"] += 1
        if malformed:
            return
        assert bool(int(dut.arm_streams_o.value)) == (move.streams != 0)
        said, base = int(dut.arm_levels_o.value), entry // self.rows * self.rows
        levels = program.levels(move)
        for number, level in levels.items():
            column = (number % self.window - base) % self.window
            assert said >> 3 * column & 7 == level, (move, number)
            self.seen[level] += 1
        if int(dut.arm_free_o.value):
            assert said == 0
            assert not any(levels.values())
            self.seen["free"] += 1

    async def step(self, push):
        """A cycle, in which a move may be pushed."""
        dut, rng = self.dut, self.rng
        slot = rng.randrange(self.calls)
        program = self.programs[slot]
        move = self.random_move(slot)
        dut.push_slot_i.value, dut.push_entry_i.value = slot, move.number % self.window
        dut.push_lapped_i.value = program.lapped()
        for name in ("dependencies", "streams", "distance", "receives", "sends", "trivial"):
            getattr(dut, f"push_{name}_i").value = getattr(move, name)
        busy = self.cycle < self.free_at
        push = push and not busy
        cleared = rng.randrange(self.calls) if rng.random() < 0.02 else None
        dut.push_i.value, dut.clear_i.value = push, 0 if cleared is None else 1 << cleared
        # A clear takes what is on its way with it, also what would be armed in this cycle.
        if cleared is not None:
            self.arms = {at: one for at, one in self.arms.items() if one[0] != cleared}
            self.errors = {at: one for at, one in self.errors.items() if one[0] != cleared or at == self.cycle}
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.more_o.value)) == busy
        self.check_arm()
        wanted = self.errors.pop(self.cycle, None)
        assert bool(int(dut.error_valid_o.value)) == (wanted is not None)
        if wanted is not None:
            assert int(dut.error_id_o.value) == wanted[0] * self.window + wanted[1]
            self.seen["errors"] += 1
        await RisingEdge(dut.clk_i)
        if push and cleared != slot:
            program.moves.append(move)
            self.arms[self.cycle + 3 + move.beats()] = slot, move, program
            if program.malformed(move):
                self.errors[self.cycle + 2] = slot, move.number % self.window
            self.free_at = self.cycle + move.beats()
            self.seen["lists"] += move.beats() > 1
        if cleared is not None:
            self.programs[cleared] = Program(self.window)
            if self.at_beat == cleared and not push:
                self.free_at = self.cycle  # its other beats do not come
            self.seen["clears"] += 1
        if push and cleared != slot:
            self.at_beat = slot
        self.cycle += 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_moves(dut):
    rng = new_random("push")
    bench = Bench(dut, rng, parameters())
    names = ("clear", "push", *(f"push_{name}" for name in ("slot", "entry", "lapped", "dependencies", "streams")))
    for name in (*names, "push_distance", "push_receives", "push_sends", "push_trivial"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    hurry = 1.0
    for cycle in range(scaled(24000, 7000)):
        if cycle % 100 == 0:
            hurry = rng.choice((0.2, 0.7, 1.0))
        await bench.step(rng.random() < hurry)
    for what in ("armed", "errors", "lists", "clears", "free", NONE, ISSUED, CONSUMED, SENT, COMPLETE):
        assert bench.seen[what] > 20, what


@pytest.mark.parametrize("sizes", [(8, 32, 64, 8), (2, 8, 8, 8)])
def test_unisono_scoreboard_push(sizes):
    calls, window, ranks, rows = sizes
    simulate("unisono_scoreboard_push", __file__, {"Calls": calls, "Window": window, "Ranks": ranks, "Rows": rows})
