"""Atomics on a word of 32 or 64 bits: on one host the processor's, between hosts those of the owner's processor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._texts import shown
from ..errors import InvalidArgumentError, InvalidDatatypeError
from ._memory import Array, words_of

_FETCH, _SET, _SWAP, _COMPARE_SWAP, _ADD, _AND, _OR, _XOR = range(1, 9)


def _bits(name: str, value: Any, dtype: np.dtype[Any]) -> int:
    """A value as the word that it is in memory."""
    try:
        word = np.asarray(value).astype(dtype, casting="same_kind") if isinstance(value, np.generic) else None
        exact = np.array(value, dtype) if word is None else word
    except (OverflowError, TypeError, ValueError):
        raise InvalidArgumentError(f"{name}: {shown(value)} is no value of dtype {dtype}") from None
    return int(exact.view(f"u{dtype.itemsize}"))


def _atomic(name: str, what: int, target: Array, pe: int, operand: Any = 0, comparand: Any = 0) -> Any:
    address, kind, count = words_of(name, target)
    if count != 1:
        raise InvalidArgumentError(f"{name}: the array has {count} elements; pass one, as counters[3:4]")
    if kind[0] == "f" and what not in (_FETCH, _SET, _SWAP):
        raise InvalidDatatypeError(f"{name}: {target.dtype} was given; allowed are int32, int64, uint32 and uint64")
    width = target.dtype.itemsize
    before = _core.shmem_atomic(
        name, what, width, address, _bits(name, operand, target.dtype), _bits(name, comparand, target.dtype), pe
    )
    return np.array(before, f"u{width}").view(target.dtype)[()]


def atomic_fetch(target: Array, pe: int) -> Any:
    """The value that PE `pe` has in `target`, one element of a symmetric array."""
    return _atomic("atomic_fetch", _FETCH, target, pe)


def atomic_set(target: Array, value: Any, pe: int) -> None:
    """Writes a value."""
    _atomic("atomic_set", _SET, target, pe, value)


def atomic_swap(target: Array, value: Any, pe: int) -> Any:
    """Writes a value. Returns the one before."""
    return _atomic("atomic_swap", _SWAP, target, pe, value)


def atomic_compare_swap(target: Array, expected: Any, value: Any, pe: int) -> Any:
    """Writes a value if `expected` stands there. Returns what stood there."""
    return _atomic("atomic_compare_swap", _COMPARE_SWAP, target, pe, value, expected)


def atomic_add(target: Array, value: Any, pe: int) -> None:
    """Adds a value."""
    _atomic("atomic_add", _ADD, target, pe, value)


def atomic_fetch_add(target: Array, value: Any, pe: int) -> Any:
    """Adds a value. Returns what stood there before."""
    return _atomic("atomic_fetch_add", _ADD, target, pe, value)


def atomic_and(target: Array, value: Any, pe: int) -> Any:
    """Keeps the bits that `value` has. Returns what stood there before."""
    return _atomic("atomic_and", _AND, target, pe, value)


def atomic_or(target: Array, value: Any, pe: int) -> Any:
    """Sets the bits that `value` has. Returns what stood there before."""
    return _atomic("atomic_or", _OR, target, pe, value)


def atomic_xor(target: Array, value: Any, pe: int) -> Any:
    """Turns the bits that `value` has. Returns what stood there before."""
    return _atomic("atomic_xor", _XOR, target, pe, value)
