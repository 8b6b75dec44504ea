"""Put and get."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core
from .._texts import shown
from ..errors import InvalidArgumentError
from ._memory import Array, address_of

_HOW = {"set": 1, "add": 2}


def _source(name: str, dest: Array, values: npt.ArrayLike) -> Array:
    """Values for a destination: of its dtype, broadcast to its shape."""
    given = np.asarray(values, dest.dtype)
    if given.shape == dest.shape:
        return np.ascontiguousarray(given)
    try:
        return np.ascontiguousarray(np.broadcast_to(given, dest.shape))
    except ValueError:
        raise InvalidArgumentError(
            f"{name}: values of shape {given.shape} were given for a part of shape {dest.shape}"
        ) from None


def put(dest: Array, values: npt.ArrayLike, pe: int) -> None:
    """Writes values to PE `pe`'s `dest`, a symmetric array or a contiguous part of one.

    They are there after this PE's next `quiet` or `barrier_all`; on one host when it returns.
    """
    address = address_of("put", dest)
    source = _source("put", dest, values)
    _core.shmem_put("put", address, source.ctypes.data, dest.nbytes, pe)


def get(source: Array, pe: int, out: Array | None = None) -> Array:
    """What PE `pe` has in its `source`, a symmetric array or a contiguous part of one: in `out`, or in a new array."""
    address = address_of("get", source)
    result: npt.NDArray[Any] = np.empty(source.shape, source.dtype) if out is None else out
    if result.dtype != source.dtype or result.shape != source.shape:
        raise InvalidArgumentError(
            f"get: out is {result.dtype}{result.shape}; it must be as the source, {source.dtype}{source.shape}"
        )
    _core.shmem_get("get", address_of("get", result), address, source.nbytes, pe)
    return result


def put_signal(
    dest: Array, values: npt.ArrayLike, signal: Array, value: int, pe: int, *, how: Literal["set", "add"] = "set"
) -> None:
    """A put, behind which the word `signal` of PE `pe` is set to `value`, or gets it added.

    A PE that sees the signal also sees the values. `signal` is a symmetric array of one uint64.
    """
    address = address_of("put_signal", dest)
    word = address_of("put_signal", signal)
    if signal.dtype != np.uint64 or signal.size != 1:
        raise InvalidArgumentError(
            f"put_signal: the signal is {signal.dtype}{signal.shape}; it must be one uint64, as signals[3:4]"
        )
    if how not in _HOW:
        raise InvalidArgumentError(f"put_signal: how is {shown(how)}; allowed are 'set' and 'add'")
    source = _source("put_signal", dest, values)
    _core.shmem_put_signal("put_signal", address, source.ctypes.data, dest.nbytes, word, value % 2**64, _HOW[how], pe)
