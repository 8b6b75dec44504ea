"""unisono_communicator_entries: random writes, each port's entry in the cycle in which it is named."""

from __future__ import annotations

from collections import Counter

import cocotb
import pytest
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate

COMMUNICATORS = 16
# Of each word of a communicator the fields that are kept: lowest bit and width, and the place in the entry.
FIELDS = {0: [(0, 32, 132)], 1: [(0, 16, 116)], 2: [(0, 32, 84)], 3: [(0, 32, 52)], 4: [(0, 16, 36), (16, 16, 20)]}
FIELDS |= {5: [(0, 7, 13), (8, 7, 6), (16, 6, 0)]}


def entry(words: list[int]) -> int:
    """The record: number, epoch, eager limit, segment bytes, receive buffers, openings, size, members, rank."""
    raw = 0
    for number, fields in FIELDS.items():
        for low, width, place in fields:
            raw |= (words[number] >> low & (1 << width) - 1) << place
    return raw


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_writes(dut):
    rng, ports = new_random("entries"), parameters()["Ports"]
    seen: Counter[str] = Counter()
    dut.write_i.value = 0
    for port in range(ports):
        dut.asked_i[port].value = 0
    Clock(dut.clk_i, 4, unit="ns").start()
    await RisingEdge(dut.clk_i)
    table = [[rng.getrandbits(32) for _ in range(8)] for _ in range(COMMUNICATORS)]
    first = [(c, word) for c in range(COMMUNICATORS) for word in range(8)]
    rng.shuffle(first)
    last = None
    for cycle in range(scaled(12000, 4000)):
        complete = not first
        if first:
            communicator, word = first.pop()
            writes, data = True, table[communicator][word]
        else:
            writes, communicator, word = rng.random() < 0.6, rng.randrange(COMMUNICATORS), rng.randrange(8)
            data = rng.getrandbits(32)
        dut.write_i.value, dut.communicator_i.value = writes, communicator
        dut.word_i.value, dut.data_i.value = word, data
        # Often the entry that is written in this cycle or was in the one before, often one that another port asks.
        asked: list[int] = []
        for port in range(ports):
            near = [communicator, *([last] if last is not None else []), *asked, rng.randrange(COMMUNICATORS)]
            asked.append(rng.choice(near))
            dut.asked_i[port].value = asked[port]
        await FallingEdge(dut.clk_i)
        if complete:
            for port, which in enumerate(asked):
                got, want = int(dut.entry_o[port].value), entry(table[which])
                assert got == want, f"cycle {cycle}, port {port}, communicator {which}: {got:#x}, not {want:#x}"
                seen["while it is written"] += int(writes and which == communicator and word < 6)
                seen["just written"] += int(which == last)
                seen["without a word"] += int(writes and which == communicator and word > 5)
                seen["not written, though named"] += int(not writes and which == communicator)
            seen["twice"] += int(len(set(asked)) < ports)
        await RisingEdge(dut.clk_i)
        if writes:
            table[communicator][word] = data
            seen[f"word {word}"] += 1
        last = communicator if writes else None
    expected = {"while it is written", "just written", "without a word", "not written, though named"}
    expected |= {f"word {word}" for word in range(8)} | ({"twice"} if ports > 1 else set())
    for what in expected:
        assert seen[what] > 50, f"{what}: {seen}"


@pytest.mark.parametrize("ports", [2, full(1), full(3)])
def test_unisono_communicator_entries(ports):
    simulate("unisono_communicator_entries", __file__, {"Ports": ports})
