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
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "int16": np.dtype(np.int16),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    # As C lays them out: the second has four bytes of padding.
    "fp32_int32": np.dtype([("value", "<f4"), ("index", "<i4")]),
    "fp64_int32": np.dtype({"names": ["value", "index"], "formats": ["<f8", "<i4"], "offsets": [0, 8], "itemsize": 16}),
    "int32_int32": np.dtype([("value", "<i4"), ("index", "<i4")]),
    "int64_int64": np.dtype([("value", "<i8"), ("index", "<i8")]),
}
BITS = ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")


def _ops_on(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """docs/model.md, "Arithmetic", written out again."""
    if dtype.names is not None:
        return ("minloc", "maxloc")
    match dtype.kind:
        case "i" | "u":
            return ("sum", "prod", "min", "max", *BITS)
        case "b":
            return ("min", "max", *BITS)
        case "c":
            return ("sum", "prod", "avg")
        case _:
            return ("sum", "prod", "min", "max", "avg")


#: The operators that are defined on each datatype.
OPS: dict[str, tuple[str, ...]] = {name: _ops_on(dtype) for name, dtype in DTYPES.items()}
AUTOMATIC = "automatic"
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatterv", "scan", "exscan")
MEANS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatterv")
ROOTED = ("bcast", "reduce", "gather", "scatter", "gatherv", "scatterv")
V_COLLECTIVES = ("gatherv", "scatterv", "allgatherv", "alltoallv", "reduce_scatterv")


@dataclass(frozen=True)
class Case:
    """A call made by `ranks` ranks. `count` is as in docs/model.md rule 17; for v-collectives the largest
    count of a rank (the others vary, zero included). `skew` delays ranks by different times. `exact`
    inputs are small powers of two and integers, for which every order of reduction gives the same bits;
    otherwise they are random, and results are compared with a tolerance. `salt` tells equal calls of a sequence apart.

    `algorithm` is a name, or `AUTOMATIC`: the choice is the engine's. `wire` is a datatype that elements travel as, or
    nothing. `groups`: of `dealt` every second rank is in the other one; `uneven` are ranges of two, three, three, ...
    ranks."""

    collective: str
    algorithm: str
    ranks: int
    count: int
    dtype: str = "fp32"
    op: str = "sum"
    root: int = 0
    in_place: bool = False
    group_size: int = 0
    groups: str = ""
    skew: bool = False
    exact: bool = True
    salt: int = 0
    wire: str = ""

    def __str__(self) -> str:
        parts = [f"{self.collective}/{self.algorithm}", f"P{self.ranks}", f"n{self.count}", self.dtype]
        if self.collective in REDUCTIONS:
            parts.append(self.op)
        if self.collective in ROOTED:
            parts.append(f"root{self.root}")
        parts += ["in-place"] * self.in_place + ["skew"] * self.skew + ["random"] * (not self.exact)
        if self.group_size:
            parts.append(f"group{self.group_size}")
        if self.groups:
            parts.append(self.groups)
        if self.wire:
            parts.append(f"as-{self.wire}")
        if self.salt:
            parts.append(f"salt{self.salt}")
        return "-".join(parts)

    def group_of(self, rank: int) -> int | None:
        """The group of a rank where `groups` says so."""
        return {"dealt": rank % 2, "uneven": (rank + 1) // 3}.get(self.groups)

    @property
    def seed(self) -> int:
        """Equal cases have equal inputs, in every process."""
        return zlib.crc32(str(self).encode())


def _values(case: Case, rng: np.random.Generator, size: int) -> Array:
    dtype = DTYPES[case.dtype]
    if dtype.names is not None:
        pairs = np.zeros(size, dtype)  # padding is zero
        pairs["value"] = rng.integers(-3, 4, size=size)  # so few that there are ties
        pairs["index"] = rng.integers(-(2**31), 2**31, size=size)
        return pairs
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if case.op == "prod" and case.collective in REDUCTIONS:
        choices: list[Any] = {"i": [1, 2, -1, 3], "u": [1, 2, 5, 3], "c": [1, 2, -1, 1j, -1j]}.get(
            dtype.kind, [1.0, 2.0, -1.0, 0.5]
        )
        return rng.choice(np.array(choices), size=size).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, size=size, dtype=dtype, endpoint=True)
        if case.op.startswith("logical"):
            values[rng.random(size) < 0.5] = 0
        return values
    if dtype.kind == "c":
        if case.exact:
            return (rng.integers(-3, 4, size=size) + 1j * rng.integers(-3, 4, size=size)).astype(dtype)
        return ((rng.standard_normal(size) + 1j * rng.standard_normal(size)) * 3).astype(dtype)
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
        case "reduce_scatterv":
            v = layout(case)
            return _extent(v.counts[0], v.recv_displacements[0])
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
        case "scatterv" | "reduce_scatterv":
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
        if case.collective in ("reduce_scatter", "reduce_scatterv"):
            return Buffers(None, source)
        for s, d in in_place_view(case, rank, destination):
            destination[d] = source[s]
        return Buffers(None, destination)
    return Buffers(source if has_source else None, destination if has_destination else None)


def _join(op: str, a: Array, b: Array) -> Array:
    """One step of a reduction, element by element."""
    match op:
        case "sum" | "avg":
            return np.asarray(a + b)
        case "prod":
            return np.asarray(a * b)
        case "min":
            return np.minimum(a, b)
        case "max":
            return np.maximum(a, b)
        case "minloc" | "maxloc":
            before = a["value"] < b["value"] if op == "minloc" else a["value"] > b["value"]
            tie = (a["value"] == b["value"]) & (a["index"] <= b["index"])
            return np.where(before | tie, a, b)
        case _:
            function = getattr(np, op)
            return np.asarray(function(a, b))


def _reduce(op: str, items: list[Array]) -> Array:
    """Reduction in rank order; floating point in float64, so that it is exact for exact inputs."""
    dtype = items[0].dtype
    wide = items
    if dtype.names is None and dtype.kind not in "iub":
        wide = [a.astype(np.complex128 if dtype.kind == "c" else np.float64) for a in items]
    total = wide[0].copy()
    with np.errstate(over="ignore"):
        for item in wide[1:]:
            total = _join(op, total, item)
    if op == "avg":  # the sum is rounded before it is divided; fp16 and bf16 are divided in fp32
        narrow = dtype.kind != "c" and dtype.itemsize == 2
        total = total.astype(dtype).astype(np.float32 if narrow else dtype)
        parts = total.view(np.float32 if dtype.itemsize == 8 else np.float64) if dtype.kind == "c" else total
        parts /= parts.dtype.type(len(items))  # complex numbers by parts
    return total.astype(dtype)


def travelling(case: Case, values: Array) -> Array:
    """Values as they travel, in the datatype in which they do."""
    return values.astype(DTYPES[case.wire]) if case.wire else values


def expected(case: Case, rank: int) -> Array | None:
    """dst of a rank after the call (src of scatter's root in place); None where it has none."""
    p, n = case.ranks, case.count
    before = buffers(case, rank)
    target = before.dst
    if target is None:
        return None
    out = target.copy()
    sources = [travelling(case, _initial(case, r)[0]) for r in range(p)]
    match case.collective:
        case "bcast":
            out[:] = travelling(case, _initial(case, case.root)[1])
        case "reduce" | "allreduce":
            out[:] = _reduce(case.op, sources)
        case "reduce_scatter":
            out[:n] = _reduce(case.op, [s[rank * n : rank * n + n] for s in sources])
        case "reduce_scatterv":
            v = layout(case)
            at, count = int(v.recv_displacements[0, rank]), int(v.counts[0, rank])
            out[:count] = _reduce(case.op, [s[at : at + count] for s in sources])
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
    eps |= {"complex64": 2.0**-22, "complex128": 2.0**-51}
    return case.ranks * eps.get(case.wire or case.dtype, 0.0)


def compare(case: Case, rank: int, got: Array | None) -> str | None:
    """What is wrong with a rank's dst, in a sentence; None if nothing is."""
    want = expected(case, rank)
    if want is None:
        return None
    if got is None:
        return f"{case}: rank {rank} returned nothing"
    if case.collective == "reduce_scatter":  # in place, what follows the result is undefined
        want, got = want[: case.count], got[: case.count]
    if case.collective == "reduce_scatterv":
        count = int(layout(case).counts[0, rank])
        want, got = want[:count], got[:count]
    if case.exact or case.collective not in REDUCTIONS or want.dtype.kind in "iubV":
        if want.dtype.names is not None:  # what padding holds is seen by nobody
            bad = np.logical_or.reduce([want[name] != got[name] for name in want.dtype.names])
            return _first_wrong(case, rank, want, got, bad)
        shape = (len(want), want.itemsize)
        bad = (want.view(np.uint8).reshape(shape) != got.view(np.uint8).reshape(shape)).any(axis=1)
        # The sign of a zero sum may differ from float64's, also within a complex number.
        bad &= ~((want.real == got.real) & (want.imag == got.imag))
    else:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        w, g = want.astype(wide), got.astype(wide)
        scale = sum(np.abs(_initial(case, r)[0].astype(wide)).max(initial=0.0) for r in range(case.ranks))
        bad = np.abs(w - g) > tolerance(case) * max(scale, 1.0)
    return _first_wrong(case, rank, want, got, bad)


def _first_wrong(case: Case, rank: int, want: Array, got: Array, bad: npt.NDArray[np.bool_]) -> str | None:
    """A sentence about the first of the elements that are wrong."""
    if not bad.any():
        return None
    k = int(np.flatnonzero(bad)[0])
    return f"{case}: rank {rank} element {k}: expected {want[k]}, got {got[k]} ({int(bad.sum())} of {len(want)} wrong)"
