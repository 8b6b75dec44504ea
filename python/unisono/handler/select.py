"""Chooses instructions for LLVM's, over registers without end."""

from __future__ import annotations

from typing import Any

from ._isa import Op
from .ir import Const, Inst, Lanes, Ref, Type, Value
from .put_down import INTEGERS, element_of, memory_element, signed_number
from .refusal import Refusal
from .select_calls import Calls
from .words import ZERO, Part, Selected, Word

_BINARY = {
    "add": Op.ADD, "sub": Op.SUB, "mul": Op.MUL, "udiv": Op.DIV_UNSIGNED, "sdiv": Op.DIV_SIGNED,
    "urem": Op.REM_UNSIGNED, "srem": Op.REM_SIGNED, "shl": Op.SHIFT_LEFT, "lshr": Op.SHIFT_RIGHT,
    "ashr": Op.SHIFT_SIGNED, "and": Op.AND, "or": Op.OR, "xor": Op.XOR, "fadd": Op.ADD, "fsub": Op.SUB, "fmul": Op.MUL,
    "fdiv": Op.DIV,
}  # fmt: skip
_SIGNED = frozenset(("sdiv", "srem", "ashr"))
_GROWS = frozenset(("add", "sub", "mul", "shl", "sdiv", "srem", "ashr"))
_COMPARED = {"lt": 1, "eq": 2, "le": 3, "gt": 4, "ne": 5, "ge": 6}
_FLOAT_COMPARED = {"false": 0, "olt": 1, "oeq": 2, "ole": 3, "ogt": 4, "one": 5, "oge": 6, "ord": 7, "uno": 8, "ult": 9,
                   "ueq": 10, "ule": 11, "ugt": 12, "une": 13, "uge": 14, "true": 15}  # fmt: skip
_TO_OR_FROM = {"fptoui": Op.TO_UNSIGNED, "fptosi": Op.TO_SIGNED, "uitofp": Op.FROM_UNSIGNED, "sitofp": Op.FROM_SIGNED,
               "fpext": Op.CONVERT, "fptrunc": Op.CONVERT}  # fmt: skip


