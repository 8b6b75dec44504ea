"""Communicators: primitives and collectives on NumPy arrays and other buffers.

Buffers are NumPy arrays, or anything with the buffer protocol or DLPack in host memory; they must be contiguous.
The datatype follows from the array's; elements that have none, such as structures, texts and times, travel as bytes, in
all calls that do not compute. Where a destination may be None it is allocated and returned. All arguments are checked
before anything is sent. Every operation has an `_async` form that returns a `Request`.

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
import enum
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any, Final, NamedTuple, SupportsIndex, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from . import _core
from ._announce import Block, announced
from ._arrays import Array, allocated_array, allocation_of, elements_of, empty_beside, readable, writable
from ._objects import ObjectCalls
from ._signatures import options_by_name
from ._spec import Capability, Collective, Datatype, Func
from .errors import (
    InvalidArgumentError,
    InvalidCountError,
    InvalidDatatypeError,
    InvalidOpError,
    MismatchedCallError,
    NoMemoryError,
    UnisonoError,
    UnknownAlgorithmError,
)
from .graph import Graph
from .operator import Operator
from .program import Program
from .request import Request


class InPlace(enum.Enum):
    """Type of `IN_PLACE`."""

    IN_PLACE = enum.auto()

    def __repr__(self) -> str:
        return "unisono.IN_PLACE"


#: Stands for the buffer that an in-place call does not use.
IN_PLACE: Final = InPlace.IN_PLACE


_SCATTER_NOTE = "Of a scatter all ranks pass dst, or none does: the root then begins with a bcast."

# What `_core.Communicator.quick` takes: plain ints, so that a call compares no enumerators.
_BARRIER = int(Collective.BARRIER)
_BCAST = int(Collective.BCAST)
_ALLREDUCE = int(Collective.ALLREDUCE)
_SCAN = int(Collective.SCAN)
_EXSCAN = int(Collective.EXSCAN)
_REDUCE = int(Collective.REDUCE)
_REDUCE_SCATTER = int(Collective.REDUCE_SCATTER)
_ALLGATHER = int(Collective.ALLGATHER)
_GATHER = int(Collective.GATHER)
_SCATTER = int(Collective.SCATTER)
_ALLTOALL = int(Collective.ALLTOALL)


class Options(TypedDict, total=False):
    """Options of every operation of a `Communicator`, as keyword arguments.

    - `algorithm`: a name from `unisono algorithms`; not given, or None, one is chosen.
    - `timeout`: deadline in seconds; not given, or None, the communicator's.
    - `wait_for`: requests that must complete first.
    - `count`: elements, where it is not to follow from the buffers (docs/model.md says of what).
    - `wire_datatype`: "fp16" or "bf16"; float32 elements travel rounded to it, and all ranks get equal results
      (docs/compressed.md).
    - `start`, of `_async` forms: False only checks and prepares the call; `Request.start` starts it, as often as it is
      wanted.
    """

    algorithm: str | None
    timeout: float | None
    wait_for: Iterable[Request]
    count: int | None
    wire_datatype: str | Datatype | None
    start: bool


class CommunicatorSettings(TypedDict, total=False):
    """Settings of a communicator that is made, as keyword arguments; what is not given is the context's.

    - `group_size`: ranks of a group for two-level algorithms, equal on all members; 0 means one level.
    - `eager_limit`: bytes of the largest eager message; the least that a member gives.
    - `timeout`: default deadline of a call in seconds; the least that a member gives.
    - `lanes`: False, on one member, means no use of shared memory but for messages.
    - `name`: see `Communicator.name`.
    """

    group_size: int
    eager_limit: int
    timeout: float | None
    lanes: bool
    name: str | None


_LONGEST: Final = 10.0 * 365 * 86400  # seconds of a deadline
AnyOp = str | Func | Operator
_OPS = {op.name.lower(): op for op in Func if Func.NONE < op < Func.USER0}


_WIRE = {datatype.name.lower(): datatype for datatype in (Datatype.FP16, Datatype.BF16)}


def _wire_datatype(operation: str, given: Any) -> Datatype:
    """What elements travel as; NONE stands for what they are."""
    if given is None or isinstance(given, Datatype):
        return given or Datatype.NONE
    found = _WIRE.get(given) if isinstance(given, str) else None
    if found is None:
        raise InvalidDatatypeError(
            f"{operation}: wire_datatype is {given!r}; allowed are {', '.join(map(repr, _WIRE))} and None"
        )
    return found


def _op(operation: str, op: AnyOp) -> Func:
    if isinstance(op, Operator):
        return op.func
    found = op if isinstance(op, Func) else _OPS.get(str(op))
    if found is None or found == Func.NONE:
        raise InvalidOpError(f"{operation}: op is {op!r}; allowed are {', '.join(_OPS)}")
    return found


def _integer(operation: str, name: str, value: Any) -> int:
    """`value` as an integer that the engine can take; a truth value is none."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = index(value)
    except TypeError:
        raise InvalidArgumentError(f"{operation}: {name} is {value!r}; pass an integer") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidArgumentError(f"{operation}: {name} is {number}; pass an integer of 64 bits")
    return number


def _seconds(operation: str, value: Any) -> float:
    """`value` as a duration."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        seconds = float(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{operation}: timeout is {value!r}; pass a number of seconds") from None
    if not 0 < seconds <= _LONGEST:
        raise InvalidArgumentError(
            f"{operation}: timeout is {value} s; allowed are more than 0 s, up to 10 years, or None for the default"
        )
    return seconds


def _name(operation: str, given: Any) -> str:
    """A communicator's name; its length is for the library to look at."""
    if given is None or (isinstance(given, str) and given.isascii() and "\0" not in given):
        return given or ""
    raise InvalidArgumentError(f"{operation}: name is {given!r}; pass a text of ASCII, or None")


def _wishes(operation: str, settings: CommunicatorSettings) -> tuple[int, int, float, bool, str]:
    """Settings of a communicator as `_core` takes them."""
    if unknown := settings.keys() - CommunicatorSettings.__annotations__.keys():
        raise TypeError(
            f"{operation}: {', '.join(sorted(unknown))} is no setting; settings are "
            f"{', '.join(CommunicatorSettings.__annotations__)}"
        )
    group_size = _integer(operation, "group_size", settings.get("group_size", 0))
    if not 0 <= group_size < 1 << 32:
        raise InvalidArgumentError(f"{operation}: group_size is {group_size}; allowed are 0 (one level) and more ranks")
    eager_limit = _integer(operation, "eager_limit", settings.get("eager_limit", 0))
    if not 0 <= eager_limit < 1 << 32:
        raise InvalidArgumentError(
            f"{operation}: eager_limit is {eager_limit}; allowed are 0 (the context's) to {(1 << 32) - 1} bytes"
        )
    timeout = settings.get("timeout")
    lanes: Any = settings.get("lanes", True)
    if not isinstance(lanes, bool):
        raise InvalidArgumentError(f"{operation}: lanes is {lanes!r}; allowed are True and False")
    seconds = 0.0 if timeout is None else _seconds(operation, timeout)
    return group_size, eager_limit, seconds, lanes, _name(operation, settings.get("name"))


