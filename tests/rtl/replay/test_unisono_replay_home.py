"""unisono_replay_home: calls find the entry of their program again; what a hash is, is only asked to be spread."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

ENTRIES, PROGRAMS = 16, 8
PAIRS = ENTRIES // 2


def random_key(rng):
    """A call as there are: few collectives, counts that are powers of two, small roots."""
    count, root = rng.choice((1, 3, 64, 1 << rng.randrange(20))), rng.randrange(8)
    communicator, flags, head = rng.randrange(3), rng.choice((0, 1, 6)), rng.randrange(12) | rng.randrange(4) << 16
    return (((count << 32 | root) << 32 | communicator) << 13 | flags) << 64 | head << 32 | 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_calls(dut):
    rng, seen = new_random("home"), Counter()
    for name in ("key", "pinned", "settles", "keeps", "settled_entry", "settled_mark"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    keys = [random_key(rng) for _ in range(150)]
    hashes: dict[int, tuple[int, int]] = {}
    marks, last, pinned = [0] * ENTRIES, [1] * PAIRS, 0
    for turn in range(scaled(12000, 4000)):
        if turn % 500 == 499:
            pinned |= 1 << rng.randrange(PROGRAMS) if rng.random() < 0.5 else 0
        key = rng.choice(keys)
        dut.key_i.value, dut.pinned_i.value = key, pinned
        await FallingEdge(dut.clk_i)
        entry, mark = int(dut.entry_o.value), int(dut.mark_o.value)
        pair = entry % PAIRS
        assert hashes.setdefault(key, (pair, mark)) == (pair, mark), "the hash of a call changes"
        if pinned >> (PAIRS - 1 - pair) & 1:
            want = pair
            seen["pinned"] += 1
        elif marks[pair] == mark:
            want = pair
            seen["found below"] += 1
        elif marks[PAIRS + pair] == mark:
            want = PAIRS + pair
            seen["found above"] += 1
        else:
            want = pair if last[pair] else PAIRS + pair
            seen["a new one"] += 1
        assert entry == want
        settles = rng.random() < 0.5
        keeps = settles and rng.random() < 0.7
        dut.settles_i.value, dut.keeps_i.value = settles, keeps
        dut.settled_entry_i.value, dut.settled_mark_i.value = entry, mark
        if settles:
            last[pair] = entry >= PAIRS
        if keeps:
            marks[entry] = mark
        await RisingEdge(dut.clk_i)
        dut.settles_i.value = dut.keeps_i.value = 0
    for what in ("pinned", "found below", "found above", "a new one"):
        assert seen[what] > 50, what
    of_pairs = Counter(pair for pair, _ in hashes.values())
    assert len(of_pairs) == PAIRS
    assert max(of_pairs.values()) < len(hashes) // 2


def test_unisono_replay_home():
    simulate("unisono_replay_home", __file__)
