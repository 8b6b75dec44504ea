"""The order of a block's words: its data-flow graph, and a list schedule over it.

A machine waits where a value is not there yet: what others wait for longest goes first. Two scalars' words that take a
cycle go along with the one before them, where they can (rtl/handler/unisono_handler_second.sv); instead of the first of
them a take of lanes (unisono_handler_access.sv).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ._isa import LANES, Element, Op
from .words import Part, Word

#: Cycles until a word's result is there: those of the hardware's units, where they have several.
_LATENCY = {Op.LOAD: 2, Op.TAKE: 2, Op.TAKE_LANES: 2, Op.MUL: 3, Op.DIV: 8, Op.DIV_UNSIGNED: 8, Op.DIV_SIGNED: 8,
            Op.REM_UNSIGNED: 8, Op.REM_SIGNED: 8, Op.SUM: 16, Op.SPVACC_XV: 16}  # fmt: skip
_WRITES_MEMORY = frozenset((Op.STORE, Op.SPVACC_VX, Op.SPVACC_VV))
_READS_MEMORY = frozenset((Op.LOAD, Op.SPVACC_XV))
_WRITES_STREAM = frozenset((Op.PUT, Op.STREAMOUT))
_TAKES = frozenset((Op.TAKE, Op.TAKE_LANES))
_COMPARES = frozenset((Op.COMPARE, Op.COMPARE_SIGNED))
#: Words of a cycle.
_SLOTS = 3
_ALONG = frozenset((Op.SET, Op.SET_HIGH, Op.MOVE, Op.INFO, Op.AND, Op.OR, Op.XOR, Op.SHIFT_LEFT, Op.SHIFT_RIGHT,
                    Op.SHIFT_SIGNED, Op.MIN, Op.MAX, Op.MIN_SIGNED, Op.MAX_SIGNED, Op.COMPARE, Op.COMPARE_SIGNED,
                    Op.SELECT, Op.POPCOUNT, Op.LEADING_ZEROS, Op.TRAILING_ZEROS, Op.SWAP_BYTES, Op.TRUNCATE,
                    Op.SIGN_EXTEND))  # fmt: skip
#: A block of so many words stays as it is: what is far apart in it need not be near in registers.
_MOST = 400


def _cycles(word: Word, reader: Word) -> int:
    """Until what one word writes is there for another. A table's lanes are taken where they land."""
    lanes = word.vector and reader.op in _WRITES_MEMORY and reader.op != Op.STORE
    return 1 if lanes and word.op in (Op.LOAD, Op.TAKE_LANES) else _LATENCY.get(word.op, 1)


def _graph(words: list[Word], late: list[tuple[int, int]]) -> tuple[list[dict[int, int]], list[int]]:
    """Of each word those that wait for it, with the cycles that they wait; and for how many words each waits."""
    after: list[dict[int, int]] = [{} for _ in words]
    waits = [0] * len(words)
    written: dict[int, int] = {}
    read: dict[int, list[int]] = {}
    stored = streamed = -1
    loaded: list[int] = []

    def edge(first: int, second: int, cycles: int) -> None:
        if first < 0 or first == second:
            return
        if second not in after[first]:
            waits[second] += 1
        after[first][second] = max(cycles, after[first].get(second, 0))

    for i, word in enumerate(words):
        for register in word.reads():
            if register in written:
                edge(written[register], i, _cycles(words[written[register]], word))
            read.setdefault(register, []).append(i)
        into = word.writes()
        if into >= 0:
            edge(written.get(into, -1), i, 1)
            for reader in read.pop(into, []):
                edge(reader, i, 0)
            written[into] = i
            if into in word.reads():
                read[into] = [i]
        if word.op in _READS_MEMORY:
            edge(stored, i, 1)
            loaded.append(i)
        elif word.op in _WRITES_MEMORY:
            edge(stored, i, 1)
            for reader in loaded:
                edge(reader, i, 0)
            stored, loaded = i, []
        elif word.op in _WRITES_STREAM:
            edge(streamed, i, 1)
            streamed = i
    for counter, source in late:
        at = written[source]
        for i, word in enumerate(words[:at]):
            if counter in word.reads():
                edge(i, at, 0)
    return after, waits


