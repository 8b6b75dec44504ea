"""unisono_switch_folds: numbers are used once, ports hear one cell at a time, and every fold is ended once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import full, parameters, scaled, simulate
from unit_records import ENTRIES, RUNS


@dataclass
class Fold:
    """One that has begun."""

    way: int
    out: int
    source: int
    ending: bool = False


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_folds(dut: Any) -> None:
    rng = new_random("folds")
    ports, tags = parameters()["Ports"], 2 ** parameters()["TagBits"]
    for name in ("begin_i", "way_i", "out_i", "from_i", "done_i"):
        getattr(dut, name).value = 0
    await start_clock_and_reset(dut)
    folds: dict[int, Fold] = {}
    seen: Counter[str] = Counter()
    begun: Fold | None = None
    ways = [rng.randrange(2 * ENTRIES * RUNS) for _ in range(4)]
    way, stands, next_outstanding = ways[0], 0, None
    for cycle in range(scaled(6000)):
        await FallingEdge(dut.clk_i)
        begun_before = begun
        if begun is not None:
            tag = int(dut.tag_o.value)
            assert tag not in folds
            folds[tag] = begun
            begun = None
        for tag, fold in folds.items():
            assert int(dut.masks_o.value) >> ports * tag & (1 << ports) - 1 == fold.out
        # A fold that would begin.
        if rng.random() < 0.4:
            way, stands = rng.choice(ways), 0
        source = rng.randrange(ports)
        out = rng.randrange(1, 1 << ports) if rng.random() < 0.3 else 1 << rng.randrange(ports)
        dut.way_i.value, dut.out_i.value, dut.from_i.value = way, out, source
        pressure = 0.9 if cycle // 500 % 2 else 0.3
        done = 0
        for tag, fold in folds.items():
            if not fold.ending and rng.random() < (1 - pressure) / 2:
                fold.ending, done = True, done | 1 << tag
        dut.done_i.value = done
        dut.begin_i.value = 0
        await cocotb.triggers.Timer(100, "ps")
        clear = all(fold.source == source or not fold.out & out for fold in folds.values())
        room = len(folds) < tags
        assert bool(dut.clear_o.value) == clear
        assert bool(dut.room_o.value) == room
        # Of a way that stands.
        outstanding = sum(fold.way == way for fold in folds.values())
        if stands:
            assert int(dut.outstanding_o.value) == outstanding
        if next_outstanding is not None and stands > 1:
            assert outstanding == next_outstanding + (begun_before is not None and begun_before.way == way)
        if room and clear and rng.random() < pressure:
            dut.begin_i.value = 1
            begun = Fold(way, out, source)
        seen["no room"] += not room
        seen["not clear"] += not clear
        ended = bool(dut.ended_valid_o.value)
        if ended:
            ended_way = int(dut.ended_way_o.value)
            of_way = [tag for tag, fold in folds.items() if fold.ending and fold.way == ended_way]
            assert of_way, f"a fold of way {ended_way} ends; none has gone"
        await cocotb.triggers.Timer(100, "ps")
        next_outstanding = int(dut.outstanding_next_o.value)
        stands += 1
        await RisingEdge(dut.clk_i)
        if ended:
            # Of those that have gone the one with the lowest number; those of this cycle are known in the next.
            gone = [tag for tag, fold in folds.items() if fold.ending and not done >> tag & 1]
            assert folds.pop(min(gone)).way == ended_way
            seen["ended"] += 1
    # Of many numbers all are seldom taken: most folds wait for another one's ports before.
    for what, least in (("no room", 2), ("not clear", 100), ("ended", 100)):
        assert seen[what] >= least, seen


@pytest.mark.parametrize(("ports", "tag_bits"), [(8, 2), full(28, 4), full(4, 1)])
def test_unisono_switch_folds(ports: int, tag_bits: int) -> None:
    simulate("unisono_switch_folds", __file__, {"Ports": ports, "TagBits": tag_bits}, limit_s=300)
