"""What unisono_handler.h declares, and the instruction that each call becomes."""

from __future__ import annotations

from dataclasses import dataclass

from ._isa import Element, Info, Op


@dataclass(frozen=True, slots=True)
class Call:
    """`operands` says where the arguments go, in their order: a register (rd, ra, rb, rc), `at` (an offset in the
    payload), `second` (the second operand), `rd only` (read there, not changed).
    """

    op: Op
    element: Element = Element.I64
    vector: bool = False
    operands: tuple[str, ...] = ()
    aux: int = 0
    imm: int = 0
    result_vector: bool = False
    before: Element | None = None  #: ra is narrowed from fp32 to this
    after: Element | None = None  #: what is read is widened to fp32 from this


#: Names in C of what memory and payload hold, and the integer that carries them.
_CARRIED = {"u8": Element.I8, "u16": Element.I16, "u32": Element.I32, "u64": Element.I64, "f32": Element.I32,
            "f64": Element.I64}  # fmt: skip
_NARROW = {"fp16": Element.FP16, "bf16": Element.BF16}
#: Names in C of what is computed with.
_COMPUTED = {"u32": Element.I32, "u64": Element.I64, "f32": Element.FP32, "f64": Element.FP64}


def _calls() -> dict[str, Call]:
    found = {f"us_{info.name.lower()}": Call(Op.INFO, imm=int(info)) for info in Info}
    for name, element in _CARRIED.items():
        found[f"us_{name}_at"] = Call(Op.TAKE, element, operands=("at",))
        found[f"us_put_{name}"] = Call(Op.PUT, element, operands=("ra",))
        found[f"us_{name}x16_at"] = Call(Op.TAKE_LANES, element, True, ("at", "rd"), result_vector=True)
        found[f"us_streamout_{name}"] = Call(Op.STREAMOUT, element, True, ("ra", "second"))
    for name, element in _NARROW.items():
        found[f"us_{name}x16_at"] = Call(
            Op.TAKE_LANES, Element.I16, True, ("at", "rd"), result_vector=True, after=element
        )
        found[f"us_streamout_{name}"] = Call(Op.STREAMOUT, Element.I16, True, ("ra", "second"), before=element)
        found[f"us_widen_{name}"] = Call(Op.CONVERT, Element.FP32, operands=("ra",), aux=int(element))
        found[f"us_narrow_{name}"] = Call(Op.CONVERT, element, operands=("ra",), aux=int(Element.FP32))
    for name, element in (*_COMPUTED.items(), *_NARROW.items()):
        spvacc = ("ra", "rc", "rd only", "rb")
        found[f"us_spvacc_vx_{name}"] = Call(Op.SPVACC_VX, element, True, spvacc)
        found[f"us_spvacc_vv_{name}"] = Call(Op.SPVACC_VV, element, True, spvacc)
        found[f"us_spvacc_xv_{name}"] = Call(Op.SPVACC_XV, element, True, ("rd", "rb", "rc", "ra"))
    for name, element in _COMPUTED.items():
        found[f"us_sum_{name}"] = Call(Op.SUM, element, True, ("rd", "ra"))
    for name in ("f32", "f64"):
        for which, op in (("min", Op.MIN), ("max", Op.MAX)):
            found[f"us_{which}_{name}"] = Call(op, _COMPUTED[name], False, ("ra", "rb"))
            found[f"us_{which}_{name}x16"] = Call(op, _COMPUTED[name], True, ("ra", "rb"), result_vector=True)
    return found


#: By name in C.
CALLS: dict[str, Call] = _calls()
