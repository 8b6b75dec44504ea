"""Making, naming, watching and ending communicators."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack

import numpy as np
import numpy.typing as npt

from ._arguments import hints_of, integer, name_of, ranks_of, seconds_of
from ._arrays import Array, allocated_array, lasting
from ._calls import Calls
from ._options import CommunicatorSettings, CommunicatorState, LastAlgorithm
from ._signatures import options_by_name
from ._spec import Capability
from ._texts import text_of
from .errors import InvalidArgumentError
from .stream import StreamPort

if TYPE_CHECKING:
    from .communicator import Communicator


@options_by_name
class ManagementCalls(Calls):
    """Communicators from communicators, and what is asked and told about one."""

    def split(self, colour: int | None, key: int = 0, **settings: Unpack[CommunicatorSettings]) -> Communicator | None:
        """Collective. Ranks of equal `colour` (0 and more) get a new communicator, ordered by `key`, then by rank.

        None as colour gets None.
        """
        colour = None if colour is None else integer("split", "colour", colour)
        if colour is not None and colour < 0:
            raise InvalidArgumentError(
                f"split: colour is {colour}; allowed are 0 and more, or None for no communicator"
            )
        made = self._core.split(
            -1 if colour is None else colour, integer("split", "key", key), hints_of("split", settings)
        )
        return None if made is None else self._made(made)

    def dup(self, **settings: Unpack[CommunicatorSettings]) -> Communicator:
        """Collective. A communicator of the same ranks in the same order; its calls have nothing to do with these."""
        made = self._core.dup(hints_of("dup", settings))
        assert made is not None
        return self._made(made)

    def subset(self, ranks: Iterable[int], **settings: Unpack[CommunicatorSettings]) -> Communicator | None:
        """Collective. A communicator of the listed ranks, in that order; None on the others.

        All ranks give the same list.
        """
        made = self._core.subset(ranks_of("subset", ranks), hints_of("subset", settings))
        return None if made is None else self._made(made)

    def create_group(
        self, ranks: Iterable[int], tag: int = 0, **settings: Unpack[CommunicatorSettings]
    ) -> Communicator:
        """As `subset`, but collective over the listed ranks only; the others need not know.

        Ranks that make several at the same time, in several threads, tell them apart by `tag`.
        """
        made = self._core.create_group(
            ranks_of("create_group", ranks), integer("create_group", "tag", tag), hints_of("create_group", settings)
        )
        assert made is not None
        return self._made(made)

    def empty(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64) -> Array:
        """An array in allocated memory, which the ranks on this machine read and write directly; as `numpy.empty`.

        Large calls whose buffers are all allocated, on all ranks, copy nothing through buffers in between. The array is
        like any other; its memory is given back with its last view, which may outlive the context. Not collective.
        """
        return allocated_array("empty", self._context.allocate, shape, dtype)

    def zeros(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64) -> Array:
        """As `empty`, and all elements are zero; as `numpy.zeros`."""
        return allocated_array("zeros", self._context.allocate, shape, dtype)

    def stream(self, port: int) -> StreamPort:
        """A stream port of this rank, as a kernel sees it: where `Stream(port)` in calls comes from and goes to.

        The ports are the context's: all its communicators have the same.
        """
        return StreamPort(lambda _: self._context, port)

    def free(self) -> None:
        """Frees a communicator that was made of another one. Not collective. Calls in flight on it fail.

        One that nothing refers to any more, its calls included, is freed when this process makes the next one.
        """
        self._core.free()

    @property
    def name(self) -> str | None:
        """What people call the communicator: errors and `unisono dump` say it beside the number.

        Can be set, and given to `split`, `dup`, `subset` and `create_group`: up to 32 printable characters of ASCII, or
        None. Each rank names for itself.
        """
        return self._core.name or None

    @name.setter
    def name(self, name: str | None) -> None:
        self._core.name = name_of("name", name)

    @property
    def last_algorithm(self) -> LastAlgorithm:
        """The algorithm of the last collective call that this rank has begun here."""
        return LastAlgorithm(*self._core.last_algorithm())

    @property
    def state(self) -> CommunicatorState:
        """What the members agreed on, and how the communicator is now. Not collective."""
        now = self._core.state()
        capability = Capability.decode(now[7].to_bytes(Capability.BYTES, "little"))
        return CommunicatorState(*now[:7], capability, *now[8:])

    def counters(self) -> dict[str, int]:
        """The performance counters of the engine that carries out the calls of this communicator, by name.

        They are read one after the other. Devices count from power-up, the native engine since it joined the job, and
        other things (docs/housekeeping.md#counters).
        """
        return dict(self._core.counters())

    def set_timeout(self, seconds: float) -> None:
        """Default deadline of operations."""
        self._core.set_timeout(seconds_of("set_timeout", seconds))

    def revoke(self, reason: str) -> None:
        """Fails the communicator on all reachable members: calls in flight and later ones raise `RevokedError`."""
        self._core.revoke(text_of("revoke", "reason", reason))

    def shrink(self) -> Communicator:
        """Collective over the ranks that are left: a communicator of them, in their order, after others have died.

        Works on a revoked communicator; a rank that dies meanwhile is left out as well.
        """
        return self._made(self._core.shrink())

    def agree(self, value: int | bool) -> int:
        """Collective over the ranks that are left: the bits that `value` (64 of them) has in common on all of them.

        All get the same, even if ranks die meanwhile. Works on a revoked communicator. Of truth values: whether all are
        true.
        """
        bits = int(value) if isinstance(value, bool) else integer("agree", "value", value)
        if not 0 <= bits < 1 << 63:
            raise InvalidArgumentError(f"agree: value is {value}; pass a truth value, or an integer from 0 to 2^63 - 1")
        return self._core.agree(bits)

    @property
    def failed(self) -> list[int]:
        """The ranks that have died or left, as far as this one can see. Not collective."""
        return self._core.failed()

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Calls that this thread starts inside are submitted together at the end; use it in a `with` statement.

        Small all-reduces with one operator, datatype and algorithm are fused into one call (docs/forms.md). Each
        request has its own result. Inside, calls cannot be waited for, and those that block are refused. All ranks make
        the same collective calls in a group. If the block raises, what was started in it is submitted all the same, for
        the other ranks take part in it.
        """
        self._core.group_begin()
        self._groups[threading.get_ident()] = []
        try:
            yield
        finally:
            held = self._groups.pop(threading.get_ident(), [])
            self._core.group_end()
            del held

    def window(self, buffer: Any) -> None:
        """Collective. Exposes `buffer` to the peers' `put` and `get`; None exposes nothing."""
        array = None if buffer is None else lasting("window", "the window", buffer)
        self._core.window(array)
