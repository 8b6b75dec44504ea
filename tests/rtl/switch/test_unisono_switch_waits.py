"""unisono_switch_waits: the last note of each run and way is what reads show."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge
from hdl import full, parameters, scaled, simulate
from unit_records import ENTRIES, RUNS

#: The ways that are used: up and down of the last eight runs.
FIRST = 2 * ENTRIES * RUNS - 16


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_notes(dut: Any) -> None:
    rng = new_random("waits")
    ports = parameters()["Ports"]
    for name in ("open_valid_i", "note_valid_i", "read_valid_i"):
        getattr(dut, name).value = 0
    await start_clock_and_reset(dut)
    words: dict[int, list[int]] = {}
    expected: list[int | None] = [None]
    seen: Counter[str] = Counter()
    for _ in range(scaled(6000)):
        await FallingEdge(dut.clk_i)
        answer = expected.pop(0) if len(expected) > 1 else None
        assert int(dut.read_valid_o.value) == (answer is not None)
        if answer is not None:
            assert int(dut.read_data_o.value) == answer
        # Of few ways, so that notes and reads meet; what nobody has noted yet is not read.
        way, field = rng.randrange(16), rng.randrange(4)
        read = way in words and rng.random() < 0.5
        dut.read_valid_i.value, dut.read_word_i.value = int(read), 4 * (FIRST + way) + field
        expected.append(words[way][field] if read else None)
        notes, note = rng.random() < 0.3, rng.randrange(16)
        waits, takes = rng.randrange(2), rng.randrange(2)
        opcode, sequence, mask = rng.getrandbits(5), rng.getrandbits(32), rng.getrandbits(ports)
        dut.note_valid_i.value, dut.note_way_i.value = int(notes), FIRST + note
        dut.note_waits_i.value, dut.note_takes_i.value = waits, takes
        dut.note_opcode_i.value, dut.note_sequence_i.value, dut.note_ports_i.value = opcode, sequence, mask
        if notes:
            words[note] = [sequence, waits << 31 | takes << 5 | opcode, mask, 0]
        opens, run = rng.random() < 0.05, rng.randrange(8)
        dut.open_valid_i.value, dut.open_run_i.value = int(opens), FIRST // 2 + run
        if opens:
            for one in (2 * run, 2 * run + 1):
                if one in words:
                    words[one][1] &= ~(1 << 31)
                    seen["opened"] += 1
        seen["read"] += read
    assert seen["opened"] > 50
    assert seen["read"] > 300


@pytest.mark.parametrize("ports", [8, full(28)])
def test_unisono_switch_waits(ports: int) -> None:
    simulate("unisono_switch_waits", __file__, {"Ports": ports})
