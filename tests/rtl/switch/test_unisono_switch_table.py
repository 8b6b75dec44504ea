"""unisono_switch_table: every entry is kept, read back and found; look-ups in every cycle while software writes."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import RisingEdge
from hdl import parameters, scaled, simulate

PLACES = 8192
NO_PORT = 0xFFFF
FIND_LATENCY, READ_LATENCY, LOOK_LATENCY = 3, 2, 1


def packed(*fields: tuple[int, int]) -> int:
    """Values and widths, from the lowest field up."""
    value = at = 0
    for number, width in fields:
        assert number >> width == 0
        value |= number << at
        at += width
    return value


def head_of(words: list[int]) -> int:
    """An entry_head_t from the words of an EntryHead."""
    has_up = words[5] & 0xFFFF != NO_PORT
    return packed(
        (words[1] >> 16, 5),
        (words[2], 14),
        (words[3], 13),
        (words[4], 14),
        (words[5] & 0x1F, 5),
        (int(has_up), 1),
        (words[5] >> 16, 5),
        (words[6], 14),
    )


def random_entry(rng: random.Random, ports: int, number: int, epoch: int) -> list[int]:
    """The words of an entry: any numbers that the switch can hold."""
    used = rng.randint(1, ports)
    up = rng.choice((NO_PORT, rng.randrange(ports)))
    words = [number, epoch | used << 16, rng.randint(0, PLACES), rng.randrange(PLACES), rng.randint(0, PLACES)]
    words += [up | rng.randrange(ports) << 16, rng.randint(0, PLACES), 1]
    for _ in range(used):
        words += [rng.randrange(PLACES), rng.randint(0, PLACES) | rng.getrandbits(1) << 31]
    return words


def too_large(rng: random.Random, ports: int, words: list[int]) -> tuple[int, int]:
    """A word of the entry, and a number in it that the switch cannot hold."""
    word = rng.choice([1, 2, 3, 4, 5, 6, *range(8, len(words))])
    if word == 1:
        return word, words[1] & 0xFFFF | rng.choice((ports + 1, 0x8001)) << 16
    if word == 5:
        port = rng.choice((ports, 0x8001))
        return word, rng.choice((port | words[5] & 0xFFFF0000, port << 16 | words[5] & 0xFFFF))
    limit = PLACES if word == 3 or (word >= 8 and not word & 1) else PLACES + 1
    return word, rng.choice((limit, 1 << 16 | words[word], 1 << 30 | words[word]))


def ports_of(words: list[int]) -> int:
    """The port_entry_t's of an entry's ports, from the words of its PortEntry's."""
    number = 0
    for port in range(words[1] >> 16):
        first, count = words[8 + 2 * port : 10 + 2 * port]
        number |= packed((first, 13), (count & 0x7FFFFFFF, 14), (count >> 31, 1)) << 28 * port
    return number


