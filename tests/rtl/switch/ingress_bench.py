"""The two sides of unisono_switch_ingress: a neighbour that sends, and a control that empties the runs."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

import cocotb
from bus import ChannelSink, Packet, StreamSource, new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import parameters
from headers import MAGIC, VERSION, Datatype, Header, MessageType, sealed
from unit_records import ENTRIES, EXTENSIONS, LOOK, NEIGHBOUR, RUNS, TERMS, WINDOW_FACTOR, pack, random_record, unpack

FULL_KEEP = (1 << 64) - 1


@dataclass
class Message:
    """What waits in a run's queue."""

    header: Header
    payload: bytes
    asked: bool
    read: bool = False


@dataclass
class Grant:
    """What the neighbour has granted; it is raised by and by."""

    sequence: int
    signature: int
    slot: int
    generation: int
    limit: int
    end: int


@dataclass
class Run:
    """What the test knows of a run."""

    queue: deque[Message] = field(default_factory=deque)
    grants: deque[Grant] = field(default_factory=deque)
    open: bool = False
    generation: int = 0
    limit: int = 0  # of the window
    sent: int = 0  # bytes of the head, by the neighbour
    over: bool = False  # its last segment has been sent
    read: int = 0  # by the control
    given: int = 0  # to the fold
    extension: int | None = None  # of the window


@dataclass
class Read:
    """Words that the fold is to get."""

    run: int
    window: bool
    words: deque[tuple[int, int]]
    length: int


