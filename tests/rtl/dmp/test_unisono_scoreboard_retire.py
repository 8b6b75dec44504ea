"""unisono_scoreboard_retire: moves of several calls complete in any order and leave in theirs; clears; throughput."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from hdl import parameters, scaled, simulate


class Bench:
    """The windows around the module."""

    def __init__(self, dut, calls, window):
        self.dut, self.calls, self.window = dut, calls, window
        self.head, self.armed = [0] * calls, [0] * calls
        self.complete = [set() for _ in range(calls)]  # numbers
        self.told = None
        self.seen = Counter()
        for name in ("clear", "head", "armed", "complete", "complete_slot", "complete_entry", "head_incomplete"):
            getattr(dut, f"{name}_i").value = 0
        dut.next_incomplete_i.value = 0

    def lacks(self, slot, number):
        """What the table of pending bits says of an entry: of one that holds no move, anything."""
        return number not in self.complete[slot] if number < self.armed[slot] else self.noise

    async def step(self, done=None, clear=None, noise=0):
        """A cycle in which a move completes; the slot whose move leaves."""
        dut, width = self.dut, (2 * self.window - 1).bit_length()
        self.noise = noise
        for name in ("head", "armed"):
            numbers = getattr(self, name)
            word = sum(number % (2 * self.window) << width * slot for slot, number in enumerate(numbers))
            getattr(dut, f"{name}_i").value = word
        dut.complete_i.value = done is not None
        dut.complete_slot_i.value, number = done or (0, 0)
        dut.complete_entry_i.value = number % self.window
        dut.clear_i.value = 0 if clear is None else 1 << clear
        # The pending bits are read in the same cycle; a completion of this cycle is not there yet.
        await Timer(1, "ns")
        slot = int(dut.retire_slot_o.value)
        dut.head_incomplete_i.value = self.lacks(slot, self.head[slot])
        dut.next_incomplete_i.value = self.lacks(slot, self.head[slot] + 1)
        await FallingEdge(dut.clk_i)
        assert int(dut.retire_entry_o.value) == self.head[slot] % self.window
        retires = int(dut.retire_o.value)
        told = None
        if retires:
            assert slot != clear
            assert self.head[slot] < self.armed[slot]
            assert self.head[slot] in self.complete[slot], "complete moves leave only"
            told = slot * self.window + self.head[slot] % self.window
        assert bool(int(dut.retired_valid_o.value)) == (self.told is not None)
        if self.told is not None:
            assert int(dut.retired_id_o.value) == self.told
        await RisingEdge(dut.clk_i)
        self.told = told
        if retires:
            self.complete[slot].discard(self.head[slot])
            self.head[slot] += 1
            self.seen["retired"] += 1
        if done is not None:
            self.complete[done[0]].add(done[1])
        if clear is not None:
            self.head[clear] = self.armed[clear] = 0
            self.complete[clear] = set()
        return slot if retires else None


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_completions(dut):
    rng, calls, window = new_random("retire"), parameters()["Calls"], parameters()["Window"]
    bench = Bench(dut, calls, window)
    await start_clock_and_reset(dut)
    open_moves: list[tuple[int, int]] = []
    part = 0.5
    for cycle in range(scaled(24000, 8000)):
        if cycle % 200 == 0:
            part = rng.choice((0.1, 0.5, 0.9))
        slot = rng.randrange(calls)
        if bench.armed[slot] - bench.head[slot] < window and rng.random() < 0.7:
            open_moves.append((slot, bench.armed[slot]))
            bench.armed[slot] += 1
        clear = rng.randrange(calls) if rng.random() < 0.01 else None
        done = None
        if open_moves and rng.random() < part:
            # Most often the oldest, so that windows move on.
            done = min(open_moves, key=lambda one: one[1]) if rng.random() < 0.7 else rng.choice(open_moves)
            open_moves.remove(done)
        if clear is not None:
            bench.seen["clears"] += 1
            open_moves = [one for one in open_moves if one[0] != clear]
            done = None if done and done[0] == clear else done
        await bench.step(done, clear, noise=rng.randrange(2))
    for one in sorted(open_moves, key=lambda one: one[1]):
        await bench.step(one)
    for _ in range(calls * window + 8):
        await bench.step()
    assert bench.head == bench.armed, "none stays"
    assert min(bench.seen["retired"], bench.seen["clears"]) > 50


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_move_per_cycle(dut):
    """Of one call, and of all in turn; the first two cycles after its completion."""
    calls, window = parameters()["Calls"], parameters()["Window"]
    for slots in ([0], list(range(calls))):
        bench = Bench(dut, calls, window)
        await start_clock_and_reset(dut) if slots == [0] else None
        bench.armed = [window if slot in slots else 0 for slot in range(calls)]
        # All but the oldest are complete, and then they, too.
        for slot in slots:
            for number in reversed(range(1, window)):
                assert await bench.step((slot, number)) is None
        for _ in range(3):
            assert await bench.step() is None
        left = []
        for slot in slots:
            left.append(await bench.step((slot, 0)))
        for _ in range(window * len(slots) + 8):
            left.append(await bench.step())
        times = [cycle for cycle, slot in enumerate(left) if slot is not None]
        assert len(times) == window * len(slots)
        assert times[0] == 2, "two cycles after its completion"
        assert times[-1] - times[0] + 1 <= len(times) + len(slots), "without gaps, but for the first looks"
        for _ in range(3):
            await bench.step()
        bench.head = bench.armed = [0] * calls


def test_unisono_scoreboard_retire():
    simulate("unisono_scoreboard_retire", __file__, {"Calls": 8, "Window": 32})
