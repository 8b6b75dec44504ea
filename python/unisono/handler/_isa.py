# Generated from spec/ by `python -m spec.generator`. Do not edit.
"""Instructions of handlers in a switch: enumerations, their encoded form, limits."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from .._spec import _bits, _enumerator, _flag, _integer, _unsigned


class Function(IntEnum):
    """When a handler runs."""

    #: once at a message's first packet, before its payload
    HEADER = 0
    #: at each packet
    PAYLOAD = 1
    #: once after a message's last packet
    COMPLETION = 2


class Element(IntEnum):
    """What an instruction's operands are.

    Scalar registers and lanes have 64 bits; those that an element does not need are 0.
    """

    #: integer of 8 bits
    I8 = 0
    #: integer of 16 bits
    I16 = 1
    #: integer of 32 bits
    I32 = 2
    #: integer of 64 bits
    I64 = 3
    #: IEEE 754 binary32
    FP32 = 4
    #: IEEE 754 binary64
    FP64 = 5
    #: IEEE 754 binary16, in memory and conversions; registers hold it as fp32
    FP16 = 6
    #: bfloat16, in memory and conversions; registers hold it as fp32
    BF16 = 7

    @property
    def bytes(self) -> int:
        """Attribute `bytes` of the element."""
        return _ELEMENT_BYTES[self]


_ELEMENT_BYTES: Final[dict[Element, int]] = {
    Element.I8: 1,
    Element.I16: 2,
    Element.I32: 4,
    Element.I64: 8,
    Element.FP32: 4,
    Element.FP64: 8,
    Element.FP16: 2,
    Element.BF16: 2,
}


class Info(IntEnum):
    """What a handler can ask about its packet."""

    #: bytes of the packet's payload; 0 in header and completion functions
    LENGTH = 0
    #: number of the packet in its message, from 0
    PACKET = 1
    #: packets of the message
    PACKETS = 2
    #: rank that sends the message
    SOURCE = 3
    #: ranks of the communicator
    RANKS = 4
    #: tag of the message
    TAG = 5

    @property
    def most(self) -> int:
        """Attribute `most` of the info."""
        return _INFO_MOST[self]


_INFO_MOST: Final[dict[Info, int]] = {
    Info.LENGTH: 8192,
    Info.PACKET: 16777215,
    Info.PACKETS: 16777216,
    Info.SOURCE: 16777215,
    Info.RANKS: 16777216,
    Info.TAG: 4294967295,
}


class Stop(IntEnum):
    """Why a handler ended."""

    #: it came to its end
    NONE = 0
    #: it executed as many instructions as it may
    BUDGET = 1
    #: a loop went round more often than its bound
    LOOP_BOUND = 2
    #: it reached beyond its memory
    MEMORY = 3
    #: it read beyond the packet's payload
    PAYLOAD = 4
    #: it wrote more than there is room for
    OUTPUT = 5
    #: it divided an integer by 0
    DIVIDE = 6


class Op(IntEnum):
    """Instructions of a handler."""

    #: no instruction
    NONE = 0
    #: the function ends; its verdict is the second operand's low 32 bits
    END = 1
    #: goes on at imm, which is ahead
    JUMP = 2
    #: goes on at imm, which is ahead, if ra is not 0 (aux 1: if it is 0)
    BRANCH = 3
    #: before a loop: it may go round imm times
    ENTER = 4
    #: goes round: on at imm, which is behind, if ra is not 0 (aux 1: if it is 0, aux 2: always)
    AGAIN = 5
    #: rd = imm, sign-extended
    SET = 6
    #: the high 32 bits of rd = imm
    SET_HIGH = 7
    #: rd = ra
    MOVE = 8
    #: all lanes of rd = ra
    SPLAT = 9
    #: rd = lane of ra; the lane is the second operand's low 4 bits
    EXTRACT = 10
    #: a lane of rd = ra
    INSERT = 11
    #: rd += lane 0 of ra, then lane 1, and so on
    SUM = 12
    #: rd = what imm (an info) names
    INFO = 13
    #: a + b
    ADD = 16
    #: a - b
    SUB = 17
    #: a * b
    MUL = 18
    #: a / b, floating point
    DIV = 19
    #: a / b
    DIV_UNSIGNED = 20
    #: a / b toward 0; the least number / -1 wraps
    DIV_SIGNED = 21
    #: what remains of a / b
    REM_UNSIGNED = 22
    #: what remains of a / b, with the sign of a
    REM_SIGNED = 23
    #: bits that both have
    AND = 24
    #: bits that one has
    OR = 25
    #: bits in which they differ
    XOR = 26
    #: a << b, modulo the element's bits
    SHIFT_LEFT = 27
    #: a >> b with zeros from above
    SHIFT_RIGHT = 28
    #: a >> b with the sign from above
    SHIFT_SIGNED = 29
    #: the lesser, of unsigned numbers; IEEE 754-2019 minimum
    MIN = 30
    #: the greater, of unsigned numbers; IEEE 754-2019 maximum
    MAX = 31
    #: the lesser, of signed numbers
    MIN_SIGNED = 32
    #: the greater, of signed numbers
    MAX_SIGNED = 33
    #: 1 if a is what aux says, a sum: 1 less, 2 equal, 4 greater, 8 unordered; otherwise 0
    COMPARE = 34
    #: the same of signed numbers
    COMPARE_SIGNED = 35
    #: rb if ra is not 0, otherwise rc; lane by lane
    SELECT = 36
    #: bits of a that are 1
    POPCOUNT = 37
    #: zeros above a's highest 1; the element's bits if there is none
    LEADING_ZEROS = 38
    #: zeros below a's lowest 1; the element's bits if there is none
    TRAILING_ZEROS = 39
    #: a's bytes in the other order
    SWAP_BYTES = 40
    #: the element's bits of a
    TRUNCATE = 41
    #: a, an integer of element aux, with its sign
    SIGN_EXTEND = 42
    #: the nearest number to a, an unsigned integer of element aux
    FROM_UNSIGNED = 43
    #: the nearest number to a, a signed integer of element aux
    FROM_SIGNED = 44
    #: a, of element aux, toward 0; the nearest integer there is; 0 of NaN
    TO_UNSIGNED = 45
    #: the same, to a signed integer
    TO_SIGNED = 46
    #: a, of element aux, rounded to the nearest
    CONVERT = 47
    #: rd = the element in memory at ra + imm; vector: 16 of them
    LOAD = 48
    #: the element in memory at ra + imm = rd; vector: 16 of them
    STORE = 49
    #: rd = the element in the payload at ra + imm
    TAKE = 50
    #: lanes of rd = 16 elements in the payload at ra + imm; lanes beyond its end stay as they are
    TAKE_LANES = 51
    #: writes an element to the output stream
    PUT = 52
    #: writes as many first lanes of ra as the second operand says, 16 at most
    STREAMOUT = 53
    #: table[i] += rb for lanes i of rd in their order, if i < rc; the table is at ra
    SPVACC_VX = 54
    #: the same with the lane of rb
    SPVACC_VV = 55
    #: rd += table[i] for lanes i of ra in their order, if i < rc; the table is at rb
    SPVACC_XV = 56

    @property
    def auxes(self) -> int:
        """Attribute `auxes` of the op."""
        return _OP_AUXES[self]

    @property
    def form(self) -> int:
        """Attribute `form` of the op."""
        return _OP_FORM[self]

    @property
    def types(self) -> int:
        """Attribute `types` of the op."""
        return _OP_TYPES[self]


_OP_AUXES: Final[dict[Op, int]] = {
    Op.NONE: 0,
    Op.END: 1,
    Op.JUMP: 1,
    Op.BRANCH: 2,
    Op.ENTER: 1,
    Op.AGAIN: 3,
    Op.SET: 1,
    Op.SET_HIGH: 1,
    Op.MOVE: 1,
    Op.SPLAT: 1,
    Op.EXTRACT: 1,
    Op.INSERT: 1,
    Op.SUM: 1,
    Op.INFO: 1,
    Op.ADD: 1,
    Op.SUB: 1,
    Op.MUL: 1,
    Op.DIV: 1,
    Op.DIV_UNSIGNED: 1,
    Op.DIV_SIGNED: 1,
    Op.REM_UNSIGNED: 1,
    Op.REM_SIGNED: 1,
    Op.AND: 1,
    Op.OR: 1,
    Op.XOR: 1,
    Op.SHIFT_LEFT: 1,
    Op.SHIFT_RIGHT: 1,
    Op.SHIFT_SIGNED: 1,
    Op.MIN: 1,
    Op.MAX: 1,
    Op.MIN_SIGNED: 1,
    Op.MAX_SIGNED: 1,
    Op.COMPARE: 16,
    Op.COMPARE_SIGNED: 8,
    Op.SELECT: 1,
    Op.POPCOUNT: 1,
    Op.LEADING_ZEROS: 1,
    Op.TRAILING_ZEROS: 1,
    Op.SWAP_BYTES: 1,
    Op.TRUNCATE: 1,
    Op.SIGN_EXTEND: 4,
    Op.FROM_UNSIGNED: 4,
    Op.FROM_SIGNED: 4,
    Op.TO_UNSIGNED: 8,
    Op.TO_SIGNED: 8,
    Op.CONVERT: 8,
    Op.LOAD: 1,
    Op.STORE: 1,
    Op.TAKE: 1,
    Op.TAKE_LANES: 1,
    Op.PUT: 1,
    Op.STREAMOUT: 1,
    Op.SPVACC_VX: 1,
    Op.SPVACC_VV: 1,
    Op.SPVACC_XV: 1,
}


_OP_FORM: Final[dict[Op, int]] = {
    Op.NONE: 0,
    Op.END: 520,
    Op.JUMP: 4608,
    Op.BRANCH: 4612,
    Op.ENTER: 8704,
    Op.AGAIN: 12804,
    Op.SET: 513,
    Op.SET_HIGH: 515,
    Op.MOVE: 1637,
    Op.SPLAT: 1061,
    Op.EXTRACT: 1101,
    Op.INSERT: 1071,
    Op.SUM: 1095,
    Op.INFO: 513,
    Op.ADD: 1773,
    Op.SUB: 1773,
    Op.MUL: 1773,
    Op.DIV: 1773,
    Op.DIV_UNSIGNED: 1773,
    Op.DIV_SIGNED: 1773,
    Op.REM_UNSIGNED: 1773,
    Op.REM_SIGNED: 1773,
    Op.AND: 1773,
    Op.OR: 1773,
    Op.XOR: 1773,
    Op.SHIFT_LEFT: 1773,
    Op.SHIFT_RIGHT: 1773,
    Op.SHIFT_SIGNED: 1773,
    Op.MIN: 1773,
    Op.MAX: 1773,
    Op.MIN_SIGNED: 1773,
    Op.MAX_SIGNED: 1773,
    Op.COMPARE: 1773,
    Op.COMPARE_SIGNED: 1773,
    Op.SELECT: 2045,
    Op.POPCOUNT: 1637,
    Op.LEADING_ZEROS: 1637,
    Op.TRAILING_ZEROS: 1637,
    Op.SWAP_BYTES: 1637,
    Op.TRUNCATE: 1637,
    Op.SIGN_EXTEND: 1637,
    Op.FROM_UNSIGNED: 1637,
    Op.FROM_SIGNED: 1637,
    Op.TO_UNSIGNED: 1637,
    Op.TO_SIGNED: 1637,
    Op.CONVERT: 1637,
    Op.LOAD: 3621,
    Op.STORE: 3622,
    Op.TAKE: 2565,
    Op.TAKE_LANES: 3111,
    Op.PUT: 516,
    Op.STREAMOUT: 1100,
    Op.SPVACC_VX: 1086,
    Op.SPVACC_VV: 1214,
    Op.SPVACC_XV: 1119,
}


_OP_TYPES: Final[dict[Op, int]] = {
    Op.NONE: 0,
    Op.END: 8,
    Op.JUMP: 8,
    Op.BRANCH: 8,
    Op.ENTER: 8,
    Op.AGAIN: 8,
    Op.SET: 8,
    Op.SET_HIGH: 8,
    Op.MOVE: 8,
    Op.SPLAT: 8,
    Op.EXTRACT: 8,
    Op.INSERT: 8,
    Op.SUM: 63,
    Op.INFO: 8,
    Op.ADD: 63,
    Op.SUB: 63,
    Op.MUL: 63,
    Op.DIV: 48,
    Op.DIV_UNSIGNED: 15,
    Op.DIV_SIGNED: 15,
    Op.REM_UNSIGNED: 15,
    Op.REM_SIGNED: 15,
    Op.AND: 15,
    Op.OR: 15,
    Op.XOR: 15,
    Op.SHIFT_LEFT: 15,
    Op.SHIFT_RIGHT: 15,
    Op.SHIFT_SIGNED: 15,
    Op.MIN: 63,
    Op.MAX: 63,
    Op.MIN_SIGNED: 15,
    Op.MAX_SIGNED: 15,
    Op.COMPARE: 63,
    Op.COMPARE_SIGNED: 15,
    Op.SELECT: 8,
    Op.POPCOUNT: 15,
    Op.LEADING_ZEROS: 15,
    Op.TRAILING_ZEROS: 15,
    Op.SWAP_BYTES: 14,
    Op.TRUNCATE: 15,
    Op.SIGN_EXTEND: 15,
    Op.FROM_UNSIGNED: 48,
    Op.FROM_SIGNED: 48,
    Op.TO_UNSIGNED: 15,
    Op.TO_SIGNED: 15,
    Op.CONVERT: 240,
    Op.LOAD: 15,
    Op.STORE: 15,
    Op.TAKE: 15,
    Op.TAKE_LANES: 15,
    Op.PUT: 15,
    Op.STREAMOUT: 15,
    Op.SPVACC_VX: 252,
    Op.SPVACC_VV: 252,
    Op.SPVACC_XV: 252,
}


#: First 4 bytes of a binary: UHDL in memory order.
HANDLER_MAGIC: Final = 1279543381
#: Version of the binary.
HANDLER_VERSION: Final = 1
#: Of 64 bits.
SCALAR_REGISTERS: Final = 64
#: Of 16 lanes.
VECTOR_REGISTERS: Final = 32
#: Of a vector register, 64 bits each.
LANES: Final = 16
#: Loops of a binary.
MOST_LOOPS: Final = 64
#: Instructions of a binary.
MOST_WORDS: Final = 16384
#: Memory of a handler.
MOST_MEMORY_BYTES: Final = 16777216
#: Payload of a packet.
MOST_PAYLOAD_BYTES: Final = 8192
#: What a function may write to the output stream, each time it runs.
MOST_OUTPUT_BYTES: Final = 65536


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    #: Bytes of the encoded form.
    BYTES: ClassVar[int] = 8

    #: what it does
    op: Op = Op.NONE
    #: on 16 lanes
    vector: bool = False
    #: of what
    element: Element = Element.I8
    #: the second operand is imm, sign-extended
    immediate: bool = False
    #: which of its variants
    aux: int = 0
    #: destination
    rd: int = 0
    #: first operand
    ra: int = 0
    #: number, offset or word; without any: rb in bits 7:0, rc in bits 15:8
    imm: int = 0

    def encode(self) -> builtins.bytes:
        """The 8 little-endian bytes; ValueError if a field's value is not allowed."""
        raw = 0
        raw |= _enumerator(Op, self.op, "Instruction.op")
        raw |= _flag(self.vector, "Instruction.vector") << 7
        raw |= _enumerator(Element, self.element, "Instruction.element") << 8
        raw |= _flag(self.immediate, "Instruction.immediate") << 11
        raw |= _unsigned(self.aux, 4, "Instruction.aux") << 12
        raw |= _unsigned(self.rd, 8, "Instruction.rd") << 16
        raw |= _unsigned(self.ra, 8, "Instruction.ra") << 24
        raw |= _unsigned(self.imm, 32, "Instruction.imm") << 32
        return raw.to_bytes(8, "little")

    @classmethod
    def decode(cls, data: builtins.bytes) -> Instruction:
        """Inverse of `encode`; ValueError if `data` is not the form of a legal value."""
        raw = _integer(data, 8, "Instruction")
        return cls(
            op=_enumerator(Op, _bits(raw, 0, 7), "Instruction.op"),
            vector=_bits(raw, 7, 1) != 0,
            element=_enumerator(Element, _bits(raw, 8, 3), "Instruction.element"),
            immediate=_bits(raw, 11, 1) != 0,
            aux=_bits(raw, 12, 4),
            rd=_bits(raw, 16, 8),
            ra=_bits(raw, 24, 8),
            imm=_bits(raw, 32, 32),
        )
