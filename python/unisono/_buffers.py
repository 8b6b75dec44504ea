"""The arrays of one call, and what the library is told of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import Array, elements_of, empty_beside, is_value, packed, readable, writable
from ._options import IN_PLACE
from ._spec import Datatype
from .errors import InvalidArgumentError, InvalidDatatypeError, NoMemoryError


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
    """The arrays of one call, with its datatype. `computes`: the call needs one that has arithmetic; `element_bytes`:
    it computes by an operator for elements of that size. Not `typed`: the
    arrays are bytes, whatever their dtypes.

    `src` and `dst` are contiguous, in C order: what the user gave, or a packed copy of it. Results in a packed copy are
    for `finish` to bring where they belong.
    """

    __slots__ = (
        "_dst_name",
        "_packs",
        "_scalar",
        "_value",
        "datatype",
        "dst",
        "dst_port",
        "in_place",
        "operation",
        "own_bytes",
        "src",
        "src_port",
        "target",
    )

    def __init__(
        self,
        operation: str,
        src: Any,
        dst: Any,
        *,
        in_place: bool = False,
        computes: bool = False,
        element_bytes: int = 0,
        typed: bool = True,
        dst_name: str = "dst",
    ) -> None:
        self.operation = operation
        self._dst_name = dst_name  # what the user knows it by
        self.in_place = in_place or src is IN_PLACE or dst is IN_PLACE or (src is dst and src is not None)
        self.src: Array | None = None
        self.dst: Array | None = None
        #: The user's destination, or the one that was made for the call.
        self.target: Array | None = None
        #: Stream ports in the place of src and dst; -1: there are buffers.
        self.src_port = self.dst_port = -1
        self.datatype = Datatype.NONE
        self.own_bytes = 0
        self._packs = ""  # which array was packed, in words
        self._value = ""  # which argument has no memory of its own, in words
        self._scalar = False
        if dst is not None and dst is not IN_PLACE:
            self.target = writable(operation, dst_name, dst)
            self.datatype, self.own_bytes = elements_of(
                operation, dst_name, self.target.dtype, computes=computes, element_bytes=element_bytes
            )
        if src is not None and src is not IN_PLACE and src is not dst:
            given = readable(operation, "src", src)
            elements = elements_of(operation, "src", given.dtype, computes=computes, element_bytes=element_bytes)
            if typed and self.target is not None and given.dtype != self.target.dtype:
                raise InvalidDatatypeError(
                    f"{operation}: src has dtype {given.dtype} and dst {self.target.dtype}; they must be equal"
                )
            self.datatype, self.own_bytes = elements
            self.src = self._packed("src", given)
            if is_value(src):
                self._value = f"src is a {type(src).__name__}"
        if self.target is not None:
            self.dst = self._packed(dst_name, self.target)
        if not typed:
            self.datatype, self.own_bytes = Datatype.UINT8, 0

    def _packed(self, name: str, array: Array) -> Array:
        if array.flags.c_contiguous:
            return array
        self._packs = f"{name} (shape {array.shape}, strides {array.strides}) is not contiguous"
        return packed(self.operation, name, array)

    def need(self, name: str, why: str = "") -> Array:
        """The buffer of that name, which the call cannot do without."""
        array: Array | None = getattr(self, name)
        if array is None:
            known = self._dst_name if name == "dst" else name
            raise InvalidArgumentError(f"{self.operation}: {known} is missing; pass a buffer{why}")
        return array

    def allocate(self, shape: tuple[int, ...]) -> None:
        """Makes dst, if there is none."""
        if self.dst is None:
            src = self.need("src")
            try:
                self.dst = self.target = empty_beside(src, shape)
            except (MemoryError, ValueError):  # NumPy's, of what is beyond the memory, and beyond any
                raise NoMemoryError(
                    f"{self.operation}: dst is to be made, and there is no memory for its "
                    f"{math.prod(shape) * src.itemsize} bytes (shape {shape} of {src.dtype})"
                ) from None
            self._scalar = shape == ()

    @property
    def unpacks(self) -> bool:
        """Whether results are still to be copied to where they belong when the call has ended."""
        return self.dst is not self.target

    def finish(self) -> Array | None:
        """To be called once, when the call has succeeded: unpacks what was packed. Returns what the call returns.

        That is a scalar of NumPy, which is like an array without axes, where dst was made for one number.
        """
        if self.target is None:
            return None
        if self.dst is not None and self.unpacks:
            np.copyto(self.target.view(np.ndarray), self.dst)
        result: Array = self.target[()] if self._scalar else self.target
        return result

    @property
    def finishes(self) -> bool:
        """Whether `finish` does more than to return the target."""
        return self._scalar or self.unpacks

    def need_lasting(self, why: str, *, of_values: bool = False) -> None:
        """Refuses arrays that were packed, where the call reads what they hold later than now."""
        if copied := self._packs or (of_values and self._value):
            raise InvalidArgumentError(f"{self.operation}: {copied}, and {why}; pass a contiguous array")


class Arguments(NamedTuple):
    """The arguments of `_core.Communicator.run`, in order."""

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
    src_port: int
    dst_port: int
    pre_scale: float | None
    post_scale: float | None


class Call(NamedTuple):
    """A call that was checked, as far as Python does."""

    arguments: Arguments
    buffers: Buffers
    starts: bool
    #: What runs it, in place of the engine.
    by_hand: Callable[[], None] | None = None
