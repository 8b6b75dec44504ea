"""Collectives whose blocks have one length on all ranks."""

from __future__ import annotations

import contextlib
from typing import Any, Unpack

import numpy as np

from ._announce import Block, announced
from ._arguments import AnyOp, func_of
from ._arrays import Array, allocation_of
from ._buffers import Buffers, Call
from ._calls import Calls
from ._options import IN_PLACE, Options
from ._signatures import options_by_name
from ._spec import Collective
from .errors import MismatchedCallError, NoMemoryError
from .request import Request

SCATTER_NOTE = "Of a scatter all ranks pass dst, or none does: the root then begins with a bcast."

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


@options_by_name
class CollectiveCalls(Calls):
    """Collectives of a communicator, with blocks of one length."""

    def barrier(self, **options: Unpack[Options]) -> None:
        """No rank returns before every rank has called."""
        if not options and self._core.quick(_BARRIER, None, None, None, None, False):
            return
        self._run(self._call(Collective.BARRIER, Buffers("barrier", None, None), 0, options))

    def barrier_async(self, **options: Unpack[Options]) -> Request:
        """As `barrier`."""
        return self._start(self._call(Collective.BARRIER, Buffers("barrier", None, None), 0, options))

    def bcast(self, buffer: Any, root: int = 0, **options: Unpack[Options]) -> Array:
        """The root's buffer to every rank's buffer, which it returns."""
        if not options and self._core.quick(_BCAST, None, buffer, None, root, False):
            return buffer  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._bcast(buffer, root, options))

    def bcast_async(self, buffer: Any, root: int = 0, **options: Unpack[Options]) -> Request:
        """As `bcast`."""
        return self._start(self._bcast(buffer, root, options))

    def allreduce(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over all ranks' src, into every rank's dst. All have the same number of elements."""
        if dst is not None and not options and self._core.quick(_ALLREDUCE, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduction(Collective.ALLREDUCE, src, dst, op, options))

    def allreduce_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `allreduce`."""
        return self._start(self._reduction(Collective.ALLREDUCE, src, dst, op, options))

    def scan(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over src of ranks 0 .. rank, into dst."""
        if dst is not None and not options and self._core.quick(_SCAN, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduction(Collective.SCAN, src, dst, op, options))

    def scan_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `scan`."""
        return self._start(self._reduction(Collective.SCAN, src, dst, op, options))

    def exscan(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over src of ranks 0 .. rank-1, into dst; rank 0's dst stays as it is (zeros if allocated here)."""
        if dst is not None and not options and self._core.quick(_EXSCAN, src, dst, op, None, False):
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
        if not options and self._core.quick(_REDUCE, src, dst, op, root, in_place):
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
        if dst is not None and not options and self._core.quick(_REDUCE_SCATTER, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._reduce_scatter(src, dst, op, options))

    def reduce_scatter_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `reduce_scatter`."""
        return self._start(self._reduce_scatter(src, dst, op, options))

    def allgather(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Every rank's src (n) into every rank's dst (size * n), by rank. Allocated as (size, *src.shape).

        In place, the input is block `rank` of dst.
        """
        if dst is not None and not options and self._core.quick(_ALLGATHER, src, dst, None, None, False):
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
        if not options and self._core.quick(_GATHER, src, dst, None, root, in_place):
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
            if not options and self._core.quick(_SCATTER, src, dst, None, root, in_place):
                return None if self.rank == root and (in_place or dst is IN_PLACE) else dst
        except MismatchedCallError as error:
            error.add_note(SCATTER_NOTE)
            raise
        return self._run_scatter(self._scatter(src, dst, root, in_place, options))

    def scatter_async(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Request:
        """As `scatter`."""
        return self._start(self._scatter(src, dst, root, in_place, options))

    def alltoall(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Block j of rank i's src into block i of rank j's dst; both have `size` blocks."""
        if dst is not None and not options and self._core.quick(_ALLTOALL, src, dst, None, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._alltoall(src, dst, options))

    def alltoall_async(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `alltoall`."""
        return self._start(self._alltoall(src, dst, options))

    def _bcast(self, buffer: Any, root: int, options: Options) -> Call:
        buffers = Buffers("bcast", None, buffer)
        return self._call(Collective.BCAST, buffers, buffers.need("dst").size, options, root=root)

    def _reduction(self, collective: Collective, src: Any, dst: Any, op: AnyOp, options: Options) -> Call:
        name = collective.name.lower()
        buffers = Buffers(name, src, dst, computes=True)
        array = buffers.need("dst" if buffers.in_place else "src")
        if buffers.dst is None and collective == Collective.EXSCAN:
            buffers.allocate(array.shape)
            buffers.need("dst").fill(0)
        buffers.allocate(array.shape)
        return self._call(collective, buffers, array.size, options, op=func_of(name, op))

    def _reduce(self, src: Any, dst: Any, op: AnyOp, root: int, in_place: bool, options: Options) -> Call:
        is_root = self.rank == root
        buffers = Buffers("reduce", src, dst if is_root else None, in_place=in_place, computes=True)
        array = buffers.need("dst" if buffers.in_place and is_root else "src")
        if is_root:
            buffers.allocate(array.shape)
        return self._call(Collective.REDUCE, buffers, array.size, options, op=func_of("reduce", op), root=root)

    def _reduce_scatter(self, src: Any, dst: Any, op: AnyOp, options: Options) -> Call:
        buffers = Buffers("reduce_scatter", src, dst, computes=True)
        name = "dst" if buffers.in_place else "src"
        array = buffers.need(name)
        count = self._blocks("reduce_scatter", name, array)
        buffers.allocate(self._block_shape(array))
        return self._call(Collective.REDUCE_SCATTER, buffers, count, options, op=func_of("reduce_scatter", op))

    def _allgather(self, src: Any, dst: Any, options: Options) -> Call:
        buffers = Buffers("allgather", src, dst)
        if buffers.in_place:
            count = self._blocks("allgather", "dst", buffers.need("dst"))
        else:
            source = buffers.need("src")
            count = source.size
            buffers.allocate((self.size, *source.shape))
        return self._call(Collective.ALLGATHER, buffers, count, options)

    def _gather(self, src: Any, dst: Any, root: int, in_place: bool, options: Options) -> Call:
        is_root = self.rank == root
        buffers = Buffers("gather", src, dst if is_root else None, in_place=in_place)
        if buffers.in_place and is_root:
            count = self._blocks("gather", "dst", buffers.need("dst"))
        else:
            source = buffers.need("src")
            count = source.size
            if is_root:
                buffers.allocate((self.size, *source.shape))
        return self._call(Collective.GATHER, buffers, count, options, root=root)

    def _scatter(self, src: Any, dst: Any, root: int, in_place: bool, options: Options) -> Call:
        is_root = self.rank == root
        buffers = Buffers("scatter", src if is_root else None, dst, in_place=in_place)
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

    def _run_scatter(self, call: Call) -> Array | None:
        try:
            return self._run(call)
        except MismatchedCallError as error:
            error.add_note(SCATTER_NOTE)
            raise

    def _announce(self, buffers: Buffers, root: int, options: Options) -> None:
        """Tells the other ranks of the block of a scatter, for which they have no destination either."""
        if self.size > 1:
            self._call(Collective.SCATTER, buffers, 0, options, root=root)  # refuses what is wrong before that
            block = buffers.need("dst")
            told = Block(block.dtype, block.shape, allocation_of(block) is not None)
            announced(self._all, buffers.operation, root, told, options.get("timeout"))

    def _of_announced(
        self, operation: str, root: int, options: Options, shape: tuple[int, ...] | None = None
    ) -> Buffers:
        """The destination of a scatter: of the block that the root tells of, or of `shape`."""
        empty = Buffers(operation, None, None)
        self._call(Collective.SCATTER, empty, 0, options, root=root)
        block = announced(self._all, operation, root, None, options.get("timeout"))
        shape = block.shape if shape is None else shape
        if block.allocated:
            with contextlib.suppress(NoMemoryError):
                return Buffers(operation, None, self._all.empty(shape, block.dtype))
        return Buffers(operation, None, np.empty(shape, block.dtype))

    def _alltoall(self, src: Any, dst: Any, options: Options) -> Call:
        buffers = Buffers("alltoall", src, dst)
        name = "dst" if buffers.in_place else "src"
        array = buffers.need(name)
        buffers.allocate(array.shape)
        return self._call(Collective.ALLTOALL, buffers, self._blocks("alltoall", name, array), options)