def _ranks(operation: str, given: Iterable[int]) -> list[int]:
    """A list of ranks; whether the communicator has them is for the library to say."""
    ranks = [_integer(operation, "a rank", rank) for rank in given]
    for rank in ranks:
        if not 0 <= rank < 1 << 32:
            raise InvalidArgumentError(f"{operation}: {rank} is in the list; ranks are 0 and more")
    return ranks


def _requests(operation: str, given: Any) -> list[_core.Request]:
    try:
        requests = list(given)
    except TypeError:
        requests = [None]
    if not all(isinstance(request, Request) for request in requests):
        raise InvalidArgumentError(f"{operation}: wait_for is {given!r}; pass a list of unisono.Request")
    return [request._core for request in requests]


def _integers(operation: str, name: str, values: Sequence[int] | Array | None) -> list[int] | None:
    if values is None:
        return None
    try:
        return [index(value) for value in values]
    except TypeError:
        raise InvalidCountError(
            f"{operation}: {name} is {values!r}; pass a sequence of integers, one per rank"
        ) from None


def _as_bytes(name: str, array: Array) -> Array:
    """The memory of an array of an alltoallw."""
    elements_of("alltoallw", name, array.dtype, computes=False)
    return array.reshape(-1).view(np.uint8)


class _Layout(NamedTuple):
    counts: list[int] | None = None
    displacements: list[int] | None = None

    def extent(self) -> int:
        """Elements up to the end of the last block."""
        counts = self.counts or []
        if self.displacements is None:
            return sum(counts)
        return max((c + d for c, d in zip(counts, self.displacements, strict=False) if c > 0), default=0)


_NO_LAYOUT = _Layout()


class _Buffers:
    """The arrays of one call, with its datatype. `computes`: the call needs one that has arithmetic."""

    __slots__ = ("datatype", "dst", "in_place", "operation", "own_bytes", "src")

    def __init__(self, operation: str, src: Any, dst: Any, *, in_place: bool = False, computes: bool = False) -> None:
        self.operation = operation
        self.in_place = in_place or src is IN_PLACE or dst is IN_PLACE or (src is dst and src is not None)
        self.src: Array | None = None
        self.dst: Array | None = None
        self.datatype = Datatype.NONE
        self.own_bytes = 0
        if dst is not None and dst is not IN_PLACE:
            self.dst = writable(operation, "dst", dst)
            self.datatype, self.own_bytes = elements_of(operation, "dst", self.dst.dtype, computes=computes)
        if src is not None and src is not IN_PLACE and src is not dst:
            self.src = readable(operation, "src", src)
            elements = elements_of(operation, "src", self.src.dtype, computes=computes)
            if self.dst is not None and self.src.dtype != self.dst.dtype:
                raise InvalidDatatypeError(
                    f"{operation}: src has dtype {self.src.dtype} and dst {self.dst.dtype}; they must be equal"
                )
            self.datatype, self.own_bytes = elements

    def need(self, name: str, why: str = "") -> Array:
        """The buffer of that name, which the call cannot do without."""
        array: Array | None = getattr(self, name)
        if array is None:
            raise InvalidArgumentError(f"{self.operation}: {name} is missing; pass a buffer{why}")
        return array

    def allocate(self, shape: tuple[int, ...]) -> None:
        """Makes dst, if there is none."""
        if self.dst is None:
            self.dst = empty_beside(self.need("src"), shape)


class LastAlgorithm(NamedTuple):
    """What a collective call ran with."""

    name: str | None  #: of the table of algorithms; None before there was a call, and for programs of the user
    automatic: bool  #: the call named none


class CommunicatorState(NamedTuple):
    """What the members of a communicator agreed on when it was made, and how it is now."""

    number: int  #: of the communicator, equal on all members
    epoch: int
    group_size: int  #: ranks of a group for two-level algorithms; 0: one level
    eager_limit: int  #: bytes of the largest message that is sent at once
    segment_bytes: int  #: bytes of the largest segment
    rx_buffer_count: int  #: receive buffers for each peer
    timeout: float  #: default deadline of calls on this rank, seconds
    capability: Capability  #: what all its engines can do
    calls: int  #: begun by this rank
    lanes: bool  #: its calls go over memory that all members share
    revoked: bool  #: it has failed


