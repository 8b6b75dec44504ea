"""Joining through a key-value store that the program hands over, such as torch.distributed's."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from . import _core
from ._texts import shown
from .errors import BootstrapError, InvalidArgumentError, UnisonoError

T = TypeVar("T")

#: Variables that say rank and size: torchrun's, and our own.
_SOURCES = (("RANK", "WORLD_SIZE"), ("UNISONO_RANK", "UNISONO_SIZE"))


class Store(Protocol):
    """A key-value store through which ranks can meet: what torch.distributed.Store and all its kinds have.

    - `set(key, value)` keeps bytes under a key, for all ranks.
    - `wait(keys, timeout)` waits until somebody has set all of a list of keys; raises if that takes longer.
    - `get(key)` is what was set under a key that is there.

    Who can read the store can join the job: its secret is among the values.
    """

    def set(self, key: str, value: Any, /) -> object: ...
    def wait(self, keys: list[str], timeout: timedelta, /) -> object: ...
    def get(self, key: str, /) -> bytes: ...


def place(rank: int | None, size: int | None) -> tuple[int, int]:
    """Rank and size as they are given, or as the environment says them."""
    if (rank is None) != (size is None):
        raise InvalidArgumentError(f"init: rank is {shown(rank)}, size is {shown(size)}; pass both, or neither")
    given: Any
    for name, given, least in (("rank", rank, 0), ("size", size, 1)):
        if given is not None and (
            isinstance(given, bool) or not isinstance(given, int) or not least <= given < 1 << 31
        ):
            raise InvalidArgumentError(f"init: {name} is {shown(given)}; pass an integer from {least}")
    if rank is not None and size is not None:
        return rank, size
    found: tuple[int, int] | None = None
    names = ("", "")
    for source in _SOURCES:
        if not all(name in os.environ for name in source):
            continue
        said = _number(source[0]), _number(source[1])
        if found is None:
            found, names = said, source
        for i in (0, 1):
            if said[i] != found[i]:
                raise BootstrapError(
                    f'environment variable {source[i]} is "{said[i]}", but {names[i]} is "{found[i]}": two launchers '
                    "describe this process. Pass rank and size to init"
                )
    if found is None:
        raise InvalidArgumentError(
            "init: a store is given, but nothing says which rank this is: pass rank and size, or start the program by "
            "torchrun, which sets RANK and WORLD_SIZE"
        )
    return found


def _number(name: str) -> int:
    text = os.environ[name]
    if not (text.isascii() and text.isdigit()):
        raise BootstrapError(f'environment variable {name} is "{text}", but should be a number in digits')
    return int(text)


def prefix() -> str:
    """What our keys begin with: a store may outlive the ranks that torchrun ends and starts again."""
    run = os.environ.get("TORCHELASTIC_RUN_ID")
    if run is None:
        return "unisono/"
    return f"unisono/{run}/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/"


def join(store: Store, rank: int | None, size: int | None, settings: tuple[Any, ...]) -> _core.Context:
    """Joins the job whose ranks have this store."""
    for name in ("set", "wait", "get"):
        if not callable(getattr(store, name, None)):
            raise InvalidArgumentError(
                f"init: the store, a {type(store).__name__}, has no method {name}; pass a torch.distributed.Store, or "
                "what has its methods set, wait and get"
            )
    begin = prefix()
    failures: list[BaseException] = []

    def kept(function: Callable[[], T]) -> T:
        try:
            return function()
        except BaseException as error:
            failures.append(error)
            raise

    def put(key: str, value: bytes, _seconds: float) -> None:
        kept(lambda: store.set(begin + key, value))

    def get(key: str, seconds: float) -> bytes | None:
        # Torch takes a time of 0 for none, and cuts what is less than a millisecond.
        patience = timedelta(milliseconds=max(1, math.ceil(seconds * 1000)))
        start = time.monotonic()
        try:
            store.wait([begin + key], patience)
        except BaseException as error:
            # Each store has an exception of its own for it.
            if isinstance(error, Exception) and time.monotonic() - start >= 0.9 * patience.total_seconds():
                return None
            failures.append(error)
            raise
        return kept(lambda: bytes(store.get(begin + key)))

    own, ranks = place(rank, size)
    try:
        return _core.join(own, ranks, put, get, *settings)
    except UnisonoError as error:
        if not failures:
            raise
        if not isinstance(failures[0], Exception):  # Ctrl-C
            raise failures[0] from None
        raise error from failures[0]


__all__ = ["Store", "join", "place", "prefix"]
