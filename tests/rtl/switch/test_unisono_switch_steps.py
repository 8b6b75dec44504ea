"""unisono_switch_steps: every look comes to its end, in its number of cycles, and decides what it is to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
from bus import new_random, start_clock_and_reset
from cocotb.triggers import FallingEdge, Timer
from hdl import scaled, simulate

CONDITIONS = (
    *("thrown", "latest_differs", "active", "several", "nothing", "past", "skips", "mine", "differs", "missing"),
    *("fresh_immediate", "receiver_differs", "wants_window", "gone", "here", "room", "immediate", "folded", "raises"),
    *("empty", "asks_may", "windows_may", "fails_may", "start_ready"),
)
DECISIONS = ("turn", "again_way", "again_run", "asks", "windows", "segments", "starts", "keeps", "over", "fails")
WAITS = {"look1": "look2", "look2": "begin", "turn": "look2", "root": "place", "action1": "action2"}
WAITS |= {"action2": "action3", "action3": "eval", "segment": "fetch1", "fetch1": "fetch2", "fetch2": "start"}
UNDECIDED = ("look1", "look2", "turn", "root", "place", "action1", "action2", "action3")


def step(state: str, c: dict[str, bool], next_valid: bool, turned: bool) -> tuple[str, set[str]]:
    """The next state, and what is decided, if nothing urgent comes between; in the order in which reasons count."""
    does: set[str] = set()
    to = WAITS.get(state, "idle")

    def turn() -> str:
        does.add("turn")
        return "idle" if turned else "turn"

    if state == "idle":
        to = "look1" if next_valid else "idle"
    elif state == "begin":
        if c["thrown"]:
            does.add("again_run")
        elif c["active"]:
            to = "transfer"
        elif c["several"]:
            to = "root"
        else:
            to = turn() if c["nothing"] else "action1"
    elif state == "place":
        if c["past"]:
            to = "fail"
        elif c["skips"]:
            to = "place"
        else:
            to = "action1" if c["mine"] else turn()
    elif state == "eval":
        if c["differs"]:
            to = "fail"
        elif c["missing"]:
            to = turn()
        else:
            to = "transfer" if c["fresh_immediate"] else "ask"
    elif state in ("ask", "window"):
        if c["asks_may" if state == "ask" else "windows_may"]:
            does |= {"asks" if state == "ask" else "windows", "keeps", "again_way"}
        else:
            does.add("again_run")
    elif state == "transfer":
        if c["receiver_differs"]:
            to = "fail"
        elif c["wants_window"]:
            to = "window"
        elif not c["gone"] and c["here"]:
            if not c["room"]:
                does.add("again_run")
                to = turn()
            elif c["immediate"]:
                does.add("segments")
                to = "fetch1"
            else:
                to = "segment"
        elif c["gone"] and c["folded"]:
            to = "over"
        else:
            to = "window" if c["raises"] else turn()
    elif state == "segment":
        does.add("segments")
    elif state == "start":
        if not c["empty"]:
            does.add("starts")
        if not c["empty"] and not c["start_ready"]:
            to = "start"
        elif c["immediate"]:
            to = "over"
        else:
            does |= {"keeps", "again_way"}
    elif state == "over":
        does |= {"over", "again_run"}
    elif state == "fail":
        does.add("again_run")
        if c["fails_may"]:
            does.add("fails")
    return to, does


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def random_looks(dut: Any) -> None:
    rng, seen = new_random("steps"), Counter[str]()
    for name in (*CONDITIONS, "next_valid", "next_urgent", "next_yields"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    state, turned, yields, began = "idle", False, False, False
    chance = dict.fromkeys(CONDITIONS, 0.5) | {"thrown": 0.1, "latest_differs": 0.1, "receiver_differs": 0.1}
    for _ in range(scaled(40_000)):
        await FallingEdge(dut.clk_i)
        given = {name: rng.random() < chance[name] for name in CONDITIONS}
        next_urgent, next_yields = rng.random() < 0.2, rng.random() < 0.5
        next_valid = next_urgent or rng.random() < 0.5
        for name, value in given.items():
            getattr(dut, f"{name}_i").value = int(value)
        dut.next_valid_i.value, dut.next_urgent_i.value = int(next_valid), int(next_urgent)
        dut.next_yields_i.value = int(next_yields)
        await Timer(1, "ns")
        ends = began and given["latest_differs"]
        to, does = ("fail", set[str]()) if ends else step(state, given, next_valid, turned)
        picks = not ends and (to == "look1" if state == "idle" else state in UNDECIDED and yields and next_urgent)
        if ends:
            seen[f"ends in {state}"] += 1
        if picks and state != "idle":
            to = "look1"
            does.add("again_run")
            seen["yields"] += 1
        assert bool(int(dut.pick_o.value)) == picks, state
        where = {"look": "look2", "begin": "begin", "other_way": "turn", "place": "place", "action": "action1"}
        where |= {"judged": "eval", "transfer": "transfer", "start": "start"}
        for name, of in where.items():
            stopped = ends and name in ("other_way", "transfer")
            assert bool(int(getattr(dut, f"{name}_o").value)) == (state == of and not stopped), f"{name} in {state}"
        for name in DECISIONS:
            assert bool(int(getattr(dut, f"{name}_o").value)) == (name in does), f"{name} in {state}: {given}"
        seen[state] += 1
        began = state == "begin" and not given["thrown"]
        if picks:
            turned, yields = next_urgent, next_yields
        elif state == "turn":
            turned = True
        state = to
    assert min(seen.values()) > 3, seen
    assert len(seen) == 26, seen


def test_unisono_switch_steps() -> None:
    simulate("unisono_switch_steps", __file__)
