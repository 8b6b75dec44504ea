"""Records of calls and messages, as the parts of the receive-buffer manager take them."""

from dataclasses import dataclass

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
        value = self.signature << 32 | self.tag
        value = value << 32 | self.sequence
        value = value << dtype_bits | self.dtype
        return (value << 1 | self.point_to_point) << 4 | self.communicator


def drive_context(dut, slot, context):
    """Shows a call's context in its slot."""
    port = dut.contexts_i[slot]
    port.value = context.bits(len(port) - 96 - 1 - 4)
