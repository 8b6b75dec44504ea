"""Records that the parts of the dispatcher say to each other, as rtl/dmp/unisono_look_pkg.sv has them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

Fields = Sequence[tuple[str, int]]
"""Names and bits, the highest first."""

USE = [("used", 1), ("port", 4), ("ticket", 6)]
USES = [(f"{of}_{name}", bits) for of in ("source", "sink") for name, bits in USE]

RUN = [
    *[("generation", 2), ("func", 8), ("dtype", 6), ("swap", 1), ("op0", 1)],
    *[(f"op0_{name}", bits) for name, bits in USE],
    *[("op0_address", 64), ("op1_memory", 1), ("op1_address", 64), ("arrival", 1), ("fan_in", 1), ("pool", 9)],
    *[("source", 6), ("local", 1)],
    *[(f"local_{name}", bits) for name, bits in USE],
    *[("local_address", 64), ("send", 1), ("put", 1), ("get", 1), ("fan_out", 1), ("eager", 1), ("peer", 6)],
    *[("tag", 24), ("bytes", 48), ("segment", 14)],
]
PROGRESS = [
    *[("peers", 64), ("peer", 6), ("making", 1), ("made", 1), ("credited", 1), ("requested", 1), ("done", 1)],
    ("position", 48),
]
LOWERED = [*RUN, ("exists", 1), ("outside", 1), ("credited", 1), ("lowest", 6), ("one_piece", 1)]
GRANT = [("generation", 16), ("slot", 16), ("limit", 48)]
COMMUNICATOR = [
    *[("number", 32), ("epoch", 16), ("eager_limit", 32), ("segment_bytes", 32), ("rx_buffers", 16)],
    *[("size", 7), ("members", 7), ("rank", 6)],
]


def width(fields: Fields) -> int:
    """Bits of a record."""
    return sum(bits for _, bits in fields)


def pack(fields: Fields, values: Mapping[str, int]) -> int:
    """A record as a number; what is not named is 0."""
    unknown = set(values) - {name for name, _ in fields}
    assert not unknown, unknown
    result = 0
    for name, bits in fields:
        value = int(values.get(name, 0))
        assert 0 <= value < 1 << bits, f"{name} = {value:#x}"
        result = result << bits | value
    return result


def unpack(fields: Fields, value: int) -> dict[str, int]:
    """The other way round."""
    values = {}
    for name, bits in reversed(fields):
        values[name] = value & (1 << bits) - 1
        value >>= bits
    assert value == 0
    return values


def random_record(rng: random.Random, fields: Fields) -> dict[str, int]:
    """Any bits."""
    return {name: rng.getrandbits(bits) for name, bits in fields}
