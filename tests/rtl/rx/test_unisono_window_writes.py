"""unisono_window_writes: puts, data of gets, control messages and all else, against what its page says of each."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest
import records
from bus import Pause, Waits, bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate

S = records.load()
OK, TOO_SMALL, INTERNAL = (int(S.ErrorCode[name]) for name in ("OK", "BUFFER_TOO_SMALL", "INTERNAL"))
WINDOW_SLOT, LANDING, WORD = 0xFFFF, 0xFF00, 64
WRITE, CONTROL = S.MessageType.WRITE, S.MessageType.CONTROL
QUIET = 1500
"""Cycles without a step after which something hangs; no pause is as long."""
AHEAD = 6
"""Messages whose headers the manager has, and not their payload."""


@dataclass(frozen=True)
class Landing:
    """What a slot's get waits for."""

    valid: bool
    communicator: int
    peer: int
    generation: int
    address: int
    bytes: int

    def bits(self) -> int:
        pair = (self.valid << 4 | self.communicator) << 6 | self.peer
        return ((pair << 16 | self.generation) << 48 | self.bytes) << 64 | self.address


@dataclass(frozen=True)
class Tables:
    """The answers to a look-up: a window's address, bytes and segment; a slot's get."""

    window: tuple[int, int, int]
    landing: Landing