class Bench:
    """All coroutines, and what must be."""

    def __init__(self, dut: Any, name: str) -> None:
        self.dut, self.rng = dut, new_random(name)
        self.depth, self.places = parameters()["Depth"], parameters()["WindowSegments"]
        self.source = StreamSource(dut, "in")
        self.own = ChannelSink(dut, "own", ("data", "keep"))
        self.terms: dict[int, dict[str, int]] = {}
        self.neighbours: dict[int, dict[str, int]] = {}
        self.runs = [Run() for _ in range(ENTRIES * RUNS)]
        self.pending: set[int] = set()
        self.reads: deque[Read] = deque()
        self.member_credit: Counter[int] = Counter()  # of the neighbour: it may send so many short messages
        self.credit: Counter[int] = Counter()  # of the switch
        self.freed: Counter[int] = Counter()
        self.counts: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.find_share = 1.0
        self.forget_share = 0.0
        self.cycle = 0
        self.events: list[tuple[int, int]] = []
        for port in ("open_valid", "found_valid", "forget", "pop", "discard", "pop_grant", "take_credit", "read"):
            getattr(dut, f"{port}_i").value = 0
        for port in ("open", "raise", "close", "extended", "extension"):
            getattr(dut, f"window_{port}_i").value = 0
        dut.look_run_i.value = 0
        dut.find_ready_i.value = 0

    async def start(self) -> None:
        """Reset; then table, events and fold's words are served."""
        await start_clock_and_reset(self.dut)
        cocotb.start_soon(self.serve())
        cocotb.start_soon(self.fold())

    async def open(self, entry: int, **fixed: int) -> None:
        """Agrees on random terms."""
        rng, dut = self.rng, self.dut
        segment = 64 * rng.randint(1, parameters()["BufferBytes"] // 64)
        eager = rng.randint(1, segment)
        terms = random_record(rng, TERMS) | {"segment_bytes": segment, "eager_limit": eager, "credits": 3} | fixed
        self.terms[entry], self.neighbours[entry] = terms, random_record(rng, NEIGHBOUR)
        for index in range(RUNS):
            dut.open_valid_i.value, dut.open_run_i.value = 1, entry * RUNS + index
            dut.open_terms_i.value = pack(TERMS, terms)
            dut.open_neighbour_i.value = pack(NEIGHBOUR, self.neighbours[entry])
            await RisingEdge(dut.clk_i)
            self.runs[entry * RUNS + index] = Run()
            dut.forget_i.value = 1
        dut.open_valid_i.value = dut.forget_i.value = 0
        self.member_credit[entry] = self.credit[entry] = terms["credits"]

    async def serve(self) -> None:
        """The table, and what the module says in single cycles."""
        dut, rng, edge = self.dut, self.rng, RisingEdge(self.dut.clk_i)
        answers: deque[int | None] = deque([None] * 2)
        ready = 0
        while True:
            await edge
            self.cycle += 1
            asked = None
            if ready and int(dut.find_valid_o.value):
                name = int(dut.find_number_o.value), int(dut.find_epoch_o.value)
                known = [e for e, t in self.terms.items() if (t["communicator"], t["epoch"]) == name]
                asked = known[0] if known else -1
            answers.append(asked)
            answer = answers.popleft()
            dut.found_valid_i.value = int(answer is not None)
            dut.found_i.value = int(answer is not None and answer >= 0)
            dut.found_entry_i.value = answer if answer is not None and answer >= 0 else rng.randrange(ENTRIES)
            ready = int(rng.random() < self.find_share)
            if not int(dut.open_valid_i.value):
                dut.forget_i.value = int(rng.random() < self.forget_share)
            dut.find_ready_i.value = ready
            if int(dut.event_valid_o.value):
                run = int(dut.event_run_o.value)
                self.events.append((self.cycle, run))
                # Credit may let another run of the communicator go on.
                self.pending.update(range(run // RUNS * RUNS, run // RUNS * RUNS + RUNS))
            if int(dut.freed_valid_o.value):
                entry = int(dut.freed_entry_o.value)
                self.freed[entry] += 1
                self.member_credit[entry] += 1
                assert self.member_credit[entry] <= self.terms[entry]["credits"], "more credit than there are buffers"

    async def fold(self) -> None:
        """Words come in the order of reads."""
        while True:
            data, keep = await self.own.get()
            assert self.reads, "words that nobody reads"
            read = self.reads[0]
            want, bits = read.words.popleft()
            assert keep == bits
            mask = sum(0xFF << 8 * b for b in range(64) if keep >> b & 1) if keep != FULL_KEEP else -1
            assert data & mask == want, f"{data & mask:#x} instead of {want:#x}"
            if not read.words:
                self.reads.popleft()
                if read.window:
                    self.runs[read.run].given += read.length
                self.pending.add(read.run)

    # ------------------------------------------------------------------ the neighbour
    def header(self, run: int, kind: MessageType, length: int = 0, **fixed: Any) -> Header:
        """A sound header of the neighbour's."""
        rng, entry = self.rng, run // RUNS
        terms, neighbour = self.terms[entry], self.neighbours[entry]
        header = Header(
            magic=MAGIC,
            version=VERSION,
            type=kind,
            dtype=rng.choice(list(Datatype)),
            first=True,
            last=True,
            communicator=terms["communicator"],
            epoch=terms["epoch"],
            source=neighbour["rank"],
            destination=terms["rank"],
            sequence=rng.getrandbits(29) << 3 | run % RUNS,
            tag=rng.getrandbits(24),
            segment_bytes=length,
            session_sequence=rng.getrandbits(32),
            message_bytes=length,
            token_slot=rng.getrandbits(16),
            token_generation=rng.getrandbits(16),
            signature=rng.getrandbits(32),
        )
        return replace(header, **fixed)

    def send(self, header: Header, payload: bytes = b"", *, fault: str | None = None) -> None:
        """One frame; `fault` says that it must be dropped and counted."""
        self.source.send(Packet(sealed(header) + payload))
        if fault is not None:
            self.counts["faults"] += 1
            self.seen[fault] += 1
            return
        self.credit[self.entry_of(header)] += header.credits
        if header.type in (MessageType.EAGER, MessageType.REQUEST):
            self.counts["messages"] += 1
        self.seen[header.type.name.lower()] += 1

    def entry_of(self, header: Header) -> int:
        """The entry of a sound header."""
        return next(e for e, t in self.terms.items() if t["communicator"] == header.communicator)

    def eager(self, run: int, length: int, **fixed: Any) -> None:
        """A short message."""
        payload = self.rng.randbytes(length)
        header = self.header(run, MessageType.EAGER, length, **fixed)
        self.member_credit[run // RUNS] -= 1
        self.send(header, payload)
        self.runs[run].queue.append(Message(header, payload, asked=False))

    def request(self, run: int, length: int, **fixed: Any) -> None:
        """A long message is asked for."""
        header = self.header(run, MessageType.REQUEST, 0, message_bytes=length, **fixed)
        self.send(header)
        self.runs[run].queue.append(Message(header, self.rng.randbytes(length), asked=True))

    def next_segment(self, run: int) -> tuple[Header, bytes] | None:
        """The next write, if the limit allows one."""
        state = self.runs[run]
        if not state.open or state.over:
            return None
        payload = state.queue[0].payload
        part = payload[state.sent : state.sent + self.terms[run // RUNS]["segment_bytes"]]
        end = state.sent + len(part)
        if end > state.limit:
            return None
        header = self.header(
            run,
            MessageType.WRITE,
            len(part),
            first=state.sent == 0,
            last=end == len(payload),
            offset=state.sent,
            message_bytes=len(payload),
            token_slot=run,
            token_generation=state.generation,
        )
        return header, part

    def write(self, run: int) -> bool:
        """Sends the next segment, if there is one."""
        found = self.next_segment(run)
        if found is None:
            return False
        self.send(*found)
        state = self.runs[run]
        state.sent += len(found[1])
        state.over = found[0].last
        return True

    def grant(self, run: int, grant: Grant, **fixed: Any) -> Header:
        """A grant's header."""
        return self.header(
            run,
            MessageType.GRANT,
            sequence=grant.sequence,
            signature=grant.signature,
            token_slot=grant.slot,
            token_generation=grant.generation,
            message_bytes=grant.limit,
            **fixed,
        )

    def new_grant(self, run: int) -> Grant:
        """Another token than those that are there."""
        rng = self.rng
        end = rng.getrandbits(20)
        return Grant(
            rng.getrandbits(29) << 3 | run % RUNS,
            rng.getrandbits(32),
            rng.getrandbits(16),
            rng.getrandbits(16),
            rng.randint(0, end),
            end,
        )

    # ------------------------------------------------------------------ the control
    async def look(self, run: int) -> dict[str, Any]:
        """What the module shows of a run, 3 cycles later."""
        self.dut.look_run_i.value = run
        for _ in range(3):
            await RisingEdge(self.dut.clk_i)
        look = unpack(LOOK, int(self.dut.look_o.value))
        state = self.runs[run]
        assert look["neighbour"] == self.neighbours[run // RUNS]
        assert int(self.dut.window_generation_o.value) == state.generation
        assert not look["has_credit"] or self.credit[run // RUNS] > 0
        if look["there"]:
            assert state.queue, "a message that nobody has sent"
            message = state.queue[0]
            shown = {name: look["head"][name] for name in ("asked", "sequence", "signature", "dtype", "tag", "bytes")}
            assert shown == {
                "asked": int(message.asked),
                "sequence": message.header.sequence,
                "signature": message.header.signature,
                "dtype": int(message.header.dtype),
                "tag": message.header.tag,
                "bytes": len(message.payload),
            }
        if look["has_grant"]:
            assert state.grants, "a grant that nobody has given"
            grant = state.grants[0]
            shown = {name: look["grant"][name] for name in ("sequence", "signature", "slot", "generation")}
            assert shown == {name: getattr(grant, name) for name in shown}
            assert look["grant"]["limit"] <= grant.limit
        if state.open:
            assert look["arrived"] <= state.sent
            assert not look["whole"] or (state.over and look["arrived"] == len(state.queue[0].payload))
        return look

    async def command(self, run: int, *names: str, **values: int) -> None:
        """Commands to the run looked at, for one cycle."""
        for name in names:
            getattr(self.dut, f"{name}_i").value = 1
        for name, value in values.items():
            getattr(self.dut, f"{name}_i").value = value
        self.pending.add(run)
        await RisingEdge(self.dut.clk_i)
        for name in names:
            getattr(self.dut, f"{name}_i").value = 0

    async def pop(self, run: int, *, discard: bool = False) -> None:
        """The head is over."""
        state = self.runs[run]
        state.queue.popleft()
        state.open = state.over = False
        state.extension = None
        await self.command(run, *(("pop", "discard") if discard else ("pop",)))

    async def read(self, run: int, payload: bytes, *, window: bool) -> None:
        """A read of the next segment, or of the head's buffer."""
        parts = [payload[at : at + 64] for at in range(0, len(payload), 64)]
        words = deque((int.from_bytes(part, "little"), (1 << len(part)) - 1) for part in parts)
        self.reads.append(Read(run, window, words, len(payload)))
        await self.command(run, "read", read_place=int(not window), read_bytes=len(payload))

    async def control(self) -> None:
        """Looks at runs of which something has changed, and does one thing for each."""
        while True:
            if not self.pending or self.rng.random() < 0.1:
                await RisingEdge(self.dut.clk_i)
                continue
            run = self.rng.choice(sorted(self.pending))
            self.pending.discard(run)
            look = await self.look(run)
            await self.decide(run, look)

    async def decide(self, run: int, look: dict[str, Any]) -> None:
        """One command, if there is one."""
        state, rng = self.runs[run], self.rng
        if look["has_credit"] and rng.random() < 0.2:
            self.credit[run // RUNS] -= 1
            await self.command(run, "take_credit")
        elif look["has_grant"] and look["grant"]["limit"] == state.grants[0].end:
            state.grants.popleft()
            self.seen["grant over"] += 1
            await self.command(run, "pop_grant")
        elif look["there"] and not look["head"]["asked"]:
            await self.decide_eager(run)
        elif look["there"]:
            await self.decide_asked(run, look)

    async def decide_eager(self, run: int) -> None:
        """A short message is read and popped, or discarded."""
        state = self.runs[run]
        message = state.queue[0]
        if not message.payload or message.read:
            await self.pop(run)
        elif self.rng.random() < 0.2:
            self.seen["discarded"] += 1
            await self.pop(run, discard=True)
        elif int(self.dut.read_ready_o.value):
            message.read = True
            await self.read(run, message.payload, window=False)
        else:
            self.seen["no room for reads"] += 1
            self.pending.add(run)

    async def decide_asked(self, run: int, look: dict[str, Any]) -> None:
        """A long one is granted, raised, read, and popped."""
        state, payload = self.runs[run], self.runs[run].queue[0].payload
        segment = self.terms[run // RUNS]["segment_bytes"]
        if not state.open:
            state.sent = state.read = state.given = 0
            free = sorted(set(range(EXTENSIONS)) - {other.extension for other in self.runs})
            state.extension = self.rng.choice(free) if free and self.rng.random() < 0.6 else None
            self.seen["extended"] += state.extension is not None
        places = self.places * (1 if state.extension is None else WINDOW_FACTOR)
        most = min(len(payload), state.given + places * segment)
        if not state.open:
            state.limit = most
            state.open, state.generation = True, state.generation + 1 & 0xFFFF
            await self.command(
                run,
                "window_open",
                window_limit=state.limit,
                window_extended=int(state.extension is not None),
                window_extension=state.extension or 0,
            )
        elif state.limit < most and self.rng.random() < 0.7:
            state.limit = most
            self.seen["raised"] += 1
            await self.command(run, "window_raise", window_limit=most)
        elif state.read < len(payload):
            part = payload[state.read : state.read + segment]
            if look["arrived"] >= state.read + len(part):
                if int(self.dut.read_ready_o.value):
                    state.read += len(part)
                    await self.read(run, part, window=True)
                else:
                    self.pending.add(run)
            elif state.limit < most:
                self.pending.add(run)
        elif state.given == len(payload) and look["whole"]:
            await self.pop(run)

    async def settled(self, most: int = 40_000) -> None:
        """Until all is over; then nothing is left, and counters say what was sent."""
        edge = RisingEdge(self.dut.clk_i)
        for _ in range(most):
            await edge
            if not (self.reads or self.pending or self.source.queues[0]) and not any(
                run.queue or run.grants for run in self.runs
            ):
                break
        else:
            left = [f"{n}: {run}"[:300] for n, run in enumerate(self.runs) if run.queue or run.grants]
            raise AssertionError(f"takes too long: {self.pending}, {left[:3]}")
        for _ in range(60):
            await edge
        assert int(self.dut.counter_messages_o.value) == self.counts["messages"] & 0xFFFFFFFF
        assert int(self.dut.counter_faults_o.value) == self.counts["faults"]
        assert int(self.dut.counter_bad_frames_o.value) == self.counts["bad"]
        for entry, terms in self.terms.items():
            assert self.member_credit[entry] == terms["credits"], f"entry {entry}: credit is lost"
