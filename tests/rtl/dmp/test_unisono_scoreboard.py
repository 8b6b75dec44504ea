"""unisono_scoreboard: random programs against the rules, every cycle; latency; throughput; turns."""

from dataclasses import dataclass, field

import cocotb
import pytest
from bus import bursts, never, new_random, reset_again, share, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import full, parameters, scaled, simulate
from scoreboard_model import Call, Move

EVENTS = ("consumed", "sent", "complete")


@dataclass
class Style:
    """What a random program looks like."""

    density: float
    peers: float
    lists: float
    trivial: float
    malformed: float
    near: bool
    streams: float = 0.0


def random_style(rng):
    return Style(
        density=rng.choice((0.0, 0.02, 0.1, 0.5)),
        peers=rng.choice((0.0, 0.3, 0.8, 1.0)),
        lists=rng.choice((0.0, 0.1, 0.5)),
        trivial=rng.choice((0.0, 0.1, 0.5)),
        malformed=rng.choice((0.0, 0.0, 0.03)),
        near=rng.random() < 0.5,
        streams=rng.choice((0.0, 0.2, 0.8)),
    )


def random_peers(rng, style, ranks):
    if rng.random() >= style.peers:
        return 0
    # Few different peers, so that moves meet.
    span = rng.choice((1, 2, 4, ranks))
    if rng.random() < style.lists:
        return rng.getrandbits(ranks) & rng.getrandbits(ranks) & ((1 << span) - 1)
    return 1 << ranks - 1 - rng.randrange(min(span, ranks))


def random_move(rng, style, number, window, ranks):
    known = min(number, window)
    dependencies = 0
    if style.near and known:
        for _ in range(rng.randrange(3)):
            dependencies |= 1 << min(known - 1, int(rng.expovariate(0.4)))
    else:
        dependencies = sum(1 << i for i in range(known) if rng.random() < style.density)
    distance = rng.randrange(min(known + 1, window))
    if rng.random() < style.malformed and known < window:
        if rng.random() < 0.5 and known < window - 1:
            distance = rng.randint(known + 1, window - 1)
        else:
            dependencies |= 1 << rng.randint(known, window - 1)
    streams = 0
    while known and rng.random() < style.streams and streams.bit_count() < 2:
        streams |= 1 << min(known - 1, int(rng.expovariate(0.4)))
    trivial = rng.random() < style.trivial
    return Move(
        number,
        dependencies,
        distance,
        0 if trivial else random_peers(rng, style, ranks),
        0 if trivial else random_peers(rng, style, ranks),
        trivial,
        streams,
    )


@dataclass
class Slot:
    """The bench's side of one slot."""

    call: Call
    style: Style
    length: int
    generation: int = 0
    clear_at: int | None = None
    idle_until: int = 0
    finishing: int = 0


@dataclass
class Flight:
    """An issued move, from the bench's point of view."""

    slot: int
    entry: int
    generation: int
    call: Call
    move: Move
    todo: list[str] = field(default_factory=list)


