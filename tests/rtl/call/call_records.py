"""Records that the parts of the call queue say to each other, as rtl/call/unisono_call_pkg.sv has them."""

from __future__ import annotations

from records import Fields
from records import pack as pack
from records import unpack as unpack

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
