"""Communicators: primitives and collectives on NumPy arrays and other buffers.

Buffers are NumPy arrays, or anything with the buffer protocol or DLPack in host memory. Elements travel in the order of
the array's own axes, the last one fastest; arrays that do not lie so in memory are packed, and unpacked when the call
has ended (docs/buffers.md). A source may also be a number, or a list or tuple of numbers; where the destination of one
number is made here, the result is a scalar of NumPy. The datatype follows from the array's; elements that have none,
such as structures, texts and times, travel as bytes, in all calls that do not compute. Where a destination may be None
it is allocated and returned. All arguments are checked before anything is sent. Every operation has an `_async` form
that returns a `Request`.

Every operation takes the `Options`, by keyword.

Arrays of `empty` and `zeros` are in memory that the ranks of a machine share, which makes large calls faster; a
destination that is made for a source there is there too.

In place, the input stands in the destination: pass `IN_PLACE` for the source, or one array as both. For rooted
collectives every rank must say so (`in_place=True`), though only the root's buffers differ.

Thread-safety: a communicator may be used by several threads; collectives must be started in the same order on all
ranks. The GIL is released while waiting, and signals are handled.
"""

from __future__ import annotations

import contextlib

from . import _core
from ._management import ManagementCalls
from ._neighbours import NeighbourCalls
from ._objects import ObjectCalls
from ._options import IN_PLACE, CommunicatorSettings, CommunicatorState, InPlace, LastAlgorithm, Options
from ._primitives import PrimitiveCalls
from ._typed import TypedCalls
from .errors import UnisonoError

__all__ = [
    "IN_PLACE",
    "Communicator",
    "CommunicatorSettings",
    "CommunicatorState",
    "InPlace",
    "LastAlgorithm",
    "Options",
]


# The reference shows the calls of the last base first.
class Communicator(ObjectCalls, NeighbourCalls, TypedCalls, PrimitiveCalls, ManagementCalls):
    """An ordered set of ranks that communicate with one another. Made by a `Context` and by `split`."""

    def __repr__(self) -> str:
        name = ""
        with contextlib.suppress(UnisonoError):  # it may have been freed
            name = f' "{self.name}"' if self.name else ""
        return f"<unisono.Communicator {self._core.number}{name}, rank {self.rank} of {self.size}>"

    def _made(self, core: _core.Communicator) -> Communicator:
        return Communicator(core, self._context)
