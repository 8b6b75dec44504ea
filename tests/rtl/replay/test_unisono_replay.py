"""unisono_replay between a model of the call front end and one of the microcontroller.

Whichever way a call takes, its context, lists and moves must be those of its program, collectives of a communicator
must be numbered in the order of their starts, and nothing may be given out for a call that the microcontroller would
refuse. Programs are loaded meanwhile, over others that are there, and called; what is in memory of long ones comes from
a model of unisono_program_fetch.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import simulate

SLOTS = 8
PROGRAMS, PROGRAM, ON_CHIP, MOST_MOVES, MOST_WORDS = 8, 31, 32, 4096, 64
BAD = 1 << 31
STEP = 16
WINDOW = 32
COMMUNICATORS = 4  # in use, of 32
START, MORE, CONTROL = 1, 2, 3
LOCAL, COLLECTIVE, POINT_TO_POINT = 0, 1, 2
MOST_TAG = 2**31 - 1
LIFE = 3


@dataclass(frozen=True)
class Key:
    head: int
    flags: int
    communicator: int
    root: int
    count: int


@dataclass
class Program:
    """What the microcontroller makes of a key and the state of a communicator."""

    space: int
    signature: int
    needs: tuple[int, int, int, int]
    lists: list[list[int]]  # words before each move
    moves: list[int]

    @classmethod
    def of(cls, key: Key, state: int) -> "Program":
        rng = random.Random(f"{key}/{state}")
        size = rng.choice((1, 1, 2, 5, 15, 16, 17, 31, 32, 33, 40, 0))
        long = rng.random() < 0.1
        lists = [[rng.getrandbits(24) for _ in range(rng.choice((0, 0, 0, 3, 20 if long else 4)))] for _ in range(size)]
        moves = [rng.getrandbits(512) for _ in range(size)]
        needs = tuple(rng.choice((0, 64, 1000)) for _ in range(4))
        return cls(
            rng.choice((LOCAL, COLLECTIVE, COLLECTIVE, POINT_TO_POINT)), rng.getrandbits(32), needs, lists, moves
        )


@dataclass
class Call:
    key: Key
    sizes: tuple[int, int, int, int]
    tag: int
    state: int
    program: Program
    playing: bool = False
    given: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    context: bool = False
    in_window: int = 0
    with_dut: bool = True  # an item of it is out, or it waits for its start
    started: bool = False
    ended: bool = False
    failed: bool = False

    @property
    def refused(self) -> bool:
        short = any(size < need for size, need in zip(self.sizes, self.program.needs, strict=True))
        return short or (self.program.space == POINT_TO_POINT and self.tag > MOST_TAG)

    @property
    def slot(self) -> int:
        """Of a loaded program."""
        return self.key.count >> 32

    @property
    def loaded(self) -> bool:
        return self.key.head & 255 == PROGRAM

    def rows(self) -> list[int]:
        rows = [0xDEAD] * 16
        rows[0] = self.key.head | self.key.flags << 32
        rows[1] = self.key.communicator | self.key.root << 32
        rows[2] = self.tag
        rows[13 if self.loaded else 3] = self.key.count
        for row, size in zip((5, 7, 9, 11), self.sizes, strict=True):
            rows[row] = size
        return rows

    def quad(self, row: int) -> int:
        """The four rows among which one is."""
        return sum(value << 64 * i for i, value in enumerate(self.rows()[row & ~3 :][:4]))


class Bench:
    def __init__(self, dut: Any, rng: random.Random, stall: float) -> None:
        self.dut, self.rng, self.stall = dut, rng, stall
        self.states = [1 | c << 16 for c in range(COMMUNICATORS)]
        self.numbers = [(0, 0)] * COMMUNICATORS  # life, next
        self.keys = [
            Key(
                rng.getrandbits(32), rng.choice((0, 0, 256, 1 << 11)), c % COMMUNICATORS, rng.randrange(8), 8 << (c % 7)
            )
            for c in range(10)
        ]
        self.slots: list[Call | None] = [None] * SLOTS
        # Programs of the user that are loaded, and what the host still writes: words, or None to look at the state.
        self.loaded: list[Program | None] = [None] * PROGRAMS
        self.loading: tuple[int, Program] | None = None
        self.host: deque[tuple[int, int] | None] = deque()
        self.used: set[int] = set()
        self.loads = self.refusals = self.programs_run = self.long_run = self.long_done = 0
        # Moves in memory, by their address; and of each slot, those that are still to come and how many are there.
        self.memory: dict[int, list[int]] = {}
        self.rests: list[list[int]] = [[] for _ in range(SLOTS)]
        self.there = [0] * SLOTS
        self.slow = False
        self.resting: int | None = None
        self.fits = True
        self.waits = 0
        self.starts: deque[int] = deque()
        self.control = False
        self.leaving: int | None = None
        self.work: tuple[int, int] | None = None
        self.replayed = self.done = self.now = 0
        # Descriptors on their way into the front end's memory: slot and four rows; and whose came last, whole.
        self.stores: deque[tuple[int, int]] = deque()
        self.newest: int | None = None
        self.store_rng = random.Random(7)
        self.stored = self.offered = self.at_once = 0
        self.alone = False
        # The microcontroller: what it does next, one thing a cycle.
        self.cpu: deque[tuple[str, int, Any]] = deque()
        self.cpu_move: tuple[int, int, int] | None = None
        self.cpu_next = [0] * SLOTS
        self.cpu_words = [0] * SLOTS
        self.cpu_reads: deque[tuple[int, int]] = deque()

    # ------------------------------------------------------------------------------------- front end

    def submit(self) -> None:
        free = [slot for slot, call in enumerate(self.slots) if call is None]
        if not free or self.rng.random() > 0.2:
            return
        key = self.rng.choice(self.keys)
        state = self.states[key.communicator]
        program = Program.of(key, state)
        ready = [
            slot for slot in range(PROGRAMS) if self.loaded[slot] and (not self.loading or self.loading[0] != slot)
        ]
        if ready and self.rng.random() < (0.1 if self.alone else 0.5):
            slot = self.rng.choice(ready)
            program = self.loaded[slot]
            key = Key(PROGRAM | 6 << 24, 0, key.communicator, 0, slot << 32 | self.rng.getrandbits(32))
            self.programs_run += 1
        sizes = tuple(need + self.rng.choice((0,) * 20 + (64, -1 if need else 0)) for need in program.needs)
        tag = self.rng.choice((0, 7, MOST_TAG, MOST_TAG + 1)) if self.rng.random() < 0.3 else self.rng.getrandbits(20)
        slot = self.rng.choice(free)
        self.slots[slot] = Call(key, sizes, tag, state, program)
        self.starts.append(slot)
        self.store(slot)

    def store(self, slot: int) -> None:
        self.stores.extend((slot, quad) for quad in range(4))

    def drive_stores(self) -> None:
        """Rows as they are stored. What is stored in this cycle is the newest in the next."""
        dut = self.dut
        work = self.work is not None and self.work[0] == START and self.work[1] == self.newest
        dut.work_newest_i.value = int(work)
        dut.store_valid_i.value = 0
        dut.store_data_i.value = self.store_rng.getrandbits(256)
        if not self.stores or self.store_rng.random() < 0.1:
            return
        slot, quad = self.stores.popleft()
        dut.store_valid_i.value, dut.store_quad_i.value = 1, quad
        dut.store_data_i.value = self.call(slot).quad(4 * quad)
        self.newest = slot if quad == 3 else None
        self.stored = self.now + self.store_rng.choice((0, 2, 4, 4, 4, 9))

    def load(self) -> None:
        """Now and then another program is loaded, of any length, into any slot that no call uses, or one that is."""
        if self.host or self.rng.random() > 0.02:
            return
        if self.loading is not None:
            return
        slot = self.rng.randrange(PROGRAMS + 1)
        rng = self.rng
        moves = [rng.getrandbits(512) for _ in range(rng.choice((0, 1, 5, 31, 32, 33, 47, 48, 49, 64, 90)))]
        # More than there is room for, moves in memory without those before them, or too many of them.
        spoiled = rng.choice(("chip", "gap", "count")) if rng.random() < 0.15 else ""
        held = moves if spoiled == "chip" else moves[: 31 if spoiled == "gap" else ON_CHIP]
        rest = moves[len(held) :] if spoiled != "count" else [0] * (MOST_MOVES - ON_CHIP + 1)
        address = rng.getrandbits(64) & ~63
        words = [rng.getrandbits(24) for _ in range(rng.choice((0, 0, 9, 64, 65)))]
        lists = [words, *([] for _ in moves[1:])] if moves else []
        used = any(call is not None and call.loaded and call.slot == slot for call in self.slots)
        if used and not any(
            call is not None and call.loaded and call.slot == slot and call.playing and place != self.leaving
            for place, call in enumerate(self.slots)
        ):
            return  # whether it is in use depends on the cycle
        program = Program(COLLECTIVE, rng.getrandbits(32), (0,) * 4, lists, moves)
        self.fits = slot < PROGRAMS and len(held) <= ON_CHIP and (not moves or len(words) <= MOST_WORDS)
        self.fits &= not rest or (len(held) == ON_CHIP and len(rest) <= MOST_MOVES - ON_CHIP)
        self.memory[address] = rest
        self.loading = (slot, program)
        self.host.append((0, slot))
        self.host.extend((1, word) for word in words if moves)
        if rest:
            self.host.extend(((4, address & 0xFFFFFFFF), (5, address >> 32), (6, len(rest))))
        self.host.extend((2, move >> 32 * part & 0xFFFFFFFF) for move in held for part in range(16))
        self.host.append((3, program.signature))
        self.host.append(None)
        if slot < PROGRAMS and not used:
            self.loaded[slot] = None

    def loaded_now(self, state: int) -> None:
        assert self.loading is not None
        slot, program = self.loading
        self.loading = None
        fits = self.fits
        self.loads += 1
        if state & BAD:
            self.refusals += 1
            # At its first use, the entry may be giving out a program that was kept there.
            excused = slot not in self.used or self.loaded[slot] is not None
            assert not fits or excused, "a program that fits was refused"
        else:
            assert fits, "a program that does not fit was taken"
            assert self.loaded[slot] is None
            self.loaded[slot] = program
            self.used.add(slot)
        assert state & 255 == sum(1 << slot for slot, program in enumerate(self.loaded) if program is not None)

    def begins(self) -> int | None:
        """The slot whose loading is about to begin; it has not been seen yet."""
        if int(self.dut.program_valid_i.value) and int(self.dut.program_word_i.value) == 0:
            return int(self.dut.program_data_i.value)
        first = self.host[0] if self.host else None
        return first[1] if first is not None and first[0] == 0 else None

    def drive_host(self) -> None:
        dut = self.dut
        if int(dut.program_valid_i.value) and not int(dut.program_ready_o.value):
            return
        dut.program_valid_i.value = 0
        if not self.host or self.rng.random() < 0.3:
            return
        if self.host[0] is None:
            if int(dut.program_valid_i.value):
                return
            self.host.popleft()
            self.loaded_now(int(dut.program_state_o.value))
            return
        dut.program_valid_i.value = 1
        dut.program_word_i.value, dut.program_data_i.value = self.host.popleft()

    def change(self) -> None:
        """A communicator is made anew, or crowded, when none of its calls is under way."""
        place = self.rng.randrange(COMMUNICATORS)
        if any(call is not None and call.key.communicator == place for call in self.slots):
            return
        state = self.states[place]
        self.states[place] = state ^ 4 if self.rng.random() < 0.5 else state + (1 << LIFE)
        self.control = True

    def offer(self) -> None:
        if self.work is not None or self.rng.random() < 0.3:
            return
        more = [
            slot
            for slot, call in enumerate(self.slots)
            if call is not None
            and call.started
            and not call.with_dut
            and not call.ended
            and not call.failed
            and WINDOW - call.in_window >= STEP
        ]
        waits = int(self.dut.waits_o.value)
        self.waits += sum(waits >> slot & 1 for slot in more)
        more = [slot for slot in more if not waits >> slot & 1]
        if self.control:
            self.work, self.control = (CONTROL, 0), False
        elif (
            self.starts
            and (not more or self.rng.random() < 0.6)
            and all(slot != self.starts[0] for slot, _ in self.stores)
            and (self.starts[0] != self.newest or self.now >= self.stored)
        ):
            self.work, self.offered = (START, self.starts.popleft()), self.now
        elif more:
            slot = self.rng.choice(more)
            self.call(slot).with_dut = True
            self.work = (MORE, slot)

    def call(self, slot: int) -> Call:
        call = self.slots[slot]
        assert call is not None, f"slot {slot} has no call"
        return call

    def retire(self) -> None:
        """Calls that are over are cleared, one at a time; then their slots are free."""
        if self.leaving is not None:
            self.slots[self.leaving], self.leaving = None, None
            self.done += 1
        for slot, call in enumerate(self.slots):
            if call is None or call.with_dut:
                continue
            if call.in_window and self.rng.random() < 0.5:
                call.in_window -= 1
            if self.rng.random() < 0.002:
                call.failed = True  # its deadline, say
            # That its program is in use was taken for granted as the host began to load another in its place.
            if call.loaded and call.slot == self.begins():
                continue
            if self.leaving is None and (call.failed or (call.ended and call.in_window == 0)):
                self.leaving = slot
                if not call.failed:
                    self.long_done += call.loaded and len(call.given) > ON_CHIP
                    assert call.given == call.program.moves, f"slot {slot}: {len(call.given)} moves"
                    assert call.words == [word for words in call.program.lists for word in words]
        self.dut.clear_valid_i.value = int(self.leaving is not None)
        self.dut.clear_slot_i.value = self.leaving or 0

    # ------------------------------------------------------------------------------- microcontroller

    def take(self, kind: int, slot: int) -> None:
        if kind == CONTROL:
            return
        call = self.call(slot)
        self.cpu.extend(("wait", 0, None) for _ in range(self.rng.choice((0, 3, 60))))
        if kind == START:
            assert not call.loaded, "the microcontroller knows no programs of the user"
            self.cpu_next[slot] = self.cpu_words[slot] = 0
            self.cpu.extend(("read", slot, row) for row in (0, 1, 2, 3, 5, 7, 9, 11))
            if call.refused:
                self.cpu.append(("fail", slot, None))
                self.cpu.append(("step", slot, None))
                return
            self.cpu.append(("context", slot, None))
        program = call.program
        # A step may have no moves at all, also the first: those of a rank that has nothing to do in it.
        amount = STEP if program.space == POINT_TO_POINT else self.rng.choice((STEP, STEP, STEP, 3, 0))
        for index in range(self.cpu_next[slot], min(self.cpu_next[slot] + amount, len(program.moves))):
            for word in program.lists[index]:
                self.cpu.append(("list", slot, (self.cpu_words[slot], word)))
                self.cpu_words[slot] += 1
            self.cpu.append(("move", slot, (program.moves[index], 0)))
            self.cpu_next[slot] = index + 1
        if self.cpu_next[slot] == len(program.moves):
            self.cpu.append(("move", slot, (0, 1)))
        self.cpu.extend([("wait", 0, None)] * 2)
        self.cpu.append(("step", slot, None))

    def drive_cpu(self) -> None:
        dut = self.dut
        for name in ("step", "list", "context", "fail"):
            getattr(dut, f"cpu_{name}_valid_i").value = 0
        if not self.cpu or self.cpu_move is not None or self.rng.random() < 0.2:
            return
        what, slot, value = self.cpu.popleft()
        if what == "read":
            dut.cpu_descriptor_address_i.value = slot << 4 | value
            self.cpu_reads.append((self.now + 2, self.call(slot).quad(value)))
        elif what == "move":
            self.cpu_move = (slot, *value)
            dut.cpu_move_slot_i.value, dut.cpu_move_i.value, dut.cpu_move_end_i.value = self.cpu_move
        elif what != "wait":
            getattr(dut, f"cpu_{what}_valid_i").value = 1
            getattr(dut, f"cpu_{what}_slot_i").value = slot
        if what == "list":
            dut.cpu_list_index_i.value, dut.cpu_list_word_i.value = value
        if what == "context":
            dut.cpu_context_i.value = self.context(self.call(slot), 0xBAD if self.call(slot).program.space else 0)
            if self.call(slot).program.space == POINT_TO_POINT:
                dut.cpu_context_i.value = self.context(self.call(slot), self.call(slot).tag)

    @staticmethod
    def context(call: Call, number: int) -> int:
        program = call.program
        value = program.signature
        for part, width in (
            (number, 32),
            (call.key.communicator, 8),
            (call.key.head >> 8 & 255, 8),
            (program.space, 2),
            (6, 6),
        ):
            value = value << width | part
        return value

    # ------------------------------------------------------------------------------------ what comes

    def look(self) -> None:
        """Everything that is valid in the cycle that ends."""
        dut = self.dut
        if int(dut.replayed_o.value):
            self.replayed += 1
            self.at_once += self.now - self.offered == 1
            call = self.call(int(dut.context_slot_o.value))
            assert not call.refused, "a call was given out that must be refused"
            call.playing = True
        if int(dut.context_valid_o.value):
            slot = int(dut.context_slot_o.value)
            call = self.call(slot)
            assert not call.context
            assert not call.given
            call.context = True
            number = 0
            if call.program.space == COLLECTIVE:
                life, number = self.numbers[call.key.communicator]
                if life != call.state >> LIFE:
                    number = 0
                self.numbers[call.key.communicator] = (call.state >> LIFE, number + 1)
            elif call.program.space == POINT_TO_POINT:
                number = call.tag
            if call.program.space != LOCAL:
                assert int(dut.context_o.value) == self.context(call, number)
        if int(dut.list_valid_o.value):
            call = self.call(int(dut.list_slot_o.value))
            assert int(dut.list_index_o.value) == len(call.words)
            call.words.append(int(dut.list_word_o.value))
        if int(dut.move_valid_o.value) and int(dut.move_ready_i.value):
            call = self.call(int(dut.move_slot_o.value))
            assert call.context
            assert call.with_dut
            assert not call.ended
            if int(dut.move_end_o.value):
                call.ended = True
                call.playing = False
            else:
                wanted = sum(len(words) for words in call.program.lists[: len(call.given) + 1])
                assert len(call.words) >= wanted, "a move came before its list"
                call.given.append(int(dut.move_o.value))
                call.in_window += 1
                assert call.in_window <= WINDOW
        self.look_rest()
        if int(dut.step_valid_o.value):
            call = self.call(int(dut.step_slot_o.value))
            assert call.with_dut
            assert call.started
            call.with_dut = False
        if int(dut.cpu_fail_valid_i.value):
            self.call(int(dut.cpu_fail_slot_i.value)).failed = True

    def look_rest(self) -> None:
        dut = self.dut
        if int(dut.rest_begin_valid_o.value):
            slot = int(dut.rest_begin_slot_o.value)
            call = self.call(slot)
            address = int(dut.rest_begin_address_o.value)
            assert call.loaded
            assert self.memory[address] == call.program.moves[ON_CHIP:]
            assert int(dut.rest_begin_moves_o.value) == len(self.memory[address])
            self.rests[slot], self.there[slot] = list(self.memory[address]), 0
            self.long_run += 1
        if int(dut.rest_valid_i.value) and int(dut.rest_ready_o.value):
            assert int(dut.rest_want_o.value)
            slot = int(dut.rest_want_slot_o.value)
            assert slot == self.resting
            self.rests[slot].pop(0)
            self.there[slot] -= 1
            self.resting = None

    def drive_rest(self) -> None:
        """Blocks come at any time. Of the slot that is wanted, a move is on offer until it is taken."""
        dut = self.dut
        for slot in range(SLOTS):
            if not self.there[slot] and self.rests[slot] and self.rng.random() < (0.005 if self.slow else 0.3):
                self.there[slot] = min(STEP, len(self.rests[slot]))
        dut.rest_ready_i.value = sum(1 << slot for slot in range(SLOTS) if self.there[slot])
        if not int(dut.rest_want_o.value):
            self.resting = None
        elif self.resting is None and self.there[slot := int(dut.rest_want_slot_o.value)] and self.rng.random() < 0.8:
            self.resting = slot
        dut.rest_valid_i.value = int(self.resting is not None)
        dut.rest_move_i.value = self.rests[self.resting][0] if self.resting is not None else self.rng.getrandbits(512)

    async def cycle(self, submitting: bool) -> None:
        dut = self.dut
        await RisingEdge(dut.clk_i)
        if int(dut.cpu_move_valid_i.value) and int(dut.cpu_move_ready_o.value):
            self.cpu_move = None
        self.now += 1
        self.slow = self.now // 1000 % 2 == 1
        if self.cpu_reads and self.cpu_reads[0][0] == self.now:
            assert int(dut.descriptor_quad_i.value) == self.cpu_reads.popleft()[1], "other rows were read"
        passed = int(dut.cpu_work_valid_o.value) and int(dut.cpu_work_ready_i.value)
        if passed:
            item = int(dut.cpu_work_o.value)
            assert self.work is not None
            assert item == self.work[0] << 3 | self.work[1]
        if self.work is not None and int(dut.work_ready_o.value):
            if self.work[0] == START:
                self.call(self.work[1]).started = True
            self.work = None
        self.look()
        if passed:
            self.take(item >> 3, item & 7)
        # Memories answer in the next cycle.
        address = int(dut.descriptor_address_o.value)
        call = self.slots[address >> 4]
        dut.descriptor_quad_i.value = call.quad(address & 15) if call is not None else 0xBAD
        address = int(dut.communicator_address_o.value)
        inside = address >> 3 < COMMUNICATORS and address & 7 == 0
        dut.communicator_data_i.value = self.states[address >> 3] if inside else 0xBAD
        self.drive_rest()
        self.retire()
        self.drive_host()
        # Now and then calls come one by one, so that the one that starts is the one that came last.
        self.alone = self.now // 1500 % 2 == 1
        if submitting and not (
            self.alone and (self.starts or self.stores or self.work or sum(map(bool, self.slots)) > 2)
        ):
            self.submit()
        if submitting:
            self.load()
            if self.rng.random() < 0.0008:
                self.change()
        self.offer()
        self.drive_cpu()
        dut.cpu_move_valid_i.value = int(self.cpu_move is not None)
        dut.work_valid_i.value = int(self.work is not None)
        if self.work is not None:
            dut.work_i.value = self.work[0] << 3 | self.work[1]
        self.drive_stores()
        dut.cpu_work_ready_i.value = int(not self.cpu)
        dut.move_ready_i.value = int(self.rng.random() >= self.stall)


async def prepare(dut: Any) -> None:
    dut.program_word_i.value = dut.program_data_i.value = 0
    dut.rest_valid_i.value = dut.rest_ready_i.value = dut.rest_move_i.value = 0
    dut.store_quad_i.value = dut.store_data_i.value = dut.work_newest_i.value = 0
    for name in ("clear", "program", "work", "store", "cpu_step", "cpu_move", "cpu_list", "cpu_context", "cpu_fail"):
        getattr(dut, f"{name}_valid_i").value = 0
    dut.cpu_descriptor_address_i.value = dut.cpu_communicator_address_i.value = 0
    dut.move_ready_i.value = dut.cpu_work_ready_i.value = 0
    await start_clock_and_reset(dut)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def either_way_the_same(dut):
    rng = new_random("replay")
    await prepare(dut)
    bench = Bench(dut, rng, 0.0)
    for stall in (0.0, 0.3, 0.8):
        bench.stall = stall
        for _ in range(18000):
            await bench.cycle(True)
    for _ in range(4000):
        await bench.cycle(False)
    assert all(call is None for call in bench.slots), "a call has not ended"
    dut._log.info("%d calls, %d replayed, %d of loaded programs", bench.done, bench.replayed, bench.programs_run)
    dut._log.info("%d programs loaded, %d refused", bench.loads - bench.refusals, bench.refusals)
    dut._log.info("%d of them long, %d of these ended well", bench.long_run, bench.long_done)
    dut._log.info("%d cycles without an item for want of moves", bench.waits)
    assert bench.programs_run > 20
    assert bench.long_run > 10
    assert bench.long_done > 5
    assert bench.waits > 10
    assert bench.refusals > 2
    assert bench.loads > bench.refusals + 10
    dut._log.info("%d replayed at once", bench.at_once)
    assert bench.replayed > 60
    assert bench.at_once > 15
    assert bench.replayed > bench.at_once + 15
    assert bench.done > bench.replayed + 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cycles(dut):
    """A start that is known gives its first move 5 cycles after it came, or 1; and a move a cycle from then on."""
    await prepare(dut)
    bench = Bench(dut, new_random("cycles"), 0.0)
    key = next(
        key
        for key in (Key(head, 0, 0, 0, 4) for head in range(100_000))
        if len(Program.of(key, bench.states[0]).moves) == 15 and not any(Program.of(key, bench.states[0]).lists)
    )
    program = Program.of(key, bench.states[0])
    for turn in range(3):
        bench.slots[0] = Call(key, program.needs, 1, bench.states[0], program)
        if turn == 2:  # looked at as it is stored
            bench.store(0)
            for _ in range(16):
                await bench.cycle(False)
        bench.starts.append(0)
        came, moves = None, []
        for now in range(1000):
            await bench.cycle(False)
            if came is None and bench.work is not None:
                came = now
            if int(dut.move_valid_o.value) and int(dut.move_ready_i.value) and not int(dut.move_end_o.value):
                moves.append(now)
            if bench.slots[0] is None:
                break
        assert len(moves) == 15
        if turn:
            dut._log.info("first move %d cycles after its item", moves[0] - came - 1)
            assert moves[0] - came - 1 == (5 if turn == 1 else 1)
            assert moves[-1] - moves[0] == 14


def hash_of(key: Key) -> int:
    """Its lower three bits say between which two entries a call chooses."""
    head = key.head
    mixed = key.count & 0xFFFF ^ key.count >> 16 & 0xFFFF ^ key.root & 0xFFFF ^ (key.communicator & 255) << 8
    mixed ^= (head & 15) << 12 | (head >> 4 & 15) << 8 | (head >> 16 & 15) << 4 | head >> 24 & 15
    return (mixed ^ mixed >> 4 ^ mixed >> 8 ^ mixed >> 12) & 15


def mark_of(key: Key) -> int:
    """What tells calls of one hash apart."""
    high = key.head & 15 ^ key.communicator & 15
    low = key.root & 15 ^ key.head >> 16 & 15
    count = key.count & 255 ^ (key.count >> 8 & 15) << 4 ^ key.count >> 12 & 15
    return high << 4 ^ low ^ count ^ key.flags & 15


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def calls_of_one_hash(dut):
    """Two calls of one hash are both known after their first time; a third one takes the place of one of them."""
    await prepare(dut)
    bench = Bench(dut, new_random("one hash"), 0.0)
    keys = [Key(head, 0, 0, 0, 4) for head in range(256, 4_000) if head & 255 != PROGRAM]
    keys = [key for key in keys if len(Program.of(key, bench.states[0]).moves) == 2]
    first = next(key for key in keys if mark_of(key))
    others = [key for key in keys if hash_of(key) == hash_of(first) and mark_of(key) not in (0, mark_of(first))]
    second = others[0]
    third = next(key for key in others if mark_of(key) != mark_of(second))
    turns = ((first, 0), (second, 0), (first, 1), (second, 1), (first, 1), (third, 0), (first, 1), (second, 0))
    for key, known in turns:
        program = Program.of(key, bench.states[0])
        bench.slots[0] = Call(key, program.needs, 1, bench.states[0], program)
        bench.starts.append(0)
        replayed = 0
        while bench.slots[0] is not None:
            await bench.cycle(False)
            replayed += int(dut.replayed_o.value)
        assert replayed == known, f"head {key.head:#x}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def loading_while_looking(dut):
    """The host begins to load a program in each of the cycles in which a call that would be kept there is looked at."""
    keys = [Key(head, 0, 0, 0, 4) for head in range(256, 10_000) if head & 255 != PROGRAM]
    # The second call of its hash goes to the upper one of two entries, which is the one of slot 0.
    keys = [key for key in keys if hash_of(key) & 7 == 7]
    key = next(key for key in keys if len(Program.of(key, 1).moves) == 15)
    other = next(one for one in keys if len(Program.of(one, 1).moves) == 1 and mark_of(one) != mark_of(key))
    # Short, so that it is there before the microcontroller has made the moves of the call.
    loaded = Program(COLLECTIVE, 77, (0,) * 4, [[]], [1000])
    ran = 0
    for turn in range(60):
        await prepare(dut)
        bench = Bench(dut, new_random(f"loading {turn}"), 0.0)
        # The entry that was looked at last is another one.
        for own in (other, key):
            while bench.slots[0] is not None:
                await bench.cycle(False)
            made = Program.of(own, bench.states[0])
            bench.slots[0] = Call(own, made.needs, 1, bench.states[0], made)
            bench.starts.append(0)
        while bench.work is None:
            await bench.cycle(False)
        for _ in range(turn % 6):
            await bench.cycle(False)
        bench.loading = (0, loaded)
        bench.host.extend([(0, 0), *((2, 1000 if part == 0 else 0) for part in range(16)), (3, 77), None])
        while bench.host or bench.slots[0] is not None:
            await bench.cycle(False)
        if bench.loaded[0] is None:
            continue  # refused: the entry was being looked at
        ran += 1
        bench.slots[1] = Call(Key(PROGRAM | 6 << 24, 0, 0, 0, 0), (0,) * 4, 1, bench.states[0], loaded)
        bench.starts.append(1)
        while bench.slots[1] is not None:
            await bench.cycle(False)
    assert ran > 20


def test_unisono_replay():
    simulate("unisono_replay", __file__)
