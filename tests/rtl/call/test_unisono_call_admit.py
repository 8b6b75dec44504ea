"""unisono_call_admit: requesters that flood, end and take answers at random; no entry is given twice."""

from collections import Counter

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from call_descriptors import OUTSTANDING
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import parameters, scaled, simulate


class Bench:
    """Plays requesters, the table and the answers; keeps whose call each entry is."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.count = parameters()["Requesters"]
        self.entries: dict[int, int] = {}
        self.unread = [0] * self.count
        self.rows, self.waits, self.order = 0, False, []
        self.now, self.begun = (0, 0), None
        self.shown = [0, 0]
        for name in ("quad_valid", "entered", "end_valid", "end_entry", "end_requester", "answered"):
            getattr(dut, f"{name}_i").value = 0

    def outstanding(self, requester):
        return sum(one == requester for one in self.entries.values())

    async def cycle(self, wants, ends=0.1, reads=0.5, enters=0.5):
        """`wants` requesters have rows; calls end, answers are taken and a candidate is entered at these rates."""
        dut, rng = self.dut, self.rng
        valid = sum(1 << r for r in wants if rng.random() < 0.9)
        dut.quad_valid_i.value = valid
        enter = self.waits and rng.random() < enters
        dut.entered_i.value = enter
        # Of those that are in the table one may end.
        busy = self.now[1] if self.rows or self.waits else None
        there = [entry for entry in self.entries if entry != busy]
        end = rng.choice(there) if there and rng.random() < ends else None
        dut.end_valid_i.value, dut.end_entry_i.value = end is not None, end or 0
        dut.end_requester_i.value = self.entries[end] if end is not None else 0
        answered = [r for r in range(self.count) if self.unread[r] and rng.random() < reads]
        dut.answered_i.value = sum(1 << r for r in answered)
        await FallingEdge(dut.clk_i)
        if self.begun is not None:
            self.given(int(dut.requester_o.value), int(dut.entry_o.value))
        begin, step = int(dut.begin_o.value), int(dut.step_o.value)
        ready = int(dut.quad_ready_o.value)
        assert ready & (ready - 1) == 0
        assert bool(step) == bool(ready & valid)
        assert not step or (int(dut.index_o.value) == 4 - self.rows and ready == 1 << self.now[0])
        assert bool(int(dut.waits_o.value)) == self.waits
        assert bool(int(dut.there_o.value)) == (self.waits or bool(step and self.rows == 1))
        assert not begin or (not self.rows and (enter or not self.waits))
        assert int(dut.outstanding_o.value) == self.shown[0]
        if step:
            self.rows -= 1
            self.waits = self.rows == 0
        if enter:
            self.waits = False
        if end is not None:
            self.unread[self.entries.pop(end)] += 1
        for requester in answered:
            self.unread[requester] -= 1
        self.begun = valid if begin else None
        self.shown = [*self.shown[1:], len(self.entries) + begin]
        await RisingEdge(dut.clk_i)

    def given(self, requester, entry):
        """A descriptor was chosen in the cycle before, and got this entry."""
        assert entry not in self.entries, "an entry is given twice"
        assert self.begun >> requester & 1
        self.now, self.entries[entry], self.rows = (requester, entry), requester, 4
        self.order.append(requester)
        assert self.outstanding(requester) + self.unread[requester] <= OUTSTANDING
        alone = [r for r in range(self.count) if not self.outstanding(r)]
        assert OUTSTANDING - len(self.entries) >= len(alone), "no entry is left for one that has none"
        self.seen["full"] += len(self.entries) == OUTSTANDING


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_requesters(dut):
    rng = new_random("admit")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    everyone = list(range(bench.count))
    for ends, reads in ((0.02, 0.5), (0.3, 0.9), (0.1, 0.02), (0.0, 1.0), (0.2, 0.0), (0.5, 0.5)):
        for _ in range(scaled(1500, 500)):
            wants = [r for r in everyone if rng.random() < 0.7]
            await bench.cycle(wants, ends, reads)
    assert bench.seen["full"] > 0
    assert set(bench.order) == set(everyone)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nobody_is_locked_out(dut):
    """The first one takes what it can, and ends nothing; each other one still gets an entry, and has turns."""
    rng = new_random("flood")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for _ in range(800):
        await bench.cycle([0], ends=0.0, enters=1.0)
    assert bench.outstanding(0) == OUTSTANDING - (bench.count - 1)
    for requester in range(1, bench.count):
        for _ in range(20):
            await bench.cycle([0, requester], ends=0.0, enters=1.0)
        assert bench.outstanding(requester) == 1
    assert len(bench.entries) == OUTSTANDING
    # One that takes no answers stops only itself.
    bench.order.clear()
    for _ in range(3000):
        await bench.cycle(range(bench.count), ends=0.5, enters=1.0, reads=0.0)
    assert all(bench.unread[r] + bench.outstanding(r) == OUTSTANDING for r in range(bench.count))
    bench.order.clear()
    for _ in range(400):
        await bench.cycle(range(bench.count), ends=1.0, enters=1.0, reads=1.0)
    turns = Counter(bench.order)
    assert max(turns.values()) - min(turns[r] for r in range(bench.count)) <= max(turns.values()) // 3 + 2


@pytest.mark.parametrize("requesters", [2, 4])
def test_unisono_call_admit(requesters):
    simulate("unisono_call_admit", __file__, {"Requesters": requesters})
