"""The order of arguments: src, dst, then counts. Some calls once had another one, which still works."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from ._options import IN_PLACE
from .graph import Graph

P = ParamSpec("P")
R = TypeVar("R")


def _are_counts(given: Any, entries: int) -> bool:
    """Whether that can be counts for so many ranks: integers in a sequence, or in an array of that length."""
    if isinstance(given, np.ndarray):
        return given.dtype.kind in "iu" and given.shape == (entries,)
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview):
        return len(given) == 0 or isinstance(given[0], int | np.integer)
    return False


def _fit(src: Any, dst: Any, counts: Any, entries: int) -> bool:
    """Whether these can be what they are called."""
    in_place = src is IN_PLACE or (src is dst and src is not None)
    if dst is None or isinstance(dst, list | tuple | range | int | str):
        return dst is None and not in_place and _are_counts(counts, entries)
    return _are_counts(counts, entries) or (counts is None and in_place)


def once_ordered(*old: str, optional: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a call whose arguments once had the order `old`. `optional`: dst could be left out.

    What is given by position is taken for the old order if it makes no sense in the new one and does in the old one:
    buffers and counts are told apart by their types. Such a call warns.
    """
    counts = next(name for name in old if name.endswith("counts"))

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        new = [name for name in inspect.signature(function).parameters if name != "self"][: len(old)]
        at = new.index("dst")  # where the old order has the counts
        assert old.index(counts) == at
        plain: Any = function
        # Whether a list behind dst is the counts: in the old order it cannot be the destination, which is there then.
        told_by_list = old[at + 1] == "dst"

        def is_old(comm: Any, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
            if len(given) <= at:
                return optional and "dst" not in named and counts in named
            if "dst" in named or counts in named:
                return counts not in named
            src = given[at - 1]
            graph = given[0]
            entries = len(graph.destinations) if isinstance(graph, Graph) else comm.size
            if len(given) > at + 1 and _fit(src, given[at], given[at + 1], entries):
                return False
            old_dst = old.index("dst")
            return (optional or len(given) > old_dst) and _fit(
                src, given[old_dst] if len(given) > old_dst else None, given[at], entries
            )

        @functools.wraps(function)
        def call(self: Any, *given: Any, **named: Any) -> Any:
            if told_by_list and len(given) > at + 1 and type(given[at + 1]) in (list, tuple):
                return plain(self, *given, **named)
            if not is_old(self, given, named):
                return plain(self, *given, **named)
            arguments = {"dst": None, **dict(zip(old, given, strict=False)), **named}
            names = ["None" if name == "dst" and arguments[name] is None else name for name in new if name in arguments]
            warnings.warn(
                f"{function.__name__}: counts before the destination are the old order of the arguments; "
                f"write {function.__name__}({', '.join(names)})",
                DeprecationWarning,
                stacklevel=2,
            )
            return plain(self, **arguments)

        return cast("Callable[P, R]", call)

    return decorate
