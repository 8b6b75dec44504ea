"""unisono_replay_load: programs that the host loads, right and wrong ones, against what may be loaded."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

PROGRAMS, ENTRIES, MOVES, MOST, LISTS = 8, 16, 32, 4096, 64
SLOT, LIST, MOVE, SIGNATURE, LOW, HIGH, REST = range(7)


class Bench:
    def __init__(self, dut, rng):
        self.dut, self.rng, self.seen = dut, rng, Counter()
        self.loaded, self.pinned, self.bad = set(), set(), True
        for name in ("blocked", "program_valid", "program_word", "program_data", "in_use"):
            getattr(dut, f"{name}_i").value = 0

    async def word(self, kind, data, in_use=False):
        """One word; what it means is told in the cycle in which it is taken."""
        dut, rng = self.dut, self.rng
        dut.program_valid_i.value, dut.program_word_i.value, dut.program_data_i.value = 1, kind, data
        dut.in_use_i.value = in_use if kind == SLOT else rng.getrandbits(1)
        names = ("begins", "list", "move", "loads")
        while True:
            blocked = rng.random() < 0.3
            dut.blocked_i.value = blocked
            await FallingEdge(dut.clk_i)
            assert bool(int(dut.program_ready_o.value)) != blocked
            told = {name for name in names if int(getattr(dut, f"{name}_o").value)}
            assert int(dut.pinned_o.value) == sum(1 << one for one in self.pinned)
            assert int(dut.loaded_o.value) == sum(1 << one for one in self.loaded)
            assert int(dut.program_state_o.value) == self.bad << 31 | sum(1 << one for one in self.loaded)
            if not blocked:
                break
            assert not told
            await RisingEdge(dut.clk_i)
        entry, words = int(dut.entry_o.value), int(dut.words_o.value)
        await RisingEdge(dut.clk_i)
        dut.program_valid_i.value = 0
        return told, entry, words

    async def load(self):
        """A program with at most one flaw."""
        rng = self.rng
        slot, lists = rng.randrange(PROGRAMS), rng.choice((0, 3, LISTS))
        moves, rest = rng.choice(((0, 0), (1, 0), (MOVES, 0), (MOVES, 7), (MOVES, MOST - MOVES)))
        flaw = rng.choice((None, None, None, "slot", "use", "lists", "moves", "half", "rest", "early"))
        number = slot + PROGRAMS * rng.randrange(1, 9) if flaw == "slot" else slot
        told, entry, _ = await self.word(SLOT, number, in_use=flaw == "use")
        assert told == {"begins"}
        assert entry == ENTRIES - 1 - slot
        self.bad = flaw in ("slot", "use")
        if not self.bad:
            self.pinned.add(slot)
            self.loaded.discard(slot)
        lists = LISTS + 1 if flaw == "lists" else lists
        moves = MOVES + 1 if flaw == "moves" else 5 if flaw == "early" else moves
        rest = MOST - MOVES + 1 if flaw == "rest" else 3 if flaw == "early" else rest
        for place in range(lists):
            told, entry, _ = await self.word(LIST, rng.getrandbits(24))
            self.bad = self.bad or place >= LISTS
            assert told == (set() if self.bad else {"list"})
            assert entry == ENTRIES - 1 - slot
        for place in range(moves):
            words = [rng.getrandbits(32) for _ in range(16)]
            for at, data in enumerate(words):
                if flaw == "half" and place == moves - 1 and at == 15:
                    break
                told, _, kept = await self.word(MOVE, data)
                self.bad = self.bad or place >= MOVES
                assert told == (set() if self.bad or at < 15 else {"move"})
                if told:
                    assert kept == sum(word << 32 * index for index, word in enumerate(words[:15]))
        address = rng.getrandbits(64)
        if rest:
            await self.word(LOW, address & 0xFFFF_FFFF)
            await self.word(HIGH, address >> 32)
            await self.word(REST, rest)
            self.bad = self.bad or rest > MOST - MOVES
        odd = (flaw == "half" and moves > 0) or (rest and moves < MOVES)
        told, entry, _ = await self.word(SIGNATURE, rng.getrandbits(32))
        good = not self.bad and not odd
        assert told == ({"loads"} if good else set())
        if good:
            self.loaded.add(slot)
            dut = self.dut
            found = (int(dut.slot_o.value), int(dut.moves_o.value), int(dut.lists_o.value), int(dut.rest_o.value))
            assert found == (slot, moves, lists, rest)
            assert not rest or int(dut.rest_address_o.value) == address
        self.bad = self.bad or odd
        self.seen[flaw if not good else "long" if rest else "loaded"] += 1


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_programs(dut):
    rng = new_random("load")
    bench = Bench(dut, rng)
    await start_clock_and_reset(dut)
    for _ in range(scaled(300, 130)):
        await bench.load()
    for what in ("slot", "use", "lists", "moves", "half", "rest", "early", "long", "loaded"):
        assert bench.seen[what] > 3, what


def test_unisono_replay_load():
    simulate("unisono_replay_load", __file__)
