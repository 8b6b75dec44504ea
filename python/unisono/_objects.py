"""Python objects as messages: pickled with protocol 5, their buffers (arrays) apart from the stream.

An object travels as one array of bytes:

    int64 [parts]          length of the stream and of each buffer, after their number
    stream, buffer, ...    each from a multiple of 64 bytes on, so that arrays over them are aligned

and is opened where it has come: its arrays are parts of that memory, are
writable unless they were read-only, and keep it alive.

A rank that unpickles runs what the pickle says. The ranks of a job trust one another: they hold its secret.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from ._calls import Calls
from ._messages import Status, peer_of, status_for
from .errors import InvalidArgumentError, InvalidCountError

Bytes = npt.NDArray[np.uint8]

_LINE = 64  # bytes
_HEADER = 1024  # bytes of the first message: the length of what is to come, and as much of that as has room
_WORD = 8
_REASON = 512  # bytes of a failure's text that travel
_FAILED = -1  # in place of a length: the sender has no object; the text of its failure follows


def _aligned(length: int) -> int:
    return -(-length // _LINE) * _LINE


def packed(value: Any) -> Bytes:
    """An object as one array of bytes. Raises what pickling raises."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(stream), *(buffer.raw() for buffer in buffers)]
    begin = _aligned(_WORD * (1 + len(parts)))
    into = np.zeros(begin + sum(_aligned(part.nbytes) for part in parts), np.uint8)
    into[: _WORD * (1 + len(parts))].view(np.int64)[:] = [len(parts), *(part.nbytes for part in parts)]
    for part in parts:
        into[begin : begin + part.nbytes] = np.frombuffer(part, np.uint8)
        begin += _aligned(part.nbytes)
    return into


