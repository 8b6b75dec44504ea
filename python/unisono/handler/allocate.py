"""Registers of the machine for registers without end: a linear scan over where values live.

M. Poletto and V. Sarkar, "Linear scan register allocation", 1999. What finds no register stands in memory, and goes
through registers that are kept free for that.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import Any

from ._isa import SCALAR_REGISTERS, VECTOR_REGISTERS, Op
from .words import NONE, WRITES_RD, ZERO, Part, Selected, Word

_SCRATCH = 3  #: last registers of each kind, through which goes what stands in memory
_REGISTERS = ("rd", "ra", "rb", "rc")
_BYTES = {False: 8, True: 128}


def remove_dead(selected: Selected) -> None:
    """Leaves out words whose results nobody reads, and which do nothing else."""
    keep = frozenset((Op.STORE, Op.PUT, Op.STREAMOUT, Op.SPVACC_VX, Op.SPVACC_VV))
    changed = True
    while changed:
        read = {r for part in selected.parts for word in (*part.body, *part.ends) for r in word.reads()
                if not (word.writes() == r and word.op in (Op.SET_HIGH, Op.INSERT, Op.TAKE_LANES))}  # fmt: skip
        changed = False
        for part in selected.parts:
            left = [word for word in part.body if word.op in keep or word.rd in read]
            changed = changed or len(left) != len(part.body)
            part.body = left


def liveness(selected: Selected) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Registers that hold something at the begin and at the end of each block."""
    uses: dict[str, set[int]] = {}
    makes: dict[str, set[int]] = {}
    successors: dict[str, list[str]] = {}
    for part in selected.parts:
        used: set[int] = set()
        made: set[int] = set()
        for word in (*part.body, *part.ends):
            used.update(r for r in word.reads() if r not in made)
            if word.writes() >= 0:
                made.add(word.writes())
        uses[part.name], makes[part.name] = used, made
        successors[part.name] = [word.target for word in part.ends if word.target]
    begins: dict[str, set[int]] = {part.name: set() for part in selected.parts}
    ends: dict[str, set[int]] = {part.name: set() for part in selected.parts}
    changed = True
    while changed:
        changed = False
        for part in reversed(selected.parts):
            name = part.name
            end: set[int] = set()
            for target in successors[name]:
                end |= begins[target]
            begin = uses[name] | (end - makes[name])
            if end != ends[name] or begin != begins[name]:
                ends[name], begins[name] = end, begin
                changed = True
    return begins, ends


def _intervals(selected: Selected) -> list[tuple[int, int, int]]:
    """First and last place of each register, in the order of the first."""
    begins, ends = liveness(selected)
    first: dict[int, int] = {}
    last: dict[int, int] = {}

    def touch(register: int, place: int) -> None:
        first.setdefault(register, place)
        first[register] = min(first[register], place)
        last[register] = max(last.get(register, place), place)

    place = 0
    for part in selected.parts:
        for register in begins[part.name]:
            touch(register, place)
        for word in (*part.body, *part.ends):
            place += 2
            for register in word.reads():
                touch(register, place)
            if word.writes() >= 0:
                touch(word.writes(), place + 1)
        place += 2
        for register in ends[part.name]:
            touch(register, place)
    first.pop(ZERO, None)
    return sorted((first[r], last[r], r) for r in first)


def allocate(selected: Selected, frame: int) -> int:
    """Gives each register one of the machine's. What finds none stands in memory from `frame` on; returns where that
    ends.
    """
    free = {
        False: list(range(SCALAR_REGISTERS - _SCRATCH - 1, 0, -1)),
        True: list(range(VECTOR_REGISTERS - _SCRATCH - 1, -1, -1)),
    }
    active: dict[bool, list[tuple[int, int]]] = {False: [], True: []}  # (last place, register), in their order
    given: dict[int, int] = {ZERO: 0}
    slots: dict[int, int] = {}
    for begin, end, register in _intervals(selected):
        vector = selected.vectors[register]
        living = active[vector]
        while living and living[0][0] < begin:
            free[vector].append(given[living.pop(0)[1]])
        if free[vector]:
            hint = given.get(selected.hints.get(register, NONE), NONE)
            if hint in free[vector]:
                free[vector].remove(hint)
                given[register] = hint
            else:
                given[register] = free[vector].pop()
        else:
            # Who lives longest goes to memory.
            far, other = living[-1]
            gone = register
            if far > end:
                living.pop()
                given[register] = given.pop(other)
                gone = other
            frame = -(-frame // _BYTES[vector]) * _BYTES[vector]
            slots[gone] = frame
            frame += _BYTES[vector]
            if gone == register:
                continue
        bisect.insort(living, (end, register))
    for part in selected.parts:
        part.body = _rewritten(part.body, given, slots, selected.vectors)
        part.ends = _with_reloads(part, given, slots, selected.vectors)
    return frame


def _with_reloads(part: Part, given: dict[int, int], slots: dict[int, int], vectors: list[bool]) -> list[Word]:
    """The words by which a block ends; what they read from memory is read at the end of the block."""
    return _rewritten(part.ends, given, slots, vectors)


def _rewritten(words: list[Word], given: dict[int, int], slots: dict[int, int], vectors: list[bool]) -> list[Word]:
    done: list[Word] = []
    for word in words:
        if not slots or not any(r in slots for r in (word.rd, word.ra, word.rb, word.rc)):
            plain: dict[str, Any] = {f: given[getattr(word, f)] for f in _REGISTERS if getattr(word, f) >= 0}
            made = replace(word, **plain)
            if not (made.op == Op.MOVE and made.rd == made.ra):
                done.append(made)
            continue
        scratch = {False: SCALAR_REGISTERS - _SCRATCH, True: VECTOR_REGISTERS - _SCRATCH}
        reads = word.reads()
        through: dict[int, int] = {}
        for register in dict.fromkeys((*reads, *((word.rd,) if word.rd >= 0 else ()))):
            if register not in slots:
                continue
            vector = vectors[register]
            if register not in reads and through and word.form & WRITES_RD:
                # What is only written may take the place of what was only read.
                same = [through[r] for r in through if vectors[r] == vector]
                through[register] = same[0] if same else scratch[vector]
            else:
                through[register] = scratch[vector]
                scratch[vector] += 1
            if register in reads:
                done.append(
                    Word(Op.LOAD, vector=vector, rd=through[register], ra=0, imm=slots[register], line=word.line)
                )
        fields: dict[str, Any] = {}
        for name in _REGISTERS:
            register = getattr(word, name)
            if register >= 0:
                fields[name] = through[register] if register in through else given[register]
        done.append(replace(word, **fields))
        into = word.writes()
        if into in slots:
            done.append(Word(Op.STORE, vector=vectors[into], rd=through[into], ra=0, imm=slots[into], line=word.line))
    return done
