"""unisono_stream_gate: calls share ports through it, against counts of bytes and words and a list of who came first.

The bench is a dispatcher that looks at moves in any order, and kernels that give and take as they like. Every answer
is compared; a move that waits must be kicked, or the run does not end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import cocotb
import pytest
from bus import new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate

CALLS, WINDOW, SEGMENT, TICKETS = 8, 32, 8192, 64
SETTLED = 8
"""Cycles after which a change of turns has come through."""


@dataclass(eq=False)
class Move:
    slot: int
    entry: int
    uses: dict[int, int]
    """By channel, which use of it by the call this is."""
    segments: list[int]
    done: int = 0

    @property
    def id(self) -> int:
        return self.slot << 5 | self.entry

    @property
    def last(self) -> bool:
        return self.done == len(self.segments) - 1


@dataclass(eq=False)
class Call:
    """Channels are the ports to the engine, then those to kernels."""

    slot: int
    channels: list[int]
    left: int
    """Moves that have not come yet."""
    aborts: bool
    moves: list[Move] = field(default_factory=list)
    issued: dict[int, int] = field(default_factory=dict)
    served: dict[int, int] = field(default_factory=dict)
    closed: bool = False
    entry: int = 0

    def holds(self, channel: int) -> bool:
        issued = self.issued.get(channel, 0)
        return issued > 0 and not (self.closed and self.served.get(channel, 0) == issued)


class Bench:
    def __init__(self, dut) -> None:
        self.dut, self.rng = dut, new_random("gate")
        given = parameters()
        self.ports, self.wide, self.depth = given["StreamPorts"], given["DataBytes"], given["Depth"]
        self.calls: list[Call] = []  # in the order of their first uses
        self.there = [0] * self.ports  # bytes from kernels
        self.room = [self.depth] * self.ports  # words to kernels
        self.taken = [0] * self.ports  # words that kernels have not taken yet
        self.tail: list[int | None] = [None] * self.ports  # bytes in the last word of a packet that has begun
        self.waits: set[tuple[int, int]] = set()  # moves, and the sides on which they wait
        self.runnable: list[Move] = []
        self.look: Move | None = None
        self.granted = False
        self.changed = [0] * (2 * self.ports)
        self.cycle = self.finished = self.given = 0
        self.fill = self.drain = 0.5
        self.kick_pause = share(self.rng, 0.4)
        self.seen: set[str] = set()

    # What the module should say.

    def turn(self, move: Move, channel: int) -> bool:
        holder = next((call for call in self.calls if call.holds(channel)), None)
        return holder is not None and move.uses[channel] == holder.served.get(channel, 0) and holder.slot == move.slot

    def enough(self, move: Move, channel: int) -> bool:
        size = move.segments[move.done]
        if channel < self.ports:
            return self.there[channel] >= size
        return self.room[channel - self.ports] >= size // self.wide + 3

    def check_answer(self, move: Move, ready: bool) -> None:
        turns = {channel: self.turn(move, channel) for channel in move.uses}
        enough = {channel: self.enough(move, channel) for channel in move.uses}
        may = all(turns.values()) and all(enough.values())
        where = f"cycle {self.cycle}: slot {move.slot}, entry {move.entry}, turns {turns}, enough {enough}"
        assert may or not ready, f"{where}: may not go"
        settled = all(self.cycle - self.changed[channel] > SETTLED for channel in move.uses)
        assert ready or not (may and settled), f"{where}: may go"
        if all(turns.values()):
            self.seen |= {f"{'source' if c < self.ports else 'sink'} {enough[c]}" for c in move.uses}
        else:
            self.seen.add("out of turn")

    # What happens.

    def new_call(self) -> Call | None:
        free = [slot for slot in range(CALLS) if all(call.slot != slot for call in self.calls)]
        if not free or self.rng.random() < 0.5:
            return None
        channels = self.rng.sample(range(2 * self.ports), self.rng.randint(1, min(3, 2 * self.ports)))
        return Call(self.rng.choice(free), channels, self.rng.randint(1, 12), self.rng.random() < 0.3)

    def push(self) -> Move | None:
        """A move that enters its window now."""
        rng = self.rng
        # Who has begun to open its ports opens them all first: else two calls could each wait for the other.
        opening = [call for call in self.calls if len(call.issued) < len(call.channels) and call.left]
        going = [call for call in self.calls if call.left and len(call.moves) < WINDOW - 1]
        call = opening[0] if opening else rng.choice(going) if going and rng.random() < 0.8 else self.new_call()
        if call is None:
            return None
        fresh = [channel for channel in call.channels if channel not in call.issued]
        sides = ([c for c in fresh or call.channels if (c >= self.ports) == side] for side in (False, True))
        channels = [rng.choice(side) for side in sides if side]
        if not fresh and len(channels) == 2 and rng.random() < 0.4:
            channels = [rng.choice(channels)]
        if call not in self.calls:
            self.calls.append(call)
        call.left = max(call.left - 1, len(set(fresh) - set(channels)))
        large = (rng.randint(1, SEGMENT), SEGMENT)
        small = (1, self.wide, rng.randint(1, 4 * self.wide))
        segments = [rng.choice(large if rng.random() < 0.1 else small) for _ in range(rng.choice((1, 1, 2, 4)))]
        return Move(call.slot, call.entry, {channel: call.issued.get(channel, 0) for channel in channels}, segments)

    def call_of(self, slot: int) -> Call:
        return next(call for call in self.calls if call.slot == slot)

    def pushed(self, move: Move) -> None:
        call = self.call_of(move.slot)
        call.entry = (call.entry + 1) % WINDOW
        call.moves.append(move)
        for channel in move.uses:
            call.issued[channel] = call.issued.get(channel, 0) + 1
            self.changed[channel] = self.cycle
        self.runnable.append(move)

    def take(self, move: Move) -> None:
        """A segment of the move is dispatched."""
        size, call = move.segments[move.done], self.call_of(move.slot)
        for channel in move.uses:
            port = channel % self.ports
            if channel < self.ports:
                self.there[port] -= size
            else:
                begun = self.tail[port]
                words = 0
                if move.done == 0 and begun is not None:
                    words, begun = 1, None  # the packet that was not ended
                    self.seen.add("cut")
                filled = (begun or 0) + size
                words += filled // self.wide
                self.tail[port] = filled % self.wide
                if move.last:
                    words += filled % self.wide > 0
                    self.tail[port] = None
                self.room[port] -= words
                self.taken[port] += words
            if move.last:
                call.served[channel] = call.served.get(channel, 0) + 1
                self.changed[channel] = self.cycle
        move.done += 1
        if move.done < len(move.segments):
            self.runnable.append(move)
        else:
            call.moves.remove(move)
            self.finished += 1

    def clear(self, call: Call) -> None:
        self.calls.remove(call)
        self.runnable = [move for move in self.runnable if move.slot != call.slot]
        for channel in call.channels:
            self.changed[channel] = self.cycle

    def idle_call(self) -> Call | None:
        """One that is over, or is given up, and that nobody looks at."""
        for call in self.calls:
            over = call.closed and not call.moves
            amid = any(move.done > 0 and max(move.uses) >= self.ports for move in call.moves)
            gives_up = call.aborts and not call.left and self.rng.random() < (0.5 if amid else 0.02)
            if (over or gives_up) and (self.look is None or self.look.slot != call.slot):
                return call
        return None

    async def step(self, pushes: bool) -> None:
        dut, rng = self.dut, self.rng
        move = self.push() if pushes and rng.random() < 0.3 else None
        sources = [c for c in move.uses if c < self.ports] if move else []
        sinks = [c - self.ports for c in move.uses if c >= self.ports] if move else []
        dut.push_valid_i.value, dut.push_id_i.value = move is not None, move.id if move else rng.randrange(256)
        dut.push_source_i.value, dut.push_sink_i.value = len(sources), len(sinks)
        dut.push_source_port_i.value = sources[0] if sources else rng.randrange(self.ports)
        dut.push_sink_port_i.value = sinks[0] if sinks else rng.randrange(self.ports)

        closes = [call for call in self.calls if not call.left and not call.closed]
        close = closes[0] if closes and (move is None or move.slot != closes[0].slot) and rng.random() < 0.3 else None
        dut.close_valid_i.value, dut.close_slot_i.value = close is not None, close.slot if close else rng.randrange(8)

        if self.look is None and self.runnable and rng.random() < 0.6:
            self.look = self.runnable.pop(rng.randrange(len(self.runnable)))
        gone = self.idle_call() if rng.random() < 0.2 else None
        if gone is not None and (gone is close or (move is not None and move.slot == gone.slot)):
            gone = None
        dut.clear_valid_i.value, dut.clear_slot_i.value = gone is not None, gone.slot if gone else rng.randrange(8)

        look = self.look
        uses = {False: 0, True: 0}
        for side in uses:
            uses[side] = rng.randrange(self.ports) << 6 | rng.randrange(TICKETS)
        for channel, ticket in look.uses.items() if look else ():
            uses[channel >= self.ports] = 1 << 10 | channel % self.ports << 6 | ticket % TICKETS
        dut.ask_source_i.value, dut.ask_sink_i.value = uses[False], uses[True]
        dut.ask_id_i.value = look.id if look else rng.randrange(256)
        dut.ask_bytes_i.value = look.segments[look.done] if look else rng.getrandbits(13)
        for port in (dut.wait_i, dut.take_source_i, dut.take_sink_i):
            port.value = 0
        dut.take_first_i.value, dut.take_last_i.value = rng.randrange(2), rng.randrange(2)
        dut.take_bytes_i.value = rng.randint(1, SEGMENT)

        filled = [0] * self.ports
        for port in range(self.ports):
            if rng.random() < self.fill and self.there[port] + self.wide <= self.depth * self.wide:
                filled[port] = rng.choice((self.wide, self.wide, rng.randint(1, self.wide)))
        drained = [int(self.taken[port] > 0 and rng.random() < self.drain) for port in range(self.ports)]
        bits = (self.wide - 1).bit_length() + 1
        dut.filled_i.value = sum(1 << p for p in range(self.ports) if filled[p])
        dut.filled_bytes_i.value = sum((filled[p] or rng.getrandbits(bits)) << bits * p for p in range(self.ports))
        dut.drained_i.value = sum(drained[p] << p for p in range(self.ports))
        kick_ready = not self.kick_pause()
        dut.kick_ready_i.value = kick_ready

        await FallingEdge(dut.clk_i)
        if move is not None:
            for channel, port in ((c, "source" if c < self.ports else "sink") for c in move.uses):
                ticket = int(getattr(dut, f"push_{port}_ticket_o").value)
                assert ticket == move.uses[channel] % TICKETS, f"cycle {self.cycle}: ticket of channel {channel}"
        waits = takes = False
        if look is not None:
            ready = bool(dut.ready_o.value)
            self.check_answer(look, ready)
            assert ready or not self.granted, f"cycle {self.cycle}: an answer was taken back"
            waits, self.granted = not ready, ready
            takes = ready and rng.random() < 0.5
            dut.wait_i.value = waits
            if takes:
                dut.take_source_i.value = any(c < self.ports for c in look.uses)
                dut.take_sink_i.value = any(c >= self.ports for c in look.uses)
                dut.take_bytes_i.value = look.segments[look.done]
                dut.take_first_i.value, dut.take_last_i.value = look.done == 0, look.last
        kicked = int(dut.kick_id_o.value) if int(dut.kick_valid_o.value) and kick_ready else None

        await RisingEdge(dut.clk_i)
        self.cycle += 1
        if kicked is not None:
            self.kicked(kicked)
        if move is not None:
            self.pushed(move)
        if close is not None:
            close.closed = True
            for channel in close.channels:
                self.changed[channel] = self.cycle
        if takes or waits:
            self.look, self.granted = None, False
        if takes:
            self.take(look)
        if waits:
            on = [c for c in look.uses if c < self.ports and not (self.turn(look, c) and self.enough(look, c))]
            self.seen.add("waits for a source" if on else "waits for a sink")
            self.waits.add((look.id, self.cycle))
        if gone is not None:
            self.clear(gone)
        for port in range(self.ports):
            self.there[port] += filled[port]
            self.given += filled[port]
            self.room[port] += drained[port]
            self.taken[port] -= drained[port]

    def kicked(self, id: int) -> None:
        """A move goes on that has waited; of a call that is over, it may be that nobody is there any more."""
        waiting = [entry for entry in self.waits if entry[0] == id]
        assert waiting, f"cycle {self.cycle}: a kick for {id:#x}, which does not wait"
        self.waits.remove(min(waiting, key=lambda entry: entry[1]))
        for call in self.calls:
            for move in call.moves:
                if move.id == id and move is not self.look and move not in self.runnable:
                    self.runnable.append(move)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_calls(dut):
    bench = Bench(dut)
    for port in ("push_valid", "close_valid", "clear_valid", "wait", "take_source", "take_sink", "filled", "drained"):
        getattr(dut, f"{port}_i").value = 0
    for port in ("push_id", "push_source_port", "push_sink_port", "ask_id", "ask_source", "ask_sink", "clear_slot"):
        getattr(dut, f"{port}_i").value = 0
    await start_clock_and_reset(dut)
    parts, part = scaled(24, 10), 0
    wanted = {"out of turn", "cut", "waits for a source", "waits for a sink"}
    wanted |= {f"{side} {enough}" for side in ("source", "sink") for enough in (False, True)}
    while part < parts or (bench.seen < wanted and part < 5 * parts):
        # Kernels that are fast, slow, or asleep on one side.
        bench.fill, bench.drain = [(0.9, 0.9), (0.3, 0.9), (0.9, 0.3), (0.9, 0.02), (0.02, 0.9)][part % 5]
        for _ in range(600):
            await bench.step(True)
        part += 1
    bench.fill = bench.drain = 0.9
    before = 0
    while bench.calls:
        for _ in range(3000):
            await bench.step(False)
            if not bench.calls:
                break
        # With kernels that are awake, 3000 cycles move something.
        progress = bench.finished + bench.given
        waiting = [(call.slot, move.entry, move.uses) for call in bench.calls for move in call.moves]
        assert progress > before or not waiting, f"nothing goes on: {waiting}"
        before = progress
    assert bench.finished > 10 * parts
    assert bench.seen >= wanted, wanted - bench.seen


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_kick_comes_in_time(dut):
    """3 cycles after what allows it, wherever the look at the ports is; later if more happens at other ports."""
    ports, wide = parameters()["StreamPorts"], parameters()["DataBytes"]
    rng = random.Random(1)
    for port in ("push_valid", "close_valid", "clear_valid", "wait", "take_source", "take_sink", "filled", "drained"):
        getattr(dut, f"{port}_i").value = 0
    dut.push_sink_i.value = dut.ask_sink_i.value = dut.clear_slot_i.value = 0
    dut.kick_ready_i.value = 1
    await start_clock_and_reset(dut)
    seen = set()
    for number in range(60):
        entry, port = number % WINDOW, number % ports
        id = 5 << 5 | entry
        use = 1 << 10 | port << 6 | number // ports % TICKETS
        dut.push_valid_i.value = dut.push_source_i.value = 1
        dut.push_id_i.value, dut.push_source_port_i.value = id, port
        await RisingEdge(dut.clk_i)
        dut.push_valid_i.value = 0
        for _ in range(6):
            await RisingEdge(dut.clk_i)
        # A look at the port that was under way when the move began to wait may kick it at once, but only once.
        for again in (False, True):
            dut.ask_id_i.value, dut.ask_source_i.value, dut.ask_bytes_i.value, dut.wait_i.value = id, use, wide, 1
            await RisingEdge(dut.clk_i)
            dut.wait_i.value = 0
            kicked = False
            for _ in range(rng.randint(4, 12)):
                await RisingEdge(dut.clk_i)
                kicked |= bool(int(dut.kick_valid_o.value))
            if not kicked:
                break
            assert not again, "a kick, and nothing has come"
        # Words that other ports get in every cycle, before and after, hold it up for no more than two rounds.
        busy = (1 << ports) - 1 & ~(1 << port) if number >= 40 else 0
        dut.filled_bytes_i.value = wide << ((wide - 1).bit_length() + 1) * port
        dut.filled_i.value = busy
        for _ in range(rng.randint(0, 4) if busy else 0):
            await RisingEdge(dut.clk_i)
        dut.filled_i.value = 1 << port | busy
        await RisingEdge(dut.clk_i)
        dut.filled_i.value = busy
        waited = 0
        while not int(dut.kick_valid_o.value):
            await RisingEdge(dut.clk_i)
            waited += 1
            assert waited <= 4 * ports + 5, "no kick"
        assert int(dut.kick_id_o.value) == id
        dut.filled_i.value = 0
        if not busy:
            seen.add(waited)
        await FallingEdge(dut.clk_i)
        assert int(dut.ready_o.value)
        dut.take_source_i.value, dut.take_bytes_i.value = 1, wide
        dut.take_first_i.value = dut.take_last_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.take_source_i.value = 0
        await RisingEdge(dut.clk_i)
    # Counted from the edge that takes the bytes.
    assert seen == {3}, seen


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_call_goes_as_another_comes(dut):
    """The one that comes must not wait for the next call in the slot of the one that goes."""
    for port in ("push_valid", "close_valid", "clear_valid", "wait", "take_source", "take_sink", "filled", "drained"):
        getattr(dut, f"{port}_i").value = 0
    dut.push_source_port_i.value = dut.push_sink_port_i.value = dut.ask_sink_i.value = 0
    dut.kick_ready_i.value = dut.ask_bytes_i.value = dut.take_bytes_i.value = 1
    dut.take_first_i.value = dut.take_last_i.value = 1
    await start_clock_and_reset(dut)

    async def step(cycles: int = 1) -> None:
        await RisingEdge(dut.clk_i)
        for port in ("push_valid", "close_valid", "clear_valid", "take_source", "filled"):
            getattr(dut, f"{port}_i").value = 0
        for _ in range(cycles - 1):
            await RisingEdge(dut.clk_i)

    def push(slot: int, source: bool) -> None:
        dut.push_valid_i.value, dut.push_id_i.value = 1, slot << 5
        dut.push_source_i.value, dut.push_sink_i.value = source, not source

    async def may_go(slot: int) -> bool:
        dut.ask_id_i.value, dut.ask_source_i.value = slot << 5, 1 << 10
        await FallingEdge(dut.clk_i)
        return bool(dut.ready_o.value)

    push(3, source=True)  # has the port to the engine
    await step()
    push(1, source=False)
    await step(5)
    dut.filled_i.value, dut.filled_bytes_i.value = 1, 2
    dut.clear_valid_i.value, dut.clear_slot_i.value = 1, 1
    push(2, source=True)
    await step()
    push(1, source=True)
    await step(5)
    assert [slot for slot in (1, 2, 3) if await may_go(slot)] == [3]
    dut.take_source_i.value, dut.close_valid_i.value, dut.close_slot_i.value = 1, 1, 3
    await step(6)
    assert [slot for slot in (1, 2) if await may_go(slot)] == [2]


@pytest.mark.parametrize(("ports", "data_bytes", "depth"), [(2, 64, 256), (3, 16, 516), full(1, 64, 132)])
def test_unisono_stream_gate(ports, data_bytes, depth):
    simulate("unisono_stream_gate", __file__, {"StreamPorts": ports, "DataBytes": data_bytes, "Depth": depth})
