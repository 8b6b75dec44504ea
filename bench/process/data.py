"""What every call of the benchmark gets and must leave behind: the same numbers as in bench/data.c."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DTYPES = {"int32": np.int32, "int64": np.int64, "fp32": np.float32, "fp64": np.float64}
SHAPES = {
    "gatherv": "gather",
    "scatterv": "scatter",
    "allgatherv": "allgather",
    "reduce_scatterv": "reduce_scatter",
    "alltoallv": "alltoall",
}
ROOTED = ("bcast", "reduce", "gather", "scatter")
IN_FLIGHT = ("inflight", "waited")  #: all-reduces that are started, FLIGHTS of them
FLIGHTS = 8
SETS = 16  #: of counts that change from call to call
STAMPS = 1024  #: after so many calls stamps repeat
GOLDEN = 0x9E3779B1
OTHER = 0x85EBCA6B
WORD = 0xFFFFFFFF
LONG = (1 << 64) - 1


@dataclass
class Call:
    """A call that a block repeats, seen from one rank. Counts are elements."""

    op: str
    dtype: str
    count: int
    rank: int
    size: int
    changing: bool = False
    algorithm: str | None = None
    src: Array | None = None
    dst: Array | None = None
    counts: Array = field(init=False)  #: of each set, from each rank, for each rank

    def __post_init__(self) -> None:
        self.counts = draw_counts(self.count, self.size, self.sets)

    @property
    def shape(self) -> str:
        """The operation that this one generalises."""
        return SHAPES.get(self.op, self.op)

    @property
    def turns(self) -> int:
        """The turn is the root; scans have two, in which the order of the ranks differs."""
        turns = 2 if self.op in ("scan", "exscan") else 1
        return self.size if self.shape in ROOTED else turns

    @property
    def sets(self) -> int:
        """Sets of counts."""
        return SETS if self.changing and self.op in SHAPES else 1

    @property
    def period(self) -> int:
        """After so many calls everything repeats."""
        return math.lcm(self.turns, self.sets)

    @property
    def src_elements(self) -> int:
        """Of the source, at the most of all sets."""
        blocks = {"bcast": 0, "barrier": 0, "reduce_scatter": self.size, "scatter": self.size, "alltoall": self.size}
        blocks |= dict.fromkeys(IN_FLIGHT, FLIGHTS)
        return blocks.get(self.shape, 1) * self.count * (2 if self.sets > 1 else 1)

    @property
    def dst_elements(self) -> int:
        """Of the destination, at the most of all sets."""
        blocks = {"barrier": 0, "gather": self.size, "allgather": self.size, "alltoall": self.size}
        blocks |= dict.fromkeys(IN_FLIGHT, FLIGHTS)
        return blocks.get(self.shape, 1) * self.count * (2 if self.sets > 1 else 1)

    def counts_of(self, number: int, source: int = 0) -> list[int]:
        """The counts of a call, from one rank to each."""
        return [int(count) for count in self.counts[number % self.sets, source]]

    def counts_for(self, number: int, target: int) -> list[int]:
        """The counts of a call, from each rank to one."""
        return [int(count) for count in self.counts[number % self.sets, :, target]]


def _drawn(pair: int, source: int, target: int) -> int:
    mixed = ((pair << 32) + (source << 16) + target + 1) * 0x9E3779B97F4A7C15 & LONG
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & LONG
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & LONG
    return mixed ^ (mixed >> 31)


def draw_counts(count: int, size: int, sets: int) -> Array:
    """Counts for each set, source and target: all equal, or changing about their mean (bench_draw_counts)."""
    table = np.full((sets, size, size), count, dtype=np.int64)
    if sets == 1:
        return table
    for each in range(sets // 2):
        for source in range(size):
            for target in range(size):
                drawn = _drawn(each, source, target) % (2 * count + 1)
                table[each, source, target] = drawn
                table[sets - 1 - each, source, target] = 2 * count - drawn
    return table


def values(rank: int, block: int, begin: int, count: int, seed: int) -> Array:
    """Elements from `begin` on of a block that a rank contributes."""
    start = ((rank + 1) * GOLDEN + (block + 1) * OTHER + seed * 0xC2B2AE35) & WORD
    index = np.arange(begin, begin + count, dtype=np.uint64)
    mixed = ((start ^ (start >> 15)) + index * np.uint64(0x2C1B3C6D)) & np.uint64(WORD)
    result: Array = (mixed >> np.uint64(18)).astype(np.int64)
    return result


def stamp(rank: int, number: int) -> int:
    """Element 0 of block 0 in call `number`; it repeats, so that the loop can look it up."""
    return ((number % STAMPS * GOLDEN + (rank + 1) * OTHER) & WORD) >> 18


def fill(call: Call, seed: int) -> None:
    """Makes memory ready for a block: this rank's data, and a destination that holds nothing right."""
    if call.dst is not None:
        call.dst.view(np.uint8)[:] = 0xA5
    if call.src is not None:
        if call.sets > 1:
            call.src[:] = values(call.rank, 0, 0, len(call.src), seed)
        else:
            for block in range(len(call.src) // call.count):
                part = slice(block * call.count, (block + 1) * call.count)
                call.src[part] = values(call.rank, block, 0, call.count, seed)
    if call.op == "bcast" and call.rank == 0 and call.dst is not None:
        call.dst[:] = values(0, 0, 0, call.count, seed)


def _expected(ranks: range, block: int, begin: int, count: int, seed: int, number: int) -> Array:
    """The sum of what some ranks contribute to call `number`."""
    total = np.zeros(count, dtype=np.int64)
    for rank in ranks:
        part = values(rank, block, begin, count, seed)
        if block == 0 and begin == 0 and count > 0:
            part[0] = stamp(rank, number)
        total += part
    return total


def expected(call: Call, seed: int, last: int) -> Array | None:
    """What calls 0 to `last`, each stamped, leave in the destination; None: nothing that is defined."""
    rank, size, count = call.rank, call.size, call.count
    everybody = range(size)
    number = last
    if call.shape in ("reduce", "gather"):
        number = last - (last + size - rank) % size  # the last call of which this rank was the root
        if number < 0:
            return None
    root = number % size

    def one(source: int, block: int = 0) -> Array:
        return _expected(range(source, source + 1), block, 0, count, seed, number)

    def piece(ranks: range, begin: int, length: int) -> Array:
        return _expected(ranks, 0, begin, length, seed, number)

    if call.op == "barrier" or count == 0:
        return None
    if call.sets > 1:
        counts = call.counts_of(number)
        before = sum(counts[:rank])
        if call.op == "scatterv":
            return piece(range(root, root + 1), before, counts[rank])
        if call.op == "reduce_scatterv":
            return piece(everybody, before, counts[rank])
        if call.op == "alltoallv":
            begins = [sum(call.counts_of(number, source)[:rank]) for source in everybody]
            lengths = call.counts_for(number, rank)
        else:
            begins, lengths = [0] * size, counts
        return np.concatenate([piece(range(i, i + 1), begins[i], lengths[i]) for i in everybody])
    if call.op == "pingpong":
        return one(1 - rank) if rank < 2 else None
    if call.op == "bcast":  # the data come from rank 0 and go on from root to root; only the stamp changes
        result = values(0, 0, 0, count, seed)
        result[0] = stamp(root, last)
        return result
    if call.op in IN_FLIGHT:
        return np.concatenate([_expected(everybody, block, 0, count, seed, number) for block in range(FLIGHTS)])
    if call.shape in ("reduce", "allreduce"):
        return _expected(everybody, 0, 0, count, seed, number)
    if call.shape == "reduce_scatter":
        return _expected(everybody, rank, 0, count, seed, number)
    if call.op in ("scan", "exscan"):
        own = 1 if call.op == "scan" else 0
        ranks = range(rank + own) if last % 2 == 0 else range(rank + 1 - own, size)
        return _expected(ranks, 0, 0, count, seed, number) if ranks else None
    if call.shape == "scatter":
        return one(root, rank)
    block = rank if call.shape == "alltoall" else 0
    return np.concatenate([one(source, block) for source in everybody])


def is_right(call: Call, seed: int, last: int) -> bool:
    """Whether memory holds what calls 0 to `last` leave behind."""
    wanted = expected(call, seed, last)
    return wanted is None or call.dst is None or bool(np.array_equal(call.dst[: len(wanted)], wanted))
