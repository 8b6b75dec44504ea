"""The arrays of one call, and what the library is told of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import Array, elements_of, empty_beside, readable, writable
from ._options import IN_PLACE
from ._spec import Datatype
from .errors import InvalidArgumentError, InvalidDatatypeError


def as_bytes(name: str, array: Array) -> Array:
    """The memory of an array of an alltoallw."""
    elements_of("alltoallw", name, array.dtype, computes=False)
    return array.reshape(-1).view(np.uint8)


class Layout(NamedTuple):
    counts: list[int] | None = None
    displacements: list[int] | None = None

    def extent(self) -> int:
        """Elements up to the end of the last block."""
        counts = self.counts or []
        if self.displacements is None:
            return sum(counts)
        return max((c + d for c, d in zip(counts, self.displacements, strict=False) if c > 0), default=0)


NO_LAYOUT = Layout()


class Buffers:
    """The arrays of one call, with its datatype. `computes`: the call needs one that has arithmetic."""

    __slots__ = ("datatype", "dst", "in_place", "operation", "own_bytes", "src")

    def __init__(self, operation: str, src: Any, dst: Any, *, in_place: bool = False, computes: bool = False) -> None:
        self.operation = operation
        self.in_place = in_place or src is IN_PLACE or dst is IN_PLACE or (src is dst and src is not None)
        self.src: Array | None = None
        self.dst: Array | None = None
        self.datatype = Datatype.NONE
        self.own_bytes = 0
        if dst is not None and dst is not IN_PLACE:
            self.dst = writable(operation, "dst", dst)
            self.datatype, self.own_bytes = elements_of(operation, "dst", self.dst.dtype, computes=computes)
        if src is not None and src is not IN_PLACE and src is not dst:
            self.src = readable(operation, "src", src)
            elements = elements_of(operation, "src", self.src.dtype, computes=computes)
            if self.dst is not None and self.src.dtype != self.dst.dtype:
                raise InvalidDatatypeError(
                    f"{operation}: src has dtype {self.src.dtype} and dst {self.dst.dtype}; they must be equal"
                )
            self.datatype, self.own_bytes = elements

    def need(self, name: str, why: str = "") -> Array:
        """The buffer of that name, which the call cannot do without."""
        array: Array | None = getattr(self, name)
        if array is None:
            raise InvalidArgumentError(f"{self.operation}: {name} is missing; pass a buffer{why}")
        return array

    def allocate(self, shape: tuple[int, ...]) -> None:
        """Makes dst, if there is none."""
        if self.dst is None:
            self.dst = empty_beside(self.need("src"), shape)


class Call(NamedTuple):
    """The arguments of `_core.Communicator.start`, in order; those of `run` are all but the last."""

    collective: int
    datatype: int
    op: int
    in_place: bool
    root: int
    tag: int
    elements: int
    src: Array | None
    dst: Array | None
    send_counts: list[int] | None
    send_displacements: list[int] | None
    recv_counts: list[int] | None
    recv_displacements: list[int] | None
    algorithm: str | None
    window_offset: int
    wait_for: list[_core.Request]
    timeout: float
    program: _core.Program | None
    graph: _core.Graph | None
    send_datatypes: list[int] | None
    recv_datatypes: list[int] | None
    wire_datatype: int
    own_bytes: int
    starts: bool
