"""Records of calls and messages, as the parts of the receive-buffer manager take them."""

from dataclasses import dataclass

from records import pack

CALLS = 8


@dataclass
class Context:
    """call_context_t."""

    signature: int
    tag: int
    sequence: int
    point_to_point: bool
    communicator: int
    dtype: int = 0

    def bits(self, dtype_bits):
        """As the port has it."""
        fields = [("signature", 32), ("tag", 32), ("sequence", 32), ("dtype", dtype_bits), ("point_to_point", 1)]
        return pack([*fields, ("communicator", 4)], vars(self))


def drive_context(dut, slot, context):
    """Shows a call's context in its slot."""
    port = dut.contexts_i[slot]
    port.value = context.bits(len(port) - 96 - 1 - 4)


def record_fields(width):
    """record_t, whose width tells how wide a place in a window is; those of the next arrival begin with `next_`."""
    fixed = 24 + 48 + 48 + 4 + 1 + 2
    entry = (width - (fixed + 2 + 1 + 1 + 24 + 4 * 48 + 5 + 16 + 1 + 10 + 10 + 5)) // 2
    following = [("posted", 1), ("entry", entry), ("program", 2), ("tag", 24), ("total", 48), ("limit", 48)]
    following += [("rendezvous", 1), ("fan_in", 1), ("ample", 1), ("granted", 1)]
    own = [("program", 2), ("granted", 1), ("posted", 1), ("entry", entry), ("tag", 24), ("total", 48)]
    own += [("received", 48), ("consumed", 48), ("limit", 48), ("rendezvous", 1), ("fan_in", 1), ("ample", 1)]
    own += [
        ("requested", 1),
        ("bound", 1),
        ("generation", 16),
        ("listed", 1),
        ("head", 10),
        ("tail", 10),
        ("written", 5),
    ]
    fields = [(f"next_{name}", bits) for name, bits in following] + own
    assert sum(bits for _, bits in fields) == width
    return fields


COMMUNICATOR = [("number", 32), ("epoch", 16), ("eager_limit", 32), ("segment_bytes", 32), ("rx_buffers", 16)]
COMMUNICATOR += [("opens", 1), ("kept", 15), ("size", 7), ("members", 7), ("rank", 6)]
"""communicator_entry_t."""

INFO = [("grant", 1), ("request", 1), ("point_to_point", 1), ("continues", 1), ("opens", 1), ("communicator", 4)]
INFO += [("source", 6), ("key", 32)]
INFO += [("signature", 32), ("ends", 48), ("bytes", 14), ("last", 1), ("tag", 24), ("total", 48)]
"""info_t."""
