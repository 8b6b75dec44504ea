"""How often loops go round that count by a pointer, as initialisers of arrays do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .flow import Loop
from .ir import Address, Const, Inst, Type, Value

#: What an instruction's name stands for; the largest number that a value can be.
Find = Callable[[Value], Inst | None]
Most = Callable[[Value], int]


@dataclass(frozen=True, slots=True)
class Place:
    """An address: from `low` to `high` bytes behind a variable, a local array, or what a pointer is when it begins."""

    root: str
    low: int
    high: int


def place(value: Value, find: Find, most: Most) -> Place | None:
    """Where a pointer points, as far as that is known."""
    if isinstance(value, Address):
        return Place(value.name, value.offset, value.offset)
    inst = find(value)
    if inst is None or inst.op not in ("bitcast", "alloca", "phi", "getelementptr"):
        return None
    if inst.op in ("alloca", "phi"):
        return Place(inst.name, 0, 0)
    found = place(inst.args[0], find, most)
    if found is None or inst.op == "bitcast" or inst.base is None:
        return found
    low, high = found.low, found.high
    step: Type | None = None
    for index in inst.args[1:]:
        if step is not None and step.kind == "struct":
            assert isinstance(index, Const)
            low, high = low + step.offset(index.value), high + step.offset(index.value)
            step = step.of[index.value]
            continue
        step = inst.base if step is None else step.of[0]
        if isinstance(index, Const):
            number = index.value - (index.value >> (index.type.bits - 1) << index.type.bits)
            low, high = low + number * step.bytes(), high + number * step.bytes()
        else:
            high += most(index) * step.bytes()
    return Place(found.root, low, high)


def pointer_rounds(loop: Loop, head: list[Inst], first: Value, how: str, second: Value,
                   find: Find, most: Most) -> int | None:  # fmt: skip
    """Rounds before `first how second`, if the first is a pointer that the loop moves by as much in each round."""
    left, right = place(first, find, most), place(second, find, most)
    phi = next((inst for inst in head if inst.op == "phi" and left is not None and inst.name == left.root), None)
    if left is None or right is None or phi is None or left.low != left.high:
        return None
    steps, begins = set(), []
    for value, block in zip(phi.args, phi.blocks, strict=True):
        at = place(value, find, most)
        if at is None or at.root != (phi.name if block in loop.blocks else right.root):
            return None
        if block not in loop.blocks:
            begins.append(at)
        elif at.low == at.high:
            steps.add(at.low)
        else:
            return None
    if len(steps) != 1 or not begins:
        return None
    (step,) = steps
    if step > 0 and how in ("eq", "uge", "ugt"):
        span = right.high - min(at.low for at in begins) - left.low + (how == "ugt")
    elif step < 0 and how in ("eq", "ule", "ult"):
        span = max(at.high for at in begins) + left.low - right.low + (how == "ult")
    else:
        return None
    return max(0, -(-span // abs(step)))