class Bench:
    def __init__(self, dut, *, length=60, clears=0.0, style=None):
        given = parameters()
        self.dut = dut
        self.calls, self.window = given["Calls"], given["Window"]
        self.ranks, self.rows = given["Ranks"], given["Rows"]
        self.entry_bits = (self.window - 1).bit_length()
        self.generations = 4
        self.rng = new_random("scoreboard")
        self.length, self.clears, self.fixed_style = length, clears, style
        self.slots = [self.fresh(0) for _ in range(self.calls)]
        self.flights = {name: [] for name in EVENTS}
        self.pace = dict.fromkeys((*EVENTS, "push", "issue", "finished"), never)
        self.cycle = 0
        self.busy = 0
        self.offer = None
        self.driven = dict.fromkeys(EVENTS)
        self.clear_slot = self.close_slot = None
        self.errors = {}
        self.stalled = None
        self.counts = dict.fromkeys(("push", "issue", "retired", "finished", "clear", "error", "late"), 0)
        self.issued_log = []
        self.pushing = True
        self.in_order_events = False
        dut.push_valid_i.value = 0
        dut.issue_ready_i.value = 0
        dut.finished_ready_i.value = 0
        dut.close_valid_i.value = 0
        dut.clear_valid_i.value = 0
        for name in EVENTS:
            getattr(dut, f"{name}_valid_i").value = 0

    def fresh(self, generation):
        style = self.fixed_style or random_style(self.rng)
        slot = Slot(Call(self.window), style, self.rng.randint(0, self.length), generation)
        if self.rng.random() < self.clears:
            slot.clear_at = self.cycle + self.rng.randint(1, 300) if hasattr(self, "cycle") else 50
        slot.idle_until = (self.cycle if hasattr(self, "cycle") else 0) + self.rng.choice((0, 0, 1, 30))
        return slot

    # What happened in the cycle that ends at this edge.

    def look(self):
        dut = self.dut
        held_back = int(dut.finished_valid_o.value) and not int(dut.finished_ready_i.value)
        for index, slot in enumerate(self.slots):
            slot.finishing += slot.call.closed and slot.call.held == 0 and not held_back
            assert slot.finishing <= 8 * self.calls + 40, f"call {index} does not finish"
        retired = bool(int(dut.retired_valid_o.value))
        if retired:
            index, entry = divmod(int(dut.retired_id_o.value), self.window)
            call = self.slots[index].call
            if self.was_cleared != index:
                assert call.held, f"retired from call {index}, which holds nothing"
                assert entry == call.retired % self.window
                move = call.moves[call.retired]
                assert call.done(move.number), f"move {move.number} of call {index} retired before it was complete"
                move.retired = True
                call.retired += 1
                self.counts["retired"] += 1
        room, empty, generation = int(dut.room_o.value), int(dut.empty_o.value), int(dut.generation_o.value)
        for index, slot in enumerate(self.slots):
            bits = self.entry_bits + 1
            assert room >> index * bits & (1 << bits) - 1 == self.window - slot.call.held
            assert empty >> index & 1 == (slot.call.held == 0)
            assert generation >> index * 2 & 3 == slot.generation
        self.look_at_issue()
        self.look_at_error()
        finished = None
        if int(dut.finished_valid_o.value):
            index = int(dut.finished_slot_o.value)
            call = self.slots[index].call
            assert call.closed, f"call {index} said to be finished before its close"
            assert call.held == 0, f"call {index} said to be finished with {call.held} moves"
            if int(dut.finished_ready_i.value):
                finished = index
        pushed = None
        if self.offer is not None:
            index, move = self.offer
            call = self.slots[index].call
            ready = bool(int(dut.push_ready_o.value))
            assert ready == (call.held < self.window and not self.busy), (
                f"push_ready {ready} with {call.held} moves in the window, {self.busy} beats to go"
            )
            if ready:
                assert int(dut.push_entry_o.value) == move.number % self.window
                pushed = index, move
        self.busy = max(0, self.busy - 1)
        for name in EVENTS:
            flight = self.driven[name]
            if flight is not None:
                setattr(flight.move, name, True)
        if pushed:
            index, move = pushed
            self.slots[index].call.push(move)
            self.counts["push"] += 1
            if move.malformed and self.clear_slot != index:
                self.errors[self.cycle + 2] = (index, move.number % self.window)
            self.offer = None
            if self.clear_slot != index:
                self.busy = move.beats - 1
                self.busy_slot = index
        if self.close_slot is not None:
            self.slots[self.close_slot].call.closed = True
        self.was_cleared = None
        if finished is not None:
            self.counts["finished"] += 1
            self.slots[finished] = self.fresh(self.slots[finished].generation)
        if self.clear_slot is not None:
            index = self.was_cleared = self.clear_slot
            self.counts["clear"] += 1
            if self.busy and self.busy_slot == index:
                self.busy = 0
            # A beat on its way reports nothing any more.
            self.errors = {
                when: error for when, error in self.errors.items() if error[0] != index or when <= self.cycle
            }
            if self.stalled is not None and self.stalled[0] // self.window == index:
                self.stalled = None
            if self.offer is not None and self.offer[0] == index:
                self.offer = None
            self.slots[index] = self.fresh((self.slots[index].generation + 1) % self.generations)
        self.cycle += 1

    was_cleared = None
    busy_slot = 0

    def look_at_issue(self):
        dut = self.dut
        valid, ready = int(dut.issue_valid_o.value), int(dut.issue_ready_i.value)
        offered = (int(dut.issue_id_o.value), int(dut.issue_generation_o.value)) if valid else None
        assert self.stalled is None or offered == self.stalled, f"offer {self.stalled} became {offered}"
        self.stalled = offered if valid and not ready else None
        if not valid:
            return
        index, entry = divmod(offered[0], self.window)
        slot = self.slots[index]
        call = slot.call
        assert offered[1] == slot.generation
        number = call.retired + (entry - call.retired) % self.window
        assert number < len(call.moves), f"issue of entry {entry} of call {index}, which is not in the window"
        move = call.moves[number]
        assert not move.issued, f"move {number} of call {index} issued twice"
        assert not move.trivial
        assert not move.malformed
        assert call.may_start(move), f"move {number} of call {index} issued too early"
        if ready:
            move.issued = True
            self.counts["issue"] += 1
            self.issued_log.append((self.cycle, index, number))
            todo = [name for name, wanted in zip(EVENTS, (move.receives, move.sends, True), strict=True) if wanted]
            flight = Flight(index, entry, slot.generation, call, move, todo)
            self.flights[todo[0]].append(flight)

    def look_at_error(self):
        valid = bool(int(self.dut.error_valid_o.value))
        want = self.errors.pop(self.cycle, None)
        assert valid == (want is not None), f"error {valid}, expected {want}"
        if want:
            assert divmod(int(self.dut.error_id_o.value), self.window) == want
            self.counts["error"] += 1
            slot = self.slots[want[0]]
            if slot.clear_at is None:
                slot.clear_at = self.cycle + self.rng.randint(1, 60)

    def check_progress(self, stalled_bound=None):
        """Every 8 cycles: nothing that may start, or retire, is left standing for long."""
        held_up = self.stalled is not None
        others = sum(slot.call.held for slot in self.slots)
        bound = stalled_bound or 2 * self.calls * self.window // self.rows + 2 * others + 60
        for index, slot in enumerate(self.slots):
            call = slot.call
            for move in call.moves[call.retired :]:
                if move.issued or move.malformed or move.trivial:
                    continue
                if not call.may_start(move):
                    continue
                if not held_up:
                    move.eligible_for += 8
                assert move.eligible_for <= bound, (
                    f"move {move.number} of call {index} has been ready for {move.eligible_for} cycles"
                )
            if call.held and call.done(call.retired):
                move = call.moves[call.retired]
                # What need not be issued may stand behind what the other side does not take.
                if not (move.trivial and held_up):
                    move.eligible_for += 8
                assert move.eligible_for <= bound, f"move {move.number} of call {index} does not retire"

    # What to do in the next cycle.

    def drive(self):
        dut, rng = self.dut, self.rng
        self.clear_slot = self.close_slot = None
        due = [i for i, slot in enumerate(self.slots) if slot.clear_at is not None and slot.clear_at <= self.cycle]
        if due:
            self.clear_slot = rng.choice(due)
            dut.clear_slot_i.value = self.clear_slot
        dut.clear_valid_i.value = int(bool(due))
        for name in EVENTS:
            self.driven[name] = None
        for position, name in enumerate(EVENTS):
            pool = self.flights[name]
            if pool and not self.pace[name]():
                flight = pool.pop(0 if self.in_order_events else rng.randrange(len(pool)))
                self.driven[name] = flight
                flight.todo.pop(0)
                # Consumed, sent and complete of one move may fall into one cycle.
                if flight.todo:
                    self.flights[flight.todo[0]].append(flight)
                assert position < 2 or not flight.todo
        for name in EVENTS:
            flight = self.driven[name]
            getattr(dut, f"{name}_valid_i").value = int(flight is not None)
            if flight is not None:
                getattr(dut, f"{name}_id_i").value = flight.slot * self.window + flight.entry
                getattr(dut, f"{name}_generation_i").value = flight.generation
                self.counts["late"] += flight.call is not self.slots[flight.slot].call
            else:
                getattr(dut, f"{name}_id_i").value = rng.randrange(self.calls * self.window)
        # Generations repeat: what is older than two clears must not come any more.
        for pool in self.flights.values():
            pool[:] = [f for f in pool if (self.slots[f.slot].generation - f.generation) % self.generations < 2]
        if self.offer is None:
            wanting = [
                i
                for i, slot in enumerate(self.slots)
                if len(slot.call.moves) < slot.length and slot.idle_until <= self.cycle and self.pushing
            ]
            # Also to calls whose window is full: they must refuse.
            if wanting and not self.pace["push"]():
                index = rng.choice(wanting)
                call = self.slots[index].call
                move = random_move(rng, self.slots[index].style, len(call.moves), self.window, self.ranks)
                self.offer = index, move
        elif rng.random() < 0.05:
            # A move that waits for room stays on offer; its call must get room by itself.
            pass
        if self.offer is not None:
            index, move = self.offer
            dut.push_slot_i.value = index
            dut.push_dependencies_i.value = move.dependencies
            dut.push_distance_i.value = move.distance
            dut.push_streams_i.value = move.streams
            dut.push_receives_i.value = move.receives
            dut.push_sends_i.value = move.sends
            dut.push_trivial_i.value = int(move.trivial)
        dut.push_valid_i.value = int(self.offer is not None)
        closing = [
            i
            for i, slot in enumerate(self.slots)
            if not slot.call.closed and len(slot.call.moves) >= slot.length and (not self.offer or self.offer[0] != i)
        ]
        if closing and rng.random() < 0.5:
            self.close_slot = rng.choice(closing)
            dut.close_slot_i.value = self.close_slot
        dut.close_valid_i.value = int(self.close_slot is not None)
        dut.issue_ready_i.value = int(not self.pace["issue"]())
        dut.finished_ready_i.value = int(not self.pace["finished"]())

    async def run(self, cycles, progress=True):
        edge = RisingEdge(self.dut.clk_i)
        for _ in range(cycles):
            await edge
            self.look()
            if progress and self.cycle % 8 == 0:
                self.check_progress()
            self.drive()


