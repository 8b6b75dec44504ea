"""Where instructions are put down, over registers without end: constants, addresses, operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._isa import Element, Op
from .flow import Flow
from .ir import Address, Const, Inst, Lanes, Ref, Type, Value
from .offsets import Offsets
from .refusal import Refusal
from .words import ZERO, Word

#: By bits.
INTEGERS = {8: Element.I8, 16: Element.I16, 32: Element.I32, 64: Element.I64}


#: So many scalars and vectors are made before loops, so that loops have registers left.
_CONSTANTS_AHEAD = {False: 24, True: 12}


def element_of(kind: Type) -> Element:
    """What an instruction calls a value of this type, or of its lanes: the smallest element that holds it."""
    scalar = kind.scalar
    if kind.is_vector and kind.count != 16:
        raise Refusal(f"a vector of {kind.count} lanes; vectors have 16")
    if scalar.kind == "float":
        return Element.FP32 if scalar.bits == 32 else Element.FP64
    if scalar.kind == "pointer" and not kind.is_vector:
        return Element.I64
    if scalar.kind == "int" and scalar.bits <= 64:
        return INTEGERS[max(8, scalar.bytes() * 8)]
    raise Refusal(f"a value of {scalar.bits} bits; numbers have 64 at most" if scalar.kind == "int"
                  else f"a value that is no number ({scalar.kind})")  # fmt: skip


def memory_element(kind: Type) -> Element:
    """The integer that a value is in memory."""
    if kind.scalar.kind == "pointer":
        raise Refusal("a pointer is kept in memory; handlers' pointers cannot escape: keep an index")
    if kind.scalar.kind == "int" and kind.scalar.bits not in INTEGERS:
        raise Refusal(f"a value of {kind.scalar.bits} bits in memory; numbers have 8, 16, 32 or 64, and bit-fields "
                      f"beside one another 64 together at most")  # fmt: skip
    return INTEGERS[element_of(kind).bytes * 8]


class Words:
    """The words of one function, as they are put down."""

    def __init__(self, flow: Flow, places: dict[str, int], first_loop: int) -> None:
        self._flow = flow
        self._offsets = Offsets(flow)
        self._block = ""  # whose words are put down
        self._places = places  # of variables, and of local arrays as function and name
        self._first_loop = first_loop
        self.vectors: list[bool] = [False]
        self._registers: dict[str, int] = {}
        self._at: dict[str, tuple[int, int]] = {}  # addresses: register and offset
        # Vectors of other lanes: the vector of 16 that holds their bits, and the bits of its lanes.
        self._narrower: dict[str, tuple[int, int]] = {}
        # Numbers of which it is asked whether they have lost something: the number, and 1 if so.
        self._pairs: dict[str, tuple[int, int]] = {}
        self._constants: dict[tuple[bool, object], int] = {}  # of the block
        self._everywhere: dict[tuple[bool, object], int] = {}  # of the function: those that loops need
        self._room = dict(_CONSTANTS_AHEAD)
        self._ahead: list[Word] = []
        self._in_loop = False
        self._body: list[Word] = []
        self._line = 0
        self._hints: dict[int, int] = {}

    # What is put down.

    def fresh(self, vector: bool = False) -> int:
        """A new register."""
        self.vectors.append(vector)
        return len(self.vectors) - 1

    def word(self, op: Op, element: Element = Element.I64, vector: bool = False, **more: Any) -> int:
        """Puts an instruction down; gives its destination."""
        made = Word(op, element, vector, line=self._line, **more)
        self._body.append(made)
        return made.rd

    def number(self, value: int) -> int:
        """A scalar register that holds a number of 64 bits."""
        if value == 0:
            return ZERO
        return self._constant(False, value, lambda made: self._set(made, value))

    def _vector_of(self, value: Lanes) -> int:
        def fill(made: int) -> None:
            common = max(set(value.values), key=value.values.count)
            self.word(Op.SPLAT, vector=True, rd=made, ra=self.number(common))
            for lane, bits in enumerate(value.values):
                if bits != common:
                    self.word(Op.INSERT, vector=True, rd=made, ra=self.number(bits), imm=lane, immediate=True)

        return self._constant(True, value.values, fill)

    def _constant(self, vector: bool, value: object, fill: Callable[[int], object]) -> int:
        """The register of a constant: made in its block or, if that is in a loop, once where the function begins."""
        key = (vector, value)
        for known in (self._everywhere, self._constants):
            if key in known:
                return known[key]
        made = self.fresh(vector)
        if self._in_loop and self._room[vector] > 0:
            self._room[vector] -= 1
            body, self._body = self._body, self._ahead
            fill(made)
            self._body = body
            self._everywhere[key] = made
        else:
            fill(made)
            self._constants[key] = made
        return made

    def _set(self, register: int, value: int) -> int:
        low = value & 0xFFFFFFFF
        self.word(Op.SET, rd=register, imm=low)
        if value != extended(low):
            self.word(Op.SET_HIGH, rd=register, imm=value >> 32)
        return register

    def register(self, value: Value) -> int:
        """The register that holds a value."""
        if isinstance(value, Const):
            return self.number(value.value)
        if isinstance(value, Lanes):
            element_of(value.type)
            return self._vector_of(value)
        if isinstance(value, Ref) and value.name in self._narrower:
            raise Refusal("a vector is looked at as one of other lanes; convert it lane by lane")
        if isinstance(value, Ref) and value.name in self._registers:
            return self._registers[value.name]
        base, offset = self.address(value)
        if base == ZERO:
            return self.number(offset % (1 << 64))
        return base if offset == 0 else self.word(Op.ADD, rd=self.fresh(), ra=base, imm=offset & 0xFFFFFFFF,
                                                  immediate=True)  # fmt: skip

    def address(self, value: Value) -> tuple[int, int]:
        """The register and the offset of a pointer."""
        if isinstance(value, Address):
            if value.name not in self._places:
                raise Refusal(f"the address of the function {value.name[1:]}; handlers have no pointers to functions")
            return ZERO, self._places[value.name] + value.offset
        if isinstance(value, Const):
            raise Refusal("an address that is a number; handlers have none")
        assert isinstance(value, Ref)
        if value.name in self._at:
            return self._at[value.name]
        return self.register_of(value.name), 0

    def register_of(self, name: str) -> int:
        """The register of an instruction's result, which may be selected later."""
        if name not in self._registers:
            raise Refusal("a value that is used before it is there")
        return self._registers[name]

    def scalar_second(self, value: Value) -> dict[str, Any]:
        """The second operand: an immediate if it fits, also of a vector whose lanes are all equal."""
        number = value
        if isinstance(value, Lanes) and len(set(value.values)) == 1:
            number = Const(value.type.of[0], value.values[0])
        if isinstance(number, Const):
            # Of an element of fewer bits than 64 the sign-extended bits are not looked at.
            signed = signed_number(number.value, number.type.bits) if self._whole(number.type) else number.value
            if -(1 << 31) <= signed < 1 << 31:
                return {"imm": signed & 0xFFFFFFFF, "immediate": True}
        return {"rb": self.register(value)}

    def _move(self, into: int, source: int) -> None:
        self.word(Op.MOVE, vector=self.vectors[into], rd=into, ra=source)

    def result(self, inst: Inst) -> int:
        """A new register for an instruction's result."""
        made = self._registers[inst.name] = self.fresh(inst.type.is_vector)
        return made

    def _whole(self, kind: Type) -> bool:
        return kind.scalar.kind != "int" or kind.scalar.bits in INTEGERS


def signed_number(value: int, bits: int) -> int:
    """A number of so many bits with its sign."""
    return value - (1 << bits) if bits and value >> (bits - 1) & 1 else value


def extended(value: int) -> int:
    """The 64 bits of a number of 32, with its sign."""
    return signed_number(value, 32) & 0xFFFFFFFFFFFFFFFF
