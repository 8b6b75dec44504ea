"""Copies, messages between two ranks, windows, and programs of the user."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Unpack

from ._arguments import AnyOp, func_of, integer, seconds_of
from ._arrays import Array
from ._buffers import Buffers, Call
from ._calls import Calls
from ._messages import ANY_SOURCE, ANY_TAG, Status, peer_of, status_for
from ._options import Options
from ._signatures import options_by_name
from ._spec import Collective, Func
from ._texts import shown
from .errors import InvalidArgumentError, UnisonoError, UnknownAlgorithmError, UnsupportedError
from .operator import Operator
from .program import Program
from .request import Request
from .stream import Stream, is_streamed, streamed

# Plain ints, so that a call compares no enumerators.
_SEND, _RECV, _PUT, _GET = (int(each) for each in (Collective.SEND, Collective.RECV, Collective.PUT, Collective.GET))


def _what_came(result: Array, received: int) -> Array:
    """The elements of a destination that a message has filled."""
    return result if received == result.size else result.reshape(-1)[:received]


@options_by_name
class PrimitiveCalls(Calls):
    """Calls of a communicator that are no collectives, and programs."""

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
        if not options and self._core.quick_send(src, peer, tag):
            return
        self._run(self._to_peer(Collective.SEND, src, None, peer, tag, 0, options))

    def send_async(self, src: Any, peer: int, tag: int = 0, **options: Unpack[Options]) -> Request:
        """As `send`."""
        if not options and not self._groups and (quick := self._core.quick_start_send(src, peer, tag)) is not None:
            return Request(quick[0], None, None, ("send", self._number, _SEND, peer, tag))
        return self._start(self._to_peer(Collective.SEND, src, None, peer, tag, 0, options))

    def recv(
        self,
        dst: Any,
        peer: int | None = None,
        tag: int = 0,
        *,
        source: int | None = None,
        status: Status | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Receives into dst from `peer`, and returns dst, or the part of it that a shorter message fills (flat).

        `source` is another name for `peer`. From ANY_SOURCE, with ANY_TAG: of whichever rank, with whichever tag;
        `status`, a `unisono.Status`, then gets source, tag and length of what came.
        """
        peer = peer_of("recv", peer, source)
        if status is not None:
            return self._recv_status(dst, peer, tag, status_for("recv", status), options)
        if isinstance(dst, Stream):
            return self._result(self._to_peer(Collective.RECV, None, dst, peer, tag, 0, options))
        if not options and (received := self._core.quick_recv(dst, peer, tag)) >= 0:
            return _what_came(dst, received)
        result, request = self._recv_long(dst, peer, tag, options)
        return _what_came(result, request.received)

    def recv_async(
        self,
        dst: Any,
        peer: int | None = None,
        tag: int = 0,
        *,
        source: int | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `recv`; `Request.received` gives the number of elements, `Request.status` source and tag as well."""
        peer = peer_of("recv", peer, source)
        if not options and not self._groups and (quick := self._core.quick_start_recv(dst, peer, tag)) is not None:
            return Request(quick[0], dst, None, ("recv", self._number, _RECV, peer, tag))
        return self._start(self._to_peer(Collective.RECV, None, dst, peer, tag, 0, options))

    def stream_put(self, src: Any, peer: int, port: int, **options: Unpack[Options]) -> None:
        """Sends src, an array or a `Stream`, to stream port `port` of `peer`, where a kernel reads it.

        No receive is called there. Returns when src may be reused.
        """
        self._run(self._to_port(src, peer, port, options))

    def stream_put_async(self, src: Any, peer: int, port: int, **options: Unpack[Options]) -> Request:
        """As `stream_put`."""
        return self._start(self._to_port(src, peer, port, options))

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, timeout: float | None = None) -> Status:
        """Waits until there is a message that such a receive would get, and says which; the message stays.

        `timeout` in seconds; None: the communicator's. A probe that times out has taken nothing, and the communicator
        can be used as before.
        """
        seconds = 0.0 if timeout is None else seconds_of("probe", timeout)
        found = self._core.probe(integer("probe", "source", source), integer("probe", "tag", tag), seconds)
        return Status()._fill(found)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status | None:
        """As `probe`, without waiting: None if there is no such message now."""
        found = self._core.iprobe(integer("iprobe", "source", source), integer("iprobe", "tag", tag))
        return None if found is None else Status()._fill(found)

    def _recv_status(self, dst: Any, peer: Any, tag: Any, status: Status, options: Options) -> Array:
        came = None if options else self._core.quick_recv_status(dst, peer, tag)
        if came is not None:
            return _what_came(dst, status._fill(came).count)
        result, request = self._recv_long(dst, peer, tag, options)
        return _what_came(result, status._fill(request._core.status()).count)

    def _recv_long(self, dst: Any, peer: Any, tag: Any, options: Options) -> tuple[Array, Request]:
        request = self._start(self._to_peer(Collective.RECV, None, dst, peer, tag, 0, options))
        try:
            result = request.wait()
        except UnisonoError:
            raise
        except BaseException:
            # A signal's handler has raised. The receive would take the next message, and nobody would ever see it.
            with contextlib.suppress(UnisonoError):
                self._all.revoke("a recv was interrupted by its caller")
            raise
        assert result is not None
        return result, request

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
        if dst is not None and not options:
            received = self._core.quick_sendrecv(
                src, to, tag, dst, to if source is None else source, tag if recv_tag is None else recv_tag
            )
            if received >= 0:
                return _what_came(dst, received)
        buffers = Buffers("sendrecv", src, dst)
        given = buffers.need("src")
        buffers.allocate(given.shape)
        call = self._call(Collective.SEND, buffers, given.size, options, root=to, tag=tag)
        told = call.arguments
        if told.algorithm is not None:
            raise UnknownAlgorithmError(
                f"sendrecv: there is no algorithm {shown(told.algorithm)}; the operation has none to choose from"
            )
        if told.pre_scale is not None or told.post_scale is not None:
            raise UnsupportedError("sendrecv: a factor was given, but nothing is reduced; leave it out")
        self._blocks_here(call)
        received = self._core.sendrecv(
            told.datatype,
            told.own_bytes,
            given,
            told.elements,
            told.root,
            told.tag,
            buffers.need("dst"),
            told.root if source is None else integer("sendrecv", "source", source),
            told.tag if recv_tag is None else integer("sendrecv", "recv_tag", recv_tag),
            told.wait_for,
            told.timeout,
            told.wire_datatype,
        )
        result = buffers.finish()
        assert result is not None
        return _what_came(result, received)

    def put(self, src: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> None:
        """Writes src into the window of `peer`, `offset` bytes from its begin. Returns when it is written."""
        if not options and self._core.quick_put(src, peer, offset):
            return
        self._run(self._to_peer(Collective.PUT, src, None, peer, 0, offset, options))

    def put_async(self, src: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> Request:
        """As `put`."""
        if not options and not self._groups and (quick := self._core.quick_start_put(src, peer, offset)) is not None:
            return Request(quick[0], None, None, ("put", self._number, _PUT, peer, 0))
        return self._start(self._to_peer(Collective.PUT, src, None, peer, 0, offset, options))

    def get(self, dst: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> Array:
        """Reads dst's length from the window of `peer`, from byte `offset` on."""
        if not options and self._core.quick_get(dst, peer, offset):
            result: Array = dst
            return result
        return self._result(self._to_peer(Collective.GET, None, dst, peer, 0, offset, options))

    def get_async(self, dst: Any, peer: int, offset: int = 0, **options: Unpack[Options]) -> Request:
        """As `get`."""
        if not options and not self._groups and (quick := self._core.quick_start_get(dst, peer, offset)) is not None:
            return Request(quick[0], dst, None, ("get", self._number, _GET, peer, 0))
        return self._start(self._to_peer(Collective.GET, None, dst, peer, 0, offset, options))

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

    def _local(self, collective: Collective, src: Any, dst: Any, op: AnyOp | None, options: Options) -> Call:
        name = collective.name.lower()
        func = Func.NONE if op is None else func_of(name, op)
        if is_streamed(src, dst):
            streams, count = streamed(name, src, dst, ("n", "n"), 1, options.get("count"), computes=op is not None)
            return self._call(collective, streams, count, options, op=func)
        own = op.element_bytes if isinstance(op, Operator) else 0
        buffers = Buffers(name, src, dst, computes=collective == Collective.COMBINE, element_bytes=own)
        source = buffers.need("src")
        if collective == Collective.COMBINE:
            buffers.need("dst")
        buffers.allocate(source.shape)
        return self._call(collective, buffers, source.size, options, op=func)

    def _to_peer(
        self, collective: Collective, src: Any, dst: Any, peer: int, tag: int, offset: int, options: Options
    ) -> Call:
        name = collective.name.lower()
        offset = integer(name, "offset", offset)
        takes = collective in (Collective.RECV, Collective.GET)
        if is_streamed(src, dst):
            streams, count = streamed(name, src, dst, ("", "n") if takes else ("n", ""), 1, options.get("count"))
            return self._call(collective, streams, count, options, root=peer, tag=tag, offset=offset)
        buffers = Buffers(name, src, dst)
        array = buffers.need("dst" if takes else "src")
        if offset < 0:
            raise InvalidArgumentError(f"{name}: offset is {offset}; allowed are 0 and more bytes")
        return self._call(collective, buffers, array.size, options, root=peer, tag=tag, offset=offset)

    def _to_port(self, src: Any, peer: int, port: int, options: Options) -> Call:
        if isinstance(src, Stream):
            buffers, count = streamed("stream_put", src, None, ("n", ""), 1, options.get("count"))
        else:
            buffers = Buffers("stream_put", src, None)
            count = buffers.need("src").size
        buffers.dst_port = integer("stream_put", "port", port)
        if buffers.dst_port < 0:
            raise InvalidArgumentError(f"stream_put: port is {port}; allowed are 0 to 15")
        return self._call(Collective.SEND, buffers, count, options, root=peer)

    def _program(self, program: Program | str | os.PathLike[str], src: Any, dst: Any, options: Options) -> Call:
        if not isinstance(program, Program | str | os.PathLike):
            raise InvalidArgumentError(
                f"program: program is a {type(program).__name__}; pass a unisono.Program or the path of a program file"
            )
        loaded = program if isinstance(program, Program) else Program.load(program)
        buffers = Buffers("program", src, dst)
        buffers.own_bytes = 0  # a program has no elements, but bytes
        return self._call(Collective.PROGRAM, buffers, 0, options, program=loaded)
