"""Buffers of the user as NumPy arrays that a call can use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple, SupportsIndex

import ml_dtypes
import numpy as np
import numpy.typing as npt

from . import _core
from ._spec import Datatype
from ._texts import shown
from .errors import InvalidArgumentError, InvalidDatatypeError, NoMemoryError, ReadOnlyBufferError

Array = npt.NDArray[Any]

_DATATYPES: dict[np.dtype[Any], Datatype] = {
    np.dtype(np.int8): Datatype.INT8,
    np.dtype(np.int16): Datatype.INT16,
    np.dtype(np.int32): Datatype.INT32,
    np.dtype(np.int64): Datatype.INT64,
    np.dtype(np.uint8): Datatype.UINT8,
    np.dtype(np.uint16): Datatype.UINT16,
    np.dtype(np.uint32): Datatype.UINT32,
    np.dtype(np.uint64): Datatype.UINT64,
    np.dtype(np.float16): Datatype.FP16,
    np.dtype(ml_dtypes.bfloat16): Datatype.BF16,
    np.dtype(np.float32): Datatype.FP32,
    np.dtype(np.float64): Datatype.FP64,
    np.dtype(np.complex64): Datatype.COMPLEX64,
    np.dtype(np.complex128): Datatype.COMPLEX128,
    np.dtype(np.bool_): Datatype.BOOL,
    np.dtype("V1"): Datatype.BYTE,
}
_PAIRS: dict[Datatype, np.dtype[Any]] = {
    datatype: np.dtype([("value", value), ("index", index)], align=True)
    for datatype, value, index in (
        (Datatype.FP32_INT32, np.float32, np.int32),
        (Datatype.FP64_INT32, np.float64, np.int32),
        (Datatype.INT32_INT32, np.int32, np.int32),
        (Datatype.INT64_INT64, np.int64, np.int64),
    )
}
#: What elements that have no datatype travel as, where an operator of the user computes with them.
_CARRIERS = {
    1: Datatype.UINT8,
    2: Datatype.UINT16,
    4: Datatype.UINT32,
    8: Datatype.UINT64,
    16: Datatype.INT64_INT64,
}
_ALLOWED = (
    "int8 to int64, uint8 to uint64, float16, bfloat16 (ml_dtypes), float32, float64, complex64, complex128, bool, "
    "V1 (a byte), and the pairs that unisono.pair_dtype gives"
)


def pair_dtype(name: str | Datatype) -> np.dtype[Any]:
    """The NumPy type of a value and an index, for minloc and maxloc: of "fp32_int32", "fp64_int32", "int32_int32" or
    "int64_int64". Fields `value` and `index`, laid out as C does.
    """
    for datatype, dtype in _PAIRS.items():
        if name in (datatype, datatype.name.lower()):
            return dtype
    allowed = ", ".join(datatype.name.lower() for datatype in _PAIRS)
    raise InvalidDatatypeError(f"pair_dtype: {shown(name)} is no pair; allowed are {allowed}")


def _pair(dtype: np.dtype[Any]) -> Datatype | None:
    """The pair that a structured type is laid out as, whatever its fields are called."""
    if dtype.fields is None or dtype.names is None:
        return None
    layout = [dtype.fields[name][:2] for name in dtype.names]
    for datatype, known in _PAIRS.items():
        if dtype.itemsize == known.itemsize and layout == [known.fields[name][:2] for name in known.names]:  # type: ignore[index, union-attr]
            return datatype
    return None


def refuse_objects(operation: str, name: str, dtype: np.dtype[Any]) -> None:
    """Refuses elements that are, or hold, Python objects."""
    if dtype.hasobject:
        raise InvalidDatatypeError(
            f"{operation}: {name} has dtype {dtype}; its elements are references to Python objects, which mean nothing "
            "in another process. Pass numbers, as array.astype('float64'), or the bytes of pickle.dumps(...), as "
            "np.frombuffer(..., 'u1'); bcast_object and its like move objects"
        )


class Elements(NamedTuple):
    """What a call takes the elements of an array for."""

    datatype: Datatype
    own_bytes: int  #: bytes of an element that travels as bytes, which are the datatype then; 0: it is the datatype's


def elements_of(operation: str, name: str, dtype: np.dtype[Any], *, computes: bool, element_bytes: int = 0) -> Elements:
    """The elements of an array of `dtype`. Those that have no datatype can be moved, but not computed with, unless by
    an operator for elements of so many bytes, whatever they are.
    """
    found = _DATATYPES.get(dtype) or _pair(dtype)
    if element_bytes:
        refuse_objects(operation, name, dtype)
        if dtype.itemsize != element_bytes:
            raise InvalidDatatypeError(
                f"{operation}: {name} has dtype {dtype} of {dtype.itemsize} bytes; the operator is for elements of "
                f"{element_bytes}"
            )
        carrier = found or _CARRIERS.get(element_bytes)
        return Elements(Datatype.BYTE, element_bytes) if carrier is None else Elements(carrier, 0)
    if found is not None:
        return Elements(found, 0)
    refuse_objects(operation, name, dtype)
    if dtype.itemsize == 0:
        raise InvalidDatatypeError(f"{operation}: {name} has dtype {dtype}, whose elements have no bytes")
    if not computes:
        return Elements(Datatype.BYTE, dtype.itemsize)
    if dtype.newbyteorder("=") in _DATATYPES:
        raise InvalidDatatypeError(
            f"{operation}: {name} has dtype {dtype.str}, which is not in this machine's byte order; "
            f"pass array.astype('{dtype.newbyteorder('=')}')"
        )
    raise InvalidDatatypeError(
        f"{operation} of {dtype}: it computes, and {name} has elements that can only be moved; {_instead(dtype)}. "
        f"Computed are {_ALLOWED}"
    )


def _instead(dtype: np.dtype[Any]) -> str:
    """What to compute with in place of elements that can only be moved."""
    if dtype.kind in "mM":
        return "pass array.view('int64'), in which NaT is the least number"
    if dtype.kind in "SU":
        return "bring the texts together with allgather or gather, and combine them there"
    if dtype.names:
        return f"pass its fields one by one, as np.ascontiguousarray(array[{dtype.names[0]!r}])"
    if dtype.kind == "c":
        return "pass array.astype('complex128')"
    if dtype.type is np.void:
        return "pass a view of numbers, as array.view('u1')"
    return "pass array.astype('float64')"


def dtype_for(datatype: Datatype) -> np.dtype[Any]:
    """The NumPy type of a datatype's elements."""
    for dtype, known in _DATATYPES.items():
        if known == datatype:
            return dtype
    if datatype in _PAIRS:
        return _PAIRS[datatype]
    raise ValueError(f"{shown(datatype)} has no elements")


