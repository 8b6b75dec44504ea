"""One point of the conformance matrix, its inputs, and what an independent reference expects.

Nothing here uses Unisono's programs, interpreter or arithmetic: the expectation is written with NumPy
from the definition of the collective (docs/model.md, rules 17 and 18).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
}
OPS = ("sum", "prod", "min", "max")
AUTOMATIC = "automatic"
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "scan", "exscan")
ROOTED = ("bcast", "reduce", "gather", "scatter", "gatherv", "scatterv")
V_COLLECTIVES = ("gatherv", "scatterv", "allgatherv", "alltoallv")


@dataclass(frozen=True)
class Case:
    """A call made by `ranks` ranks. `count` is as in docs/model.md rule 17; for v-collectives the largest
    count of a rank (the others vary, zero included). `skew` delays ranks by different times. `exact`
    inputs are small powers of two and integers, for which every order of reduction gives the same bits;
    otherwise they are random, and results are compared with a tolerance. `salt` tells equal calls of a sequence apart.

    `algorithm` is a name, or `AUTOMATIC`: the choice is the engine's."""

    collective: str
    algorithm: str
    ranks: int
    count: int
    dtype: str = "fp32"
    op: str = "sum"
    root: int = 0
    in_place: bool = False
    group_size: int = 0
    skew: bool = False
    exact: bool = True
    salt: int = 0

    def __str__(self) -> str:
        parts = [f"{self.collective}/{self.algorithm}", f"P{self.ranks}", f"n{self.count}", self.dtype]
        if self.collective in REDUCTIONS:
            parts.append(self.op)
        if self.collective in ROOTED:
            parts.append(f"root{self.root}")
        parts += ["in-place"] * self.in_place + ["skew"] * self.skew + ["random"] * (not self.exact)
        if self.group_size:
            parts.append(f"group{self.group_size}")
        if self.salt:
            parts.append(f"salt{self.salt}")
        return "-".join(parts)

    @property
    def seed(self) -> int:
        """Equal cases have equal inputs, in every process."""
        return zlib.crc32(str(self).encode())


def _values(case: Case, rng: np.random.Generator, size: int) -> Array:
    dtype = DTYPES[case.dtype]
    integer = np.issubdtype(dtype, np.integer)
    if case.op == "prod" and case.collective in REDUCTIONS:
        choices = [1, 2, -1, 3] if integer else [1.0, 2.0, -1.0, 0.5]
        return rng.choice(np.array(choices), size=size).astype(dtype)
    if integer:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size=size, dtype=dtype)
    if case.exact:
        # |sum| over 64 ranks stays below 2^8 with integers up to 3: exact even in bfloat16.
        return rng.integers(-3, 4, size=size).astype(dtype)
    return (rng.standard_normal(size) * 3).astype(dtype)


@dataclass(frozen=True)
class Layout:
    """Counts and displacements of a v-collective, in elements. Rows are ranks for alltoallv (send_counts[i][j]
    goes from i to j); the other collectives have one row, the layout at the root or of every dst."""

    counts: npt.NDArray[np.int64]
    send_displacements: npt.NDArray[np.int64]
    recv_displacements: npt.NDArray[np.int64]


