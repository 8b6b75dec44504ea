"""unisono_space_gate: data and control ask a transport that is slow, refuses and answers late, against a model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
from bus import bursts, never, new_random, share, start_clock_and_reset
from cocotb.triggers import FallingEdge, RisingEdge
from hdl import scaled, simulate

HEADER_BYTES, CONTROL_BIT = 64, 1 << 15
SEGMENT_BYTES_AT = 256
"""Lowest bit of `segment_bytes` in a header."""


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def questions_of_both(dut: Any) -> None:
    rng, seen = new_random("space"), Counter[str]()
    space: tuple[int, int] | None = None
    control: tuple[int, int, int] | None = None  # message, session, payload
    asked = ""  # whose question the transport has
    granted = False  # the control message may pass
    answer_in = 0
    shown: str | None = None
    for name in ("space_valid", "in_valid", "out_ready", "query_ready", "grant_valid"):
        getattr(dut, f"{name}_i").value = 0
    await start_clock_and_reset(dut)
    pauses = [never, never, never, never]
    refuses = 0.3
    for cycle in range(scaled(30000, 8000)):
        if cycle % 200 == 0:
            pauses = [rng.choice([never, share(rng, 0.5), share(rng, 0.9), bursts(rng)]) for _ in pauses]
            refuses = rng.choice((0.0, 0.3, 0.9))
        if space is None and not pauses[0]():
            space = rng.getrandbits(15), rng.randint(0, 8192)
        if control is None and not pauses[1]():
            session, payload = rng.getrandbits(15), rng.choice((0, 0, rng.randint(0, 8192)))
            header = rng.getrandbits(512) & ~(0xFFFFFFFF << SEGMENT_BYTES_AT) | payload << SEGMENT_BYTES_AT
            control = ((header << 10 | rng.getrandbits(10)) << 16 | session) << 1 | 1, session, payload
        dut.space_valid_i.value = space is not None
        dut.space_session_i.value, dut.space_bytes_i.value = space or (rng.getrandbits(16), rng.getrandbits(14))
        dut.in_valid_i.value = control is not None
        dut.in_transmit_i.value = control[0] if control else rng.getrandbits(539)
        takes, hears = not pauses[2](), not pauses[3]()
        dut.out_ready_i.value, dut.query_ready_i.value = takes, hears
        answers, yes = bool(asked) and answer_in == 0, rng.random() >= refuses
        answer_in -= bool(asked) and answer_in > 0
        dut.grant_valid_i.value, dut.grant_granted_i.value = answers, yes
        await FallingEdge(dut.clk_i)
        ports = ("query_valid", "space_ready", "space_answer", "in_ready", "out_valid", "grant_ready")
        now = {name: bool(int(getattr(dut, f"{name}_o").value)) for name in ports}
        about = f"cycle {cycle}: {now}, {asked or 'nobody'} asks, granted {granted}"
        idle = not asked and not granted
        assert now["query_valid"] == (idle and (space is not None or control is not None)), about
        # Control goes first, but not before a question of data that is on offer.
        wants = "control" if control and shown != "data" else "data"
        if now["query_valid"]:
            session, payload = control[1:] if control and wants == "control" else space or (0, 0)
            question = session | (CONTROL_BIT if wants == "control" else 0), payload + HEADER_BYTES
            got = int(dut.query_session_o.value), int(dut.query_bytes_o.value)
            assert got == question, f"{about}: {got}, not {question}"
            seen["control goes first"] += bool(control and space) and wants == "control"
            seen["control waits for a question of data"] += bool(control) and wants == "data"
            shown = None if hears else wants
            seen["query waits"] += not hears
        assert (now["space_ready"] and space is not None) == (now["query_valid"] and hears and wants == "data"), about
        assert now["grant_ready"] or not answers, about
        assert now["space_answer"] == (answers and asked == "data"), about
        if now["space_answer"]:
            assert bool(int(dut.space_granted_o.value)) == yes, about
        assert now["out_valid"] == granted, about
        assert (now["in_ready"] and control is not None) == (granted and takes), about
        if granted:
            assert control is not None
            assert int(dut.out_transmit_o.value) == control[0], about
            seen["message waits"] += not takes
        await RisingEdge(dut.clk_i)
        if granted and takes:
            control, granted = None, False
            seen["passed"] += 1
        if answers:
            seen[f"{asked} {'granted' if yes else 'refused'}"] += 1
            granted, asked = asked == "control" and yes, ""
        if now["query_valid"] and hears:
            asked, answer_in = wants, rng.choice((0, 0, 1, 2, rng.randint(0, 12)))
            seen["late"] += answer_in > 0
            if wants == "data":
                space = None
    cases = [f"{who} {what}" for who in ("data", "control") for what in ("granted", "refused")]
    for what in (
        *cases,
        "control goes first",
        "control waits for a question of data",
        "query waits",
        "message waits",
        "late",
    ):
        assert seen[what] > 20, f"{what}: {seen}"
    assert seen["passed"] in (seen["control granted"], seen["control granted"] - 1)


def test_unisono_space_gate() -> None:
    simulate("unisono_space_gate", __file__)
