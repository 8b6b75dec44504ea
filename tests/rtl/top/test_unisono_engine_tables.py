"""unisono_engine_tables: what registers say of communicators, members and windows, and all answers in each cycle."""

from collections import Counter

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

COMMUNICATORS, RANKS, MEMBER_BASE, PEERS = 16, 64, 1024, 4
BYTES = (1 << 48) - 1
SEGMENT = (1 << 14) - 1


def entry(words):
    """The record of a communicator, or nothing while it is not written completely."""
    if None in (words[at] for at in range(6)):
        return None
    rank, members, size = words[5] >> 16 & 0x3F, words[5] >> 8 & 0x7F, words[5] & 0x7F
    openings, buffers = words[4] >> 16, words[4] & 0xFFFF
    low = rank | members << 6 | size << 13 | openings << 20 | buffers << 36 | words[3] << 52 | words[2] << 84
    return low | (words[1] & 0xFFFF) << 116 | words[0] << 132


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def registers_and_questions(dut):
    rng, seen = new_random("tables"), Counter()
    for name in ("reg_valid", "reg_write", "reg_word", "reg_data", "window_address", "window_bytes", "find_valid"):
        getattr(dut, f"{name}_i").value = 0
    for name in ("find_number", "find_epoch", "rx_communicator", "members", "window_communicator", "begins_ready"):
        getattr(dut, f"{name}_i").value = 0
    for place in range(2):
        dut.entry_communicator_i[place].value = 0
    dut.begins_ready_i.value = 1
    await start_clock_and_reset(dut)
    while not int(dut.reg_ready_o.value):
        await RisingEdge(dut.clk_i)
    words = [[None] * 8 for _ in range(COMMUNICATORS)]
    peers = [0] * (COMMUNICATORS * RANKS)
    windows, segments = [None] * COMMUNICATORS, [None] * COMMUNICATORS
    found = [None, None]  # answers of the next cycles
    asked = None
    for cycle in range(scaled(40000, 12000)):
        valid, ready = rng.random() < 0.7, rng.random() < 0.8
        write = rng.random() < 0.9
        c, word, data = rng.randrange(COMMUNICATORS), rng.choice((0, 1, 2, 3, 4, 5, 6, 6, 7, 7)), rng.getrandbits(32)
        if cycle < COMMUNICATORS:  # first their numbers, which differ
            valid, ready, write, c, word = True, True, True, cycle, 0
        at = c * 8 + word
        if cycle >= COMMUNICATORS and rng.random() < 0.3:
            at = MEMBER_BASE + rng.randrange(COMMUNICATORS * RANKS)
        elif word == 0:
            data = c
        elif word == 1:
            data = 7
        address, size = rng.getrandbits(64), rng.getrandbits(64)
        dut.reg_valid_i.value, dut.reg_write_i.value, dut.begins_ready_i.value = valid, write, ready
        dut.reg_word_i.value, dut.reg_data_i.value = at, data
        dut.window_address_i.value, dut.window_bytes_i.value = address, size
        places = [rng.randrange(COMMUNICATORS * RANKS) for _ in range(PEERS)]
        dut.members_i.value = sum(place << 10 * p for p, place in enumerate(places))
        entries = [rng.randrange(COMMUNICATORS) for _ in range(2)]
        for place, which in enumerate(entries):
            dut.entry_communicator_i[place].value = which
        window = rng.randrange(COMMUNICATORS)
        dut.window_communicator_i.value = window
        look = rng.randrange(COMMUNICATORS)
        dut.find_valid_i.value, dut.find_number_i.value, dut.find_epoch_i.value = 1, look, 7
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.reg_ready_o.value)) == ready
        of_communicator = valid and ready and write and at < MEMBER_BASE
        begins = of_communicator and word == 6 and data & 1
        assert bool(int(dut.begins_valid_o.value)) == bool(begins)
        if begins:
            assert int(dut.begins_communicator_o.value) == c
            if words[c][4] is not None:
                assert int(dut.begins_buffers_o.value) == words[c][4] & 0xFFFF
                seen["begins"] += 1
        for place, which in enumerate(entries):
            expected = entry(words[which])
            if expected is not None:
                assert int(dut.entry_o[place].value) == expected
                seen["entries"] += 1
        if windows[window] is not None:
            told = int(dut.window_o.value)
            assert told >> 64 == windows[window][0]
            if windows[window][0]:
                assert told & (1 << 64) - 1 == windows[window][1]
            seen["window" if windows[window][0] else "no window"] += 1
        if segments[window] is not None:
            assert int(dut.window_segment_o.value) == segments[window]
        if asked is not None:
            told = int(dut.peers_o.value)
            for p, expected in enumerate(asked):
                assert told >> 17 * p & 0x1FFFF == expected, p
            seen["peers"] += any(value >> 16 for value in asked)
        if found[0] is not None:
            which, is_there = found[0]
            assert bool(int(dut.found_o.value)) == is_there
            if is_there:
                assert int(dut.found_communicator_o.value) == which
            seen["found" if is_there else "not found"] += 1
        there = words[look][6] is not None and words[look][6] & 1 and words[look][0] == look and words[look][1] == 7
        found = [found[1], (look, bool(there))]
        await RisingEdge(dut.clk_i)
        asked = [peers[place] for place in places]
        if of_communicator:
            words[c][word] = data
            if word == 3:
                segments[c] = data & SEGMENT
            if word == 7 or begins:
                windows[c] = (0 if begins or not data & 1 else size & BYTES, address)
        elif valid and ready and write:
            peers[at - MEMBER_BASE] = (data >> 31) << 16 | data & 0xFFFF
        seen["waits"] += valid and not ready
    for what in ("begins", "entries", "window", "no window", "peers", "found", "not found", "waits"):
        assert seen[what] > 50, what


def test_unisono_engine_tables():
    simulate("unisono_engine_tables", __file__)