def pick_paces(rng):
    kinds = [never, share(rng, 0.3), share(rng, 0.8), bursts(rng)]
    return {name: rng.choice(kinds) for name in (*EVENTS, "push", "issue", "finished")}


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_programs(dut):
    bench = Bench(dut)
    await start_clock_and_reset(dut)
    for _ in range(scaled(60, 30)):
        bench.pace = pick_paces(bench.rng)
        bench.in_order_events = bench.rng.random() < 0.3
        await bench.run(400)
    dut._log.info("counts %s", bench.counts)
    assert bench.counts["issue"] > scaled(1500, 750)
    assert bench.counts["finished"] > scaled(10, 5)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def programs_that_are_cleared(dut):
    bench = Bench(dut, clears=0.5, length=90)
    await start_clock_and_reset(dut)
    for _ in range(scaled(60, 30)):
        bench.pace = pick_paces(bench.rng)
        await bench.run(400)
    dut._log.info("counts %s", bench.counts)
    assert bench.counts["clear"] > scaled(30, 15)
    assert bench.counts["late"] > scaled(20, 8)
    assert bench.counts["error"] > 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def pairs_in_order(dut):
    """Programs full of peers and lists, events far apart."""
    bench = Bench(dut, style=Style(0.0, 1.0, 0.4, 0.05, 0.0, True), length=300)
    await start_clock_and_reset(dut)
    for _ in range(40):
        bench.pace = pick_paces(bench.rng)
        await bench.run(400)
    dut._log.info("counts %s", bench.counts)
    assert bench.counts["issue"] > 500


