"""unisono_switch_windows: extensions are lent once and come back, and windows end where they should."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
import pytest
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge
from hdl import full, parameters, scaled, simulate
from unit_records import ENTRIES, EXTENSIONS, RUNS, WINDOW_FACTOR


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_messages(dut: Any) -> None:
    """Each run has a message, which is granted, raised and over, or ends with its run."""
    rng = new_random("windows")
    segments, seen = parameters()["WindowSegments"], Counter[str]()
    for name in ("grant_i", "over_i", "fails_i", "open_valid_i", "open_run_i"):
        getattr(dut, name).value = 0
    await start_clock_and_reset(dut)
    lent: dict[int, int] = {}
    messages: dict[int, dict[str, int]] = {}
    runs = [rng.randrange(ENTRIES * RUNS) for _ in range(2 * EXTENSIONS)]
    segment = 64 * rng.randint(1, 64)
    for _ in range(scaled(8000)):
        await FallingEdge(dut.clk_i)
        run = rng.choice(runs)
        length = rng.choice((segment, rng.randint(1, 60 * segment)))
        message = messages.setdefault(run, {"bytes": length, "granted": 0, "limit": 0, "done": 0, "lent": -1})
        # Of what has gone on, some segments are still being folded; before a grant, some of the message before.
        gone = -(-message["done"] // segment)
        outstanding = rng.randint(0, min(gone, 9) if message["granted"] else 9)
        extended = int(message["lent"] >= 0)
        dut.run_i.value, dut.segment_i.value, dut.bytes_i.value = run, segment, message["bytes"]
        dut.done_i.value, dut.outstanding_next_i.value = message["done"], outstanding
        dut.granted_i.value, dut.limit_i.value = message["granted"], message["limit"]
        dut.extended_i.value, dut.extension_i.value = extended, max(message["lent"], 0)
        dut.grant_i.value = dut.over_i.value = dut.fails_i.value = dut.open_valid_i.value = 0
        free = [number for number in range(EXTENSIONS) if number not in lent]
        lends = bool(free) and message["bytes"] > segment * segments
        size = segments * (WINDOW_FACTOR if (extended if message["granted"] else lends) else 1)
        kept = max(message["done"] - segment * outstanding, 0) if message["granted"] else 0
        end = min(kept + size * segment, message["bytes"])
        quarter = max(size // 4, 1) * segment
        await FallingEdge(dut.clk_i)
        assert bool(int(dut.lends_o.value)) == lends
        if free:
            assert int(dut.free_o.value) == free[0]
        if not message["granted"] or message["done"] >= segment * outstanding:
            assert int(dut.end_o.value) == end
            raises = (
                message["granted"]
                and end > message["limit"]
                and (end == message["bytes"] or end - message["limit"] >= quarter)
            )
            assert bool(int(dut.raises_o.value)) == bool(raises)
            seen["raised"] += bool(raises)
        if not message["granted"]:
            dut.grant_i.value = 1
            message["granted"], message["limit"] = 1, end
            if lends:
                message["lent"] = free[0]
                lent[free[0]] = run
                seen["lent"] += 1
            else:
                seen["not lent"] += not free
        elif rng.random() < 0.02:
            how = rng.choice(("fails", "open"))
            if how == "fails":
                dut.fails_i.value = 1
            else:
                dut.open_valid_i.value, dut.open_run_i.value = 1, run
            lent = {number: of for number, of in lent.items() if of != run}
            del messages[run]
            seen[how] += 1
        elif message["done"] == message["bytes"]:
            dut.over_i.value = 1
            lent.pop(message["lent"], None)
            del messages[run]
            seen["over"] += 1
        elif message["limit"] < message["bytes"] and end > message["limit"]:
            message["limit"] = end
            message["done"] = min(message["done"] + segment * rng.randint(0, 2), message["limit"])
        else:
            message["done"] = min(message["done"] + segment * rng.randint(0, 3), message["limit"])
    assert min(seen["raised"], seen["lent"], seen["not lent"], seen["over"]) > 30
    assert min(seen["fails"], seen["open"]) > 5


@pytest.mark.parametrize("segments", [4, full(8)])
def test_unisono_switch_windows(segments: int) -> None:
    simulate("unisono_switch_windows", __file__, {"WindowSegments": segments, "CountWidth": 5})
