"""unisono_host_tables: accesses anywhere in the tables, and the microcontroller's reads in every cycle, by a model."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import cocotb
import records
from bus import Pause, bursts, never, new_random, reset_again, share, start_clock_and_reset
from cocotb.triggers import ReadOnly, RisingEdge
from hdl import scaled, simulate

S = records.load()
COMMUNICATORS, RANKS, SESSIONS = 16, 64, 64
TRANSPORT, PROGRAMS = int(S.Exchange.TRANSPORT), int(S.Exchange.PROGRAMS)
TABLE, MEMBERS = int(S.Exchange.COMMUNICATORS), int(S.Exchange.MEMBERS)
MEMBER_BASE, COUNTERS, LIMIT = 1024, 0x8000, 0x8100
LONGEST = 500
"""Cycles that an access may take here."""


def transport_word(word: int) -> int:
    """Where a word of the transport's window stands among its registers."""
    if word < SESSIONS:
        return word
    return (COUNTERS if word < SESSIONS + 16 else LIMIT) + word % 16


class Owner:
    """The other side of the words that stand elsewhere: takes an access when it likes, and says what it saw."""

    def __init__(self, pause: Pause) -> None:
        self.pause = pause
        self.ready = False
        self.waits = 0
        self.seen: list[tuple[bool, int, int]] = []
        """Writes or not, where, and the data of a write."""