class Selector(Calls):
    """Selects the words of one function."""

    # Functions.

    def select(self) -> Selected:
        """The function in words; Refusal of what the machine does not have."""
        flow = self._flow
        for block in flow.order:
            for inst in flow.code.blocks[block].insts:
                if inst.op == "phi":  # phis are used before they are met
                    self._registers[inst.name] = self.fresh(inst.type.is_vector)
        parts = []
        loops = {head: self._first_loop + i for i, head in enumerate(h for h in flow.order if h in flow.loops)}
        for name in flow.order:
            self._block = name
            self._constants = {}
            self._in_loop = any(name in loop.blocks for loop in flow.loops.values())
            part = Part(name)
            self._body = part.body
            if name in loops:
                part.loop, part.rounds = loops[name], flow.loops[name].rounds
            for inst in flow.code.blocks[name].insts:
                self._line = inst.line
                try:
                    self._select(part, inst, name)
                except Refusal as refusal:
                    raise Refusal(refusal.reason, refusal.line or inst.line) from None
            parts.append(part)
        parts[0].body[:0] = self._ahead
        back = {(latch, loop.head) for loop in flow.loops.values() for latch in loop.latches}
        return Selected(parts, self.vectors, back, self._hints)

    def _select(self, part: Part, inst: Inst, block: str) -> None:
        op = inst.op
        if op == "phi":
            if inst.type.kind == "pointer":
                return
            element = element_of(inst.type)
            if inst.name in self._offsets.merged:
                kept, apart = self._offsets.merged[inst.name]
                self.word(Op.ADD, element, rd=self._registers[inst.name], ra=self.register(kept),
                          imm=apart & 0xFFFFFFFF, immediate=True)  # fmt: skip
        elif op in ("br", "switch", "ret", "unreachable"):
            self._copies(block, inst.blocks)
            self._end(part, inst)
        elif op in _BINARY:
            self._binary(inst)
        elif op == "call":
            self._call(inst)
        else:
            getattr(self, f"_{op}_" if op == "select" else f"_{op}")(inst)

    def _copies(self, block: str, targets: list[str]) -> None:
        """Copies what the phis of the next block take: all at once, so that none takes what another has made."""
        if len(targets) != 1:
            return
        moves: list[tuple[int, int]] = []
        later: list[tuple[int, Value]] = []
        for phi in self._flow.code.blocks[targets[0]].insts:
            if phi.op != "phi":
                break
            if phi.name in self._offsets.merged:
                continue
            value = phi.args[phi.blocks.index(block)]
            into = self._registers[phi.name]
            if isinstance(value, (Const, Lanes)):
                later.append((into, value))
            else:
                source = self.register(value)
                if source != into:
                    moves.append((into, source))
                    if source != ZERO:
                        self._hints.setdefault(into, source)
                        self._hints.setdefault(source, into)
        while moves:
            taken = {source for _, source in moves}
            ready = [(into, source) for into, source in moves if into not in taken]
            if ready:
                for into, source in ready:
                    self._move(into, source)
                moves = [m for m in moves if m not in ready]
                continue
            into, source = moves[0]  # all wait for one another: one goes aside
            aside = self.fresh(self.vectors[source])
            self._move(aside, source)
            moves[0] = (into, aside)
        for into, value in later:
            if isinstance(value, Const):
                self._set(into, value.value)
            else:
                self._move(into, self.register(value))

    def _end(self, part: Part, inst: Inst) -> None:
        ends = part.ends

        def put(op: Op, **more: Any) -> None:
            ends.append(Word(op, line=inst.line, **more))

        if inst.op == "ret":
            if not inst.args:
                put(Op.END, imm=0, immediate=True)
            else:
                put(Op.END, **self.scalar_second(inst.args[0]))
        elif inst.op == "unreachable":
            put(Op.END, imm=0xFFFFFFFF, immediate=True)
        elif inst.op == "switch":
            chosen = self.register(inst.args[0])
            element = element_of(inst.args[0].type)
            for value, target in zip(inst.args[1:], inst.blocks[1:], strict=True):
                hit = self.word(Op.COMPARE, element, aux=2, rd=self.fresh(), ra=chosen, **self.scalar_second(value))
                put(Op.BRANCH, ra=hit, target=target)
            put(Op.JUMP, target=inst.blocks[0])
        elif len(inst.blocks) == 1 or inst.blocks[0] == inst.blocks[1]:
            put(Op.JUMP, target=inst.blocks[0])
        else:
            put(Op.BRANCH, ra=self.register(inst.args[0]), target=inst.blocks[0])
            put(Op.JUMP, target=inst.blocks[1])

    # Numbers.

    def _with_sign(self, value: Value) -> int:
        """An integer whose bits do not fill its element, with its sign in the element."""
        register = self.register(value)
        if self._whole(value.type):
            return register
        element, vector = element_of(value.type), value.type.is_vector
        unused = element.bytes * 8 - value.type.scalar.bits
        for op in (Op.SHIFT_LEFT, Op.SHIFT_SIGNED):
            register = self.word(op, element, vector, rd=self.fresh(vector), ra=register, imm=unused, immediate=True)
        return register

    def _masked(self, kind: Type, register: int, into: int) -> None:
        mask = (1 << kind.scalar.bits) - 1
        second: dict[str, Any]
        if mask < 1 << 31:
            second = {"imm": mask, "immediate": True}
        elif kind.is_vector:
            second = {"rb": self._vector_of(Lanes(kind, (mask,) * 16))}
        else:
            second = {"rb": self.number(mask)}
        self.word(Op.AND, element_of(kind), kind.is_vector, rd=into, ra=register, **second)

    def _binary(self, inst: Inst) -> None:
        kind = inst.type
        element, vector = element_of(kind), kind.is_vector
        whole = self._whole(kind)
        first, second = inst.args
        into = self.result(inst)
        if whole or inst.op not in _GROWS:
            self.word(_BINARY[inst.op], element, vector, rd=into, ra=self.register(first), **self.scalar_second(second))
            return
        signed = inst.op in _SIGNED
        ra = self._with_sign(first) if signed else self.register(first)
        rb = self._with_sign(second) if signed and inst.op != "ashr" else self.register(second)
        made = self.word(_BINARY[inst.op], element, vector, rd=self.fresh(vector), ra=ra, rb=rb)
        self._masked(kind, made, into)

    def _fneg(self, inst: Inst) -> None:
        kind = inst.type
        bits = kind.scalar.bits
        sign = Const(Type("int", bits), 1 << (bits - 1))
        if kind.is_vector:
            second = {"rb": self._vector_of(Lanes(kind, (sign.value,) * 16))}
        else:
            second = self.scalar_second(sign)
        self.word(
            Op.XOR, INTEGERS[bits], kind.is_vector, rd=self.result(inst), ra=self.register(inst.args[0]), **second
        )

    def _icmp(self, inst: Inst) -> None:
        kind = inst.args[0].type
        signed = inst.text[0] == "s"
        aux = _COMPARED[inst.text[1:] if inst.text[0] in "us" and len(inst.text) == 3 else inst.text]
        if signed and not self._whole(kind):
            second: dict[str, Any] = {"rb": self._with_sign(inst.args[1])}
            first = self._with_sign(inst.args[0])
        else:
            first = self.register(inst.args[0])
            second = self.scalar_second(inst.args[1]) if kind.kind != "pointer" else {"rb": self.register(inst.args[1])}
        self.word(Op.COMPARE_SIGNED if signed else Op.COMPARE, element_of(kind), kind.is_vector, aux=aux,
                  rd=self.result(inst), ra=first, **second)  # fmt: skip

    def _fcmp(self, inst: Inst) -> None:
        kind = inst.args[0].type
        self.word(Op.COMPARE, element_of(kind), kind.is_vector, aux=_FLOAT_COMPARED[inst.text], rd=self.result(inst),
                  ra=self.register(inst.args[0]), **self.scalar_second(inst.args[1]))  # fmt: skip

    def _select_(self, inst: Inst) -> None:
        condition, yes, no = (self.register(a) for a in inst.args)
        vector = inst.type.is_vector
        if inst.type.kind != "pointer":
            element_of(inst.type)
        if vector and not inst.args[0].type.is_vector:
            condition = self.word(Op.SPLAT, vector=True, rd=self.fresh(True), ra=condition)
        self.word(Op.SELECT, vector=vector, rd=self.result(inst), ra=condition, rb=yes, rc=no)

    def _freeze(self, inst: Inst) -> None:
        self._registers[inst.name] = self.register(inst.args[0])

    def _zext(self, inst: Inst) -> None:
        element_of(inst.type)
        self._freeze(inst)

    def _trunc(self, inst: Inst) -> None:
        if not self._whole(inst.type):
            self._masked_trunc(inst)
            return
        self.word(Op.TRUNCATE, element_of(inst.type), inst.type.is_vector, rd=self.result(inst),
                  ra=self.register(inst.args[0]))  # fmt: skip

    def _masked_trunc(self, inst: Inst) -> None:
        register = self.register(inst.args[0])
        self._masked(inst.type, register, self.result(inst))

    def _sext(self, inst: Inst) -> None:
        source, vector = inst.args[0], inst.type.is_vector
        element = element_of(inst.type)
        if source.type.scalar.bits == 1:  # all ones, or 0
            zero = self._vector_of(Lanes(inst.type, (0,) * 16)) if vector else ZERO
            made = self.word(Op.SUB, element, vector, rd=self.result(inst), ra=zero, rb=self.register(source))
        else:
            register = self._with_sign(source)
            made = self.word(Op.SIGN_EXTEND, element, vector, aux=int(element_of(source.type)), rd=self.result(inst),
                             ra=register)  # fmt: skip
        if not self._whole(inst.type):
            masked = self.fresh(vector)
            self._masked(inst.type, made, masked)
            self._registers[inst.name] = masked

    def _convert(self, inst: Inst) -> None:
        source = inst.args[0]
        if not self._whole(inst.type):
            raise Refusal(f"a floating-point number is made an integer of {inst.type.scalar.bits} bits")
        signed = inst.op == "sitofp"
        register = self._with_sign(source) if signed else self.register(source)
        self.word(_TO_OR_FROM[inst.op], element_of(inst.type), inst.type.is_vector, aux=int(element_of(source.type)),
                  rd=self.result(inst), ra=register)  # fmt: skip

    _fptoui = _fptosi = _uitofp = _sitofp = _fpext = _fptrunc = _convert

    def _bitcast(self, inst: Inst) -> None:
        source = inst.args[0]
        if inst.type.kind == "pointer":
            self._at[inst.name] = self.address(source)
            return
        if inst.type.is_vector and source.type.is_vector and inst.type.count != 16:
            # LLVM takes a part of a lane as a lane of another vector.
            self._narrower[inst.name] = (self.register(source), element_of(source.type).bytes * 8)
            return
        if isinstance(source, Ref) and source.name in self._narrower:
            whole, bits = self._narrower[source.name]
            if inst.type.is_vector and inst.type.scalar.bits == bits:  # and back again
                self._registers[inst.name] = whole
                return
        if inst.type.is_vector != source.type.is_vector or element_of(inst.type).bytes != element_of(source.type).bytes:
            raise Refusal("a vector is looked at as one of other lanes; convert it lane by lane")
        self._freeze(inst)

    # Vectors.

    def _lane(self, value: Value) -> dict[str, Any]:
        return (
            {"imm": value.value & 15, "immediate": True} if isinstance(value, Const) else {"rb": self.register(value)}
        )

    def _extractelement(self, inst: Inst) -> None:
        source, index = inst.args
        if isinstance(source, Ref) and source.name in self._narrower:
            made = self._part_of_lane(source, index)
            self.word(Op.TRUNCATE, element_of(inst.type), rd=self.result(inst), ra=made)
            return
        element_of(source.type)
        self.word(Op.EXTRACT, vector=True, rd=self.result(inst), ra=self.register(source), **self._lane(index))

    def _part_of_lane(self, source: Ref, index: Value) -> int:
        """A lane of a vector with other lanes than 16, with what is above it in the lane that it is a part of."""
        vector, bits = self._narrower[source.name]
        part = source.type.scalar.bits
        lane: dict[str, Any]
        shift: dict[str, Any]
        if isinstance(index, Const):
            number, at = divmod(index.value * part, bits)
            lane, shift = {"imm": number, "immediate": True}, {"imm": at, "immediate": True}
        else:
            parts = bits // part
            register = self.register(index)
            number = self.word(Op.SHIFT_RIGHT, rd=self.fresh(), ra=register, imm=parts.bit_length() - 1, immediate=True)
            at = self.word(Op.AND, rd=self.fresh(), ra=register, imm=parts - 1, immediate=True)
            at = self.word(Op.MUL, rd=self.fresh(), ra=at, imm=part, immediate=True)
            lane, shift = {"rb": number}, {"rb": at}
        made = self.word(Op.EXTRACT, vector=True, rd=self.fresh(), ra=vector, **lane)
        return self.word(Op.SHIFT_RIGHT, rd=self.fresh(), ra=made, **shift)

    def _insertelement(self, inst: Inst) -> None:
        element_of(inst.type)
        into = self.result(inst)
        self._move(into, self.register(inst.args[0]))
        self.word(Op.INSERT, vector=True, rd=into, ra=self.register(inst.args[1]), **self._lane(inst.args[2]))

    def _shufflevector(self, inst: Inst) -> None:
        first, second, mask = inst.args
        assert isinstance(mask, Lanes)
        narrow = isinstance(first, Ref) and first.name in self._narrower
        kind = Type("vector", of=first.type.of, count=mask.type.count)
        element = element_of(kind)
        if narrow and max(mask.values) < first.type.count:  # of which all is taken from the first one
            second = first
        elif first.type.count != mask.type.count:
            raise Refusal("a vector is looked at as one of other lanes; convert it lane by lane")
        vectors = (0, 0) if narrow else (self.register(first), self.register(second))

        def lane(number: int) -> int:
            if narrow and isinstance(first, Ref):
                part = self._part_of_lane(first, Const(Type("int", 32), number))
                return self.word(Op.TRUNCATE, element, rd=self.fresh(), ra=part)
            return self.word(Op.EXTRACT, vector=True, rd=self.fresh(), ra=vectors[number >> 4 & 1], imm=number & 15,
                             immediate=True)  # fmt: skip

        into = self.result(inst)
        if len(set(mask.values)) == 1:
            self.word(Op.SPLAT, vector=True, rd=into, ra=lane(mask.values[0]))
            return
        # Lanes have no way to one another but through a scalar.
        self._move(into, self._vector_of(Lanes(kind, (0,) * 16)) if narrow else vectors[0])
        for i, number in enumerate(mask.values):
            if narrow or number != i:
                self.word(Op.INSERT, vector=True, rd=into, ra=lane(number), imm=i, immediate=True)

    # Memory.

    def _alloca(self, inst: Inst) -> None:
        self._at[inst.name] = (ZERO, self._places[f"{self._flow.code.name}{inst.name}"])

    def _getelementptr(self, inst: Inst) -> None:
        base, offset = self.address(inst.args[0])
        step: Type | None = None
        assert inst.base is not None
        for index in inst.args[1:]:
            if step is not None and step.kind == "struct":
                assert isinstance(index, Const)
                offset += step.offset(index.value)
                step = step.of[index.value]
                continue
            step = inst.base if step is None else step.of[0]
            if isinstance(index, Const):
                offset += signed_number(index.value, index.type.bits) * step.bytes()
                continue
            base, more = self._plus(base, index, step.bytes())
            offset += more
        if not -(1 << 31) <= offset < 1 << 31:
            base, offset = self.word(Op.ADD, rd=self.fresh(), ra=base, rb=self.number(offset % (1 << 64))), 0
        self._at[inst.name] = (base, offset)

    def _plus(self, base: int, index: Value, size: int) -> tuple[int, int]:
        """Base + index * size, as a register and an offset."""
        found = self._offsets.index(index)
        number, shift, added = found or (index, 0, 0)
        register = self.register(number)
        if found is None:
            register = self.word(Op.SIGN_EXTEND, aux=int(element_of(index.type)), rd=self.fresh(), ra=register)
        added, size = added * size, size << shift
        if size & (size - 1):
            register = self.word(Op.MUL, rd=self.fresh(), ra=register, imm=size, immediate=True)
        elif size > 1:
            register = self.word(Op.SHIFT_LEFT, rd=self.fresh(), ra=register, imm=size.bit_length() - 1, immediate=True)
        return register if base == ZERO else self.word(Op.ADD, rd=self.fresh(), ra=base, rb=register), added

    def _load(self, inst: Inst) -> None:
        kind = inst.type
        if kind.is_vector and kind.count != 16 and kind.bytes() in (16, 32, 64, 128):
            element = INTEGERS[kind.bytes() // 2]
            base, offset = self.address(inst.args[0])
            made = self.word(Op.LOAD, element, True, rd=self.fresh(True), ra=base, imm=offset & 0xFFFFFFFF)
            self._narrower[inst.name] = (made, element.bytes * 8)
            return
        base, offset = self.address(inst.args[0])
        if (pieces := _pieces(kind)) is not None:
            whole = ZERO
            for at, size in pieces:
                part = self.word(Op.LOAD, INTEGERS[8 * size], rd=self.fresh(), ra=base, imm=offset + at & 0xFFFFFFFF)
                part = self.word(Op.SHIFT_LEFT, rd=self.fresh(), ra=part, imm=8 * at, immediate=True)
                whole = self.word(Op.OR, rd=self.fresh(), ra=whole, rb=part)
            self._registers[inst.name] = whole
            return
        self.word(Op.LOAD, memory_element(inst.type), inst.type.is_vector, rd=self.result(inst), ra=base,
                  imm=offset & 0xFFFFFFFF)  # fmt: skip

    def _store(self, inst: Inst) -> None:
        value = inst.args[0]
        if (pieces := _pieces(value.type)) is not None:
            base, offset = self.address(inst.args[1])
            for at, size in pieces:
                part = self.word(Op.SHIFT_RIGHT, rd=self.fresh(), ra=self.register(value), imm=8 * at, immediate=True)
                self.word(Op.STORE, INTEGERS[8 * size], rd=part, ra=base, imm=offset + at & 0xFFFFFFFF)
            return
        element = memory_element(value.type)
        base, offset = self.address(inst.args[1])
        self.word(Op.STORE, element, value.type.is_vector, rd=self.register(value), ra=base, imm=offset & 0xFFFFFFFF)


def _pieces(kind: Type) -> list[tuple[int, int]] | None:
    """Where in memory the parts of an integer of 24, 40, 48 or 56 bits are, and their bytes: bit-fields beside one
    another are such. None: it is in memory as a whole.
    """
    if kind.kind != "int" or kind.bits not in (24, 40, 48, 56):
        return None
    pieces, at = [], 0
    for size in (4, 2, 1):
        if at + size <= kind.bits // 8:
            pieces.append((at, size))
            at += size
    return pieces
