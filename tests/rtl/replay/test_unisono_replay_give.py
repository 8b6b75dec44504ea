"""unisono_replay_give: programs are kept and given out step by step, with back-pressure and others' words between."""

from collections import Counter
from dataclasses import dataclass

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

ENTRIES, PROGRAMS, HERE, STEP, WORDS = 16, 8, 32, 16, 64


@dataclass
class Program:
    """Moves, and how many words of the lists come before each of those that stand here."""

    moves: list[int]
    before: list[int]
    lists: list[int]
    address: int = 0


def random_program(rng):
    count = rng.choice((0, 1, 5, 15, 16, 17, 31, 32, 33, 40, 70))
    words = [rng.getrandbits(24) for _ in range(rng.choice((0, 0, 1, 9, WORDS)))]
    before = sorted(rng.randint(0, len(words)) for _ in range(min(count, STEP)))
    before += [len(words)] * (min(count, HERE) - len(before))
    return Program([rng.getrandbits(512) for _ in range(count)], before, words, rng.getrandbits(64))


class Bench:
    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        for name in ("list", "move", "length", "rest"):
            getattr(dut, f"{name}_write_i").value = 0
        names = ("list_entry", "list_index", "list_word", "move_entry", "move_index", "move_lists", "move")
        names += ("length_entry", "length_moves", "length_lists", "rest_slot", "rest_address", "starts", "looks")
        names += ("compares", "settles", "replays", "plays", "entry", "work_entry", "work_count", "moves")
        for name in (*names, "list_taken", "step_taken", "rest_valid", "rest_move"):
            getattr(dut, f"{name}_i").value = 0
        dut.idle_i.value = 1

    async def keep(self, entry, program):
        """A program is kept."""
        dut = self.dut
        dut.list_write_i.value, dut.list_entry_i.value = 1, entry
        for place, word in enumerate(program.lists):
            dut.list_index_i.value, dut.list_word_i.value = place, word
            await RisingEdge(dut.clk_i)
        dut.list_write_i.value, dut.move_write_i.value, dut.move_entry_i.value = 0, 1, entry
        for place, move in enumerate(program.moves[:HERE]):
            dut.move_index_i.value, dut.move_i.value, dut.move_lists_i.value = place, move, program.before[place]
            await RisingEdge(dut.clk_i)
        dut.move_write_i.value, dut.length_write_i.value, dut.length_entry_i.value = 0, 1, entry
        dut.length_moves_i.value, dut.length_lists_i.value = len(program.moves), len(program.lists)
        dut.rest_write_i.value = entry >= ENTRIES - PROGRAMS
        dut.rest_slot_i.value, dut.rest_address_i.value = ENTRIES - 1 - entry & PROGRAMS - 1, program.address
        await RisingEdge(dut.clk_i)
        dut.length_write_i.value = dut.rest_write_i.value = 0

    async def begin(self, entry, fast):
        """Its call is known: at once, or after it was looked at."""
        dut = self.dut
        dut.entry_i.value, dut.starts_i.value, dut.looks_i.value = entry, 1, 1
        if not fast:
            await RisingEdge(dut.clk_i)
            dut.starts_i.value, dut.idle_i.value = 0, 0
            await RisingEdge(dut.clk_i)
            dut.compares_i.value = 1
            await RisingEdge(dut.clk_i)
            dut.compares_i.value = 0
        dut.settles_i.value = dut.replays_i.value = 1
        await RisingEdge(dut.clk_i)
        for name in ("starts", "looks", "settles", "replays", "idle"):
            getattr(dut, f"{name}_i").value = 0

    async def give(self, entry, program):
        """All steps of a call."""
        dut, rng = self.dut, self.rng
        await self.begin(entry, fast=rng.random() < 0.5)
        hurry, first, count, words, ended = rng.choice((0.2, 0.7, 1.0)), True, 0, 0, False
        rest_waits = rng.random()
        while not ended:
            dut.plays_i.value = 1
            begun, quiet, latency = count, 0, 0
            while True:
                taken = rng.random() > hurry
                dut.list_taken_i.value = taken
                there = count >= HERE and count < len(program.moves) and rng.random() < rest_waits + 0.1
                dut.rest_valid_i.value = there
                dut.rest_move_i.value = program.moves[count] if there else rng.getrandbits(512)
                told = rng.random() > hurry
                dut.step_taken_i.value = told
                await FallingEdge(dut.clk_i)
                if first and not latency:
                    rest = len(program.moves) - HERE
                    assert bool(int(dut.rest_begin_valid_o.value)) == (rest > 0)
                    if rest > 0 and entry >= ENTRIES - PROGRAMS:
                        assert int(dut.rest_begin_moves_o.value) == rest
                        assert int(dut.rest_begin_address_o.value) == program.address
                else:
                    assert not int(dut.rest_begin_valid_o.value)
                latency += 1
                assert bool(int(dut.rest_want_o.value)) == (count >= HERE)
                valid, step = int(dut.valid_o.value), int(dut.step_o.value)
                moves = valid and rng.random() < hurry
                dut.moves_i.value = moves
                if first and latency == 1 and program.moves and not program.before[0]:
                    assert valid, "the first move is there at once"
                    self.seen["at once"] += 1
                if int(dut.list_valid_o.value):
                    assert not taken
                    assert first, "all lists belong to the first step"
                    assert int(dut.list_index_o.value) == words
                    assert int(dut.list_word_o.value) == program.lists[words]
                if moves and int(dut.end_o.value):
                    assert (count, words) == (len(program.moves), len(program.lists))
                    ended = True
                elif moves:
                    assert int(dut.move_o.value) == program.moves[count]
                    assert count >= HERE or program.before[count] <= words
                    self.seen["from memory"] += count >= HERE
                    count += 1
                words += int(dut.list_valid_o.value)
                if step:
                    assert not told
                    assert quiet >= 2, "three cycles after its last word"
                    assert ended or (count - begun == STEP and words == len(program.lists))
                quiet = 0 if moves or int(dut.list_valid_o.value) else quiet + 1
                await RisingEdge(dut.clk_i)
                dut.moves_i.value = 0
                if step:
                    break
            first = False
            self.seen["steps"] += 1
            assert int(dut.count_o.value) == count
            dut.plays_i.value, dut.idle_i.value = 0, 1
            dut.work_entry_i.value, dut.work_count_i.value = rng.randrange(ENTRIES), rng.randrange(80)
            for _ in range(rng.choice((0, 1, 3))):
                await RisingEdge(dut.clk_i)
            dut.work_entry_i.value, dut.work_count_i.value = entry, count
            await RisingEdge(dut.clk_i)
            dut.idle_i.value = ended
        self.seen["lists"] += bool(program.lists)


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def random_programs(dut):
    rng = new_random("give")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    kept: dict[int, Program] = {}
    for _ in range(scaled(600, 200)):
        entry = rng.randrange(ENTRIES)
        if entry not in kept or rng.random() < 0.4:
            kept[entry] = random_program(rng)
            await bench.keep(entry, kept[entry])
        entry = rng.choice(list(kept))
        await bench.give(entry, kept[entry])
    for what in ("from memory", "steps", "lists", "at once"):
        assert bench.seen[what] > 20, what


def test_unisono_replay_give():
    simulate("unisono_replay_give", __file__)