def layout(case: Case) -> Layout:
    """Counts that differ between ranks, with gaps between blocks, and some zero."""
    rng = np.random.default_rng(case.seed + 1)
    p = case.ranks
    rows = p if case.collective == "alltoallv" else 1
    counts = rng.integers(0, case.count + 1, size=(rows, p), dtype=np.int64)
    counts[rng.random((rows, p)) < 0.15] = 0

    def displace(of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        gaps = rng.integers(0, 3, size=of.shape, dtype=np.int64)
        before = np.zeros_like(of)
        before[:, 1:] = np.cumsum(of[:, :-1] + gaps[:, :-1], axis=1)
        return before + gaps[:, :1]

    if case.in_place and case.collective == "alltoallv":
        counts = (counts + counts.T) // 2  # in place, what a pair exchanges has one size
    send = displace(counts)
    recv = displace(counts.T) if case.collective == "alltoallv" else displace(counts)
    return Layout(counts, send, recv)


def _extent(counts: npt.NDArray[np.int64], displacements: npt.NDArray[np.int64]) -> int:
    return int((counts + displacements).max(initial=0))


def source_elements(case: Case, rank: int) -> int:
    """Elements of src on a rank; 0 where the rank has none."""
    n, p = case.count, case.ranks
    match case.collective:
        case "bcast" | "barrier":
            return 0
        case "reduce_scatter" | "alltoall":
            return n * p
        case "scatter":
            return n * p if rank == case.root else 0
        case "gatherv" | "allgatherv":
            return int(layout(case).counts[0, rank])
        case "scatterv":
            v = layout(case)
            return _extent(v.counts[0], v.send_displacements[0]) if rank == case.root else 0
        case "alltoallv":
            v = layout(case)
            return _extent(v.counts[rank], v.send_displacements[rank])
        case _:
            return n


def destination_elements(case: Case, rank: int) -> int:
    """Elements of dst on a rank; 0 where the rank has none."""
    n, p = case.count, case.ranks
    match case.collective:
        case "barrier":
            return 0
        case "reduce":
            return n if rank == case.root else 0
        case "gather":
            return n * p if rank == case.root else 0
        case "allgather" | "alltoall":
            return n * p
        case "gatherv":
            v = layout(case)
            return _extent(v.counts[0], v.recv_displacements[0]) if rank == case.root else 0
        case "allgatherv":
            v = layout(case)
            return _extent(v.counts[0], v.recv_displacements[0])
        case "scatterv":
            return int(layout(case).counts[0, rank])
        case "alltoallv":
            v = layout(case)
            return _extent(v.counts[:, rank], v.recv_displacements[rank])
        case _:
            return n


@dataclass(frozen=True)
class Buffers:
    """One rank's memory before the call; None where the rank passes nothing. In place, `src` is None
    wherever the input stands in `dst` (or, for scatter's root, `dst` is None)."""

    src: Array | None
    dst: Array | None


@lru_cache(maxsize=64)
def _initial(case: Case, rank: int) -> tuple[Array, Array]:
    """Input values of a rank and the initial content of its dst, both random and different on every rank. Read only."""
    rng = np.random.default_rng([case.seed, rank])
    source = _values(case, rng, source_elements(case, rank))
    destination = _values(case, rng, destination_elements(case, rank))
    source.flags.writeable = destination.flags.writeable = False
    return source, destination


def in_place_view(case: Case, rank: int, dst: Array) -> list[tuple[slice, slice]]:
    """(slice of src, slice of dst) pairs that say where the input stands in dst of an in-place call."""
    n = case.count
    match case.collective:
        case "allgather" | "gather":
            return [(slice(0, n), slice(rank * n, rank * n + n))]
        case "gatherv" | "allgatherv":
            v = layout(case)
            count, at = int(v.counts[0, rank]), int(v.recv_displacements[0, rank])
            return [(slice(0, count), slice(at, at + count))]
        case "alltoallv":
            v = layout(case)
            pairs = []
            for j in range(case.ranks):
                count = int(v.counts[rank, j])
                s, d = int(v.send_displacements[rank, j]), int(v.recv_displacements[rank, j])
                pairs.append((slice(s, s + count), slice(d, d + count)))
            return pairs
        case _:
            return [(slice(0, len(dst)), slice(0, len(dst)))]


def is_in_place(case: Case, rank: int) -> bool:
    """Whether this rank's call is in place: rooted collectives are so on the root only."""
    return case.in_place and (
        case.collective not in ("reduce", "gather", "gatherv", "scatter", "scatterv") or rank == case.root
    )


def buffers(case: Case, rank: int) -> Buffers:
    """A rank's memory before the call."""
    source, destination = (initial.copy() for initial in _initial(case, rank))
    has_source = case.collective not in ("bcast", "barrier") and not (
        case.collective in ("scatter", "scatterv") and rank != case.root
    )
    has_destination = case.collective != "barrier" and not (
        case.collective in ("reduce", "gather", "gatherv") and rank != case.root
    )
    if is_in_place(case, rank):
        if case.collective in ("scatter", "scatterv"):
            return Buffers(source, None)
        if case.collective == "reduce_scatter":
            return Buffers(None, source)
        for s, d in in_place_view(case, rank, destination):
            destination[d] = source[s]
        return Buffers(None, destination)
    return Buffers(source if has_source else None, destination if has_destination else None)


def _reduce(op: str, items: list[Array]) -> Array:
    """Reduction in rank order; floating point in float64, so that it is exact for exact inputs."""
    dtype = items[0].dtype
    wide = items if np.issubdtype(dtype, np.integer) else [a.astype(np.float64) for a in items]
    total = wide[0].copy()
    with np.errstate(over="ignore"):
        for item in wide[1:]:
            match op:
                case "sum":
                    total = total + item
                case "prod":
                    total = total * item
                case "min":
                    total = np.minimum(total, item)
                case "max":
                    total = np.maximum(total, item)
    return total.astype(dtype)


def expected(case: Case, rank: int) -> Array | None:
    """dst of a rank after the call (src of scatter's root in place); None where it has none."""
    p, n = case.ranks, case.count
    before = buffers(case, rank)
    target = before.dst
    if target is None:
        return None
    out = target.copy()
    sources = [_initial(case, r)[0] for r in range(p)]
    match case.collective:
        case "bcast":
            return _initial(case, case.root)[1]
        case "reduce" | "allreduce":
            out[:] = _reduce(case.op, sources)
        case "reduce_scatter":
            out[:n] = _reduce(case.op, [s[rank * n : rank * n + n] for s in sources])
        case "scan":
            out[:] = _reduce(case.op, sources[: rank + 1])
        case "exscan":
            if rank > 0:
                out[:] = _reduce(case.op, sources[:rank])
        case "allgather" | "gather":
            out[:] = np.concatenate(sources)
        case "scatter":
            out[:] = sources[case.root][rank * n : rank * n + n]
        case "alltoall":
            out[:] = np.concatenate([s[rank * n : rank * n + n] for s in sources])
        case "gatherv" | "allgatherv":
            v = layout(case)
            for j in range(p):
                at = int(v.recv_displacements[0, j])
                out[at : at + int(v.counts[0, j])] = sources[j]
        case "scatterv":
            v = layout(case)
            at = int(v.send_displacements[0, rank])
            out[:] = sources[case.root][at : at + int(v.counts[0, rank])]
        case "alltoallv":
            v = layout(case)
            for j in range(p):
                count = int(v.counts[j, rank])
                s, d = int(v.send_displacements[j, rank]), int(v.recv_displacements[rank, j])
                out[d : d + count] = sources[j][s : s + count]
        case _:
            raise ValueError(f"no expectation for {case.collective}")
    return out


def tolerance(case: Case) -> float:
    """Relative tolerance for random inputs: one rounding per operand of the reduction."""
    eps = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-23, "fp64": 2.0**-52}
    return case.ranks * eps.get(case.dtype, 0.0)