def as_array(operation: str, name: str, given: Any) -> Array:
    """`given` as an array that shares its memory."""
    if type(given) is np.ndarray:
        return given
    if isinstance(given, np.ndarray):
        _refuse_masked(operation, name, given)
        return given
    if given is None or isinstance(given, str) or is_value(given):
        raise InvalidArgumentError(
            f"{operation}: {name} is {'None' if given is None else 'a ' + type(given).__name__}; "
            "pass a NumPy array or an object with the buffer protocol or DLPack"
        )
    try:
        return np.asarray(memoryview(given))
    except (TypeError, ValueError):
        pass
    try:
        return np.from_dlpack(given)
    except (TypeError, AttributeError, BufferError, RuntimeError) as failure:
        raise InvalidArgumentError(
            f"{operation}: {name} is a {type(given).__name__}; pass a NumPy array or an object with the buffer "
            f"protocol or DLPack (in host memory)"
        ) from failure


def _refuse_masked(operation: str, name: str, array: Array) -> None:
    """Refuses an array some of whose elements are masked: a call would take what stands behind the mask."""
    if isinstance(array, np.ma.MaskedArray) and b"\1" in np.asarray(np.ma.getmask(array)).tobytes():
        raise InvalidArgumentError(
            f"{operation}: {name} is a masked array, and a call does not see which of its elements are masked; pass "
            "array.filled(...), with the value that is to stand for them, or array.data"
        )


def is_value(given: Any) -> bool:
    """Whether `given` is numbers without memory of their own: one, or a list or tuple of them."""
    return isinstance(given, int | float | complex | list | tuple | np.generic) and not isinstance(given, bytes | str)


def readable(operation: str, name: str, given: Any) -> Array:
    """An array that a call can read, of any layout. Of numbers, and lists of them, a new one."""
    if not is_value(given):
        return as_array(operation, name, given)
    try:
        array = np.asarray(given)
    except (ValueError, OverflowError) as failure:
        raise InvalidArgumentError(
            f"{operation}: {name} is a {type(given).__name__} of which NumPy makes no array ({failure}); "
            "pass a NumPy array"
        ) from None
    if isinstance(given, list | tuple | int | float | complex) and array.dtype not in _DATATYPES:
        raise InvalidArgumentError(
            f"{operation}: {name} is a {type(given).__name__} of which NumPy makes elements of dtype {array.dtype}; "
            "pass numbers of at most 64 bits, or a NumPy array; bcast_object and its like move other objects"
        )
    return array


