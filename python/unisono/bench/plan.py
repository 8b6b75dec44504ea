"""What a benchmark measures: operations, sizes, cells, and how long it will take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._spec import Collective
from ..errors import InvalidArgumentError
from .network import FLAT, Network

#: Each has a form of its own in the programs of bench/.
OPS = (
    "pingpong", "bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "gather", "scatter", "allgather",
    "alltoall", "gatherv", "scatterv", "allgatherv", "reduce_scatterv", "alltoallv", "barrier", "put", "get",
    "inflight", "stream",
)  # fmt: skip
ONLY_C = ("put", "get", "stream")  #: not measured from Python
BETWEEN_TWO = ("pingpong", "stream")  #: ranks 0 and 1; the others sleep
#: What a call of each operation is, and what its figure is the time of.
MEANING = {
    "pingpong": "a message from rank 0 to rank 1 and one back; half of both",
    "put": "every rank writes a block into the next rank's window; done when it stands there",
    "get": "every rank reads a block from the next rank's window",
    "inflight": "eight all-reduces on one communicator are started, then all are waited for; the time of all eight",
    "stream": "rank 0 starts eight messages to rank 1, which answers when it has all; an eighth of it",
}
FLIGHTS = 8  #: calls of `inflight`, messages of `stream` (BENCH_FLIGHTS in bench/data.h)
COLLECTIVES = {c.name.lower(): c for c in Collective if c.is_collective}
ROOTED = tuple(name for name, collective in COLLECTIVES.items() if collective.rooted)
WITH_COUNTS = tuple(name for name, collective in COLLECTIVES.items() if collective.vectors)
PEERS = ("openmpi", "mpich")
PYTHON_PEERS = ("mpi4py",)
UNIFORM = "uniform"  #: the name under which a v-collective is compared with what it generalises
WAITED = "waited"  #: the name of the calls of `inflight`, each waited for before the next is started
OWN = (UNIFORM, WAITED, FLAT)  #: what Unisono is compared with that is Unisono itself
INTERFACES = ("c", "python")
BUFFERS = ("malloc", "registered", "allocated")
COUNTS = ("equal", "changing")
SETS = 16  #: of counts that change from call to call (BENCH_SETS in bench/data.h)
ELEMENT_BYTES = {"int32": 4, "int64": 8, "fp32": 4, "fp64": 8}
SMALL = 1 << 10  #: bytes of a block up to which the kind of memory makes no difference
LARGEST = 1 << 30
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Cell:
    """One figure of each system: an operation on blocks of so many bytes."""

    op: str
    bytes: int
    dtype: str
    buffers: str
    ranks: int
    algorithm: str | None = None  #: of Unisono; None: its own choice
    counts: str | None = None  #: of a v-collective: equal, or changing from call to call; None: there are none
    interface: str = "c"  #: by which the systems are called: c or python
    network: Network | None = None  #: between hosts; None: all ranks share memory

    @property
    def count(self) -> int:
        """Elements of a block."""
        return self.bytes // ELEMENT_BYTES[self.dtype]

    @property
    def turns(self) -> int:
        """After so many calls everything repeats (bench_turns in bench/data.h)."""
        turns = 2 if self.op in ("scan", "exscan") else 1
        if self.op in ROOTED:
            turns = self.ranks
        return math.lcm(turns, SETS) if self.counts == "changing" else turns

    @property
    def calls_per_figure(self) -> float:
        """A ping-pong is there and back, and its figure is one way; that of a stream is one message."""
        return {"pingpong": 2, "stream": FLIGHTS}.get(self.op, 1)

    @property
    def buffer_bytes(self) -> int:
        """Memory of one rank, at the most."""
        if self.op in ("inflight", "stream"):
            return 2 * self.bytes * FLIGHTS
        return 2 * self.bytes * self.ranks * (2 if self.counts == "changing" else 1)

    @property
    def compared(self) -> str | None:
        """With what else of Unisono's own it is compared: of `OWN`."""
        if self.op == "inflight":
            return WAITED
        if self.network is not None and self.network.mixed and self.op == "allreduce" and self.algorithm is None:
            return FLAT
        return UNIFORM if self.counts is not None else None

    @property
    def title(self) -> str:
        """The operation, with what is special about its counts."""
        return f"{self.op}, changing counts" if self.counts == "changing" else self.op