def compare(case: Case, rank: int, got: Array | None) -> str | None:
    """What is wrong with a rank's dst, in a sentence; None if nothing is."""
    want = expected(case, rank)
    if want is None:
        return None
    if got is None:
        return f"{case}: rank {rank} returned nothing"
    if case.collective == "reduce_scatter":  # in place, what follows the result is undefined
        want, got = want[: case.count], got[: case.count]
    if case.exact or case.collective not in REDUCTIONS or np.issubdtype(want.dtype, np.integer):
        shape = (len(want), want.itemsize)
        bad = (want.view(np.uint8).reshape(shape) != got.view(np.uint8).reshape(shape)).any(axis=1)
        bad &= ~((want == 0) & (got == 0))  # the sign of a zero sum may differ from float64's
    else:
        w, g = want.astype(np.float64), got.astype(np.float64)
        scale = sum(np.abs(_initial(case, r)[0].astype(np.float64)).max(initial=0.0) for r in range(case.ranks))
        bad = np.abs(w - g) > tolerance(case) * max(scale, 1.0)
    if not bad.any():
        return None
    k = int(np.flatnonzero(bad)[0])
    return f"{case}: rank {rank} element {k}: expected {want[k]}, got {got[k]} ({int(bad.sum())} of {len(want)} wrong)"
