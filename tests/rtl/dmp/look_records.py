"""Records that the parts of the dispatcher say to each other, as rtl/dmp/unisono_look_pkg.sv has them."""

from __future__ import annotations

import random

from records import Fields
from records import pack as pack
from records import unpack as unpack

USE = [("used", 1), ("port", 4), ("ticket", 6)]
USES = [(f"{of}_{name}", bits) for of in ("source", "sink") for name, bits in USE]

RUN = [
    *[("generation", 2), ("func", 8), ("dtype", 6), ("swap", 1), ("op0", 1)],
    *[(f"op0_{name}", bits) for name, bits in USE],
    *[("op0_address", 64), ("op1_memory", 1), ("op1_address", 64), ("arrival", 1), ("fan_in", 1), ("pool", 9)],
    *[("source", 6), ("local", 1)],
    *[(f"local_{name}", bits) for name, bits in USE],
    *[("local_address", 64), ("send", 1), ("put", 1), ("get", 1), ("fan_out", 1), ("eager", 1), ("opens", 1)],
    *[("peer", 6), ("tag", 24), ("bytes", 48), ("segment", 14)],
]
PROGRESS = [
    *[("peers", 64), ("peer", 6), ("making", 1), ("made", 1), ("credited", 1), ("requested", 1), ("opening", 1)],
    *[("done", 1), ("position", 48)],
]
LOWERED = [*RUN, ("exists", 1), ("outside", 1), ("credited", 1), ("lowest", 6), ("one_piece", 1)]
LIST = [
    *[("walk", 2), ("counts", 1), ("first", 1), ("last", 1), ("makes", 1), ("keeps", 1), ("more", 1), ("peers", 64)],
    ("peer", 6),
]
SIZE = [
    ("own", 14),
    ("sized", 14),
    ("end", 48),
    ("after", 48),
    ("last", 1),
    ("granted", 1),
    ("parity", 1),
    ("waits", 1),
]
ID = [("slot", 3), ("entry", 5)]
LOOK = [
    *[("step", 5), *ID, ("offered", 1), ("offer_answer", 1), ("asks", 1), ("cleared", 1), ("adopted", 1)],
    *[("credit_asked", 1), ("space_asked", 1), ("issued_here", 1), ("bytes", 14)],
]
TAKES = [(name, 1) for name in ("issue", "wake", "next", "offer_answer", "offer_accepted")]
MEMORY = [(name, 1) for name in ("read_move", "read_run", "run_write", "progress_write", "live_raise", "live_clear")]
ANSWERS = [
    *[(f"credit_{name}", 1) for name in ("ready", "answer", "granted", "back_ready")],
    *[("adopt_ready", 1), ("space_ready", 1), ("space_answer", 1), ("space_granted", 1), ("post_ready", 1)],
    *[("head_answer", 1), ("take_ready", 1), ("job_ready", 1)],
]
STATE = [
    *[("point_to_point", 1), ("to_switch", 1), ("free", 1), ("follows", 1), ("streams", 1), ("held", 1)],
    *[("remote_busy", 1), ("overtakes", 1)],
]
EVENTS = [
    *[("begins", 1), ("parks", 1), ("again", 1), ("announced", 1), ("consumed", 1), ("sent", 1), ("complete", 1)],
    *[("fail", 1), ("remote_begin", 1), ("follow_waits", 1), ("stream_waits", 1)],
]
SEGMENT = [("valid", 1), ("buffer", 10), ("bytes", 14), ("last", 1), ("total", 48)]
PERMIT = [
    *[("step", 5), ("offered", 1), ("asks", 1), ("adopted", 1), ("credit_asked", 1), ("next_bytes", 14), ("eager", 1)],
    *[*PROGRESS, ("writes", 1), ("computes", 1), ("refuses", 1), ("forgets", 1), *EVENTS],
]
JOB = [
    *[*ID, ("generation", 2), ("last", 1), ("wakes", 1), ("bytes", 14), ("func", 8), ("dtype", 6), ("swap", 1)],
    *[("wide", 1), ("op0", 2), ("op0_address", 64), ("op1", 2), ("op1_address", 64), ("releases", 1), ("buffer", 10)],
    *[("accumulate", 1), ("local", 1), ("local_address", 64), ("stream", 1), ("starts", 1), ("serves", 1), ("send", 1)],
    *[("header", 512), ("communicator", 4), ("peer", 6), ("session", 16), ("control", 1)],
]
CONTEXT = [("signature", 32), ("tag", 32), ("sequence", 32), ("dtype", 6), ("point_to_point", 1), ("communicator", 4)]
GRANT = [("generation", 16), ("slot", 16), ("limit", 48)]
COMMUNICATOR = [
    *[("number", 32), ("epoch", 16), ("eager_limit", 32), ("segment_bytes", 32), ("rx_buffers", 16)],
    *[("opens", 1), ("kept", 15)],
    *[("size", 7), ("members", 7), ("rank", 6)],
]


def width(fields: Fields) -> int:
    """Bits of a record."""
    return sum(bits for _, bits in fields)


def random_record(rng: random.Random, fields: Fields) -> dict[str, int]:
    """Any bits."""
    return {name: rng.getrandbits(bits) for name, bits in fields}
