"""Chooses instructions for calls: of what unisono_handler.h declares, and of what LLVM has as calls."""

from __future__ import annotations

from typing import Any

from ._isa import Element, Op
from .calls import CALLS, Call
from .ir import Const, Inst, Lanes, Ref, Type
from .put_down import INTEGERS, Words, element_of
from .refusal import Refusal
from .words import WRITES_RD, ZERO

_INTRINSICS = {"umin": Op.MIN, "umax": Op.MAX, "smin": Op.MIN_SIGNED, "smax": Op.MAX_SIGNED, "ctpop": Op.POPCOUNT,
               "ctlz": Op.LEADING_ZEROS, "cttz": Op.TRAILING_ZEROS, "bswap": Op.SWAP_BYTES}  # fmt: skip
_OVERFLOWS = {"uadd": Op.ADD, "usub": Op.SUB, "umul": Op.MUL, "sadd": Op.ADD, "ssub": Op.SUB, "smul": Op.MUL}
_LESS, _OTHER = 1, 5  #: what comparisons ask
_MOST_COPIED, _MOST_MOVED = 8192, 512  #: bytes


class Calls(Words):
    """Selects calls."""

    def _call(self, inst: Inst) -> None:
        if inst.text.startswith("llvm."):
            self._intrinsic(inst)
            return
        call = CALLS.get(inst.text)
        if call is None:
            if inst.text == self._flow.code.name:
                raise Refusal(f"{inst.text} calls itself; handlers have no recursion")
            if inst.text.startswith("__atomic"):
                raise Refusal("an atomic operation; a handler has its memory alone")
            raise Refusal(f"{inst.text} is called; a handler can call what unisono_handler.h declares, and functions "
                          f"of its own source that the compiler can put in place of their calls")  # fmt: skip
        self._call_machine(inst, call)

    def _call_machine(self, inst: Inst, call: Call) -> None:
        more: dict[str, Any] = {"aux": call.aux, "imm": call.imm}
        args = list(inst.args)
        if call.op == Op.TAKE_LANES:
            more["whole"] = self._offsets.there(args[0], 16 * call.element.bytes, self._block)
        for field in call.operands:
            value = args.pop(0)
            if field == "at":  # an offset in the payload
                if isinstance(value, Const) and value.value < 1 << 31:
                    more["ra"], more["imm"] = ZERO, value.value
                else:
                    base, offset = self._offsets.at(value)
                    more["ra"], more["imm"] = self.register(base), offset & 0xFFFFFFFF
            elif field == "rd":  # changed by the call
                into = self.fresh(call.result_vector)
                if more.get("whole"):
                    pass
                elif isinstance(value, Const) and call.result_vector:
                    self._move(into, self._vector_of(Lanes(value.type, (value.value,) * 16)))
                elif call.result_vector and not value.type.is_vector:
                    self.word(Op.SPLAT, vector=True, rd=into, ra=self.register(value))
                else:
                    self._move(into, self.register(value))
                more["rd"] = into
            elif field == "rd only":
                more["rd"] = self.register(value)
            elif field == "second":
                more.update(self.scalar_second(value))
            else:
                more[field] = self.register(value)
        if "rd" not in more and call.op.form & WRITES_RD:
            more["rd"] = self.fresh(call.result_vector)
        if call.before is not None:  # what is written is narrowed first
            vector = self.vectors[int(more["ra"])]
            more["ra"] = self.word(Op.CONVERT, call.before, vector, aux=int(Element.FP32), rd=self.fresh(vector),
                                   ra=int(more["ra"]))  # fmt: skip
        made = self.word(call.op, call.element, call.vector, **more)
        if call.after is not None:  # what is read is widened
            made = self.word(
                Op.CONVERT, Element.FP32, call.vector, aux=int(call.after), rd=self.fresh(call.vector), ra=made
            )
        if inst.name:
            self._registers[inst.name] = made

    def _intrinsic(self, inst: Inst) -> None:
        name = inst.text.split(".")[1]
        if name in ("memcpy", "memmove", "memset"):
            self._copy(inst, name)
            return
        if name == "trap":  # what is behind it is never reached
            return
        if ".with.overflow." in inst.text:
            self._with_overflow(inst, name)
            return
        vector = inst.type.is_vector
        element = element_of(inst.type)
        if not self._whole(inst.type):
            raise Refusal(f"it needs {inst.text}, which handlers do not have")
        if name in ("umin", "umax", "smin", "smax"):
            self.word(_INTRINSICS[name], element, vector, rd=self.result(inst), ra=self.register(inst.args[0]),
                      **self.scalar_second(inst.args[1]))  # fmt: skip
        elif name in _INTRINSICS:
            self.word(_INTRINSICS[name], element, vector, rd=self.result(inst), ra=self.register(inst.args[0]))
        elif inst.text.startswith(("llvm.usub.sat", "llvm.uadd.sat")):
            self._saturated(inst, name, element, vector)
        elif name == "fabs":
            mask = (1 << (inst.type.scalar.bits - 1)) - 1
            rb = self._vector_of(Lanes(inst.type, (mask,) * 16)) if vector else self.number(mask)
            self.word(Op.AND, INTEGERS[inst.type.scalar.bits], vector, rd=self.result(inst),
                      ra=self.register(inst.args[0]), rb=rb)  # fmt: skip
        elif name == "abs":
            value = self.register(inst.args[0])
            zero = self._vector_of(Lanes(inst.type, (0,) * 16)) if vector else ZERO
            less = self.word(Op.SUB, element, vector, rd=self.fresh(vector), ra=zero, rb=value)
            self.word(Op.MAX_SIGNED, element, vector, rd=self.fresh(vector), ra=value, rb=less)
            # Of the least number both are that number.
            self._registers[inst.name] = self._body[-1].rd
        elif name in ("fshl", "fshr"):
            self._funnel(inst, name == "fshl", element, vector)
        else:
            raise Refusal(f"it needs {inst.text}, which handlers do not have")

    def _with_overflow(self, inst: Inst, name: str) -> None:
        """A number, and whether it has lost something: what __builtin_add_overflow and its like are."""
        kind = inst.type.of[0]
        element, bits = element_of(kind), kind.bits
        if not self._whole(kind) or name not in _OVERFLOWS or (name == "smul" and bits == 64):
            raise Refusal(f"it needs {inst.text}, which handlers do not have")
        a, b = (self.register(value) for value in inst.args)

        def made(op: Op, ra: int, of: Element = element, **more: Any) -> int:
            return self.word(op, of, rd=self.fresh(), ra=ra, **more)

        number = made(_OVERFLOWS[name], a, rb=b)
        if name in ("uadd", "usub"):
            first, second = (number, a) if name == "uadd" else (a, b)
            lost = made(Op.COMPARE, first, aux=_LESS, rb=second)
        elif name in ("sadd", "ssub"):  # the sign is not that of the operands
            other = number if name == "sadd" else a
            first = made(Op.XOR, other, rb=a if name == "sadd" else b)
            second = made(Op.XOR, number, rb=b if name == "sadd" else a)
            lost = made(Op.SHIFT_RIGHT, made(Op.AND, first, rb=second), imm=bits - 1, immediate=True)
        elif bits == 64:  # divided again, it is not what it was
            one = made(Op.MAX, a, imm=1, immediate=True)
            lost = made(Op.COMPARE, made(Op.DIV_UNSIGNED, number, rb=one), aux=_OTHER, rb=b)
            lost = made(Op.AND, lost, rb=made(Op.COMPARE, a, aux=_OTHER, imm=0, immediate=True))
        else:
            if name == "smul":
                a, b = (made(Op.SIGN_EXTEND, r, Element.I64, aux=int(element)) for r in (a, b))
            whole, again = made(Op.MUL, a, Element.I64, rb=b), number
            if name == "smul":
                again = made(Op.SIGN_EXTEND, number, Element.I64, aux=int(element))
            lost = made(Op.COMPARE, whole, Element.I64, aux=_OTHER, rb=again)
        self._pairs[inst.name] = (number, lost)

    def _extractvalue(self, inst: Inst) -> None:
        whole = inst.args[0]
        if not isinstance(whole, Ref) or whole.name not in self._pairs:
            raise Refusal("a part of a structure that is no variable; keep it in one")
        self._registers[inst.name] = self._pairs[whole.name][int(inst.text)]

    def _saturated(self, inst: Inst, name: str, element: Element, vector: bool) -> None:
        """max(a, b) - b, or min(a, ~b) + b."""
        a, b = (self.register(value) for value in inst.args)
        limit, by = b, b
        if name == "uadd":
            ones = Lanes(inst.type, ((1 << inst.type.scalar.bits) - 1,) * 16)
            every = self._vector_of(ones) if vector else self.number(ones.values[0])
            limit = self.word(Op.XOR, element, vector, rd=self.fresh(vector), ra=b, rb=every)
        pick, then = (Op.MAX, Op.SUB) if name == "usub" else (Op.MIN, Op.ADD)
        made = self.word(pick, element, vector, rd=self.fresh(vector), ra=a, rb=limit)
        self.word(then, element, vector, rd=self.result(inst), ra=made, rb=by)

    def _funnel(self, inst: Inst, left: bool, element: Element, vector: bool) -> None:
        high, low, by = inst.args
        bits = inst.type.scalar.bits
        count = by if isinstance(by, Const) else None
        if isinstance(by, Lanes) and len(set(by.values)) == 1:
            count = Const(by.type.of[0], by.values[0])
        if high != low and (count is None or count.value % bits == 0):
            raise Refusal(f"it needs {inst.text} of two numbers, which handlers do not have")
        there, back = self.scalar_second(by), {"imm": 0, "immediate": True}
        if count is not None:
            there = {"imm": count.value % bits, "immediate": True}
            back = {"imm": -count.value % bits, "immediate": True}
        else:
            zero = self._vector_of(Lanes(inst.type, (0,) * 16)) if vector else ZERO
            back = {"rb": self.word(Op.SUB, element, vector, rd=self.fresh(vector), ra=zero, rb=self.register(by))}
        first, second = (Op.SHIFT_LEFT, Op.SHIFT_RIGHT) if left else (Op.SHIFT_RIGHT, Op.SHIFT_LEFT)
        whole, rest = (high, low) if left else (low, high)
        a = self.word(first, element, vector, rd=self.fresh(vector), ra=self.register(whole), **there)
        b = self.word(second, element, vector, rd=self.fresh(vector), ra=self.register(rest), **back)
        self.word(Op.OR, element, vector, rd=self.result(inst), ra=a, rb=b)

    def _copy(self, inst: Inst, name: str) -> None:
        size = inst.args[2]
        most = _MOST_MOVED if name == "memmove" else _MOST_COPIED
        if not isinstance(size, Const) or size.value > most:
            raise Refusal(f"{name} of more than {most} bytes, or of a size not known when the handler is compiled; "
                          f"write a loop with a bound")  # fmt: skip
        base, offset = self.address(inst.args[0])
        steps = (8, 4, 2, 1) if name == "memmove" else (128, 8, 4, 2, 1)  # 128: all lanes of a vector
        pieces = []
        at = 0
        while at < size.value:
            step = next(n for n in steps if at + n <= size.value)
            pieces.append((at, step))
            at += step

        def store(value: int, at: int, step: int) -> None:
            self.word(Op.STORE, INTEGERS[min(8 * step, 64)], step > 8, rd=value, ra=base, imm=offset + at & 0xFFFFFFFF)

        if name == "memset":
            byte = inst.args[1]
            if not isinstance(byte, Const):
                raise Refusal("memset to a value not known when the handler is compiled; write a loop with a bound")
            for at, step in pieces:
                value = byte.value * 0x0101010101010101 & ((1 << 8 * min(step, 8)) - 1)
                many = Lanes(Type("vector", of=(Type("int", 64),), count=16), (value,) * 16)
                store(self._vector_of(many) if step > 8 else self.number(value), at, step)
            return
        source, begin = self.address(inst.args[1])
        values = []
        for at, step in pieces:
            values.append(self.word(Op.LOAD, INTEGERS[min(8 * step, 64)], step > 8, rd=self.fresh(step > 8), ra=source,
                                    imm=begin + at & 0xFFFFFFFF))  # fmt: skip
            if name == "memcpy":  # its places do not overlap, or are one
                store(values[-1], at, step)
        if name == "memmove":  # all is read before anything is written
            for value, (at, step) in zip(values, pieces, strict=True):
                store(value, at, step)
