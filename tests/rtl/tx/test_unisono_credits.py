"""Credits: none is lost, none is made, whatever happens in one cycle."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import simulate

ANSWER = 3
CREDIT_ANSWER = 2
Pair = tuple[int, int]


@dataclass
class State:
    """What is true of one pair."""

    limit: int
    owed: int = 0
    available: int = 0
    freed: int = 0
    told: int = 0
    granted: int = 0
    returned: int = 0
    last_return: int = -1
    last_event: int = -1
    silent: int = 0
    """Returns without an event of their own."""


@dataclass
class Bench:
    """Drives all ports in one coroutine, cycle by cycle, and keeps the model."""

    dut: Any
    rng: random.Random
    pairs: dict[Pair, State] = field(default_factory=dict)
    cycle: int = 0
    owed_answers: deque[tuple[int, int]] = field(default_factory=deque)
    available_answers: deque[tuple[int, int, int]] = field(default_factory=deque)
    excess_cycles: deque[int] = field(default_factory=deque)
    wishes: deque[Pair] = field(default_factory=deque)
    """Pairs whose request was taken: a credit message will be sent."""
    requests: int = 0
    events: int = 0
    excesses: int = 0
    kept: int = 0
    longest_wish: int = 0

    def quiet(self) -> None:
        """No operation is offered."""
        for port in ("init", "freed", "owed_take", "available", "returned"):
            getattr(self.dut, f"{port}_valid_i").value = 0
        self.dut.request_ready_i.value = 0
        self.dut.event_ready_i.value = 0

    def drive(self, port: str, pair: Pair, **fields: int) -> None:
        """Offers one operation in the next cycle."""
        dut = self.dut
        getattr(dut, f"{port}_valid_i").value = 1
        getattr(dut, f"{port}_communicator_i").value = pair[0]
        getattr(dut, f"{port}_peer_i").value = pair[1]
        for name, value in fields.items():
            getattr(dut, f"{port}_{name}_i").value = value

    async def edge(self) -> None:
        """The clock edge that ends a cycle; checks what the outputs said in it."""
        await RisingEdge(self.dut.clk_i)
        dut = self.dut
        if self.owed_answers and self.owed_answers[0][0] == self.cycle:
            wanted = self.owed_answers.popleft()[1]
            assert int(dut.owed_o.value) == wanted, f"owed {int(dut.owed_o.value)}, should be {wanted}"
        due = bool(self.available_answers) and self.available_answers[0][0] == self.cycle
        assert int(dut.available_valid_o.value) == due
        if due:
            _, granted, count = self.available_answers.popleft()
            assert int(dut.available_count_o.value) == count
            assert int(dut.available_granted_o.value) == granted
        excess = bool(self.excess_cycles) and self.excess_cycles[0] == self.cycle
        assert int(dut.excess_o.value) == excess
        if excess:
            self.excess_cycles.popleft()
            self.excesses += 1
        if int(dut.request_valid_o.value) and int(dut.request_ready_i.value):
            pair = (int(dut.request_communicator_o.value), int(dut.request_peer_o.value))
            assert pair in self.pairs
            self.wishes.append(pair)
            self.requests += 1
        if int(dut.event_valid_o.value) and int(dut.event_ready_i.value):
            pair = (int(dut.event_communicator_o.value), int(dut.event_peer_o.value))
            state = self.pairs[pair]
            assert state.silent, f"{pair}: more events than returns"
            state.silent -= 1
            state.last_event = self.cycle
            self.events += 1
        self.cycle += 1

    async def init(self, communicator: int, limit: int) -> None:
        """Sets a communicator up."""
        dut = self.dut
        dut.init_communicator_i.value = communicator
        dut.init_rx_buffers_i.value = limit
        dut.init_valid_i.value = 1
        await self.edge()
        while not int(dut.init_ready_o.value):
            await self.edge()
        dut.init_valid_i.value = 0

    async def ready(self) -> None:
        """Waits until operations are taken."""
        await self.edge()
        while not int(self.dut.freed_ready_o.value):
            await self.edge()

    def operate(self, rates: dict[str, float], honest: bool) -> None:
        """Offers operations for the next cycle; all are taken. The model follows, takes first."""
        rng, now = self.rng, self.cycle
        keys = list(self.pairs)
        self.quiet()
        # A take of what is owed: for a credit message that was asked for, or with any other header.
        take = None
        if self.wishes and rng.random() < 0.3:
            take = self.wishes.popleft()
        elif rng.random() < rates["take"]:
            take = rng.choice(keys)
        if take is not None:
            state = self.pairs[take]
            self.drive("owed_take", take)
            self.owed_answers.append((now + ANSWER, state.owed))
            state.told += state.owed
            state.owed = 0
        if rng.random() < rates["free"]:
            pair = take if take is not None and rng.random() < 0.5 else rng.choice(keys)
            state = self.pairs[pair]
            if state.owed < state.limit:
                self.drive("freed", pair)
                state.owed += 1
                state.freed += 1
        ask = None
        if rng.random() < rates["ask"]:
            ask = rng.choice(keys)
            state = self.pairs[ask]
            wants = rng.random() < 0.8
            keep = rng.choice((0, 0, 1, state.limit // 2, state.limit))
            self.drive("available", ask, take=int(wants), keep=keep)
            granted = wants and state.available > keep
            self.kept += wants and 0 < state.available <= keep
            self.available_answers.append((now + CREDIT_ANSWER, granted, state.available))
        before = {pair: state.available for pair, state in self.pairs.items()} if ask else {}
        if ask and self.available_answers[-1][1]:
            self.pairs[ask].available -= 1
            self.pairs[ask].granted += 1
        if rng.random() < rates["return"]:
            pair = ask if ask is not None and rng.random() < 0.5 else rng.choice(keys)
            state = self.pairs[pair]
            # A return is measured against what was available before a take of this cycle.
            old = before.get(pair, state.available)
            room = state.limit - old
            credits = rng.choice((0, 1, room)) if room else 0
            if not honest and rng.random() < 0.1:
                credits = rng.choice((room + 1, 0xFFFF))
            elif credits > room:
                credits = room
            self.drive("returned", pair, credits=credits)
            if credits > room:
                self.excess_cycles.append(now + ANSWER)
            state.available += min(credits, room)
            state.returned += min(credits, room)
            if credits:
                state.last_return = now
                state.silent += 1
        self.dut.request_ready_i.value = int(rng.random() < rates["request"])
        self.dut.event_ready_i.value = int(rng.random() < rates["event"])

    def settled(self) -> None:
        """Nothing is lost once everything has been handed over."""
        for pair, state in self.pairs.items():
            assert state.owed < max(1, state.limit // 4), f"{pair}: {state.owed} owed of {state.limit}, not asked for"
            assert state.last_event >= state.last_return or state.last_return < 0, f"{pair}: credit came without event"
            assert state.freed == state.told + state.owed
            assert state.limit + state.returned == state.granted + state.available
            assert 0 <= state.available <= state.limit


async def run(dut: Any, cycles: int, communicators: int, ranks: list[int], limits: list[int]) -> Bench:
    """Random operations on a few pairs, so that they often meet."""
    bench = Bench(dut, new_random(f"credits {communicators} {limits}"))
    rng = bench.rng
    bench.quiet()
    await start_clock_and_reset(dut)
    bench.cycle = 0
    await bench.ready()
    for round_ in range(3):
        chosen = rng.sample(range(16), communicators)
        bench.pairs = {}
        for communicator in chosen:
            limit = rng.choice(limits)
            await bench.init(communicator, limit)
            for rank in ranks:
                bench.pairs[communicator, rank] = State(limit, available=limit)
        await bench.ready()
        part = cycles // 3
        rates: dict[str, float] = {}
        for n in range(part):
            if n % 500 == 0:
                names = ("take", "free", "ask", "return", "request", "event")
                rates = {name: rng.choice((0.05, 0.5, 0.95, 1.0)) for name in names}
            bench.operate(rates, honest=round_ != 1)
            await bench.edge()
        # Let everything come out; every request leads to a take.
        rates = {"take": 0.0, "free": 0.0, "ask": 0.0, "return": 0.0, "request": 1.0, "event": 1.0}
        idle = 0
        while idle < 40:
            before = bench.requests, bench.events, len(bench.wishes)
            bench.operate(rates, honest=True)
            await bench.edge()
            same = before == (bench.requests, bench.events, len(bench.wishes)) and not bench.wishes
            idle = idle + 1 if same else 0
        bench.settled()
        # The whole truth of each pair, from the hardware.
        for pair, state in bench.pairs.items():
            bench.quiet()
            bench.drive("available", pair, take=0, keep=0)
            bench.available_answers.append((bench.cycle + CREDIT_ANSWER, 0, state.available))
            bench.drive("owed_take", pair)
            bench.owed_answers.append((bench.cycle + ANSWER, state.owed))
            await bench.edge()
        bench.quiet()
        for _ in range(6):
            await bench.edge()
        assert not bench.owed_answers
        assert not bench.available_answers
    assert bench.requests > 10
    assert bench.events > 10
    assert bench.excesses > 0
    assert bench.kept > 0
    return bench


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def one_pair(dut: Any) -> None:
    """All operations meet on one pair; a single buffer, then few."""
    for limits in ([1], [2, 3], [7, 16]):
        await run(dut, 12000, 1, [5], limits)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def few_pairs(dut: Any) -> None:
    """Pairs that differ in one bit of communicator or rank."""
    await run(dut, 30000, 3, [0, 1, 63], [1, 2, 4, 5, 64])


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def many_pairs(dut: Any) -> None:
    """Every pair of all communicators; the largest number of buffers among them."""
    await run(dut, 30000, 16, list(range(0, 64, 5)), [1, 2, 16, 65535])


def test_unisono_credits() -> None:
    simulate("unisono_credits", __file__)


if __name__ == "__main__":
    pytest.main([__file__])