class Software:
    """Writes entries one after the other, and knows which are valid."""

    def __init__(self, rng: random.Random, entries: int, ports: int) -> None:
        self.rng, self.entries, self.ports = rng, entries, ports
        self.words: list[list[int] | None] = [None] * entries
        self.valid = [False] * entries
        self.seen: Counter[str] = Counter()
        # Few numbers, that differ in one bit, and epochs likewise.
        self.names = [(0x5A5A5A5A ^ 1 << bit, 1 << bit // 2 & 0xFFFF) for bit in range(32)]
        self.names += [(0x5A5A5A5A, 1 << bit) for bit in range(16)] + [(0, 0), (0xFFFFFFFF, 0xFFFF)]
        self.names += [(0xA5A5A5A5 ^ 1 << bit, 0x7FFF) for bit in range(32)]
        self.unfit = False
        self.steps: deque[tuple[int, int]] = deque()

    def next_write(self) -> tuple[int, int]:
        """Word and number; an entry at a time."""
        if not self.steps:
            rng, at = self.rng, self.rng.randrange(self.entries)
            taken = {(w[0], w[1] & 0xFFFF) for i, w in enumerate(self.words) if w and i != at}
            number, epoch = rng.choice([name for name in self.names if name not in taken])
            words = random_entry(rng, self.ports, number, epoch)
            writes = [(word, words[word]) for word in range(len(words)) if word != 7]
            rng.shuffle(writes)
            if rng.random() < 0.2:
                writes.insert(rng.randrange(len(writes)), too_large(rng, self.ports, words))
            # Now and then it is written, and made valid later or never.
            ends = [(7, 1)] if rng.random() < 0.85 else []
            self.steps.extend((64 * at + word, value) for word, value in [(7, 0), *writes, *ends])
        return self.steps.popleft()

    def done(self, at: int, value: int) -> None:
        """What the table knows when this has been written."""
        entry, word = divmod(at, 64)
        if word == 7:
            if not value:
                self.words[entry] = [0] * 64
                self.unfit = False
            words = self.words[entry]
            assert words is not None
            words[7] = value & 1 if not self.unfit else 0
            self.valid[entry] = bool(words[7])
            if value:
                self.seen["refused" if self.unfit else "valid"] += 1
            return
        words = self.words[entry]
        assert words is not None
        self.unfit = self.unfit or not self.fits(word, value)
        words[word] = value

    def fits(self, word: int, value: int) -> bool:
        if word == 1:
            return value >> 16 <= self.ports
        if word == 5:
            low = value & 0xFFFF
            return (low == NO_PORT or low < self.ports) and value >> 16 < self.ports
        if word in (2, 4, 6):
            return value <= PLACES
        if word == 3 or (word >= 8 and not word & 1):
            return value < PLACES
        return value & 0x7FFFFFFF <= PLACES if word >= 8 else True

    def find(self, number: int, epoch: int) -> int | None:
        found = [
            i for i, w in enumerate(self.words) if w and self.valid[i] and (w[0], w[1] & 0xFFFF) == (number, epoch)
        ]
        return found[0] if found else None


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def look_ups_while_software_writes(dut: Any) -> None:
    entries, ports = parameters()["Entries"], parameters()["Ports"]
    rng = new_random("table")
    software = Software(rng, entries, ports)
    dut.reg_valid_i.value = dut.find_valid_i.value = 0
    await start_clock_and_reset(dut)
    edge = RisingEdge(dut.clk_i)
    finds: deque[Any] = deque([None] * FIND_LATENCY)
    reads: deque[Any] = deque([None] * READ_LATENCY)
    looks: deque[Any] = deque([None] * LOOK_LATENCY)
    look: int | None = None
    seen = software.seen
    write: tuple[int, int] | None = None
    read: int | None = None
    find: tuple[int, int] | None = None
    last_write = -10
    for cycle in range(scaled(60000)):
        await edge
        # Answers. An entry that changed after the question is not found, or is the one that was asked for.
        want = finds.popleft()
        assert int(dut.found_valid_o.value) == (want is not None)
        if want is not None:
            (number, epoch), asked, found = want
            got = int(dut.found_entry_o.value) if int(dut.found_o.value) else None
            now = software.find(number, epoch)
            assert got in (asked, None), f"{number:#x}, {epoch:#x}: found {got}, not {asked}"
            assert got is not None or asked is None or now != asked or found != software.words[asked]
            if got is not None:
                assert int(dut.found_head_o.value) == head_of(found)
                used = (1 << 28 * (found[1] >> 16)) - 1
                assert int(dut.found_ports_o.value) & used == ports_of(found)
            seen["found" if got is not None else "absent" if asked is None else "changed"] += 1
        want = reads.popleft()
        assert int(dut.reg_valid_o.value) == (want is not None)
        if want is not None:
            assert int(dut.reg_data_o.value) == want[0], f"word {want[1]}"
            seen["read"] += 1
        want = looks.popleft()
        if want is not None:
            assert int(dut.look_head_o.value) == head_of(want)
            used = (1 << 28 * (want[1] >> 16)) - 1
            assert int(dut.look_ports_o.value) & used == ports_of(want)
            seen["look"] += 1
        # What the edge has taken, of the state before its own write.
        value = None
        if read is not None:
            words = software.words[read // 64]
            value = (words[read % 64], read) if words else None
        reads.append(value)
        if find is not None:
            at = software.find(*find)
            finds.append((find, at, None if at is None else list(software.words[at] or [])))
        else:
            finds.append(None)
        # Of an entry that is not valid, some fields are of the one before.
        looked = software.words[look] if look is not None and software.valid[look] else None
        looks.append(None if looked is None else list(looked))
        if write is not None:
            software.done(*write)
        # The next cycle.
        write = read = find = None
        if rng.random() < 0.8:
            if rng.random() < 0.7:
                write = software.next_write()
                last_write = cycle
            else:
                known = [e for e in range(entries) if software.valid[e]]
                if known:
                    words = software.words[entry := rng.choice(known)]
                    assert words is not None
                    read = 64 * entry + rng.randrange(8 + 2 * (words[1] >> 16))
        dut.reg_valid_i.value = int(write is not None or read is not None)
        dut.reg_write_i.value = int(write is not None)
        dut.reg_word_i.value = write[0] if write else read if read is not None else rng.getrandbits(8)
        dut.reg_data_i.value = write[1] if write else rng.getrandbits(32)
        if rng.random() < 0.9:
            known_names = [(w[0], w[1] & 0xFFFF) for e, w in enumerate(software.words) if w and software.valid[e]]
            find = rng.choice(known_names) if known_names and rng.random() < 0.7 else rng.choice(software.names)
            dut.find_number_i.value, dut.find_epoch_i.value = find
        dut.find_valid_i.value = int(find is not None)
        look = rng.randrange(entries)
        dut.look_entry_i.value = look
    assert last_write > 0
    dut._log.info("%s", dict(seen))
    assert seen["valid"] > 100
    assert seen["refused"] > 20
    assert min(seen["found"], seen["absent"], seen["read"], seen["look"]) > 1000
    assert seen["changed"] > 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_all(dut: Any) -> None:
    rng = new_random("reset")
    software = Software(rng, parameters()["Entries"], parameters()["Ports"])
    dut.find_valid_i.value = dut.reg_valid_i.value = 0
    await start_clock_and_reset(dut)
    words = random_entry(rng, parameters()["Ports"], 5, 6)
    for word in [*(w for w in range(len(words)) if w != 7), 7]:
        dut.reg_valid_i.value = dut.reg_write_i.value = 1
        dut.reg_word_i.value, dut.reg_data_i.value = 64 + word, words[word]
        await RisingEdge(dut.clk_i)
    dut.reg_valid_i.value = 0
    del software
    for reset in (False, True):
        if reset:
            dut.rst_ni.value = 0
            for _ in range(2):
                await RisingEdge(dut.clk_i)
            dut.rst_ni.value = 1
        dut.find_valid_i.value, dut.find_number_i.value, dut.find_epoch_i.value = 1, 5, 6
        for _ in range(FIND_LATENCY + 2):
            await RisingEdge(dut.clk_i)
        assert int(dut.found_valid_o.value) == 1
        assert int(dut.found_o.value) == int(not reset)


@pytest.mark.parametrize(("entries", "ports"), [(64, 28), (4, 5)])
def test_unisono_switch_table(entries: int, ports: int) -> None:
    simulate("unisono_switch_table", __file__, {"Entries": entries, "Ports": ports}, limit_s=300)
