"""Makes one register of two that are copied to each other, where both never hold different values at the same time."""

from __future__ import annotations

from ._isa import Op
from .allocate import liveness
from .words import NONE, ZERO, Selected


def coalesce(selected: Selected) -> None:
    """Leaves out copies, most of them those of loops' counters."""
    others: dict[int, set[int]] = {}  # registers that hold something while one is written
    copies: list[tuple[int, int]] = []
    _, ends = liveness(selected)
    for part in selected.parts:
        living = set(ends[part.name])
        for word in (*reversed(part.ends), *reversed(part.body)):
            into = word.writes()
            if into >= 0:
                living.discard(into)
                beside = living
                if word.op == Op.MOVE:
                    copies.append((into, word.ra))
                    beside = living - {word.ra}  # holds the same
                others.setdefault(into, set()).update(beside)
                for register in beside:
                    others.setdefault(register, set()).add(into)
            living.update(word.reads())
    if not copies:
        return
    same: dict[int, int] = {}

    def found(register: int) -> int:
        while register in same:
            register = same[register]
        return register

    for into, source in copies:
        first, second = found(into), found(source)
        if ZERO in (first, second) or first == second:
            continue
        if second in others.get(first, ()) or first in others.get(second, ()):
            continue
        same[second] = first
        beside = others.pop(second, set())
        others.setdefault(first, set()).update(beside)
        for register in beside:
            others[register].discard(second)
            others[register].add(first)
    for part in selected.parts:
        kept = []
        for word in part.body:
            for name in ("rd", "ra", "rb", "rc"):
                register = getattr(word, name)
                if register in same:
                    setattr(word, name, found(register))
            if word.op != Op.MOVE or word.rd != word.ra:
                kept.append(word)
        part.body = kept
        for word in part.ends:
            for name in ("rd", "ra", "rb", "rc"):
                register = getattr(word, name)
                if register in same:
                    setattr(word, name, found(register))
    selected.hints = {found(a): found(b) for a, b in selected.hints.items()}


def leave_out_empty(selected: Selected) -> None:
    """Leaves out blocks that only go on elsewhere: who goes there goes on at once."""
    onward: dict[str, str] = {}
    for part in selected.parts[1:]:
        if not part.body and len(part.ends) == 1 and part.ends[0].op == Op.JUMP and part.loop == NONE:
            onward[part.name] = part.ends[0].target
    for part in selected.parts:
        if part.name in onward:
            continue
        for word in part.ends:
            while word.target in onward:
                if (word.target, onward[word.target]) in selected.back:
                    selected.back.add((part.name, onward[word.target]))
                word.target = onward[word.target]
    selected.parts = [part for part in selected.parts if part.name not in onward]