PUSH_LATENCY = 4
FREE = Style(0.0, 0.0, 0.0, 0.0, 0.0, False)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def one_move_per_cycle(dut):
    """Push, issue, complete and retire nearly one move per cycle; also from one call alone."""
    bench = Bench(dut, style=FREE, length=10**6)
    for slot in bench.slots:
        slot.length, slot.idle_until = 10**6, 0
    bench.in_order_events = True
    await start_clock_and_reset(dut)
    await bench.run(3000)
    before = dict(bench.counts)
    await bench.run(2000)
    rates = {name: (bench.counts[name] - before[name]) / 2000 for name in ("push", "issue", "retired")}
    dut._log.info("all calls %s", rates)
    if bench.window >= 32:
        assert min(rates.values()) > 0.99, rates
    for slot in bench.slots[1:]:
        slot.length = 0
    await bench.run(600)
    before = dict(bench.counts)
    await bench.run(2000)
    rates = {name: (bench.counts[name] - before[name]) / 2000 for name in ("push", "issue", "retired")}
    dut._log.info("one call %s", rates)
    if bench.window >= 32:
        assert min(rates.values()) > 0.99, rates


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency_of_a_chain(dut):
    """Each move depends on the one before: 3 cycles from an event to the next issue, for each kind of event."""
    window = parameters()["Window"]
    ports = ("push_valid", "issue_ready", "close_valid", "clear_valid", *(f"{name}_valid" for name in EVENTS))
    for name in ports:
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    for kind in EVENTS:
        gaps = []
        await RisingEdge(dut.clk_i)
        count = min(8, window)
        dut.issue_ready_i.value = 0
        dut.finished_ready_i.value = 1
        dut.push_valid_i.value = 1
        dut.push_slot_i.value = 1
        dut.push_distance_i.value = 0
        dut.push_streams_i.value = 0
        dut.push_trivial_i.value = 0
        dut.push_receives_i.value = int(kind == "consumed") << 1
        dut.push_sends_i.value = int(kind == "sent") << 1
        # The cycle in which the first move is taken counts as 0; it waits for nothing.
        passed, offered = 0, None
        while passed < count or offered is None:
            dut.push_valid_i.value = int(passed < count)
            dut.push_dependencies_i.value = int(passed > 0 and kind == "complete")
            await RisingEdge(dut.clk_i)
            if offered is None and int(dut.issue_valid_o.value):
                offered = passed
            passed += 1
            assert passed < 20
        dut.push_valid_i.value = 0
        gaps.append(offered)
        assert int(dut.issue_id_o.value) == window
        dut.issue_ready_i.value = 1
        await RisingEdge(dut.clk_i)
        # Let the unit come to rest: while it is examined, an event waits for that.
        for _ in range(12):
            await RisingEdge(dut.clk_i)
        for number in range(count - 1):
            getattr(dut, f"{kind}_valid_i").value = 1
            getattr(dut, f"{kind}_id_i").value = window + number
            getattr(dut, f"{kind}_generation_i").value = 0
            await RisingEdge(dut.clk_i)
            assert not int(dut.issue_valid_o.value)
            getattr(dut, f"{kind}_valid_i").value = 0
            passed = 0
            while not int(dut.issue_valid_o.value):
                await RisingEdge(dut.clk_i)
                passed += 1
                assert passed < 20
            assert int(dut.issue_id_o.value) == window + number + 1
            gaps.append(passed)
        dut._log.info("%s to issue: %s cycles", kind, gaps)
        assert set(gaps[1:]) == {3}, gaps
        assert gaps[0] == PUSH_LATENCY
        await reset_again(dut)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def late_events_are_ignored(dut):
    """After a clear, an event of the old program for the same entry does not release a move of the new one."""
    window = parameters()["Window"]
    ports = ("push_valid", "push_trivial", "issue_ready", "close_valid", "clear_valid", "finished_ready")
    for name in (*ports, *(f"{name}_valid" for name in EVENTS)):
        getattr(dut, f"{name}_i").value = 0
    dut.push_distance_i.value = 0
    dut.push_streams_i.value = 0
    edge = RisingEdge(dut.clk_i)
    await start_clock_and_reset(dut)
    dut.issue_ready_i.value = 1
    dut.push_slot_i.value = dut.clear_slot_i.value = 1

    async def push(kind, waits):
        dut.push_valid_i.value = 1
        dut.push_dependencies_i.value = int(waits and kind == "complete")
        dut.push_receives_i.value = int(kind == "consumed") << 1
        dut.push_sends_i.value = int(kind == "sent") << 1
        await edge
        dut.push_valid_i.value = 0

    async def issued(cycles):
        found = []
        for _ in range(cycles):
            await edge
            if int(dut.issue_valid_o.value):
                found.append((int(dut.issue_id_o.value), int(dut.issue_generation_o.value)))
        return found

    async def event(kind, generation):
        getattr(dut, f"{kind}_valid_i").value = 1
        getattr(dut, f"{kind}_id_i").value = window
        getattr(dut, f"{kind}_generation_i").value = generation
        await edge
        getattr(dut, f"{kind}_valid_i").value = 0

    generation = 0
    for kind in EVENTS * 4:
        await push(kind, False)
        assert await issued(15) == [(window, generation)]
        dut.clear_valid_i.value = 1
        await edge
        dut.clear_valid_i.value = 0
        old, generation = generation, (generation + 1) % 4
        await push(kind, False)
        await push(kind, True)
        assert await issued(15) == [(window, generation)]
        for late in {old, (generation + 2) % 4, (generation + 1) % 4}:
            await event(kind, late)
            assert await issued(15) == [], f"{kind} of generation {late} released a move of {generation}"
        await event(kind, generation)
        assert await issued(15) == [(window + 1, generation)]
        dut.clear_valid_i.value = 1
        await edge
        dut.clear_valid_i.value = 0
        generation = (generation + 1) % 4


@pytest.mark.parametrize(
    "sizes",
    [
        {"Calls": 8, "Window": 32, "Ranks": 64, "Rows": 8},
        {"Calls": 2, "Window": 4, "Ranks": 2, "Rows": 2},
        full({"Calls": 2, "Window": 32, "Ranks": 8, "Rows": 32}),
        full({"Calls": 4, "Window": 16, "Ranks": 64, "Rows": 4}),
    ],
)
def test_unisono_scoreboard(sizes):
    simulate("unisono_scoreboard", __file__, sizes, limit_s=550)
