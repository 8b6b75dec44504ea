"""Records that the parts of the call queue say to each other, as rtl/call/unisono_call_pkg.sv has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Fields = Sequence[tuple[str, int]]
"""Names and bits, the highest first."""

CANDIDATE: Fields = [
    *[("place", 2), ("order", 3), ("communicator", 9), ("call_id", 32), ("wait0", 32), ("wait1", 32), ("tag", 32)],
    *[("deadline_us", 32), ("mode", 2), ("src_stream", 1), ("dst_stream", 1), ("src_port", 4), ("dst_port", 4)],
    ("code", 8),
]
FOUND: Fields = [
    *[("twin", 1), ("wait0", 1), ("wait1", 1), ("order", 1), ("wait0_at", 5), ("wait1_at", 5), ("order_at", 5)],
    *[("wait0_code", 8), ("wait1_code", 8)],
]
NONE, SLOT, KERNEL = range(3)
"""Places."""


def pack(fields: Fields, values: Mapping[str, int]) -> int:
    """A record as a number; what is not named is 0."""
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
