"""unisono_program_fetch between models of a reader and of what takes moves: calls in eight slots, cleared at any time.

Moves must come as they stand in memory and in their order, each once; nothing of a call that was cleared may reach the
next one of its slot; what memory could not give fails that call alone.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import cocotb
import pytest
from bus import bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate

CALLS, STEP, MOVE_BYTES = 8, 16, 64
MOST = 4096 - 32


@cache
def move_at(address: int) -> int:
    """Memory depends on nothing but the address."""
    return random.Random(address).getrandbits(8 * MOVE_BYTES)


@dataclass
class Call:
    address: int
    moves: int
    bad: int | None  # block that memory cannot give
    number: int
    asked: int = 0
    given: int = 0
    failed: bool = False


@dataclass
class Command:
    slot: int
    call: int
    address: int
    moves: int
    bad: bool
    come: int
    words: deque[int] = field(default_factory=deque)


class Bench:
    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.bytes = parameters()["DataBytes"]
        self.blocks = parameters()["Blocks"]
        self.calls: list[Call | None] = [None] * CALLS
        self.commands: deque[Command] = deque()
        self.seen: Counter[str] = Counter()
        self.wanted: int | None = None
        self.left = 0
        self.shown = False
        self.cycle = self.begun = 0
        self.latency = 2
        self.asks = self.answers = self.takes = self.pauses = never

    def start(self, slot: int, address: int, moves: int, bad: int | None = None) -> None:
        """The call begins in this cycle."""
        assert self.calls[slot] is None
        self.begun += 1
        self.seen["begun while words of another come"] += any(command.slot == slot for command in self.commands)
        self.calls[slot] = Call(address, moves, bad, self.begun)
        self.dut.begin_valid_i.value = 1
        self.dut.begin_slot_i.value = slot
        self.dut.begin_address_i.value = address
        self.dut.begin_moves_i.value = moves

    def clear(self, slot: int) -> None:
        call = self.calls[slot]
        assert call is not None
        assert self.wanted != slot
        self.seen["cleared while words come"] += any(command.slot == slot for command in self.commands)
        self.seen["cleared"] += 1
        self.calls[slot] = None
        self.dut.clear_valid_i.value = 1
        self.dut.clear_slot_i.value = slot

    def want(self, slot: int | None, moves: int = 0) -> None:
        self.wanted, self.left = slot, moves
        self.dut.want_i.value = slot is not None
        self.dut.want_slot_i.value = self.rng.randrange(CALLS) if slot is None else slot

    def unfinished(self, slot: int) -> bool:
        call = self.calls[slot]
        return call is not None and call.given < call.moves

    def drive(self) -> None:
        """The reader's side, and whether a move is taken."""
        dut = self.dut
        dut.read_command_ready_i.value = not self.asks()
        dut.out_ready_i.value = not self.pauses()
        due = bool(self.commands) and self.cycle >= self.commands[0].come
        self.shown = due and not self.answers()
        dut.read_valid_i.value = self.shown
        dut.read_data_i.value = self.rng.getrandbits(8 * self.bytes)
        dut.read_last_i.value = dut.read_error_i.value = 0
        if self.shown:
            command = self.commands[0]
            dut.read_data_i.value = command.words[0]
            dut.read_last_i.value = len(command.words) == 1
            dut.read_error_i.value = len(command.words) == 1 and command.bad

    def ask(self) -> None:
        """A command is taken."""
        address, size = int(self.dut.read_command_address_o.value), int(self.dut.read_command_bytes_o.value)
        assert size % MOVE_BYTES == 0
        moves = size // MOVE_BYTES
        for slot, call in enumerate(self.calls):
            if call is None or call.address + MOVE_BYTES * STEP * call.asked != address:
                continue
            assert moves == min(STEP, call.moves - STEP * call.asked), f"slot {slot}: {moves} moves"
            bad = call.bad == call.asked
            call.asked += 1
            assert call.asked - call.given // STEP <= self.blocks, f"slot {slot}: more than there is room for"
            number = call.number
            break
        else:
            # It was on offer when its call was cleared.
            slot, number, bad = CALLS, 0, False
            self.seen["command of a call that is over"] += 1
        words = deque[int]()
        for i in range(moves):
            move = move_at(address + MOVE_BYTES * i)
            words.extend(move >> 8 * at & (1 << 8 * self.bytes) - 1 for at in range(0, MOVE_BYTES, self.bytes))
        self.commands.append(Command(slot, number, address, moves, bad, self.cycle + self.latency, words))

    async def step(self) -> tuple[bool, bool]:
        """One cycle. Whether a move was taken; whether a call failed."""
        dut = self.dut
        self.drive()
        await FallingEdge(dut.clk_i)
        assert int(dut.read_ready_o.value) or not self.shown, "a word waits"
        takes = bool(int(dut.out_valid_o.value)) and bool(int(dut.out_ready_i.value))
        fails = bool(int(dut.fail_valid_o.value))
        if int(dut.out_valid_o.value):
            assert self.wanted is not None
            call = self.calls[self.wanted]
            assert call is not None
            at = call.address + MOVE_BYTES * call.given
            assert call.given < call.moves, f"slot {self.wanted}: a move beyond the last"
            assert call.bad is None or call.given < STEP * call.bad, f"slot {self.wanted}: of a block with an error"
            assert int(dut.out_move_o.value) == move_at(at), f"slot {self.wanted}: move {call.given} of {call.moves}"
            if takes:
                call.given += 1
                self.left -= 1
                self.seen["moves"] += 1
        wishes = {}
        if self.shown:
            command = self.commands[0]
            command.words.popleft()
            if not command.words:
                self.commands.popleft()
                call = self.calls[command.slot] if command.slot < CALLS else None
                wishes = {command.slot: call} if command.bad and call and call.number == command.call else {}
        assert fails == bool(wishes), f"cycle {self.cycle}: fails {fails}, not {wishes}"
        for slot, call in wishes.items():
            assert int(dut.fail_slot_o.value) == slot
            assert call is not None
            assert not call.failed
            call.failed = True
            self.seen["failed"] += 1
        if int(dut.read_command_valid_o.value) and int(dut.read_command_ready_i.value):
            self.ask()
        ready = int(dut.ready_o.value)
        await RisingEdge(dut.clk_i)
        self.cycle += 1
        self.ready = [slot for slot in range(CALLS) if ready >> slot & 1]
        dut.begin_valid_i.value = dut.clear_valid_i.value = 0
        dut.begin_moves_i.value, dut.begin_address_i.value = self.rng.randrange(MOST), self.rng.getrandbits(64)
        return takes, fails


