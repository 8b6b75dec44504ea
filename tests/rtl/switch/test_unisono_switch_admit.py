"""unisono_switch_admit: headers of all types, right but for at most one field, against the rules in Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import cocotb
from bus import new_random
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from hdl import scaled, simulate
from headers import Datatype, Header, MessageType
from unit_records import NEIGHBOUR, TERMS, pack, random_record

RUN, SEGMENT, EAGER = 21, 4096, 2048
KINDS = [MessageType[name] for name in ("EAGER", "REQUEST", "WRITE", "WRITE", "GRANT", "CREDIT")]


def header_of(rng, kind, window, terms, source):
    """A message that is taken if there is room."""
    data = kind in (MessageType.EAGER, MessageType.WRITE) and rng.random() < 0.8
    size = rng.choice((64, EAGER)) if kind == MessageType.EAGER else rng.choice((64, SEGMENT))
    last = kind != MessageType.WRITE or size != SEGMENT or rng.random() < 0.5
    return Header(
        type=kind, dtype=Datatype.FP32, first=kind != MessageType.WRITE or window["arrived"] == 0, last=last,
        source=source, destination=terms["rank"], sequence=RUN % 8, tag=rng.getrandbits(24), message_bytes=1 << 20,
        segment_bytes=size if data else 0, offset=window["arrived"] if kind == MessageType.WRITE else 0,
        token_slot=RUN, token_generation=window["generation"],
    )  # fmt: skip


WRONG = {
    "source": lambda h: h.source ^ 1, "destination": lambda h: h.destination ^ 2, "point_to_point": lambda h: 1,
    "stream": lambda h: 1, "trailer": lambda h: 1, "tag": lambda h: h.tag | 1 << 24, "first": lambda h: 1 - h.first,
    "last": lambda h: 1 - h.last, "segment_bytes": lambda h: h.segment_bytes + 1, "offset": lambda h: h.offset + 64,
    "token_slot": lambda h: h.token_slot ^ 8, "token_generation": lambda h: (h.token_generation - 1) & 0xFFFF,
}  # fmt: skip


def sound(h, terms, source, found):
    """It is of this neighbour, and says nothing that no switch hears."""
    odd = h.point_to_point or h.stream or h.trailer or h.tag >> 24
    mine = (h.source, h.destination) == (source, terms["rank"])
    return bool(found and mine and not odd and h.segment_bytes <= terms["segment_bytes"])


def taken(h, terms, window, there):
    """A sound message is taken."""
    data = bool(h.segment_bytes)
    if h.type == MessageType.EAGER:
        fits = h.first and h.last and h.segment_bytes <= terms["eager_limit"]
        return bool(fits and there["room"] and (not data or there["buffer_free"]))
    if h.type == MessageType.REQUEST:
        return bool(not data and there["room"])
    if h.type == MessageType.GRANT:
        return bool(not data and (there["grant_known"] or not there["grants_full"]))
    if h.type != MessageType.WRITE:
        return not data
    token = (h.token_slot, h.token_generation) == (RUN, window["generation"])
    next_one = h.offset == window["arrived"] and h.offset + h.segment_bytes <= window["limit"]
    whole = h.last or h.segment_bytes == terms["segment_bytes"]
    return bool(window["open"] and (window["fresh"] or not window["whole"]) and token and next_one and whole)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def headers(dut):
    rng, seen = new_random("admit"), Counter()
    Clock(dut.clk_i, 4, unit="ns").start()
    for _ in range(scaled(30000, 8000)):
        terms = random_record(rng, TERMS) | {"rank": rng.randrange(64), "eager_limit": EAGER, "segment_bytes": SEGMENT}
        source = rng.randrange(64)
        arrived = SEGMENT * rng.randrange(4)
        limit = arrived + rng.choice((SEGMENT, SEGMENT, 64, 16 * SEGMENT))
        window = {"open": rng.random() < 0.8, "fresh": arrived == 0, "whole": rng.random() < 0.2}
        window |= {"generation": rng.getrandbits(16), "limit": limit, "arrived": arrived}
        there = {name: rng.random() < 0.8 for name in ("room", "buffer_free", "grant_known", "grants_full", "found")}
        kind = rng.choice(KINDS)
        header = header_of(rng, kind, window, terms, source)
        wrong = ""
        if rng.random() < 0.5:
            wrong = rng.choice(list(WRONG))
            header = replace(header, **{wrong: WRONG[wrong](header)})
        elif kind == MessageType.WRITE and rng.random() < 0.3:
            header = replace(header, token_generation=(header.token_generation - rng.choice((1, 2))) & 0xFFFF)
        dut.header_i.value = int.from_bytes(header.encode(), "little")
        dut.terms_i.value, dut.from_i.value = (
            pack(TERMS, terms),
            pack(NEIGHBOUR, random_record(rng, NEIGHBOUR) | {"rank": source}),
        )
        dut.run_i.value = RUN
        for name in ("generation", "limit", "arrived"):
            getattr(dut, f"{name}_i").value = window[name]
        if window["fresh"]:  # what came before does not count
            dut.arrived_i.value = SEGMENT * rng.randrange(4)
        await FallingEdge(dut.clk_i)
        # In the next cycle the memories may say something else.
        dut.terms_i.value, dut.from_i.value = pack(TERMS, random_record(rng, TERMS)), rng.getrandbits(33)
        for name in ("generation", "limit", "arrived"):
            getattr(dut, f"{name}_i").value = rng.getrandbits(16)
        for name, value in (there | {name: window[name] for name in ("open", "fresh", "whole")}).items():
            getattr(dut, f"{name}_i").value = value
        await Timer(1, unit="ns")
        is_sound = sound(header, terms, source, there["found"])
        accept = is_sound and taken(header, terms, window, there)
        closed = (window["generation"] - header.token_generation) % (1 << 16) == (2 if window["open"] else 1)
        late = is_sound and kind == MessageType.WRITE and header.token_slot == RUN and closed
        found = (int(dut.sound_o.value), int(dut.accept_o.value), int(dut.late_o.value))
        assert found == (is_sound, accept, late), (found, header, wrong, window, there)
        buffers = accept and kind == MessageType.EAGER and bool(header.segment_bytes)
        assert int(dut.buffers_o.value) == buffers
        assert int(dut.has_payload_o.value) == bool(header.segment_bytes or header.trailer)
        kinds = [int(getattr(dut, f"is_{name}_o").value) for name in ("eager", "request", "write", "grant")]
        want = [kind == one for one in ("EAGER", "REQUEST", "WRITE", "GRANT") for one in [MessageType[one]]]
        assert kinds == want
        seen[f"{kind.name} {'taken' if accept else 'not'}"] += 1
        seen["late"] += late
        if wrong:
            seen[f"wrong {wrong}"] += 1
    assert min(seen.values()) > 20, seen


def test_unisono_switch_admit():
    simulate("unisono_switch_admit", __file__)