@options_by_name
class Communicator(ObjectCalls):
    """An ordered set of ranks that communicate with one another. Made by a `Context` and by `split`."""

    def __init__(self, core: _core.Communicator, context: _core.Context) -> None:
        self._core = core
        self._context = context
        self._window: object = None
        self._groups: dict[int, list[Request]] = {}  # calls of open groups, by thread
        #: This process's number in the communicator, 0 .. size-1.
        self.rank: Final = core.rank
        #: Number of ranks.
        self.size: Final = core.size

    def __repr__(self) -> str:
        name = ""
        with contextlib.suppress(UnisonoError):  # it may have been freed
            name = f' "{self.name}"' if self.name else ""
        return f"<unisono.Communicator {self._core.number}{name}, rank {self.rank} of {self.size}>"

    # ------------------------------------------------------------------------------------------ the communicator

    def split(self, colour: int | None, key: int = 0, **settings: Unpack[CommunicatorSettings]) -> Communicator | None:
        """Collective. Ranks of equal `colour` (0 and more) get a new communicator, ordered by `key`, then by rank.

        None as colour gets None.
        """
        colour = None if colour is None else _integer("split", "colour", colour)
        if colour is not None and colour < 0:
            raise InvalidArgumentError(
                f"split: colour is {colour}; allowed are 0 and more, or None for no communicator"
            )
        return self._made(
            self._core.split(
                -1 if colour is None else colour, _integer("split", "key", key), _wishes("split", settings)
            )
        )

    def dup(self, **settings: Unpack[CommunicatorSettings]) -> Communicator:
        """Collective. A communicator of the same ranks in the same order; its calls have nothing to do with these."""
        made = self._made(self._core.dup(_wishes("dup", settings)))
        assert made is not None
        return made

    def subset(self, ranks: Iterable[int], **settings: Unpack[CommunicatorSettings]) -> Communicator | None:
        """Collective. A communicator of the listed ranks, in that order; None on the others.

        All ranks give the same list.
        """
        return self._made(self._core.subset(_ranks("subset", ranks), _wishes("subset", settings)))

    def create_group(
        self, ranks: Iterable[int], tag: int = 0, **settings: Unpack[CommunicatorSettings]
    ) -> Communicator:
        """As `subset`, but collective over the listed ranks only; the others need not know.

        Ranks that make several at the same time, in several threads, tell them apart by `tag`.
        """
        made = self._made(
            self._core.create_group(
                _ranks("create_group", ranks), _integer("create_group", "tag", tag), _wishes("create_group", settings)
            )
        )
        assert made is not None
        return made

    def _made(self, core: _core.Communicator | None) -> Communicator | None:
        return None if core is None else Communicator(core, self._context)

    def empty(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64) -> Array:
        """An array in allocated memory, which the ranks on this machine read and write directly; as `numpy.empty`.

        Large calls whose buffers are all allocated, on all ranks, copy nothing through buffers in between. The array is
        like any other; its memory is given back with its last view, which may outlive the context. Not collective.
        """
        return allocated_array("empty", self._context.allocate, shape, dtype)

    def zeros(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64) -> Array:
        """As `empty`, and all elements are zero; as `numpy.zeros`."""
        return allocated_array("zeros", self._context.allocate, shape, dtype)

    def free(self) -> None:
        """Frees a communicator made by `split`. Calls in flight on it fail."""
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
        self._core.name = _name("name", name)

    @property
    def last_algorithm(self) -> LastAlgorithm:
        """The algorithm of the last collective call that this rank has begun here."""
        return LastAlgorithm(*self._core.last_algorithm())

    @property
    def state(self) -> CommunicatorState:
        """What the members agreed on, and how the communicator is now. Not collective."""
        number, epoch, group, eager, segment, buffers, timeout, word, calls, lanes, revoked = self._core.state()
        capability = Capability.decode(word.to_bytes(Capability.BYTES, "little"))
        return CommunicatorState(
            number, epoch, group, eager, segment, buffers, timeout, capability, calls, lanes, revoked
        )

    def counters(self) -> dict[str, int]:
        """The performance counters of the engine that carries out the calls of this communicator, by name.

        They are read one after the other. Devices count from power-up, the native engine since it joined the job, and
        other things (docs/housekeeping.md#counters).
        """
        return dict(self._core.counters())

    def set_timeout(self, seconds: float) -> None:
        """Default deadline of operations."""
        self._core.set_timeout(_seconds("set_timeout", seconds))

    def revoke(self, reason: str) -> None:
        """Fails the communicator on all reachable members: calls in flight and later ones raise `RevokedError`."""
        self._core.revoke(reason)

    def shrink(self) -> Communicator:
        """Collective over the ranks that are left: a communicator of them, in their order, after others have died.

        Works on a revoked communicator; a rank that dies meanwhile is left out as well.
        """
        return Communicator(self._core.shrink(), self._context)

    def agree(self, value: int | bool) -> int:
        """Collective over the ranks that are left: the bits that `value` (64 of them) has in common on all of them.

        All get the same, whoever dies meanwhile. Works on a revoked communicator. Of truth values: whether all are
        true.
        """
        bits = int(value) if isinstance(value, bool) else _integer("agree", "value", value)
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
        array = None if buffer is None else writable("window", "the window", buffer)
        self._window = self._core.window(array)

    # ---------------------------------------------------------------------------------------------- primitives

    def copy(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Dst = src, on this rank, by the engine."""
        return self._result(self._local(Collective.COPY, src, dst, None, options))

    def copy_async(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `copy`."""
        return self._start(self._local(Collective.COPY, src, dst, None, options))

    def combine(self, src: Any, dst: Any, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """Dst = op(src, dst), on this rank, by the engine."""
        return self._result(self._local(Collective.COMBINE, src, dst, op, options))

    def combine_async(self, src: Any, dst: Any, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `combine`."""
        return self._start(self._local(Collective.COMBINE, src, dst, op, options))

    def send(self, src: Any, peer: int, tag: int = 0, **options: Unpack[Options]) -> None:
        """Sends src to `peer`. Returns when src may be reused."""
        self._run(self._to_peer(Collective.SEND, src, None, peer, tag, 0, options))

    def send_async(self, src: Any, peer: int, tag: int = 0, **options: Unpack[Options]) -> Request:
        """As `send`."""
        return self._start(self._to_peer(Collective.SEND, src, None, peer, tag, 0, options))

    def recv(self, dst: Any, peer: int, tag: int = 0, **options: Unpack[Options]) -> Array:
        """Receives into dst from `peer`, and returns dst, or the part of it that a shorter message fills (flat)."""
        request = self.recv_async(dst, peer, tag, **options)
        try:
            result = request.wait()
        except UnisonoError:
            raise
        except BaseException:
            # A signal's handler has raised. The receive would take the next message, and nobody would ever see it.
            with contextlib.suppress(UnisonoError):
                self.revoke("a recv was interrupted by its caller")
            raise
        assert result is not None
        received = request.received
        return result if received == result.size else result.reshape(-1)[:received]

    def recv_async(self, dst: Any, peer: int, tag: int = 0, **options: Unpack[Options]) -> Request:
        """As `recv`; `Request.received` gives the number of elements."""
        return self._start(self._to_peer(Collective.RECV, None, dst, peer, tag, 0, options))

    def sendrecv(
        self,
        src: Any,
        to: int,
        dst: Any = None,
        source: int | None = None,
        tag: int = 0,
        recv_tag: int | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Sends src to `to` and receives into dst from `source` (None: from `to`), at once; returns as `recv` does.

        Ranks that exchange, or shift data around a circle, cannot block one another. Both messages have `tag`, or what
        is received has `recv_tag`. dst is allocated like src; it must not overlap it. `count` is that of what is sent.
        Two calls in flight, `recv_async` and `send_async`, are what takes the place of an `_async` form.
        """
        if src is not None and src is dst:
            raise InvalidArgumentError("sendrecv has no in-place form; pass two buffers")
        buffers = _Buffers("sendrecv", src, dst)
        given = buffers.need("src")
        buffers.allocate(given.shape)
        call = self._call(Collective.SEND, buffers, given.size, options, root=to, tag=tag)
        if call.algorithm is not None:
            raise UnknownAlgorithmError(
                f"sendrecv: there is no algorithm {call.algorithm!r}; the operation has none to choose from"
            )
        self._blocks_here(call)
        result = buffers.need("dst")
        received = self._core.sendrecv(
            call.datatype,
            call.own_bytes,
            given,
            call.elements,
            call.root,
            call.tag,
            result,
            call.root if source is None else _integer("sendrecv", "source", source),
            call.tag if recv_tag is None else _integer("sendrecv", "recv_tag", recv_tag),
            call.wait_for,
            call.timeout,
            call.wire_datatype,
        )
        return result if received == result.size else result.reshape(-1)[:received]

    def put(self, src: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> None:
        """Writes src into the window of `peer`, `offset` bytes from its begin. Returns when it is written."""
        self._run(self._to_peer(Collective.PUT, src, None, peer, 0, offset, options))

    def put_async(self, src: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> Request:
        """As `put`."""
        return self._start(self._to_peer(Collective.PUT, src, None, peer, 0, offset, options))

    def get(self, dst: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> Array:
        """Reads dst's length from the window of `peer`, from byte `offset` on."""
        return self._result(self._to_peer(Collective.GET, None, dst, peer, 0, offset, options))

    def get_async(self, dst: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> Request:
        """As `get`."""
        return self._start(self._to_peer(Collective.GET, None, dst, peer, 0, offset, options))

    # --------------------------------------------------------------------------------------------- collectives

    def barrier(self, **options: Unpack[Options]) -> None:
        """No rank returns before every rank has called."""
        if not options and self._core.quick(_BARRIER, None, None, None, None):
            return
        self._run(self._call(Collective.BARRIER, _Buffers("barrier", None, None), 0, options))

    def barrier_async(self, **options: Unpack[Options]) -> Request:
        """As `barrier`."""
        return self._start(self._call(Collective.BARRIER, _Buffers("barrier", None, None), 0, options))

    def bcast(self, buffer: Any, root: int = 0, **options: Unpack[Options]) -> Array:
        """The root's buffer to every rank's buffer, which it returns."""
        if not options and self._core.quick(_BCAST, None, buffer, None, root):
            return buffer  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._bcast(buffer, root, options))

    def bcast_async(self, buffer: Any, root: int = 0, **options: Unpack[Options]) -> Request:
        """As `bcast`."""
        return self._start(self._bcast(buffer, root, options))

    def allreduce(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over all ranks' src, into every rank's dst. All have the same number of elements."""
        if dst is not None and not options and self._core.quick(_ALLREDUCE, src, dst, op, None):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduction(Collective.ALLREDUCE, src, dst, op, options))

    def allreduce_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `allreduce`."""
        return self._start(self._reduction(Collective.ALLREDUCE, src, dst, op, options))

    def scan(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over src of ranks 0 .. rank, into dst."""
        if dst is not None and not options and self._core.quick(_SCAN, src, dst, op, None):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduction(Collective.SCAN, src, dst, op, options))

    def scan_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `scan`."""
        return self._start(self._reduction(Collective.SCAN, src, dst, op, options))

    def exscan(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over src of ranks 0 .. rank-1, into dst; rank 0's dst stays as it is (zeros if allocated here)."""
        if dst is not None and not options and self._core.quick(_EXSCAN, src, dst, op, None):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduction(Collective.EXSCAN, src, dst, op, options))

    def exscan_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `exscan`."""
        return self._start(self._reduction(Collective.EXSCAN, src, dst, op, options))

    def reduce(
        self,
        src: Any,
        dst: Any = None,
        op: AnyOp = "sum",
        root: int = 0,
        *,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Array | None:
        """`op` over all ranks' src, into the root's dst; returns None on the other ranks."""
        if not in_place and not options and self._core.quick(_REDUCE, src, dst, op, root):
            return dst if root == self.rank else None
        return self._run(self._reduce(src, dst, op, root, in_place, options))

    def reduce_async(
        self,
        src: Any,
        dst: Any = None,
        op: AnyOp = "sum",
        root: int = 0,
        *,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Request:
        """As `reduce`."""
        return self._start(self._reduce(src, dst, op, root, in_place, options))

    def reduce_scatter(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over all ranks' src, which has `size` blocks of n; block r into rank r's dst (n).

        In place, dst has `size` blocks and receives the result at its begin.
        """
        if dst is not None and not options and self._core.quick(_REDUCE_SCATTER, src, dst, op, None):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduce_scatter(src, dst, op, options))

    def reduce_scatter_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `reduce_scatter`."""
        return self._start(self._reduce_scatter(src, dst, op, options))

    def allgather(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Every rank's src (n) into every rank's dst (size * n), by rank. Allocated as (size, *src.shape).

        In place, the input is block `rank` of dst.
        """
        if dst is not None and not options and self._core.quick(_ALLGATHER, src, dst, None, None):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._allgather(src, dst, options))

    def allgather_async(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `allgather`."""
        return self._start(self._allgather(src, dst, options))

    def gather(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Array | None:
        """Every rank's src (n) into the root's dst (size * n), by rank; returns None on the other ranks.

        In place, the root's input is its own block of dst.
        """
        if not in_place and not options and self._core.quick(_GATHER, src, dst, None, root):
            return dst if root == self.rank else None
        return self._run(self._gather(src, dst, root, in_place, options))

    def gather_async(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Request:
        """As `gather`."""
        return self._start(self._gather(src, dst, root, in_place, options))

    def scatter(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Array | None:
        """Block r of the root's src (size * n) into rank r's dst (n), which it returns.

        Ranks other than the root pass None as src. All ranks pass dst, or none does: it is then allocated on each, and
        the root first tells the others the elements and shape of a block, by a small bcast, so that even the start
        waits for it. In place (dst=IN_PLACE), the root's block stays where it is, and None is returned there.
        """
        try:
            if dst is not None and not in_place and not options and self._core.quick(_SCATTER, src, dst, None, root):
                return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        except MismatchedCallError as error:
            error.add_note(_SCATTER_NOTE)
            raise
        return self._run_scatter(self._scatter(src, dst, root, in_place, options))

    def scatter_async(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Request:
        """As `scatter`."""
        return self._start(self._scatter(src, dst, root, in_place, options))

    def alltoall(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Block j of rank i's src into block i of rank j's dst; both have `size` blocks."""
        if dst is not None and not options and self._core.quick(_ALLTOALL, src, dst, None, None):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._alltoall(src, dst, options))

    def alltoall_async(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `alltoall`."""
        return self._start(self._alltoall(src, dst, options))

    def gatherv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Array | None:
        """Gathers counts[r] elements of rank r to displacements[r] of the root's dst (packed if None).

        Every rank gives all counts; displacements matter on the root.
        """
        return self._run(self._gatherv(src, dst, counts, root, displacements, in_place, options))

    def gatherv_async(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Request:
        """As `gatherv`."""
        return self._start(self._gatherv(src, dst, counts, root, displacements, in_place, options))

    def scatterv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Array | None:
        """Scatters counts[r] elements from displacements[r] of the root's src (packed if None) to rank r.

        Every rank gives all counts; displacements matter on the root. All ranks pass dst, or none does, as in
        `scatter`.
        """
        return self._run_scatter(self._scatterv(src, dst, counts, root, displacements, in_place, options))

    def scatterv_async(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Request:
        """As `scatterv`."""
        return self._start(self._scatterv(src, dst, counts, root, displacements, in_place, options))

    def allgatherv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """As `gatherv`, into every rank's dst."""
        return self._result(self._allgatherv(src, dst, counts, displacements, options))

    def allgatherv_async(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `allgatherv`."""
        return self._start(self._allgatherv(src, dst, counts, displacements, options))

    def reduce_scatterv(
        self,
        src: Any,
        counts: Sequence[int],
        dst: Any = None,
        op: AnyOp = "sum",
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """`op` over all ranks' src; the counts[r] elements at displacements[r] (packed if None) into rank r's dst.

        Every rank gives all counts. In place (src=IN_PLACE), dst has all blocks and receives the result at its begin.
        """
        return self._result(self._reduce_scatterv(src, counts, dst, op, displacements, options))

    def reduce_scatterv_async(
        self,
        src: Any,
        counts: Sequence[int],
        dst: Any = None,
        op: AnyOp = "sum",
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `reduce_scatterv`."""
        return self._start(self._reduce_scatterv(src, counts, dst, op, displacements, options))

    def alltoallv(
        self,
        src: Any,
        send_counts: Sequence[int] | None,
        dst: Any,
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Sends send_counts[j] elements to rank j and receives recv_counts[i] from rank i.

        In place, what a pair exchanges has one size, given by the recv_ arguments, and send_counts is None. The
        ranks then first agree on their largest block, so that even the start waits for all of them, unless every
        rank gives the same bound of all blocks as `count`.
        """
        return self._result(
            self._alltoallv(src, send_counts, dst, recv_counts, send_displacements, recv_displacements, options)
        )

    def alltoallv_async(
        self,
        src: Any,
        send_counts: Sequence[int] | None,
        dst: Any,
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `alltoallv`."""
        return self._start(
            self._alltoallv(src, send_counts, dst, recv_counts, send_displacements, recv_displacements, options)
        )

    def alltoallw(
        self,
        src: Any,
        send_counts: Sequence[int] | None,
        send_dtypes: Sequence[npt.DTypeLike] | None,
        dst: Any,
        recv_counts: Sequence[int],
        recv_dtypes: Sequence[npt.DTypeLike],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """As `alltoallv`, with a dtype for each peer: counts are elements of these, displacements are bytes.

        src and dst are arrays of any dtype, of which the bytes count. What travels between two ranks must have the same
        length in bytes on both; whether both call it the same type is not checked.
        """
        return self._result(
            self._alltoallw(
                src, send_counts, send_dtypes, dst, recv_counts, recv_dtypes, send_displacements, recv_displacements,
                options,
            )
        )  # fmt: skip

    def alltoallw_async(
        self,
        src: Any,
        send_counts: Sequence[int] | None,
        send_dtypes: Sequence[npt.DTypeLike] | None,
        dst: Any,
        recv_counts: Sequence[int],
        recv_dtypes: Sequence[npt.DTypeLike],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `alltoallw`."""
        return self._start(
            self._alltoallw(
                src, send_counts, send_dtypes, dst, recv_counts, recv_dtypes, send_displacements, recv_displacements,
                options,
            )
        )  # fmt: skip

    def graph(self, sources: Sequence[int], destinations: Sequence[int]) -> Graph:
        """Collective. A graph of the ranks: edges come here from `sources`, and go from here to `destinations`.

        A rank may stand in a list several times, and name itself. Every edge is named at both of its ends; if they
        disagree, every rank raises MismatchedCallError, which names both.
        """
        ends = [_integers("graph", name, given) or [] for name, given in
                (("sources", sources), ("destinations", destinations))]  # fmt: skip
        return Graph(self._core.graph(*ends), *ends)

    def neighbour_allgather(self, graph: Graph, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Sends src (n) to every destination of the graph; dst gets a block (n) of each source, in the graph's order.

        Collective, ranks without edges included. dst is allocated as (number of sources, *src.shape).
        """
        return self._result(self._neighbour_allgather(graph, src, dst, options))

    def neighbour_allgather_async(self, graph: Graph, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `neighbour_allgather`."""
        return self._start(self._neighbour_allgather(graph, src, dst, options))

    def neighbour_allgatherv(
        self,
        graph: Graph,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """As `neighbour_allgather`, with counts[i] elements from source i at displacements[i] (packed if None)."""
        return self._result(self._neighbour_allgatherv(graph, src, dst, counts, displacements, options))

    def neighbour_allgatherv_async(
        self,
        graph: Graph,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `neighbour_allgatherv`."""
        return self._start(self._neighbour_allgatherv(graph, src, dst, counts, displacements, options))

    def neighbour_alltoall(self, graph: Graph, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Block j of src to destination j of the graph; block i of dst from source i. All blocks have one length."""
        return self._result(self._neighbour_alltoall(graph, src, dst, options))

    def neighbour_alltoall_async(self, graph: Graph, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `neighbour_alltoall`."""
        return self._start(self._neighbour_alltoall(graph, src, dst, options))

    def neighbour_alltoallv(
        self,
        graph: Graph,
        src: Any,
        send_counts: Sequence[int],
        dst: Any,
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """As `neighbour_alltoall`, with send_counts[j] elements to destination j and recv_counts[i] from source i."""
        return self._result(
            self._neighbour_alltoallv(
                graph, src, send_counts, dst, recv_counts, send_displacements, recv_displacements, options
            )
        )

    def neighbour_alltoallv_async(
        self,
        graph: Graph,
        src: Any,
        send_counts: Sequence[int],
        dst: Any,
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `neighbour_alltoallv`."""
        return self._start(
            self._neighbour_alltoallv(
                graph, src, send_counts, dst, recv_counts, send_displacements, recv_displacements, options
            )
        )

    def run_program(
        self, program: Program | str | os.PathLike[str], src: Any = None, dst: Any = None, **options: Unpack[Options]
    ) -> Array | None:
        """Collective. Runs a user's program (or a program file), bound to src and dst; returns dst."""
        return self._run(self._program(program, src, dst, options))

    def run_program_async(
        self, program: Program | str | os.PathLike[str], src: Any = None, dst: Any = None, **options: Unpack[Options]
    ) -> Request:
        """As `run_program`."""
        return self._start(self._program(program, src, dst, options))

    # ------------------------------------------------------------------------------------------------- insides

    def _local(self, collective: Collective, src: Any, dst: Any, op: AnyOp | None, options: Options) -> _Call:
        name = collective.name.lower()
        buffers = _Buffers(name, src, dst, computes=collective == Collective.COMBINE)
        source = buffers.need("src")
        if collective == Collective.COMBINE:
            buffers.need("dst")
        buffers.allocate(source.shape)
        return self._call(collective, buffers, source.size, options, op=Func.NONE if op is None else _op(name, op))

    def _to_peer(
        self, collective: Collective, src: Any, dst: Any, peer: int, tag: int, offset: int, options: Options
    ) -> _Call:
        name = collective.name.lower()
        buffers = _Buffers(name, src, dst)
        array = buffers.need("dst" if collective in (Collective.RECV, Collective.GET) else "src")
        offset = _integer(name, "offset", offset)
        if offset < 0:
            raise InvalidArgumentError(f"{name}: offset is {offset}; allowed are 0 and more bytes")
        return self._call(collective, buffers, array.size, options, root=peer, tag=tag, offset=offset)

    def _bcast(self, buffer: Any, root: int, options: Options) -> _Call:
        buffers = _Buffers("bcast", None, buffer)
        return self._call(Collective.BCAST, buffers, buffers.need("dst").size, options, root=root)

    def _reduction(self, collective: Collective, src: Any, dst: Any, op: AnyOp, options: Options) -> _Call:
        name = collective.name.lower()
        buffers = _Buffers(name, src, dst, computes=True)
        array = buffers.need("dst" if buffers.in_place else "src")
        if buffers.dst is None and collective == Collective.EXSCAN:
            buffers.dst = empty_beside(array, array.shape)
            buffers.dst.fill(0)
        buffers.allocate(array.shape)
        return self._call(collective, buffers, array.size, options, op=_op(name, op))

    def _reduce(self, src: Any, dst: Any, op: AnyOp, root: int, in_place: bool, options: Options) -> _Call:
        is_root = self.rank == root
        buffers = _Buffers("reduce", src, dst if is_root else None, in_place=in_place, computes=True)
        array = buffers.need("dst" if buffers.in_place and is_root else "src")
        if is_root:
            buffers.allocate(array.shape)
        return self._call(Collective.REDUCE, buffers, array.size, options, op=_op("reduce", op), root=root)

    def _blocks(self, operation: str, name: str, array: Array) -> int:
        """Elements of one of `size` blocks of an array."""
        if array.size % self.size:
            raise InvalidCountError(
                f"{operation}: {name} has {array.size} elements; needed is a multiple of the {self.size} ranks"
            )
        return array.size // self.size

    def _block_shape(self, array: Array) -> tuple[int, ...]:
        """Shape of one block: the leading axis is cut, or else the block is flat."""
        if array.ndim > 1 and array.shape[0] == self.size:
            return array.shape[1:]
        if array.ndim >= 1 and array.shape[0] % self.size == 0:
            return (array.shape[0] // self.size, *array.shape[1:])
        return (array.size // self.size,)

    def _reduce_scatter(self, src: Any, dst: Any, op: AnyOp, options: Options) -> _Call:
        buffers = _Buffers("reduce_scatter", src, dst, computes=True)
        name = "dst" if buffers.in_place else "src"
        array = buffers.need(name)
        count = self._blocks("reduce_scatter", name, array)
        buffers.allocate(self._block_shape(array))
        return self._call(Collective.REDUCE_SCATTER, buffers, count, options, op=_op("reduce_scatter", op))

    def _allgather(self, src: Any, dst: Any, options: Options) -> _Call:
        buffers = _Buffers("allgather", src, dst)
        if buffers.in_place:
            count = self._blocks("allgather", "dst", buffers.need("dst"))
        else:
            source = buffers.need("src")
            count = source.size
            buffers.allocate((self.size, *source.shape))
        return self._call(Collective.ALLGATHER, buffers, count, options)

    def _gather(self, src: Any, dst: Any, root: int, in_place: bool, options: Options) -> _Call:
        is_root = self.rank == root
        buffers = _Buffers("gather", src, dst if is_root else None, in_place=in_place)
        if buffers.in_place and is_root:
            count = self._blocks("gather", "dst", buffers.need("dst"))
        else:
            source = buffers.need("src")
            count = source.size
            if is_root:
                buffers.allocate((self.size, *source.shape))
        return self._call(Collective.GATHER, buffers, count, options, root=root)

    def _scatter(self, src: Any, dst: Any, root: int, in_place: bool, options: Options) -> _Call:
        is_root = self.rank == root
        buffers = _Buffers("scatter", src if is_root else None, dst, in_place=in_place)
        if is_root:
            source = buffers.need("src")
            count = self._blocks("scatter", "src", source)
            if dst is None and not buffers.in_place:
                buffers.allocate(self._block_shape(source))
                self._announce(buffers, root, options)
        else:
            if dst is None and not in_place:
                buffers = self._of_announced("scatter", root, options)
            count = buffers.need("dst", " for the block of this rank").size
        return self._call(Collective.SCATTER, buffers, count, options, root=root)

    def _run_scatter(self, call: _Call) -> Array | None:
        try:
            return self._run(call)
        except MismatchedCallError as error:
            error.add_note(_SCATTER_NOTE)
            raise

    def _announce(self, buffers: _Buffers, root: int, options: Options) -> None:
        """Tells the other ranks of the block of a scatter, for which they have no destination either."""
        if self.size > 1:
            self._call(Collective.SCATTER, buffers, 0, options, root=root)  # refuses what is wrong before that
            block = buffers.need("dst")
            told = Block(block.dtype, block.shape, allocation_of(block) is not None)
            announced(self, buffers.operation, root, told, options.get("timeout"))

    def _of_announced(
        self, operation: str, root: int, options: Options, shape: tuple[int, ...] | None = None
    ) -> _Buffers:
        """The destination of a scatter: of the block that the root tells of, or of `shape`."""
        empty = _Buffers(operation, None, None)
        self._call(Collective.SCATTER, empty, 0, options, root=root)
        block = announced(self, operation, root, None, options.get("timeout"))
        shape = block.shape if shape is None else shape
        if block.allocated:
            with contextlib.suppress(NoMemoryError):
                return _Buffers(operation, None, self.empty(shape, block.dtype))
        return _Buffers(operation, None, np.empty(shape, block.dtype))

    def _alltoall(self, src: Any, dst: Any, options: Options) -> _Call:
        buffers = _Buffers("alltoall", src, dst)
        name = "dst" if buffers.in_place else "src"
        array = buffers.need(name)
        buffers.allocate(array.shape)
        return self._call(Collective.ALLTOALL, buffers, self._blocks("alltoall", name, array), options)

    def _layout(
        self, operation: str, side: str, counts: Any, displacements: Any, entries: int | None = None, of: str = "ranks"
    ) -> _Layout:
        needed = self.size if entries is None else entries
        layout = _Layout(
            _integers(operation, f"{side}counts", counts), _integers(operation, f"{side}displacements", displacements)
        )
        for name, values in (("counts", layout.counts), ("displacements", layout.displacements)):
            if values is not None and len(values) != needed:
                raise InvalidCountError(
                    f"{operation}: {side}{name} has {len(values)} entries; needed is one for each of the {needed} {of}"
                )
            for rank, value in enumerate(values or ()):
                if value < 0:
                    raise InvalidCountError(
                        f"{operation}: {side}{name}[{rank}] is {value}; allowed are 0 and more elements"
                    )
        return layout

    def _gatherv(
        self, src: Any, dst: Any, counts: Any, root: int, displacements: Any, in_place: bool, options: Options
    ) -> _Call:
        is_root = self.rank == root
        layout = self._layout("gatherv", "", counts, displacements if is_root else None)
        buffers = _Buffers("gatherv", src, dst if is_root else None, in_place=in_place)
        if is_root and not buffers.in_place:
            buffers.need("src")
            buffers.allocate((layout.extent(),))
        buffers.need("dst" if is_root else "src")
        return self._call(Collective.GATHERV, buffers, 0, options, root=root, receives=layout)

    def _scatterv(
        self, src: Any, dst: Any, counts: Any, root: int, displacements: Any, in_place: bool, options: Options
    ) -> _Call:
        is_root = self.rank == root
        layout = self._layout("scatterv", "", counts, displacements if is_root else None)
        own = ((layout.counts or [0] * self.size)[self.rank],)
        buffers = _Buffers("scatterv", src if is_root else None, dst, in_place=in_place)
        if is_root:
            buffers.need("src")
            if dst is None and not buffers.in_place:
                buffers.allocate(own)
                self._announce(buffers, root, options)
        else:
            if dst is None and not in_place:
                buffers = self._of_announced("scatterv", root, options, own)
            buffers.need("dst", " for the block of this rank")
        return self._call(Collective.SCATTERV, buffers, 0, options, root=root, sends=layout)

    def _allgatherv(self, src: Any, dst: Any, counts: Any, displacements: Any, options: Options) -> _Call:
        layout = self._layout("allgatherv", "", counts, displacements)
        buffers = _Buffers("allgatherv", src, dst)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate((layout.extent(),))
        buffers.need("dst")
        return self._call(Collective.ALLGATHERV, buffers, 0, options, receives=layout)

    def _reduce_scatterv(
        self, src: Any, counts: Any, dst: Any, op: AnyOp, displacements: Any, options: Options
    ) -> _Call:
        layout = self._layout("reduce_scatterv", "", counts, displacements)
        buffers = _Buffers("reduce_scatterv", src, dst, computes=True)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate(((layout.counts or [0] * self.size)[self.rank],))
        buffers.need("dst")
        return self._call(
            Collective.REDUCE_SCATTERV, buffers, 0, options, op=_op("reduce_scatterv", op), receives=layout
        )

    def _alltoallv(
        self,
        src: Any,
        send_counts: Any,
        dst: Any,
        recv_counts: Any,
        send_displacements: Any,
        recv_displacements: Any,
        options: Options,
    ) -> _Call:
        receives = self._layout("alltoallv", "recv_", recv_counts, recv_displacements)
        sends = self._layout("alltoallv", "send_", send_counts, send_displacements)
        buffers = _Buffers("alltoallv", src, dst)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate((receives.extent(),))
        buffers.need("dst")
        return self._call(Collective.ALLTOALLV, buffers, 0, options, sends=sends, receives=receives)

    def _alltoallw(
        self,
        src: Any,
        send_counts: Any,
        send_dtypes: Any,
        dst: Any,
        recv_counts: Any,
        recv_dtypes: Any,
        send_displacements: Any,
        recv_displacements: Any,
        options: Options,
    ) -> _Call:
        receives = self._layout("alltoallw", "recv_", recv_counts, recv_displacements)
        sends = self._layout("alltoallw", "send_", send_counts, send_displacements)
        in_place = src is IN_PLACE or (src is not None and src is dst)
        target = writable("alltoallw", "dst", dst)
        source = IN_PLACE if in_place else _as_bytes("src", readable("alltoallw", "src", src))
        sends, send_datatypes = (_NO_LAYOUT, None) if in_place else self._typed("send", sends, send_dtypes)
        receives, recv_datatypes = self._typed("recv", receives, recv_dtypes)
        call = self._call(
            Collective.ALLTOALLV,
            _Buffers("alltoallw", source, _as_bytes("dst", target)),
            0,
            options,
            sends=sends,
            receives=receives,
            datatypes=(send_datatypes, recv_datatypes),
        )
        return call._replace(dst=target)

    def _typed(self, side: str, layout: _Layout, given: Any) -> tuple[_Layout, list[int]]:
        """One side of an alltoallw: what has no datatype is counted in bytes."""
        name = f"{side}_dtypes"
        try:
            dtypes = [np.dtype(dtype) for dtype in given]
        except TypeError as failure:
            raise InvalidDatatypeError(f"alltoallw: {name} is {given!r}; pass a dtype for each rank") from failure
        elements = [elements_of("alltoallw", f"{name}[{i}]", dtype, computes=False) for i, dtype in enumerate(dtypes)]
        counts = layout.counts
        if counts is not None and len(counts) == len(elements):
            counts = [count * max(1, element.own_bytes) for count, element in zip(counts, elements, strict=True)]
        return layout._replace(counts=counts), [int(element.datatype) for element in elements]

    def _edges(self, operation: str, graph: Any) -> tuple[int, int]:
        """The numbers of sources and destinations."""
        if not isinstance(graph, Graph):
            raise InvalidArgumentError(
                f"{operation}: graph is a {type(graph).__name__}; pass what the communicator's graph() has made"
            )
        return len(graph.sources), len(graph.destinations)

    def _neighbour_allgather(self, graph: Any, src: Any, dst: Any, options: Options) -> _Call:
        sources, _ = self._edges("neighbour_allgather", graph)
        buffers = _Buffers("neighbour_allgather", src, dst)
        source = buffers.need("src")
        buffers.allocate((sources, *source.shape))
        return self._call(Collective.ALLGATHER, buffers, source.size, options, graph=graph)

    def _neighbour_allgatherv(
        self, graph: Any, src: Any, dst: Any, counts: Any, displacements: Any, options: Options
    ) -> _Call:
        sources, _ = self._edges("neighbour_allgatherv", graph)
        layout = self._layout("neighbour_allgatherv", "", counts, displacements, sources, "sources")
        buffers = _Buffers("neighbour_allgatherv", src, dst)
        source = buffers.need("src")
        buffers.allocate((layout.extent(),))
        return self._call(Collective.ALLGATHERV, buffers, source.size, options, receives=layout, graph=graph)

    def _neighbour_alltoall(self, graph: Any, src: Any, dst: Any, options: Options) -> _Call:
        operation = "neighbour_alltoall"
        sources, destinations = self._edges(operation, graph)
        buffers = _Buffers(operation, src, dst)
        source = buffers.need("src")
        blocks, name = (destinations, "src") if destinations else (sources, "dst")
        array = source if destinations else buffers.dst
        if array is None:
            raise InvalidArgumentError(
                f"{operation}: dst is missing; without a destination on this rank the length of a block follows from it"
            )
        if array.size % max(blocks, 1):
            raise InvalidCountError(
                f"{operation}: {name} has {array.size} elements; needed is a multiple of the {blocks} edges"
            )
        count = array.size // blocks if blocks else 0
        buffers.allocate((sources, count))
        return self._call(Collective.ALLTOALL, buffers, count, options, graph=graph)

    def _neighbour_alltoallv(
        self,
        graph: Any,
        src: Any,
        send_counts: Any,
        dst: Any,
        recv_counts: Any,
        send_displacements: Any,
        recv_displacements: Any,
        options: Options,
    ) -> _Call:
        operation = "neighbour_alltoallv"
        sources, destinations = self._edges(operation, graph)
        sends = self._layout(operation, "send_", send_counts, send_displacements, destinations, "destinations")
        receives = self._layout(operation, "recv_", recv_counts, recv_displacements, sources, "sources")
        buffers = _Buffers(operation, src, dst)
        buffers.need("src")
        buffers.allocate((receives.extent(),))
        return self._call(Collective.ALLTOALLV, buffers, 0, options, sends=sends, receives=receives, graph=graph)

    def _program(self, program: Program | str | os.PathLike[str], src: Any, dst: Any, options: Options) -> _Call:
        if not isinstance(program, Program | str | os.PathLike):
            raise InvalidArgumentError(
                f"program: program is a {type(program).__name__}; pass a unisono.Program or the path of a program file"
            )
        loaded = program if isinstance(program, Program) else Program.load(program)
        buffers = _Buffers("program", src, dst)
        buffers.own_bytes = 0  # a program has no elements, but bytes
        return self._call(Collective.PROGRAM, buffers, 0, options, program=loaded)

    def _call(
        self,
        collective: Collective,
        buffers: _Buffers,
        count: int,
        options: Options,
        *,
        op: Func = Func.NONE,
        root: int = 0,
        tag: int = 0,
        offset: int = 0,
        sends: _Layout = _NO_LAYOUT,
        receives: _Layout = _NO_LAYOUT,
        program: Program | None = None,
        graph: Graph | None = None,
        datatypes: tuple[list[int] | None, list[int] | None] = (None, None),
    ) -> _Call:
        if unknown := options.keys() - Options.__annotations__.keys():
            raise TypeError(
                f"{buffers.operation}: {', '.join(sorted(unknown))} is no option; options are "
                f"{', '.join(Options.__annotations__)}"
            )
        given = options.get("count")
        timeout = options.get("timeout")
        algorithm = options.get("algorithm")
        operation = buffers.operation
        if algorithm is not None and not isinstance(algorithm, str):
            raise InvalidArgumentError(f"{operation}: algorithm is {algorithm!r}; pass its name, or None")
        pair = collective in (Collective.SEND, Collective.RECV, Collective.PUT, Collective.GET)
        return _Call(
            collective,
            buffers.datatype,
            op,
            buffers.in_place,
            _integer(operation, "peer" if pair else "root", root),
            _integer(operation, "tag", tag),
            count if given is None else _integer(operation, "count", given),
            buffers.src,
            buffers.dst,
            sends.counts,
            sends.displacements,
            receives.counts,
            receives.displacements,
            algorithm,
            offset,
            _requests(operation, options.get("wait_for") or ()),
            0.0 if timeout is None else _seconds(operation, timeout),
            None if program is None else program._core,
            None if graph is None else graph._core,
            *datatypes,
            _wire_datatype(operation, options.get("wire_datatype")),
            buffers.own_bytes,
            self._starts(operation, options.get("start", True)),
        )

    @staticmethod
    def _starts(operation: str, given: Any) -> bool:
        if not isinstance(given, bool):
            raise InvalidArgumentError(f"{operation}: start is {given!r}; allowed are True and False")
        return given

    @staticmethod
    def _blocks_here(call: _Call) -> None:
        if not call.starts:
            raise InvalidArgumentError("start=False was given for a call that blocks; use its _async form")

    def _run(self, call: _Call) -> Array | None:
        self._blocks_here(call)
        self._core.run(*call[:-1])
        return call.dst

    def _result(self, call: _Call) -> Array:
        result = self._run(call)
        assert result is not None
        return result

    def _start(self, call: _Call) -> Request:
        request = Request(self._core.start(*call), call.dst)
        if self._groups and call.starts and (group := self._groups.get(threading.get_ident())) is not None:
            group.append(request)
        return request


class _Call(NamedTuple):
    """The arguments of `_core.Communicator.start`, in order; those of `run` are all but the last."""

    collective: int
    datatype: int
    op: int
    in_place: bool
    root: int
    tag: int
    elements: int
    src: Array | None
    dst: Array | None
    send_counts: list[int] | None
    send_displacements: list[int] | None
    recv_counts: list[int] | None
    recv_displacements: list[int] | None
    algorithm: str | None
    window_offset: int
    wait_for: list[_core.Request]
    timeout: float
    program: _core.Program | None
    graph: _core.Graph | None
    send_datatypes: list[int] | None
    recv_datatypes: list[int] | None
    wire_datatype: int
    own_bytes: int
    starts: bool