async def prepare(dut: Any) -> None:
    for port in ("begin_valid", "clear_valid", "want", "out_ready", "read_command_ready", "read_valid", "begin_slot"):
        getattr(dut, f"{port}_i").value = 0
    for port in ("clear_slot", "want_slot", "begin_moves", "begin_address", "read_last", "read_error", "read_data"):
        getattr(dut, f"{port}_i").value = 0
    await start_clock_and_reset(dut)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_calls(dut):
    rng = new_random("fetch")
    await prepare(dut)
    bench = Bench(dut, rng)
    paces = [never, share(rng, 0.3), share(rng, 0.9), bursts(rng)]
    many = scaled(30_000, 12_000)
    for cycle in range(many + 6000):
        if cycle % 500 == 0:
            bench.asks, bench.answers, bench.pauses = (rng.choice(paces) for _ in range(3))
            bench.latency = rng.choice((1, 5, 60))
            slow = rng.random() < 0.3
        if cycle == many:
            bench.asks = bench.answers = bench.pauses = never
        taken, _ = await bench.step()
        resting = bench.wanted is None  # another slot is wanted after a cycle without
        if taken and bench.left == 0:
            bench.want(None)
        elif bench.wanted is not None and rng.random() < 0.01:
            bench.want(None)  # it goes on later
            bench.seen["left off"] += 1
        idle = [slot for slot, call in enumerate(bench.calls) if call is None]
        over = [
            slot
            for slot, call in enumerate(bench.calls)
            if call is not None and slot != bench.wanted and (call.given == call.moves or call.failed)
        ]
        live = [slot for slot, call in enumerate(bench.calls) if call is not None and slot != bench.wanted]
        if over and rng.random() < 0.3:
            bench.clear(rng.choice(over))
        elif live and cycle < many and rng.random() < 0.004:
            bench.clear(rng.choice(live))
            bench.seen["cleared early"] += 1
        free = [slot for slot in idle if bench.calls[slot] is None]
        if free and cycle < many and rng.random() < 0.1:
            moves = rng.choice((1, 2, 15, 16, 17, 31, 32, 33, 100, rng.randint(1, 300)))
            bad = rng.randrange(-(-moves // STEP)) if rng.random() < 0.1 else None
            address = rng.choice((rng.getrandbits(63) & ~63, rng.getrandbits(63)))
            bench.start(rng.choice(free), address, moves, bad)
        ready = [slot for slot in bench.ready if slot not in idle and bench.unfinished(slot)]
        if resting and bench.wanted is None and ready and not (slow and rng.random() < 0.8):
            slot = rng.choice(ready)
            call = bench.calls[slot]
            assert call is not None
            bench.want(slot, rng.choice((1, STEP, STEP)))
            bench.left = min(bench.left, call.moves - call.given, STEP - call.given % STEP)
    assert all(call is None for call in bench.calls), "a call has not been given out"
    assert not bench.commands
    dut._log.info("%s", dict(bench.seen))
    for what, least in (
        ("moves", 2000),
        ("failed", 3),
        ("cleared", 40),
        ("cleared early", 10),
        ("cleared while words come", 5),
        ("begun while words of another come", 3),
        ("left off", 5),
    ):
        assert bench.seen[what] >= least, f"{what}: {bench.seen}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def rate(dut):
    """16 moves in 17 cycles, while the reader answers soon enough; the first of them soon after its block."""
    await prepare(dut)
    bench = Bench(dut, new_random("rate"))
    bench.latency = 20
    await bench.step()
    bench.start(3, 0x4000, 800)
    words = MOVE_BYTES // bench.bytes
    begin = bench.cycle
    await bench.step()
    bench.want(3, 800)
    first = last = None
    while bench.left:
        taken, _ = await bench.step()
        if taken:
            first = bench.cycle if first is None else first
            last = bench.cycle
    assert first is not None
    assert last is not None
    dut._log.info("first move after %d cycles, then %d in %d", first - begin, 800, last - first + 1)
    assert first - begin <= 2 + 20 + 16 * words + 3
    if words == 1:
        assert last - first + 1 == 800 + 800 // STEP - 1


@pytest.mark.parametrize(("data_bytes", "blocks"), [(64, 4), full(16, 2)])
def test_unisono_program_fetch(data_bytes, blocks):
    simulate("unisono_program_fetch", __file__, {"DataBytes": data_bytes, "Blocks": blocks})
