"""Arguments of calls, checked: numbers, names, operators, lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, Final

import numpy as np

from . import _core
from ._arrays import Array
from ._options import CommunicatorSettings
from ._spec import Datatype, Func
from ._texts import shown
from .errors import InvalidArgumentError, InvalidCountError, InvalidDatatypeError, InvalidOpError
from .operator import Operator
from .request import Request

_LONGEST: Final = 10.0 * 365 * 86400  # seconds of a deadline
AnyOp = str | Func | Operator
_OPS = {op.name.lower(): op for op in Func if Func.NONE < op < Func.USER0}

_WIRE = {datatype.name.lower(): datatype for datatype in (Datatype.FP16, Datatype.BF16)}


def wire_datatype(operation: str, given: Any) -> Datatype:
    """What elements travel as; NONE stands for what they are."""
    if given is None or isinstance(given, Datatype):
        return given or Datatype.NONE
    found = _WIRE.get(given) if isinstance(given, str) else None
    if found is None:
        raise InvalidDatatypeError(
            f"{operation}: wire_datatype is {shown(given)}; allowed are {', '.join(map(repr, _WIRE))} and None"
        )
    return found


def factor(operation: str, name: str, given: Any) -> float | None:
    """A factor; None stands for none."""
    try:
        if isinstance(given, str | bytes | bool | np.bool_) or np.iscomplexobj(given):
            raise TypeError
        return None if given is None else float(given)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last one of torch's tensors
        raise InvalidArgumentError(f"{operation}: {name} is {shown(given)}; pass a number, or None") from None


def func_of(operation: str, op: AnyOp) -> Func:
    if isinstance(op, Operator):
        return op.func
    given: Any = op
    found = given if isinstance(given, Func) else _OPS.get(given) if isinstance(given, str) else None
    if found is None or found == Func.NONE:
        raise InvalidOpError(f"{operation}: op is {shown(op)}; allowed are {', '.join(_OPS)}")
    return found


def integer(operation: str, name: str, value: Any) -> int:
    """`value` as an integer that the engine can take; a truth value is none."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = index(value)
    except TypeError:
        raise InvalidArgumentError(f"{operation}: {name} is {shown(value)}; pass an integer") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidArgumentError(f"{operation}: {name} is {shown(number)}; pass an integer of 64 bits")
    return number


def seconds_of(operation: str, value: Any) -> float:
    """`value` as a duration."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"{operation}: timeout is {shown(value)}; pass a number of seconds") from None
    if not 0 < seconds <= _LONGEST:
        raise InvalidArgumentError(
            f"{operation}: timeout is {value} s; allowed are more than 0 s, up to 10 years, or None for the default"
        )
    return seconds


def name_of(operation: str, given: Any) -> str:
    """A communicator's name; its length is for the library to look at."""
    if given is None or (isinstance(given, str) and given.isascii() and "\0" not in given):
        return given or ""
    raise InvalidArgumentError(f"{operation}: name is {shown(given)}; pass a text of ASCII, or None")


def hints_of(operation: str, settings: CommunicatorSettings) -> tuple[int, int, float, bool, str, int, bool]:
    """Settings of a communicator as `_core` takes them."""
    if unknown := settings.keys() - CommunicatorSettings.__annotations__.keys():
        raise TypeError(
            f"{operation}: {', '.join(sorted(unknown))} is no setting; settings are "
            f"{', '.join(CommunicatorSettings.__annotations__)}"
        )
    group_size = integer(operation, "group_size", settings.get("group_size", 0))
    if not 0 <= group_size < 1 << 32:
        raise InvalidArgumentError(f"{operation}: group_size is {group_size}; allowed are 0 (hosts) and more ranks")
    group = settings.get("group")
    if group is not None:
        group = integer(operation, "group", group)
        if not 0 <= group < 1 << 63:
            raise InvalidArgumentError(f"{operation}: group is {group}; allowed are None and 0 to 2^63 - 1")
    eager_limit = integer(operation, "eager_limit", settings.get("eager_limit", 0))
    if not 0 <= eager_limit < 1 << 32:
        raise InvalidArgumentError(
            f"{operation}: eager_limit is {eager_limit}; allowed are 0 (the context's) to {(1 << 32) - 1} bytes"
        )
    timeout = settings.get("timeout")
    lanes: Any = settings.get("lanes", True)
    if not isinstance(lanes, bool):
        raise InvalidArgumentError(f"{operation}: lanes is {shown(lanes)}; allowed are True and False")
    streams: Any = settings.get("streams", False)
    if not isinstance(streams, bool):
        raise InvalidArgumentError(f"{operation}: streams is {shown(streams)}; allowed are True and False")
    seconds = 0.0 if timeout is None else seconds_of(operation, timeout)
    name = name_of(operation, settings.get("name"))
    return group_size, eager_limit, seconds, lanes, name, 0 if group is None else group + 1, streams


def ranks_of(operation: str, given: Iterable[int]) -> list[int]:
    """A list of ranks; whether the communicator has them is for the library to say."""
    ranks = [integer(operation, "a rank", rank) for rank in given]
    for rank in ranks:
        if not 0 <= rank < 1 << 32:
            raise InvalidArgumentError(f"{operation}: {shown(rank)} is in the list; ranks are 0 and more")
    return ranks


def requests_of(operation: str, given: Any) -> list[_core.Request]:
    try:
        requests = list(given)
    except TypeError:
        requests = [None]
    if not all(isinstance(request, Request) for request in requests):
        raise InvalidArgumentError(f"{operation}: wait_for is {shown(given)}; pass a list of unisono.Request")
    for position, request in enumerate(requests):
        if request._unpacks:
            raise InvalidArgumentError(
                f"{operation}: wait_for[{position}] has a destination that is not contiguous, and is unpacked when the "
                "request is waited for; wait for it before this call"
            )
    return [request._core for request in requests]


def integers(operation: str, name: str, values: Sequence[int] | Array | None) -> list[int] | None:
    if values is None:
        return None
    try:
        return [index(value) for value in values]
    except TypeError:
        raise InvalidCountError(
            f"{operation}: {name} is {shown(values)}; pass a sequence of integers, one per rank"
        ) from None