@dataclass(eq=False)
class Message:
    """A header behind Rx with as many words of payload as it says."""

    header: Any
    communicator: int
    source: int
    bits: int
    buffered: bool = False
    """Of what is passed on: the manager writes it to a buffer; else it takes the words itself."""
    early: bool = False
    """The manager gives its command before it takes the header."""
    fate: str = ""
    """What becomes of the payload, once the header was taken."""
    commanded: bool = False

    @property
    def words(self) -> int:
        return -(-self.header.segment_bytes // WORD)

    @property
    def put(self) -> bool:
        return self.header.type == WRITE and self.header.token_slot == WINDOW_SLOT

    @property
    def landing(self) -> bool:
        return self.header.type == WRITE and LANDING <= self.header.token_slot < LANDING + 8

    @property
    def control(self) -> bool:
        return self.header.type == CONTROL

    @property
    def own(self) -> bool:
        return self.put or self.landing or self.control

    def fault(self, tables: Tables) -> str:
        """Why it may not be written, or served; or nothing."""
        header = self.header
        if not self.landing:
            end = header.message_bytes + (header.offset if self.control else 0)
            return "beyond the window" if end > tables.window[1] else ""
        get = tables.landing
        for what, right in (
            ("no get", get.valid),
            ("another generation", get.generation == header.token_generation),
            ("another peer", get.peer == self.source),
            ("another communicator", get.communicator == self.communicator),
            ("too long", header.message_bytes <= get.bytes),
        ):
            if not right:
                return what
        return ""

    def place(self, tables: Tables) -> int:
        begin = tables.landing.address if self.landing else tables.window[0]
        return begin + self.header.offset & (1 << 64) - 1


@dataclass(eq=False)
class Command:
    """A command of the writer that is under way."""

    message: Message
    left: int


@dataclass(eq=False)
class Answer:
    """What the origin of a put will be told, once it may be."""

    message: Message
    refused: bool
    written: bool


class Bench:
    """All ports, cycle by cycle: Rx, the manager, the writer, the tables, and who hears and answers."""

    def __init__(self, dut, name: str) -> None:
        self.dut, self.rng = dut, new_random(name)
        self.seen: Counter[str] = Counter()
        self.to_come: deque[Message] = deque()
        self.offered: Message | None = None
        self.words: deque[tuple[Message, int]] = deque()
        """Payload that Rx has: of the messages that were taken, and of the one on offer."""
        self.word_offered = False
        self.held: deque[Message] = deque()
        """What the manager has, or looks at, and whose payload it still waits for."""
        self.commands: deque[Command] = deque()
        self.answers: deque[Answer] = deque()
        self.bad: set[tuple[int, int]] = set()
        self.waits = Waits(self.seen)
        self.cycle = self.quiet = self.late = 0
        self.when: dict[str, list[int]] = {"header": [], "command": [], "written": [], "answer": []}
        self.windows = [(0, 0, 0)] * 16
        self.landings = [Landing(False, 0, 0, 0, 0, 0)] * 8
        for index in range(16):
            self.new_window(index)
        for index in range(8):
            self.new_landing(index)
        self.tables = Tables(self.windows[0], self.landings[0])
        self.changes = self.errors = 0.0
        self.pauses: dict[str, Pause] = dict.fromkeys(
            ("received", "payload", "take", "words", "buffer", "command", "write", "written", "answer", "heard"), never
        )
        self.opened: list[tuple[Any, ...]] = []
        """Puts and data of gets of which segments are still to come."""
        for port in ("received_valid", "payload_valid", "payload_last", "pass_received_ready", "pass_payload_ready"):
            getattr(dut, f"{port}_i").value = 0
        for port in ("buffer_command_valid", "buffer_valid", "write_command_ready", "write_ready", "written_valid"):
            getattr(dut, f"{port}_i").value = 0
        for port in ("answer_ready", "heard_ready"):
            getattr(dut, f"{port}_i").value = 0

    # ------------------------------------------------------------------------------------------ what there is

    def new_window(self, index: int) -> None:
        rng = self.rng
        size = rng.choice((0, 100, 4096, rng.randint(1, 1 << 20), rng.randint(1 << 20, 1 << 40), (1 << 48) - 1))
        self.windows[index] = rng.getrandbits(64), size, rng.getrandbits(14)

    def new_landing(self, index: int) -> None:
        rng = self.rng
        size = rng.choice((rng.randint(1, 100), rng.randint(1, 5000), rng.getrandbits(40)))
        who = rng.choice((1, 1, 5)), rng.choice((3, 9, 63))
        self.landings[index] = Landing(rng.random() < 0.9, *who, rng.getrandbits(16), rng.getrandbits(64), size)

    def message(self, kind: Any, size: int, communicator: int, source: int, **fields: Any) -> Message:
        """One with noise in all that is not named."""
        rng = self.rng
        offset = rng.getrandbits(40)
        message_bytes = offset + size + rng.getrandbits(20)
        sizes = {"segment_bytes": size, "offset": offset, "message_bytes": message_bytes}
        header = records.noisy_header(rng, **{**sizes, "type": kind, "source": source, **fields})
        raw = int.from_bytes(header.encode(), "little")
        bits = ((rng.getrandbits(16) << 512 | raw) << 4 | communicator) << 6 | source
        return Message(header, communicator, source, bits, rng.random() < 0.6, rng.random() < 0.3)

    def sizes(self) -> list[int]:
        rng = self.rng
        return [rng.choice((1, WORD, rng.randint(1, 5 * WORD), 3 * WORD)) for _ in range(rng.choice((1, 1, 2, 4)))]

    def open_put(self) -> None:
        rng = self.rng
        communicator, sizes = rng.choice((1, 1, 5, rng.randrange(16))), self.sizes()
        if rng.random() < 0.1:
            sizes = [0]
        window, total = self.windows[communicator][1], sum(sizes)
        end = rng.choice((window, window, window + 1, window + rng.getrandbits(40), rng.randint(0, window)))
        end = min(max(end, total), (1 << 48) - 1)
        source, sequence = rng.choice((3, 9, 63)), rng.getrandbits(32)
        common = {"token_slot": WINDOW_SLOT, "sequence": sequence, "message_bytes": end}
        self.opened.append((communicator, source, sizes, end - total, common))

    def open_landing(self) -> None:
        rng, sizes = self.rng, self.sizes()
        slot = rng.randrange(8)
        get = self.landings[slot]
        wrong = rng.choice(("", "", "", "generation", "peer", "communicator", "bytes"))
        size = get.bytes + (1 if wrong == "bytes" else -rng.choice((0, 0, rng.randrange(get.bytes))))
        size = max(size, sum(sizes))
        common = {
            "token_slot": LANDING | slot,
            "token_generation": get.generation ^ (wrong == "generation") << rng.randrange(16),
            "message_bytes": size,
        }
        communicator = get.communicator ^ (wrong == "communicator") << rng.randrange(4)
        source = get.peer ^ (wrong == "peer") << rng.randrange(6)
        self.opened.append((communicator, source, sizes, size - sum(sizes), common))

    def next_message(self) -> Message:
        rng = self.rng
        kind = rng.random()
        if kind < 0.2:
            size = rng.choice((0, 0, rng.randint(1, 3 * WORD)))
            communicator, window = (which := rng.randrange(16)), self.windows[which][1]
            asked = rng.randint(0, window)
            offset = min((1 << 48) - 1, window - asked + rng.choice((0, 0, 1, rng.getrandbits(40))))
            return self.message(
                CONTROL,
                size,
                communicator,
                rng.randrange(64),
                message_bytes=asked,
                offset=offset,
                tag=rng.randrange(10),
            )
        if kind < 0.45:
            size = rng.choice((0, rng.randint(1, 4 * WORD)))
            others = [t for t in S.MessageType if t not in (CONTROL, S.MessageType.CREDIT)]
            which = rng.choice(others)
            token = rng.choice((WINDOW_SLOT, LANDING + 3, 0xFF08, 0xFEFF, 0xFFFE, rng.getrandbits(15)))
            if which == WRITE and (token == WINDOW_SLOT or LANDING <= token < LANDING + 8):
                token = rng.choice((0xFF08, 0xFEFF, 0xFFFE))
            return self.message(which, size, rng.randrange(16), rng.randrange(64), token_slot=token)
        if len(self.opened) < 3:
            (self.open_put if rng.random() < 0.65 else self.open_landing)()
        one = rng.choice(self.opened)
        communicator, source, sizes, offset, common = one
        at = self.opened.index(one)
        size = sizes[0]
        message = self.message(WRITE, size, communicator, source, offset=offset, last=len(sizes) == 1, **common)
        if len(sizes) == 1:
            del self.opened[at]
        else:
            self.opened[at] = communicator, source, sizes[1:], offset + size, common
        return message

    # ------------------------------------------------------------------------------------------ a cycle

    def drive(self, fresh: bool) -> None:
        dut, rng, pauses = self.dut, self.rng, self.pauses
        # A window or a get changes between the messages that look at it.
        if (self.offered is None or not self.offered.own) and rng.random() < self.changes:
            (self.new_window if rng.random() < 0.5 else self.new_landing)(rng.randrange(8))
        if self.offered is None:
            ahead = sum(1 for message in self.held if message.fate)
            if ahead < AHEAD and not pauses["received"]():
                if self.to_come:
                    self.offered = self.to_come.popleft()
                elif fresh:
                    self.offered = self.next_message()
            if self.offered is not None:
                self.when["header"].append(self.cycle)
                count = self.offered.words
                self.words.extend((self.offered, count - number) for number in range(count))
            dut.received_valid_i.value = self.offered is not None
            dut.received_i.value = self.offered.bits if self.offered else rng.getrandbits(538)
        if not self.word_offered:
            self.word_offered = bool(self.words) and not pauses["payload"]()
            dut.payload_valid_i.value = self.word_offered
            dut.payload_last_i.value = self.words[0][1] == 1 if self.word_offered else rng.getrandbits(1)

        first = self.held[0] if self.held else None
        self.gives = bool(
            first and first.buffered and not first.commanded and ("buffer" in self.waits or not pauses["buffer"]())
        )
        dut.buffer_command_valid_i.value = self.gives
        if "buffer" not in self.waits:
            self.buffer_word = rng.getrandbits(64), rng.randint(1, 8192)
            dut.buffer_command_address_i.value, dut.buffer_command_bytes_i.value = self.buffer_word
        looked_at = first is not None and not first.fate
        self.takes = not pauses["take"]() and (not looked_at or first.commanded)
        dut.pass_received_ready_i.value = self.takes
        self.takes_words = not pauses["words"]()

        self.writer_ready = not pauses["command"]()
        self.memory_ready = any(command.left for command in self.commands) and not pauses["write"]()
        dut.write_command_ready_i.value, dut.write_ready_i.value = self.writer_ready, self.memory_ready
        self.writes = bool(self.commands) and not self.commands[0].left and not pauses["written"]()
        self.fails = self.writes and rng.random() < self.errors
        dut.written_valid_i.value = self.writes
        dut.written_error_i.value = self.fails if self.writes else rng.getrandbits(1)
        self.answer_ready, self.heard_ready = not pauses["answer"](), not pauses["heard"]()
        dut.answer_ready_i.value, dut.heard_ready_i.value = self.answer_ready, self.heard_ready

    def reply(self) -> None:
        """What answers in the same cycle: the tables, and the manager to a word of payload."""
        dut = self.dut
        self.tables = Tables(
            self.windows[int(dut.window_communicator_o.value)], self.landings[int(dut.landing_slot_o.value)]
        )
        address, size, segment = self.tables.window
        dut.window_i.value, dut.window_segment_i.value = size << 64 | address, segment
        dut.landing_i.value = self.tables.landing.bits()
        passes = bool(int(dut.pass_payload_valid_o.value))
        first = self.held[0] if self.held else None
        wants = first is not None and bool(first.fate) and (not first.buffered or first.commanded)
        to_buffer = wants and first.buffered
        dut.buffer_valid_i.value = to_buffer and passes
        ready = int(dut.buffer_ready_o.value) if to_buffer else self.takes_words
        self.passes_word = bool(wants and passes and ready)
        dut.pass_payload_ready_i.value = bool(wants and ready)

    async def step(self, fresh: bool = True) -> None:
        dut = self.dut
        self.drive(fresh)
        await FallingEdge(dut.clk_i)
        self.reply()
        await RisingEdge(dut.clk_i)
        self.cycle += 1
        moved = self.check_headers()
        moved |= self.check_words()
        moved |= self.check_written()
        moved |= self.check_answers()
        busy = self.offered or self.words or self.commands or self.answers
        self.quiet = 0 if moved or not busy else self.quiet + 1
        assert self.quiet < QUIET, f"cycle {self.cycle}: nothing goes on at {self.offered}, {len(self.held)} held"

    def check_headers(self) -> bool:
        dut, now = self.dut, self.tables
        message = self.offered
        got = message is not None and bool(int(dut.received_ready_o.value))
        about = f"cycle {self.cycle}: {message}, {now}"

        passing = bool(int(dut.pass_received_valid_o.value))
        if passing:
            assert message is not None, about
            assert not message.own, about
            if message.early and message.buffered and message.words and not self.held:
                self.held.append(message)  # the manager looks at it before it takes it
        passed = self.waits.taken("pass", passing, self.takes, None)
        told = bool(int(dut.heard_valid_o.value))
        heard = None
        if told:
            assert message is not None, about
            assert message.control, about
            names = ("heard_o", "heard_fits_o", "heard_address_o", "heard_segment_o")
            heard = tuple(int(getattr(dut, name).value) for name in names)
            assert heard == (message.bits, not message.fault(now), message.place(now), now.window[2]), (
                f"{heard}; {about}"
            )
        hears = self.waits.taken("heard", told, self.heard_ready, heard)

        command = None
        if int(dut.write_command_valid_o.value):
            command = int(dut.write_command_address_o.value), int(dut.write_command_bytes_o.value)
        of_buffer = self.gives and command is not None
        gives = self.waits.taken("command", command is not None, self.writer_ready, command)
        given = self.gives and bool(int(dut.buffer_command_ready_o.value))
        if of_buffer:
            assert command == self.buffer_word, f"{command}, not {self.buffer_word}; {about}"
            assert given == gives, about
        elif command is not None:
            assert message is not None, about
            assert message.put or message.landing, f"a command for what is none; {about}"
            assert not message.fault(now), f"a command in spite of {message.fault(now)}; {about}"
            assert command == (message.place(now), message.header.segment_bytes), f"{command}; {about}"
            assert gives == got, about
        self.waits.taken("buffer", self.gives, given, None)
        if self.gives and given:
            assert of_buffer, about
            self.held[0].commanded = True
            self.commands.append(Command(self.held[0], self.held[0].words))
        assert len(self.commands) <= parameters()["Commands"], about

        full_of_answers = len(self.answers) >= parameters()["Answers"]
        if message is not None and not got and message.own and not message.fault(now):
            self.seen["too many commands"] += not message.control and len(self.commands) == parameters()["Commands"]
        if message is not None and message.put and message.header.last and not got:
            self.seen["too many answers"] += full_of_answers
        if not got:
            assert not passed, about
            assert not hears, about
            return given
        assert message is not None
        fault = message.fault(now)
        if not message.own:
            assert passed, f"it was not passed on; {about}"
            message.fate = "passed"
            if message.words and message not in self.held:
                self.held.append(message)
            self.seen["passed"] += 1
        elif message.control:
            assert hears, f"it was not heard; {about}"
            message.fate = "dropped"
            self.seen[f"control {fault}"] += 1
        else:
            writes = not fault and message.words > 0
            assert writes == (gives and not of_buffer), f"written: {gives}; {about}"
            message.fate = "written" if writes else "dropped"
            self.seen[f"{'put' if message.put else 'landing'} {fault}"] += 1
            if writes:
                self.commands.append(Command(message, message.words))
                self.when["command"].append(self.cycle)
            if message.put and message.header.last:
                assert not full_of_answers, about
                self.answers.append(Answer(message, bool(fault), not writes))
                self.seen["empty put"] += not message.words
        self.offered = None
        return True

    def check_words(self) -> bool:
        dut = self.dut
        got = self.word_offered and bool(int(dut.payload_ready_o.value))
        written = bool(int(dut.write_valid_o.value)) and self.memory_ready
        passed = bool(int(dut.pass_payload_valid_o.value)) and self.passes_word
        about = f"cycle {self.cycle}: {self.words[0] if self.words else 'no word'}"
        if not got:
            assert not written, f"written, and not taken; {about}"
            assert not passed, f"passed on, and not taken; {about}"
            return False
        message, left = self.words.popleft()
        self.word_offered = False
        assert message.fate, f"payload before its header; {about}"
        assert passed == (message.fate == "passed"), about
        if passed and left == 1:
            assert self.held.popleft() is message, about
        assert written == (message.fate == "written" or (passed and message.buffered)), about
        if written:
            command = next(command for command in self.commands if command.left)
            assert command.message is message, f"a word of another message than the command's; {about}"
            assert command.left == left, about
            command.left -= 1
        return True

    def check_written(self) -> bool:
        dut = self.dut
        about = f"cycle {self.cycle}: {self.commands[0].message if self.commands else 'no command'}"
        ended, landed = bool(int(dut.buffer_written_o.value)), bool(int(dut.landed_valid_o.value))
        if not self.writes:
            assert not ended, about
            assert not landed, about
            return False
        message = self.commands.popleft().message
        assert ended == (not message.own), about
        if ended:
            assert int(dut.buffer_error_o.value) == self.fails, about
            self.seen["buffer refused" if self.fails else "buffer written"] += 1
        assert landed == (message.landing and (message.header.last or self.fails)), about
        if landed:
            landing = int(dut.landed_slot_o.value), int(dut.landed_error_o.value)
            assert landing == (message.header.token_slot & 7, self.fails), about
            self.seen["landing refused by memory" if self.fails else "landed"] += 1
        self.newly = message if message.put else None
        return True

    def check_answers(self) -> bool:
        """Runs behind check_written: what was written in this cycle counts from the next one on."""
        dut = self.dut
        newly, self.newly = self.newly, None
        first = self.answers[0] if self.answers else None
        offered = bool(int(dut.answer_valid_o.value))
        about = f"cycle {self.cycle}: {first}"
        names = ("communicator", "peer", "sequence")
        word = tuple(int(getattr(dut, f"answer_{name}_o").value) for name in names) if offered else None
        told = False
        if offered:
            assert first is not None, about
            assert first.written, f"an answer before memory has it; {about}"
            message = first.message
            assert word == (message.communicator, message.source, message.header.sequence), f"{word}; {about}"
            told = not first.refused and (message.communicator, message.source) in self.bad
            code = TOO_SMALL if first.refused else INTERNAL if told else OK
            assert int(dut.answer_code_o.value) == code, f"{int(dut.answer_code_o.value)}, not {code}; {about}"
            self.seen["bad beside refused"] += first.refused and (message.communicator, message.source) in self.bad
        self.late = self.late + 1 if first is not None and first.written and not offered else 0
        assert self.late < 6, f"it waits for nothing; {about}"
        taken = self.waits.taken("answer", offered, self.answer_ready, word)
        if taken:
            self.seen[f"answer {code}"] += 1
            self.when["answer"].append(self.cycle)
            self.answers.popleft()
        # An error of the cycle in which an answer tells of one is told by it, too.
        if newly is not None and self.fails:
            self.bad.add((newly.communicator, newly.source))
        if taken and told:
            self.bad.discard((first.message.communicator, first.message.source))
        if newly is not None and newly.header.last:
            self.when["written"].append(self.cycle)
            next(answer for answer in self.answers if answer.message is newly).written = True
        return taken

    newly: Message | None = None

    async def finish(self, cycles: int = 50000) -> None:
        """Until all that has come has gone."""
        for _ in range(cycles):
            if not (self.to_come or self.offered or self.words or self.commands or self.answers):
                return
            await self.step(fresh=False)
        raise AssertionError(f"{self.offered}, {len(self.words)} words, {len(self.answers)} answers")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_messages(dut):
    bench = Bench(dut, "window writes")
    rng = bench.rng
    await start_clock_and_reset(dut)
    wrong = ("no get", "another generation", "another peer", "another communicator", "too long", "")
    wanted = [f"landing {what}" for what in wrong]
    wanted += [f"{what} {fault}" for what in ("put", "control") for fault in ("", "beyond the window")]
    wanted += [f"{what} waits" for what in ("pass", "heard", "command", "answer", "buffer")]
    wanted += [f"answer {code}" for code in (OK, TOO_SMALL, INTERNAL)]
    wanted += ["passed", "buffer refused", "buffer written", "landing refused by memory", "landed", "empty put"]
    wanted += ["bad beside refused"]
    if parameters()["Commands"] < 8:
        wanted += ["too many commands", "too many answers"]
    parts = scaled(100, 30)
    for part in range(5 * parts):
        if part >= parts and all(bench.seen[what] >= 3 for what in wanted):
            break
        for name in bench.pauses:
            bench.pauses[name] = rng.choice((never, never, share(rng, 0.4), share(rng, 0.85), bursts(rng)))
        bench.changes = rng.choice((0.0, 0.05))
        bench.errors = rng.choice((0.0, 0.2, 0.5))
        if part % 6 == 2:  # nobody takes answers
            bench.pauses.update(dict.fromkeys(bench.pauses, never), answer=share(rng, 0.97))
        for _ in range(400):
            await bench.step()
        if part % 4 == 3:
            await bench.finish()
    await bench.finish()
    cocotb.log.info("%s", dict(bench.seen))
    for what in wanted:
        assert bench.seen[what] >= 3, f"{what}: {bench.seen}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_refused_put_does_not_hide_what_memory_refused(dut):
    """Of two puts of one rank, memory refuses the first, and the window the second, which is answered before it."""
    bench = Bench(dut, "hidden")
    await start_clock_and_reset(dut)
    bench.windows[1] = 4096, 1000, 256

    def put(sequence: int, offset: int, end: int, last: bool) -> Message:
        fields = {"token_slot": WINDOW_SLOT, "sequence": sequence, "offset": offset, "message_bytes": end, "last": last}
        return bench.message(WRITE, WORD, 1, 3, **fields)

    bench.errors = 1.0
    bench.to_come.append(put(7, 0, 2 * WORD, last=False))
    await bench.finish()
    bench.errors = 0.0
    bench.to_come.append(put(8, 1000 - WORD + 1, 1001, last=True))
    await bench.finish()
    bench.to_come.append(put(7, WORD, 2 * WORD, last=True))
    await bench.finish()
    assert [bench.seen[f"answer {code}"] for code in (OK, TOO_SMALL, INTERNAL)] == [0, 1, 1]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def as_fast_as_promised(dut):
    """A command 3 cycles after its header; segments 3 cycles more than their words; an answer 2 after the writer's."""
    bench = Bench(dut, "speed")
    await start_clock_and_reset(dut)
    bench.windows[1] = 4096, 1 << 40, 256
    for words in (1, 4):
        for times in bench.when.values():
            times.clear()
        for number in range(6):
            fields = {"token_slot": WINDOW_SLOT, "offset": number * WORD, "message_bytes": 1 << 30, "last": True}
            bench.to_come.append(bench.message(WRITE, words * WORD, 1, 3, **fields))
        await bench.finish()
        when = bench.when
        # A header counts from the cycle in which it is offered, all others in the one in which they are taken.
        assert when["command"][0] - when["header"][0] == 3, when
        gaps = {after - before for before, after in zip(when["command"], when["command"][1:], strict=False)}
        assert gaps == {words + 3}, when
        assert {told - done for done, told in zip(when["written"], when["answer"], strict=True)} == {1}, when


@pytest.mark.parametrize(("answers", "commands"), [(512, 64), (3, 2), full(5, 3)])
def test_unisono_window_writes(answers, commands):
    simulate("unisono_window_writes", __file__, {"Answers": answers, "Commands": commands})
