"""The records by which the modules of a switch's unit talk (rtl/switch/unisono_switch_pkg.sv), as numbers."""

from __future__ import annotations

import random
from typing import Any

ENTRIES, RUNS, EAGER_BUFFERS = 8, 8, 16
EXTENSIONS, WINDOW_FACTOR = 4, 4

Layout = dict[str, int | dict[str, int]]
"""Fields and their bits, from the highest down; a record within a record by its own layout."""

TERMS: Layout = {"communicator": 32, "epoch": 16, "rank": 16, "eager_limit": 16, "segment_bytes": 16, "credits": 16}
NEIGHBOUR: dict[str, int] = {"is_switch": 1, "rank": 16, "address": 16}
WAITING: dict[str, int] = {
    "asked": 1,
    "place": 4,
    "sequence": 32,
    "signature": 32,
    "dtype": 6,
    "tag": 24,
    "bytes": 48,
}
GRANTED: dict[str, int] = {"sequence": 32, "signature": 32, "slot": 16, "generation": 16, "limit": 48}
LOOK: Layout = {
    "there": 1,
    "head": WAITING,
    "has_grant": 1,
    "grant": GRANTED,
    "has_credit": 1,
    "arrived": 48,
    "whole": 1,
    "neighbour": NEIGHBOUR,
}
TRANSFER: Layout = {
    "granted": 1,
    "gone": 1,
    "several": 1,
    "next": 14,
    "goes_down": 1,
    "tag": 24,
    "func": 8,
    "dtype": 6,
    "sequence": 32,
    "signature": 32,
    "bytes": 48,
    "done": 48,
    "limit": 48,
    "extended": 1,
    "extension": (EXTENSIONS - 1).bit_length(),
}
SEND: Layout = {
    "kind": 4,
    "by_grant": 1,
    "first": 1,
    "last": 1,
    "entry": (ENTRIES - 1).bit_length(),
    "dtype": 6,
    "tag": 24,
    "sequence": 32,
    "signature": 32,
    "message_bytes": 48,
    "offset": 48,
    "segment_bytes": 16,
    "token_slot": 16,
    "token_generation": 16,
}


def width_of(layout: Any) -> int:
    """Bits of a record."""
    return sum(width if isinstance(width, int) else width_of(width) for width in layout.values())


def pack(layout: Any, fields: dict[str, Any]) -> int:
    """A record as a number; every field is named."""
    assert layout.keys() == fields.keys()
    number = 0
    for name, width in layout.items():
        value = fields[name] if isinstance(width, int) else pack(width, fields[name])
        bits = width if isinstance(width, int) else width_of(width)
        assert value >> bits == 0, f"{name} = {value:#x} has more than {bits} bits"
        number = number << bits | value
    return number


def unpack(layout: Any, number: int) -> dict[str, Any]:
    """The fields of a record."""
    fields: dict[str, Any] = {}
    for name, width in reversed(layout.items()):
        bits = width if isinstance(width, int) else width_of(width)
        value = number & (1 << bits) - 1
        fields[name] = value if isinstance(width, int) else unpack(width, value)
        number >>= bits
    assert number == 0
    return fields


def random_record(rng: random.Random, layout: Any) -> dict[str, Any]:
    """Random bits in every field."""
    return {
        name: rng.getrandbits(width) if isinstance(width, int) else random_record(rng, width)
        for name, width in layout.items()
    }