@dataclass(frozen=True)
class Effort:
    """How long is measured."""

    rounds: int
    most_rounds: int  #: when too many rounds were disturbed
    block_seconds: float  #: of one system in one round
    limit_seconds: float
    sample_seconds: float  #: of the pass that looks at single calls

    @staticmethod
    def of(*, crowded: bool, quick: bool, network: bool = False) -> Effort:
        """Means of calls that share cores need a second each: the scheduler's time slices are milliseconds.

        Over a network calls take so long that less will do, or there would be few.
        """
        if network and not quick:
            return Effort(5, 8, 0.3, 0.002, 0.1) if crowded else Effort(20, 26, 0.005, 0.002, 0.02)
        if crowded:
            return Effort(2, 3, 0.1, 0.002, 0.1) if quick else Effort(5, 8, 1.0, 0.002, 0.5)
        return Effort(5, 8, 0.001, 0.0005, 0.01) if quick else Effort(20, 60, 0.005, 0.002, 0.05)


def size_text(size: int) -> str:
    """4096 -> "4K"."""
    for unit in ("G", "M", "K"):
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def parse_size(text: str) -> int:
    """Bytes: `4K` is 4096."""
    match = re.fullmatch(r"(\d+)([KMG]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InvalidArgumentError(f"{text!r} is no size; a size is a number of bytes, such as 48, 4K or 1M")
    size = int(match[1]) * UNITS[match[2].upper()]
    if not 1 <= size <= LARGEST:
        raise InvalidArgumentError(f"size {text} was given; allowed are 1 to {size_text(LARGEST)} bytes")
    return size


def parse_sizes(text: str) -> list[int]:
    """Sizes: `4:16` is 4, 8, 16; `4,1K` is 4, 1024. Ranges go by powers of two."""
    sizes: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.partition(":")
        low = parse_size(first)
        high = parse_size(last) if colon else low
        if high < low:
            raise InvalidArgumentError(f"sizes {part} were given; the first of a range must not be above the last")
        if not colon:
            sizes.add(low)
            continue
        powers = [1 << k for k in range(LARGEST.bit_length()) if low <= 1 << k <= high]
        if not powers:
            raise InvalidArgumentError(f"sizes {part} were given; there is no power of two in that range")
        sizes.update(powers)
    return sorted(sizes)


def parse_names(text: str, known: tuple[str, ...], what: str) -> list[str]:
    """A list of names separated by commas; "all" for all of them."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return list(known)
    for name in names:
        if name not in known:
            raise InvalidArgumentError(f"{what} {name!r} was given; there are {', '.join(known)}")
    if not names:
        raise InvalidArgumentError(f"no {what} was given; there are {', '.join(known)}")
    return list(dict.fromkeys(names))


def operations(text: str, interface: str, network: Network | None = None) -> list[str]:
    """A list of operations; "all" for all that can be measured from there."""
    mixed = network is not None and network.mixed
    there = tuple(op for op in OPS if (interface == "c" or op not in ONLY_C) and not (mixed and op in BETWEEN_TWO))
    wanted = parse_names(text, there if text.strip() == "all" else OPS, "operation")
    for op in wanted:
        if mixed and op in BETWEEN_TWO:
            raise InvalidArgumentError(
                f"operation {op} is between ranks 0 and 1, which are on one host here; leave --hosts out, and each "
                "rank is a host of its own"
            )
        if op not in there:
            raise InvalidArgumentError(f"operation {op} was given with --python; it is measured from C only")
    return wanted


def cells(
    *,
    ops: list[str],
    sizes: list[int],
    dtypes: list[str],
    buffers: list[str],
    ranks: int,
    algorithm: str | None,
    counts: list[str],
    interface: str = "c",
    network: Network | None = None,
) -> Iterator[Cell]:
    """All cells, in the order in which they are measured and shown."""
    for dtype in dtypes:
        for size in sizes:
            if size % ELEMENT_BYTES[dtype]:
                raise InvalidArgumentError(
                    f"size {size} was given with {dtype}; allowed are multiples of {ELEMENT_BYTES[dtype]} bytes"
                )
    for op in ops:
        if op == "barrier":
            yield Cell(op, 0, dtypes[0], buffers[0], ranks, algorithm, interface=interface, network=network)
            continue
        for dtype in dtypes:
            for kind in buffers:
                for how in counts if op in WITH_COUNTS else [None]:
                    for size in sizes:
                        yield Cell(op, size, dtype, kind, ranks, algorithm, how, interface, network)


def kind_of_buffers(record: dict[str, Any]) -> str | None:
    """The kind of buffers in a line of a JSON file. Lines without a schema called allocated memory registered."""
    kind = record.get("buffers")
    return "allocated" if kind == "registered" and "schema" not in record else kind


def estimate(cell: Cell, systems: int, effort: Effort) -> float:
    """Seconds that a cell will take, roughly."""
    # Filling and checking run at some GB/s on every rank, a handful of times for each block; waking and
    # answering takes most of a millisecond.
    checking = 0.0005 + 8 * cell.buffer_bytes / 3e9
    blocks = effort.rounds + 4
    each = blocks * (1.2 * effort.block_seconds + checking) + effort.sample_seconds
    return systems * each + blocks * (2 * effort.limit_seconds + 0.0005)
