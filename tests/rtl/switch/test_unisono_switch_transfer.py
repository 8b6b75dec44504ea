"""unisono_switch_transfer: what a message under way may send next, and that each way keeps its own."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import ClockCycles, FallingEdge, Timer
from hdl import full, parameters, scaled, simulate
from unit_records import ENTRIES, LOOK, RUNS, TERMS, TRANSFER, pack, random_record, unpack, width_of

MASKS = ("in", "in_place", "out", "out_eager")


def fresh(rng: random.Random, ports: int, segment: int) -> dict[str, Any]:
    """A message that begins: nothing of it is granted or has gone."""
    message = random_record(rng, TRANSFER)
    for name in ("granted", "gone", "done", "limit", "extended", "extension"):
        message[name] = 0
    message["sequence"], message["signature"] = rng.randrange(3), rng.randrange(3)
    message["bytes"] = rng.choice((0, 1, segment, segment + 1, rng.randrange(12 * segment)))
    masks = {name: rng.getrandbits(ports) for name in MASKS}
    masks["in_place"] &= masks["in"]
    masks["out_eager"] &= masks["out"]
    return {"message": message, "masks": masks}


def looks_of(rng: random.Random, ports: int, record: dict[str, Any], end: int) -> list[dict[str, Any]]:
    """What ports say, near where it decides."""
    looks = []
    for _ in range(ports):
        look = random_record(rng, LOOK)
        look["has_grant"], look["whole"] = int(rng.random() < 0.9), int(rng.random() < 0.9)
        look["grant"]["sequence"] = record["message"]["sequence"] if rng.random() < 0.9 else rng.randrange(3)
        look["grant"]["signature"] = record["message"]["signature"] if rng.random() < 0.95 else rng.randrange(3)
        look["grant"]["limit"], look["arrived"] = (max(end + rng.choice((-1, 0, 0, 0, 1, 5)), 0) for _ in range(2))
        looks.append(look)
    return looks


def expected(record: dict[str, Any], looks: list[dict[str, Any]], terms: dict[str, int]) -> dict[str, int]:
    """What the block says of a message."""
    message, masks, segment = record["message"], record["masks"], terms["segment_bytes"]
    left = message["bytes"] - message["done"]
    length = min(left, segment)
    end = message["done"] + length
    by_grant, by_write = masks["out"] & ~masks["out_eager"], masks["in"] & ~masks["in_place"]
    late, takers, differs, switches = 0, 0, 0, 0
    for p, look in enumerate(looks):
        granted = look["has_grant"] and look["grant"]["sequence"] == message["sequence"]
        switches |= look["neighbour"]["is_switch"] << p
        if by_write >> p & 1 and not (look["arrived"] >= end and (length or look["whole"])):
            late |= 1 << p
        if by_grant >> p & 1:
            takers |= int(not granted or look["grant"]["limit"] < end) << p
            differs |= int(bool(granted) and look["grant"]["signature"] != message["signature"])
    missing = 0 if message["gone"] else late | takers
    asks = masks["out"] & (~masks["out_eager"] if message["bytes"] <= terms["eager_limit"] else switches)
    return {
        "by_grant": by_grant,
        "by_write": by_write,
        "asks": asks,
        "length": length,
        "last": int(left <= segment),
        "here": int(not late and not takers),
        "missing": missing,
        "takes": int(missing == takers),
        "differs": differs,
        **masks,
    }


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_messages(dut: Any) -> None:
    rng, ports, seen = new_random("transfer"), parameters()["Ports"], Counter[str]()
    decided = ("asks", "windows", "segment", "keep", "over", "fails")
    for name in ("open_valid", "open_run", "way", "read", "take", "outstanding_next", *decided):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    ways = rng.sample(range(2 * ENTRIES * RUNS), 4)
    ways += [way ^ 1 for way in ways if way ^ 1 not in ways]
    records: dict[int, dict[str, Any]] = {}
    segment = 64 * rng.randint(1, 32)
    terms = random_record(rng, TERMS) | {"segment_bytes": segment, "eager_limit": 2 * segment}
    dut.terms_i.value = pack(TERMS, terms)

    async def check(record: dict[str, Any], looks: list[dict[str, Any]]) -> None:
        await Timer(1, "ns")
        for name, value in expected(record, looks, terms).items():
            assert int(getattr(dut, f"{name}_o").value) == value, f"{name} of {record}"
        got = unpack(TRANSFER, int(dut.message_o.value))
        assert got == record["message"]

    for _ in range(scaled(4000)):
        way = rng.choice(ways)
        dut.way_i.value = way
        begins = way not in records
        record = fresh(rng, ports, segment) if begins else records[way]
        end = expected(record, [], terms)["length"] + record["message"]["done"]
        looks = looks_of(rng, ports, record, end)
        if begins:
            # Grants are looked at when it is read again.
            looks = [look | {"has_grant": 0} for look in looks]
        seen_then = sum(pack(LOOK, look) << width_of(LOOK) * p for p, look in enumerate(looks))
        dut.look_q_i.value = seen_then
        await ClockCycles(dut.clk_i, 2)
        await FallingEdge(dut.clk_i)
        dut.read_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.read_i.value, dut.look_i.value = 0, seen_then
        assert bool(int(dut.active_o.value)) == (not begins)
        assert not int(dut.immediate_o.value)
        if begins:
            immediate = rng.random() < 0.3
            dut.message_i.value, dut.take_i.value = pack(TRANSFER, record["message"]), 1
            dut.immediate_i.value = int(immediate)
            for name in MASKS:
                getattr(dut, f"{name}_i").value = record["masks"][name]
            await FallingEdge(dut.clk_i)
            dut.take_i.value, dut.look_i.value = 0, rng.getrandbits(ports * width_of(LOOK))
            await check(record, looks)
            assert bool(int(dut.immediate_o.value)) == immediate
        else:
            await FallingEdge(dut.clk_i)
            dut.look_i.value = rng.getrandbits(ports * width_of(LOOK))
            await check(record, looks)
        # What becomes of it.
        message = record["message"]
        what = "asks" if begins else rng.choice(("windows", "segment", "segment", "over", "fails", ""))
        if what == "asks" and rng.random() < 0.8:
            dut.asks_i.value = dut.keep_i.value = 1
            records[way] = record
        elif what == "windows":
            dut.windows_i.value = dut.keep_i.value = 1
            message["limit"] = int(dut.window_end_o.value)
            if not message["granted"]:
                message["extended"] = int(dut.window_extended_o.value)
                message["extension"] = int(dut.window_extension_o.value)
            message["granted"] = 1
        elif what == "segment" and not message["gone"]:
            dut.segment_i.value = dut.keep_i.value = 1
            message["gone"] = int(message["bytes"] - message["done"] <= segment)
            message["done"] = end
        elif what == "over" and rng.random() < 0.3:
            dut.over_i.value = 1
            records.pop(way)
        elif what == "fails" and rng.random() < 0.3:
            dut.fails_i.value = 1
            records.pop(way)
            records.pop(way ^ 1, None)
        seen[what] += 1
        for name in ("here", "differs", "gone"):
            seen[name] += bool(expected(record, looks, terms).get(name, message.get(name)))
        await FallingEdge(dut.clk_i)
        for name in decided:
            getattr(dut, f"{name}_i").value = 0
        if rng.random() < 0.02:
            run = rng.choice(ways) >> 1
            dut.open_valid_i.value, dut.open_run_i.value = 1, run
            for one in (2 * run, 2 * run + 1):
                records.pop(one, None)
            await FallingEdge(dut.clk_i)
            dut.open_valid_i.value = 0
    assert min(seen.values()) > 10, seen


@pytest.mark.parametrize("ports", [8, full(28)])
def test_unisono_switch_transfer(ports: int) -> None:
    simulate("unisono_switch_transfer", __file__, {"Ports": ports})
