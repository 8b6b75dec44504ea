"""Symmetric arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import InvalidArgumentError, InvalidDatatypeError, NoMemoryError

Array = npt.NDArray[Any]
Shape = int | tuple[int, ...]


def address_of(name: str, given: Array) -> int:
    """Where an array begins. It must be contiguous."""
    if not isinstance(given, np.ndarray):
        raise InvalidArgumentError(f"{name}: {type(given).__name__} was given; pass an array, or a slice of one")
    if not given.flags.c_contiguous:
        raise InvalidArgumentError(
            f"{name}: the array's elements are not one behind the other (strides {given.strides}); pass parts that are"
        )
    return int(given.ctypes.data)


def words_of(name: str, given: Array) -> tuple[int, str, int]:
    """Address, type and number of words of 32 or 64 bits, which atomics and waits take."""
    address = address_of(name, given)
    kind = f"{given.dtype.kind}{given.dtype.itemsize}"
    if kind not in ("i4", "u4", "i8", "u8", "f4", "f8"):
        raise InvalidDatatypeError(
            f"{name}: the array has dtype {given.dtype}; allowed are int32, int64, uint32 and uint64, and of atomics "
            "that compute nothing float32 and float64"
        )
    return address, kind, given.size


def empty(shape: Shape, dtype: npt.DTypeLike = np.float64, *, alignment: int = 64) -> Array:
    """An array on the symmetric heap, which holds zeros, or what an array that was freed has left.

    Collective: all PEs call it with the same arguments. It lives until `free`, or the end of the program.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise InvalidDatatypeError(f"empty: dtype {kind} has Python objects, which other processes cannot use")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"empty: shape {shape} was given; sizes are 0 and more")
    count = int(np.prod(sizes, dtype=object))
    wanted = count * kind.itemsize
    address = _core.shmem_allocate("empty", max(wanted, 1), alignment)
    if address == 0:
        raise NoMemoryError(
            f"empty: the symmetric heap has no {wanted} bytes left in one piece; give init(heap=...) or "
            "SHMEM_SYMMETRIC_SIZE more, or free arrays"
        )
    return _core.shmem_memory(address, wanted).view(kind).reshape(sizes)


def zeros(shape: Shape, dtype: npt.DTypeLike = np.float64, *, alignment: int = 64) -> Array:
    """An array of zeros on the symmetric heap. Collective, as `empty`; nobody has an array before all are zero."""
    made = empty(shape, dtype, alignment=alignment)
    made.view(np.uint8).reshape(-1)[...] = 0
    _core.shmem_barrier("zeros")
    return made


def array(values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
    """A symmetric array with this PE's values, of one shape and dtype on all PEs. Collective, as `empty`."""
    own = np.asarray(values, dtype)
    made = empty(own.shape, own.dtype)
    made[...] = own
    _core.shmem_barrier("array")
    return made


def free(given: Array) -> None:
    """Gives an array that `empty`, `zeros` or `array` made back to the heap. Collective. Do not use it afterwards."""
    _core.shmem_release("free", address_of("free", given))


def peer_array(given: Array, pe: int) -> Array | None:
    """A PE's array as memory of this process, to be read and written as any other; None if it is on another host."""
    address = _core.shmem_ptr("peer_array", address_of("peer_array", given), given.nbytes, pe)
    if address == 0:
        return None
    return _core.shmem_memory(address, given.nbytes).view(given.dtype).reshape(given.shape)