class Bench:
    """One access after the other; the rest goes on in every cycle."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng = new_random("tables")
        self.words: dict[tuple[int, int], int] = {}
        self.ready = self.reg_answers = False
        self.answer: int | None = None
        self.place_wanted: int | None = None
        self.owners = {name: Owner(never) for name in ("reg", "poe", "program")}
        self.reg_delay = -1
        """Cycles until the data path answers a read; -1: none is asked for."""
        self.reg_data = self.poe_data = self.state = 0
        self.current = (False, 0, 0)
        self.reads_of_place = self.unknown_places = self.same_cycle = 0

    def known(self, c: int, word: int) -> int | None:
        """0 while word 0 was not written; None: whatever the memory holds."""
        return self.words.get((c, word)) if (c, 0) in self.words else 0

    async def step(self, write: bool = False, read: bool = False) -> None:
        """One cycle: drives the owners and the microcontroller, looks at what the module says to them."""
        dut, rng = self.dut, self.rng
        writes, address, data = self.current
        dut.write_i.value, dut.read_i.value = write, read
        c, word = rng.randrange(COMMUNICATORS), rng.randrange(8)
        if TABLE <= address < TABLE + 1024 and rng.random() < 0.5:
            c, word = (address - TABLE) // 64, rng.choice((0, (address - TABLE) // 4 % 8))
        dut.place_i.value = c << 3 | word
        for name, owner in self.owners.items():
            owner.ready = not owner.pause()
            getattr(dut, f"{name}_ready_i").value = owner.ready
        self.reg_data, self.poe_data, self.state = (rng.getrandbits(32) for _ in range(3))
        dut.reg_data_i.value, dut.poe_rdata_i.value = self.reg_data, self.poe_data
        dut.program_state_i.value = self.state
        self.reg_answers = self.reg_delay == 0
        dut.reg_valid_i.value = self.reg_answers
        if self.reg_delay >= 0:
            self.reg_delay -= 1
        await ReadOnly()
        if self.place_wanted is not None:
            assert int(dut.place_data_o.value) == self.place_wanted, "the microcontroller"
            self.reads_of_place += 1
        self.place_wanted = self.known(c, word)
        self.unknown_places += self.place_wanted == 0 and (c, 0) not in self.words
        own = TABLE <= address < TABLE + 1024 and not address & 0x20
        assert int(dut.changed_o.value) == (write and own)
        for name, owner in self.owners.items():
            if not int(getattr(dut, f"{name}_valid_o").value):
                continue
            asks_writes = True if name == "program" else bool(int(getattr(dut, f"{name}_write_o").value))
            where = {"reg": "reg_word_o", "poe": "poe_addr_o", "program": "program_word_o"}[name]
            sent = {"reg": "reg_data_o", "poe": "poe_wdata_o", "program": "program_data_o"}[name]
            what = asks_writes, int(getattr(dut, where).value), int(getattr(dut, sent).value) if asks_writes else 0
            assert what == self.wanted(name), f"{name}: {what}, access {writes, hex(address), hex(data)}"
            if owner.ready:
                owner.seen.append(what)
                if name == "reg" and not asks_writes:
                    # Its answer may come at once, or late.
                    self.reg_delay = rng.choice((0, 1, 1, rng.randint(0, 20)))
            else:
                owner.waits += 1
        if write and own:
            about = (address - TABLE) // 64, address // 4 % 8
            if about[0] == c:
                # Which of the two comes first is nowhere promised.
                self.place_wanted = None
                self.same_cycle += 1
            self.words[about] = data
        self.ready = bool(int(dut.ready_o.value))
        self.answer = int(dut.data_o.value) if int(dut.valid_o.value) else None
        await RisingEdge(dut.clk_i)

    async def rest(self, cycles: int) -> None:
        """Nothing is asked for; what the address says does not matter then."""
        self.current = (False, 0, 0)
        for _ in range(cycles):
            self.dut.address_i.value = self.rng.getrandbits(12)
            self.dut.data_i.value = self.rng.getrandbits(32)
            await self.step()
            assert self.ready
            assert self.answer is None

    async def access(self, writes: bool, address: int, data: int) -> int:
        """An access to its end; returns how many cycles later the answer came, or a further one may come."""
        dut = self.dut
        self.current = (writes, address, data)
        dut.address_i.value, dut.data_i.value = address >> 2, data
        for owner in self.owners.values():
            owner.seen.clear()
        about = f"{'write' if writes else 'read'} {address:#x}"
        whose = next((name for name in self.owners if self.wanted(name)), "")
        local = self.known((address - TABLE) // 64, address // 4 % 8) if address & 0x20 == 0 else None
        given: list[int | None] = [local if TABLE <= address < MEMBERS else None]
        await self.step(writes, not writes)
        assert self.ready, about
        assert self.answer is None, about
        took = 0
        while took < LONGEST:
            took += 1
            await self.step()
            if self.answer is not None:
                assert not writes, f"{about}: an answer to a write"
                assert self.ready, about
                if whose or given[-1] is not None:
                    assert self.answer in given, f"{about}: {self.answer:#x}, not of {given}"
                break
            if writes and self.ready:
                break
            if not TABLE <= address < MEMBERS or address & 0x20:
                if whose == "reg" and self.reg_answers:
                    given = [self.reg_data]
                elif whose == "poe" and self.owners["poe"].seen:
                    given = [self.poe_data]
                elif not whose:
                    given.append(self.state)
        else:
            raise AssertionError(f"{about}: no end")
        for name, owner in self.owners.items():
            assert owner.seen == ([self.wanted(name)] if name == whose else []), f"{about}: {name} saw {owner.seen}"
        return took

    def wanted(self, name: str) -> tuple[bool, int, int] | None:
        """What an owner must be asked for by the access that is under way; None: nothing."""
        writes, address, data = self.current
        if TRANSPORT <= address < TRANSPORT + 1024:
            whose, where = "poe", transport_word((address - TRANSPORT) // 4)
        elif PROGRAMS <= address < PROGRAMS + 32:
            whose, where = "program", (address - PROGRAMS) // 4
        elif address >= MEMBERS:
            whose, where = "reg", MEMBER_BASE + (address - MEMBERS) // 4
        elif address & 0x20:
            whose, where = "reg", (address - TABLE) // 64 * 8 + address // 4 % 8
        else:
            return None
        # A read of the state of programs asks nobody.
        if whose != name or (whose == "program" and not writes):
            return None
        return writes, where, data if writes else 0


def random_address(rng: random.Random) -> int:
    """Every window as often; the edges of each are among them."""
    window = rng.choice(("transport", "programs", "communicators", "communicators", "members"))
    c = rng.randrange(COMMUNICATORS)
    if window == "transport":
        return TRANSPORT + 4 * rng.choice((0, 63, 64, 77, 80, 81, rng.randrange(82)))
    if window == "programs":
        return PROGRAMS + 4 * rng.randrange(7)
    if window == "communicators":
        return TABLE + 64 * c + 4 * rng.choice((0, rng.randrange(8), rng.randrange(16)))
    return MEMBERS + 4 * (RANKS * c + rng.choice((0, RANKS - 1, rng.randrange(RANKS))))


def start(dut: Any) -> Bench:
    for name in ("write", "read", "reg_valid", "reg_ready", "poe_ready", "program_ready", "place", "address"):
        getattr(dut, f"{name}_i").value = 0
    return Bench(dut)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_accesses(dut: Any) -> None:
    bench = start(dut)
    rng, seen, values = bench.rng, Counter[str](), Counter[str]()
    await start_clock_and_reset(dut)
    for number in range(scaled(6000, 1500)):
        if number % 40 == 0:
            for owner in bench.owners.values():
                owner.pause = rng.choice([never, share(rng, 0.5), share(rng, 0.8), bursts(rng)])
        if number % 500 == 499:
            bench.words.clear()
            bench.place_wanted = None
            await reset_again(dut)
            seen["resets"] += 1
        writes, address, data = rng.random() < 0.5, random_address(rng), rng.getrandbits(32)
        cycles = await bench.access(writes, address, data)
        if TABLE <= address < MEMBERS and not address & 0x20:
            assert cycles == 1
            values[f"{'write' if writes else 'read'} {address // 4 % 8}"] += 1
            c = (address - TABLE) // 64
            seen["read of what was not written"] += not writes and (c, 0) not in bench.words
            seen["read of a word"] += not writes and (c, 0) in bench.words
        for name, owner in bench.owners.items():
            for way, *_ in owner.seen:
                seen[f"{name} {'write' if way else 'read'}"] += 1
        seen["read of the programs' state"] += not writes and PROGRAMS <= address < TABLE
        seen["at once"] += (pause := rng.choice((0, 0, 1, 5))) == 0
        await bench.rest(pause)
    for what in ("reg write", "reg read", "poe write", "poe read", "program write", "read of the programs' state"):
        assert seen[what] > 20, f"{what}: {seen}"
    for what in ("read of what was not written", "read of a word", "at once"):
        assert seen[what] > 20, f"{what}: {seen}"
    assert seen["resets"] >= 2
    assert len(values) == 16
    assert all(owner.waits > 50 for owner in bench.owners.values())
    assert bench.reads_of_place > 1000
    assert bench.unknown_places > 100
    assert bench.same_cycle > 10


@cocotb.test(timeout_time=100, timeout_unit="us")
async def latency(dut: Any) -> None:
    """With owners that are ready: 1 cycle here, 2 elsewhere, and for a read of the data path what its owner takes."""
    bench = start(dut)
    await start_clock_and_reset(dut)
    for _ in range(40):
        address, writes = random_address(bench.rng), bench.rng.random() < 0.5
        cycles = await bench.access(writes, address, bench.rng.getrandbits(32))
        if TABLE <= address < MEMBERS and not address & 0x20:
            assert cycles == 1
        elif writes or address < TABLE:
            assert cycles == 2
        else:
            assert 3 <= cycles <= 23


def test_unisono_host_tables() -> None:
    simulate("unisono_host_tables", __file__)