def writable(operation: str, name: str, given: Any) -> Array:
    """An array that a call can write, of any layout."""
    array = as_array(operation, name, given)
    if not array.flags.writeable:
        raise ReadOnlyBufferError(f"{operation}: {name} is read-only, and the call writes it; pass a writable array")
    if not array.flags.c_contiguous and _overlaps_itself(array):
        raise InvalidArgumentError(
            f"{operation}: {name} (shape {array.shape}, strides {array.strides}) has elements that share their memory, "
            "and the call writes it; pass an array whose elements have memory of their own"
        )
    return array


def _overlaps_itself(array: Array) -> bool:
    """Whether some two elements of an array have a byte in common. Exact."""
    axes = sorted((abs(step), length) for step, length in zip(array.strides, array.shape, strict=True) if length > 1)
    extent = array.itemsize  # bytes of the axes so far
    apart = True
    for step, length in axes:
        apart = apart and step >= extent
        extent += (length - 1) * step
    if apart or array.size * array.itemsize > extent:
        return not apart
    # The axes are interleaved. There is memory for all elements here, so there is for the places of them, too.
    begins = np.zeros(1, np.int64)
    for step, length in axes:
        begins = (begins[:, np.newaxis] + step * np.arange(length)).reshape(-1)
    begins.sort()
    return bool((np.diff(begins) < array.itemsize).any())


def lasting(operation: str, name: str, given: Any) -> Array:
    """An array that is written where it is for longer than one call, so that it cannot be packed."""
    array = writable(operation, name, given)
    refuse_objects(operation, name, array.dtype)
    if not array.flags.c_contiguous:
        raise InvalidArgumentError(
            f"{operation}: {name} (shape {array.shape}, strides {array.strides}) is not contiguous; "
            "it is read and written in place, so pass a contiguous array"
        )
    return array


def packed(operation: str, name: str, array: Array) -> Array:
    """The elements of an array in C order, in new memory of the same kind."""
    try:
        made = empty_beside(array, array.shape)
    except MemoryError:
        raise NoMemoryError(
            f"{operation}: {name} (shape {array.shape}, strides {array.strides}) is not contiguous, and there is no "
            f"memory for a packed copy of its {array.nbytes} bytes"
        ) from None
    np.copyto(made, array.view(np.ndarray))
    return made


def allocated_array(
    operation: str,
    allocate: Callable[[int], _core.Allocation],
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike,
) -> Array:
    """An array over memory that `allocate` gives, of zeros. The array and its views hold the memory."""
    try:
        given: Any = shape
        several = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim > 0)
        lengths = [index(length) for length in (given if several else (given,))]
    except TypeError:
        lengths = [-1]
    if any(length < 0 for length in lengths):
        raise InvalidArgumentError(
            f"{operation}: shape is {shown(shape)}; pass a number of elements, or a sequence of lengths of 0 and more"
        )
    try:
        kind = np.dtype(dtype)
    except TypeError as failure:
        raise InvalidDatatypeError(
            f"{operation}: dtype is {shown(dtype)}, which is none of NumPy's: {failure}"
        ) from None
    if kind.hasobject or kind.itemsize == 0:
        raise InvalidDatatypeError(
            f"{operation}: dtype is {kind}; elements that other processes are to read have a size and hold no objects"
        )
    size = math.prod(lengths) * kind.itemsize
    if size >= 1 << 63:
        raise NoMemoryError(
            f"{operation}: shape {tuple(lengths)} of {kind} is {size} bytes, beyond any machine's memory"
        )
    memory: Any = allocate(size)
    array: Array = np.ndarray(lengths, kind, buffer=memory)
    return array


def allocation_of(array: Array) -> _core.Allocation | None:
    """The allocated memory that an array is in; None if it is in ordinary memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, _core.Allocation) else None


def empty_beside(array: Array, shape: tuple[int, ...]) -> Array:
    """An array for results, of the same kind of memory as `array` if there is any left."""
    allocation = allocation_of(array)
    if allocation is not None:
        try:
            return allocated_array("empty", allocation.another, shape, array.dtype)
        except NoMemoryError:
            pass
    return np.empty(shape, array.dtype)
