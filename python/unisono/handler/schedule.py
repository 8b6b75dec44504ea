"""The order of a block's words: its data-flow graph, and a list schedule over it.

A machine waits where a value is not there yet: what others wait for longest goes first. A scalar's word that takes a
cycle goes along with the one before it, where both can (rtl/handler/unisono_handler_second.sv).
"""

from __future__ import annotations

from collections.abc import Callable

from ._isa import Element, Op
from .put_down import signed_number
from .words import Part, Word

#: Cycles until a word's result is there: those of the hardware's units, where they have several.
_LATENCY = {Op.LOAD: 2, Op.TAKE: 2, Op.TAKE_LANES: 2, Op.MUL: 3, Op.DIV: 8, Op.DIV_UNSIGNED: 8, Op.DIV_SIGNED: 8,
            Op.REM_UNSIGNED: 8, Op.REM_SIGNED: 8, Op.SUM: 16, Op.SPVACC_XV: 16}  # fmt: skip
_WRITES_MEMORY = frozenset((Op.STORE, Op.SPVACC_VX, Op.SPVACC_VV))
_READS_MEMORY = frozenset((Op.LOAD, Op.SPVACC_XV))
_WRITES_STREAM = frozenset((Op.PUT, Op.STREAMOUT))
_TAKES = frozenset((Op.TAKE, Op.TAKE_LANES))
_ALONG = frozenset((Op.SET, Op.SET_HIGH, Op.MOVE, Op.INFO, Op.AND, Op.OR, Op.XOR, Op.SHIFT_LEFT, Op.SHIFT_RIGHT,
                    Op.SHIFT_SIGNED, Op.MIN, Op.MAX, Op.MIN_SIGNED, Op.MAX_SIGNED, Op.COMPARE, Op.COMPARE_SIGNED,
                    Op.SELECT, Op.POPCOUNT, Op.LEADING_ZEROS, Op.TRAILING_ZEROS, Op.SWAP_BYTES, Op.TRUNCATE,
                    Op.SIGN_EXTEND))  # fmt: skip
#: A block of so many words stays as it is: what is far apart in it need not be near in registers.
_MOST = 400


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
                edge(written[register], i, _LATENCY.get(words[written[register]].op, 1))
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
            at = _counted(words, at, counter)
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


def _counted(words: list[Word], at: int, counter: int) -> int:
    """Where a counter is moved on in the payload, all takes but the first go from where it stands then: so the counter
    need not wait for them. An address that wraps is beyond the payload both ways.
    """
    step = words[at]
    by = signed_number(step.imm, 32)
    if step.op != Op.ADD or step.element != Element.I32 or not step.immediate or step.ra != counter or step.vector:
        return at
    end = next((i for i, word in enumerate(words) if word.writes() == counter), len(words))
    takes = [i for i in range(end) if words[i].op in _TAKES and words[i].ra == counter]
    if len(takes) < 2 or not 0 < by < 1 << 30 or end <= at:
        return at
    for i in takes[1:]:
        words[i].ra = step.rd
        words[i].imm = signed_number(words[i].imm, 32) - by & 0xFFFFFFFF
    if at < takes[1]:
        return at
    del words[at]
    words.insert(takes[1], step)
    return takes[1]


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


def schedule(part: Part, copies: dict[int, list[int]]) -> None:
    """Puts a block's words into an order in which they wait little."""
    words = part.body
    if not 2 < len(words) <= _MOST:
        return
    late = _late(words, copies)
    after, waits = _graph(words, late)
    asked = {register for word in part.ends for register in word.reads()}  # a cycle before the block ends
    height = [0] * len(words)
    for i in range(len(words) - 1, -1, -1):
        height[i] = max((cycles + height[j] for j, cycles in after[i].items()), default=1)
        if words[i].writes() in asked:
            height[i] = max(height[i], 2)
    there = [0] * len(words)  # from which cycle on a word can go
    ready = [(0, -height[i], i) for i in range(len(words)) if waits[i] == 0]
    order: list[Word] = []
    cycle = 0

    def take(among: Callable[[Word], bool]) -> bool:
        """Puts the highest of those down that can go now."""
        now = [entry for entry in ready if entry[0] <= cycle and among(words[entry[2]])]
        if not now:
            return False
        chosen = min(now, key=lambda entry: entry[1:])
        ready.remove(chosen)
        order.append(words[chosen[2]])
        for j, cycles in after[chosen[2]].items():
            there[j] = max(there[j], cycle + cycles)
            waits[j] -= 1
            if waits[j] == 0:
                ready.append((there[j], -height[j], j))
        return True

    while ready:
        cycle = max(cycle, min(ready)[0])
        # Who can only go first goes first, and with it one that can go along.
        if not take(lambda word: not _goes_along(word)):
            take(_goes_along)
        take(_goes_along)
        cycle += 1
    assert len(order) == len(words)
    part.body = order