def opened(data: Bytes) -> Any:
    """The object that `packed` has made an array of. Raises what unpickling raises."""
    words = data[: data.size // _WORD * _WORD].view(np.int64)
    lengths = [int(length) for length in words[1 : 1 + int(words[0])]]
    begin = _aligned(_WORD * (1 + len(lengths)))
    parts = []
    for length in lengths:
        parts.append(data[begin : begin + length])
        begin += _aligned(length)
    return pickle.loads(parts[0].data, buffers=[part.data for part in parts[1:]])


class _Outgoing:
    """What a rank has to say: an object, or why it has none."""

    def __init__(self, data: Bytes, failure: BaseException | None = None) -> None:
        self.data = data
        self.failure = failure

    @staticmethod
    def of(value: Any) -> _Outgoing:
        """An object, if it can be pickled."""
        try:
            return _Outgoing(packed(value))
        except BaseException as failure:  # whatever the object's own code raises, an interrupt of this rank included
            return _Outgoing.failed(failure)

    @staticmethod
    def failed(failure: BaseException) -> _Outgoing:
        """Why there is none."""
        return _Outgoing(_text(failure), failure)

    def raise_interrupt(self) -> None:
        """Raises what ends this rank, if that is why there is no object. To be called when the others were told."""
        if self.failure is not None and not isinstance(self.failure, Exception):
            raise self.failure

    @property
    def length(self) -> int:
        """Bytes of the object, or _FAILED."""
        return self.data.size if self.failure is None else _FAILED

    def header(self) -> Bytes:
        """The first message, of _HEADER bytes."""
        header = np.zeros(_HEADER, np.uint8)
        header[: 2 * _WORD].view(np.int64)[:] = self.length, self.data.size
        begin = self.data[: _HEADER - 2 * _WORD]
        header[2 * _WORD : 2 * _WORD + begin.size] = begin
        return header


class _Incoming:
    """What a first message says."""

    def __init__(self, header: Bytes) -> None:
        length, size = (int(word) for word in header[: 2 * _WORD].view(np.int64))
        begin = header[2 * _WORD : 2 * _WORD + min(size, _HEADER - 2 * _WORD)]
        #: Why there is no object; None if there is one.
        self.failure = begin.tobytes().decode(errors="replace") if length == _FAILED else None
        #: Room for the object; the rest of it is still to come unless `whole`.
        self.data = np.empty(size, np.uint8)
        self.data[: begin.size] = begin
        self.whole = size == begin.size


def _text(failure: BaseException) -> Bytes:
    text = f"{type(failure).__name__}: {failure}".encode()[:_REASON]
    return np.frombuffer(text, np.uint8)


def _nothing(operation: str, rank: int, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{operation}: rank {rank} has no object to send: {text}")


class ObjectCalls(Calls):
    """Calls of a communicator that move Python objects of any kind that can be pickled.

    They block, and take longer than calls on arrays. Arrays inside objects travel as they are, and arrive writable
    unless they were read-only. An object that cannot be pickled raises `InvalidArgumentError` on every rank that should
    have got it.
    """

    def send_object(self, value: Any, peer: int, tag: int = 0, *, timeout: float | None = None) -> None:
        """Sends an object to `peer`, whose `recv_object` takes it. `timeout`: of each of its messages."""
        outgoing = _Outgoing.of(value)
        self._all.send(outgoing.header(), peer, tag, timeout=timeout)
        outgoing.raise_interrupt()
        if outgoing.failure is not None:
            raise _nothing("send_object", self.rank, _words(outgoing)) from outgoing.failure
        if outgoing.data.size > _HEADER - 2 * _WORD:
            self._all.send(outgoing.data, peer, tag, timeout=timeout)

    def recv_object(
        self,
        peer: int | None = None,
        tag: int = 0,
        *,
        source: int | None = None,
        status: Status | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Receives an object that `peer` has sent by `send_object`, and returns it.

        Peer and tag may be ANY_SOURCE and ANY_TAG, as for `recv`; `status` then gets the object's source and tag.
        """
        came = Status() if status is None else status_for("recv_object", status)
        given = peer_of("recv_object", peer, source)
        header = self._all.recv(np.empty(_HEADER, np.uint8), given, tag, status=came, timeout=timeout)
        peer, tag = came.source, came.tag
        if header.size != _HEADER:
            raise InvalidArgumentError(
                f"recv_object: the message of rank {peer} with tag {tag} has {header.size} bytes and is no object; "
                "send_object is what that rank is to call"
            )
        incoming = _Incoming(header)
        if incoming.failure is not None:
            raise _nothing("recv_object", peer, incoming.failure)
        if not incoming.whole:
            self._all.recv(incoming.data, peer, tag, timeout=timeout)
        return opened(incoming.data)

    def bcast_object(self, value: Any = None, root: int = 0, *, timeout: float | None = None) -> Any:
        """Collective. The root's object, on every rank; the others' `value` is not looked at.

        On the root it is the object itself, elsewhere a copy.
        """
        outgoing = _Outgoing.of(value) if self.rank == root else None
        data = self._told("bcast_object", outgoing, root, timeout)
        return value if outgoing is not None else opened(data)

    def allgather_object(self, value: Any, *, timeout: float | None = None) -> list[Any]:
        """Collective. The objects of all ranks, by rank, on every rank; one's own is the object itself."""
        outgoing = _Outgoing.of(value)
        sizes = self._sizes("allgather_object", outgoing, timeout)
        data = np.empty(sum(sizes), np.uint8)
        self._all.allgatherv(outgoing.data, data, sizes, timeout=timeout)
        return self._opened(data, sizes, value)

    def gather_object(self, value: Any, root: int = 0, *, timeout: float | None = None) -> list[Any] | None:
        """Collective. The objects of all ranks, by rank, on the root; its own is the object itself. None elsewhere."""
        outgoing = _Outgoing.of(value)
        sizes = self._sizes("gather_object", outgoing, timeout)
        data = np.empty(sum(sizes), np.uint8) if self.rank == root else None
        self._all.gatherv(outgoing.data, data, sizes, root, timeout=timeout)
        return None if data is None else self._opened(data, sizes, value)

    def scatter_object(
        self, values: Sequence[Any] | None = None, root: int = 0, *, timeout: float | None = None
    ) -> Any:
        """Collective. Of the root's `values`, one for each rank, that of this rank. Others pass nothing.

        On the root it is the object itself, elsewhere a copy.
        """
        given: list[Any] = []
        packs: list[Bytes] = []
        outgoing: _Outgoing | None = None
        if self.rank == root:
            try:
                given = _one_for_each(values, self.size)
                packs = [packed(value) for value in given]
                outgoing = _Outgoing.of([pack.size for pack in packs])
            except BaseException as failure:  # the others are waiting to hear it
                outgoing = _Outgoing.failed(failure)
        sizes: list[int] = opened(self._told("scatter_object", outgoing, root, timeout))
        mine = np.empty(sizes[self.rank], np.uint8)
        self._all.scatterv(np.concatenate(packs) if packs else None, mine, sizes, root, timeout=timeout)
        return given[root] if packs else opened(mine)

    def _told(self, operation: str, outgoing: _Outgoing | None, root: int, timeout: float | None) -> Bytes:
        """The root's packed object, on every rank; others pass None. Raises on all if the root has none."""
        header = np.zeros(_HEADER, np.uint8) if outgoing is None else outgoing.header()
        self._all.bcast(header, root, timeout=timeout)
        incoming = _Incoming(header)
        if outgoing is not None:
            outgoing.raise_interrupt()
        if incoming.failure is not None:
            raise _nothing(operation, root, incoming.failure) from (None if outgoing is None else outgoing.failure)
        data = incoming.data if outgoing is None else outgoing.data
        if not incoming.whole:
            self._all.bcast(data, root, timeout=timeout)
        return data

    def _sizes(self, operation: str, outgoing: _Outgoing, timeout: float | None) -> list[int]:
        """The bytes of all ranks' packed objects. Raises on all if some rank has none."""
        lengths = self._all.allgather(np.array([outgoing.length]), timeout=timeout).reshape(-1).tolist()
        if _FAILED not in lengths:
            return [int(length) for length in lengths]
        rank = lengths.index(_FAILED)
        header = outgoing.header() if self.rank == rank else np.zeros(_HEADER, np.uint8)
        self._all.bcast(header, rank, timeout=timeout)
        outgoing.raise_interrupt()
        raise _nothing(operation, rank, _Incoming(header).failure or "") from outgoing.failure

    def _opened(self, data: Bytes, sizes: Sequence[int], own: Any) -> list[Any]:
        """The objects that stand one behind the other."""
        ends = np.cumsum(sizes).tolist()
        return [
            own if rank == self.rank else opened(data[end - size : end])
            for rank, (end, size) in enumerate(zip(ends, sizes, strict=True))
        ]


def _words(outgoing: _Outgoing) -> str:
    return outgoing.data.tobytes().decode(errors="replace")


def _one_for_each(values: Any, ranks: int) -> list[Any]:
    """The objects of a sequence that has one for each rank."""
    if values is None:
        raise InvalidCountError(f"values is None; needed is one for each of the {ranks} ranks")
    if isinstance(values, Mapping | Set) or not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
        raise InvalidArgumentError(
            f"values is a {type(values).__name__}; pass a list, or another sequence, of one object for each of the "
            f"{ranks} ranks"
        )
    if len(values) != ranks:
        raise InvalidCountError(f"values is {len(values)} of them; needed is one for each of the {ranks} ranks")
    return list(values)
