"""Stream ports: calls that take elements as a kernel gives them, and hand out results as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ._arguments import integer, seconds_of
from ._arrays import Array, elements_of, readable, writable
from ._buffers import Buffers
from ._options import IN_PLACE
from ._spec import MAX_STREAM_PORTS
from .errors import InvalidArgumentError, InvalidCountError, InvalidDatatypeError

if TYPE_CHECKING:
    from ._core import Context as CoreContext

WHOLE: Final = -1.0  # as UNISONO_WHOLE


class Stream:
    """Stands for a buffer in a call: port `port` of this rank, 0 to 15 (docs/streams.md).

    In the place of a source, the call takes its elements from the port, as a kernel gives them (`Context.stream`); in
    the place of a destination, it hands its results to the port. `count` elements of `dtype`; each can be left out
    where the call's other buffer says it.
    """

    __slots__ = ("count", "dtype", "port")

    def __init__(self, port: int, count: int | None = None, dtype: npt.DTypeLike | None = None) -> None:
        #: 0 to 15.
        self.port: Final = integer("Stream", "port", port)
        #: Elements of the call that go through the port; None: as many as follow from its other buffer.
        self.count: Final = None if count is None else integer("Stream", "count", count)
        #: Of the elements; None: that of the call's other buffer.
        self.dtype: Final = None if dtype is None else np.dtype(dtype)
        if self.count is not None and self.count < 0:
            raise InvalidCountError(f"Stream: count is {self.count}; allowed are None, 0 and more")

    def __repr__(self) -> str:
        return f"unisono.Stream({self.port}, {self.count}, {self.dtype})"


class StreamPort:
    """What a kernel sees of a port of its rank: `Context.stream` and `Communicator.stream` make it.

    `write` gives elements to calls with `Stream(port)` as source, `read` takes those of calls with it as destination.
    Both make progress on all calls while they wait. The two sides have nothing in common but the number, and can be
    used by two threads at once; one side by one thread at a time.
    """

    __slots__ = ("_living", "port")

    def __init__(self, living: Callable[[str], CoreContext], port: int) -> None:
        self._living = living
        #: Its number.
        self.port: Final = integer("stream", "port", port)
        if not 0 <= self.port < MAX_STREAM_PORTS:
            raise InvalidArgumentError(f"stream: port is {port}; allowed are 0 to {MAX_STREAM_PORTS - 1}")

    def write(self, elements: Any, timeout: float | None = None) -> int:
        """Gives the elements of an array to the port, and returns how many bytes it has taken.

        None waits until all have been taken, and raises `DeadlineError` when nothing has for the default deadline of
        calls. With a `timeout` in seconds it returns what was taken until then; 0 does not wait.
        """
        array = np.ascontiguousarray(readable("write", "elements", elements))
        return self._living("write").stream_write(self.port, array, _seconds("write", timeout))

    def read(self, into: Any, timeout: float | None = None) -> int:
        """Fills an array from the port, and returns how many bytes have come. `timeout` as in `write`.

        Raises what the call that gave elements to the port has failed with, once all that it gave has been read.
        """
        array = writable("read", "into", into)
        if not array.flags.c_contiguous:
            raise InvalidArgumentError(f"read: into (strides {array.strides}) is not contiguous")
        return self._living("read").stream_read(self.port, array, _seconds("read", timeout))

    def take(self, count: int, dtype: npt.DTypeLike = np.float64) -> Array:
        """The next `count` elements of the port, as a new array; it waits as `read` does."""
        array = np.empty(count, dtype)
        self.read(array)
        return array


def _seconds(operation: str, timeout: float | None) -> float:
    if timeout is None:
        return WHOLE
    return 0.0 if timeout == 0 else seconds_of(operation, timeout)


def is_streamed(src: Any, dst: Any) -> bool:
    """Whether one of a call's buffers is a stream."""
    return isinstance(src, Stream) or isinstance(dst, Stream)


def streamed(
    operation: str,
    src: Any,
    dst: Any,
    uses: tuple[str, str],
    size: int,
    count: int | None = None,
    *,
    computes: bool = False,
    in_place: bool = False,
    dst_name: str = "dst",
) -> tuple[Buffers, int]:
    """The buffers of a call of which one or both are streams, and its count.

    `uses`: which part of src and dst this rank uses: "n", "all" (n for each of `size` ranks), another word where counts
    by rank say it, or nothing. `count`: n, where the user has said it.
    """
    in_place = in_place or src is IN_PLACE or dst is IN_PLACE
    ends = (src if uses[0] else None, dst if uses[1] else None)
    arrays = tuple(None if isinstance(end, Stream) else end for end in ends)
    buffers = Buffers(operation, *arrays, in_place=in_place, computes=computes, dst_name=dst_name)
    dtypes: dict[str, np.dtype[Any]] = {}
    counts: list[int] = []
    for name, end, array, part in zip(("src", dst_name), ends, (buffers.src, buffers.dst), uses, strict=True):
        if isinstance(end, Stream):
            if end.dtype is not None:
                dtypes[name] = end.dtype
            total = end.count
        else:
            total = None if array is None else array.size
            if array is not None:
                dtypes[name] = array.dtype
        if total is None or part not in ("n", "all"):
            continue
        if part == "all" and total % size:
            raise InvalidCountError(
                f"{operation}: {name} has {total} elements; needed is a multiple of the {size} ranks"
            )
        counts.append(total // size if part == "all" else total)
    if not dtypes:
        raise InvalidDatatypeError(
            f"{operation}: no dtype is known; give one, as in unisono.Stream(0, dtype='float32')"
        )
    if len(set(dtypes.values())) > 1:
        told = " and ".join(f"{name} has dtype {dtype}" for name, dtype in dtypes.items())
        raise InvalidDatatypeError(f"{operation}: {told}; they must be equal")
    dtype = next(iter(dtypes.values()))
    buffers.datatype, buffers.own_bytes = elements_of(operation, "the stream", dtype, computes=computes)
    if buffers.own_bytes:
        raise InvalidDatatypeError(f"{operation}: elements of a stream have a datatype; {dtype} is none")
    if count is None:
        if not counts and {"n", "all"} & set(uses):
            raise InvalidCountError(f"{operation}: no count is known; give one, as in unisono.Stream(0, 1000)")
        if len(set(counts)) > 1:
            raise InvalidCountError(f"{operation}: src and {dst_name} are of {counts[0]} and {counts[1]} elements")
        count = counts[0] if counts else 0
    if isinstance(ends[0], Stream):
        buffers.src_port = ends[0].port
    if isinstance(ends[1], Stream):
        buffers.dst_port = ends[1].port
    elif uses[1] in ("n", "all") and buffers.dst is None and not in_place:
        buffers.dst = buffers.target = np.empty(count * (size if uses[1] == "all" else 1), dtype)
    return buffers, count