def copied(parts: list[Part]) -> dict[int, list[int]]:
    """Registers by what is copied to them."""
    found: dict[int, list[int]] = {}
    for part in parts:
        for word in part.body:
            if word.op == Op.MOVE:
                found.setdefault(word.ra, []).append(word.rd)
    return found


def _late(words: list[Word], copies: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Puts what becomes a loop's counter behind all that reads the counter as it was, with what needs it: then both can
    be one register. Gives the register that is read, and the one that is written.
    """
    found = []
    for source, counters in copies.items():
        at = next((i for i, word in enumerate(words) if word.writes() == source), -1)
        for counter in counters if at >= 0 else ():
            behind = [words[at]]  # with what depends on it
            made = {source}
            end = next((i for i, word in enumerate(words) if word.writes() == counter), len(words))
            readers = [i for i in range(at + 1, end) if counter in words[i].reads()]
            last = readers[-1] if readers else at
            kept = []
            for word in words[at + 1 : last + 1]:
                if made.intersection(word.reads()) or _ordered(word, behind):
                    behind.append(word)
                    made.add(word.writes())
                else:
                    kept.append(word)
            if any(counter in word.reads() for word in behind[1:]):
                continue  # it is read together with the new one
            words[at : last + 1] = kept + behind
            found.append((counter, source))
    return found


def _ordered(word: Word, behind: list[Word]) -> bool:
    """Whether a word may not go ahead of others."""
    if word.op in _WRITES_MEMORY | _READS_MEMORY | _WRITES_STREAM:
        return any(other.op in _WRITES_MEMORY | _READS_MEMORY | _WRITES_STREAM for other in behind)
    into = word.writes()
    return into >= 0 and any(into == other.writes() or into in other.reads() for other in behind)


def _goes_along(word: Word) -> bool:
    if word.vector:
        return False
    return word.op in _ALONG or (word.op in (Op.ADD, Op.SUB) and word.element < Element.FP32)


def _beside(first: Word, word: Word) -> bool:
    """Whether a take of lanes goes along with a word: one that does not take, or takes right before it."""
    if word.op != Op.TAKE_LANES or first.op not in _TAKES:
        return word.op == Op.TAKE_LANES
    if not first.vector or first.ra != word.ra or max(first.element.bytes, word.element.bytes) > 4:
        return False
    return (word.imm - first.imm) & 0xFFFFFFFF == LANES * first.element.bytes


def schedule(part: Part, copies: dict[int, list[int]]) -> None:
    """Puts a block's words into an order in which they wait little."""
    words = part.body
    if not 2 < len(words) <= _MOST:
        return
    late = _late(words, copies)
    after, waits = _graph(words, late)
    # A cycle before the block ends, but that a branch goes along with a comparison.
    asked = {register for word in part.ends for register in word.reads()}
    height = [0] * len(words)
    for i in range(len(words) - 1, -1, -1):
        height[i] = max((cycles + height[j] for j, cycles in after[i].items()), default=1)
        if words[i].writes() in asked and words[i].op not in _COMPARES:
            height[i] = max(height[i], 2)
    there = [0] * len(words)  # from which cycle on a word can go
    ready = [(0, -height[i], i) for i in range(len(words)) if waits[i] == 0]
    order: list[Word] = []
    cycle = 0

    def take(among: Callable[[Word], bool]) -> Word | None:
        """Puts the highest of those down that can go now."""
        now = [entry for entry in ready if entry[0] <= cycle and among(words[entry[2]])]
        if not now:
            return None
        chosen = min(now, key=lambda entry: entry[1:])
        ready.remove(chosen)
        order.append(words[chosen[2]])
        for j, cycles in after[chosen[2]].items():
            there[j] = max(there[j], cycle + cycles)
            waits[j] -= 1
            if waits[j] == 0:
                ready.append((there[j], -height[j], j))
        return words[chosen[2]]

    while ready:
        cycle = max(cycle, min(ready)[0])
        # Who can only go first goes first, and with it those that can go along.
        first = take(lambda word: not _goes_along(word)) or take(_goes_along)
        assert first is not None
        taken = 2 if take(partial(_beside, first)) else 1
        while taken < _SLOTS and take(_goes_along):
            taken += 1
        cycle += 1
    assert len(order) == len(words)
    part.body = order
