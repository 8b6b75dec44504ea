"""Waits for, and tests of, this PE's own symmetric memory."""

from __future__ import annotations

from typing import Literal

from .. import _core
from .._texts import shown
from ..errors import InvalidArgumentError, InvalidDatatypeError
from ._memory import Array, words_of

Comparison = Literal["==", "!=", ">", "<=", "<", ">="]
_NUMBERS: dict[str, int] = {"==": 1, "!=": 2, ">": 3, "<=": 4, "<": 5, ">=": 6}


def _wait(name: str, how: str, flags: Array, comparison: Comparison, value: int) -> int:
    address, kind, count = words_of(name, flags)
    if kind[0] == "f":
        raise InvalidDatatypeError(f"{name}: {flags.dtype} was given; allowed are int32, int64, uint32 and uint64")
    number = _NUMBERS.get(comparison)
    if number is None:
        raise InvalidArgumentError(f"{name}: {shown(comparison)} was given; allowed are {', '.join(_NUMBERS)}")
    signed = value - 2**64 if kind == "u8" and value >= 2**63 else value
    return _core.shmem_wait(name, how, kind, address, count, number, signed)


def wait_until(flags: Array, comparison: Comparison, value: int) -> None:
    """Waits until every element of a symmetric array, or of a contiguous part of one, compares so with `value`.

    Fails when a PE has died (`PeerDeadError`) and at the deadline (`DeadlineError`).
    """
    _wait("wait_until", "all", flags, comparison, value)


def wait_until_any(flags: Array, comparison: Comparison, value: int) -> int:
    """Waits until an element does. Returns its index in `flags`, counted through."""
    if flags.size == 0:
        raise InvalidArgumentError("wait_until_any: an array without elements was given")
    return _wait("wait_until_any", "any", flags, comparison, value)


def test(flags: Array, comparison: Comparison, value: int) -> bool:
    """Whether every element does now."""
    return _wait("test", "test", flags, comparison, value) == 1
