"""Collectives with a count for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ._arguments import AnyOp, func_of
from ._arrays import Array, elements_of
from ._buffers import NO_LAYOUT, Buffers, Call, Layout
from ._collectives import SCATTER_NOTE, CollectiveCalls
from ._options import IN_PLACE, Options
from ._order import once_ordered
from ._signatures import options_by_name
from ._spec import Collective
from .errors import InvalidDatatypeError, MismatchedCallError
from .request import Request

# What `_core.Communicator.quick_counted` takes.
_GATHERV = int(Collective.GATHERV)
_SCATTERV = int(Collective.SCATTERV)
_ALLGATHERV = int(Collective.ALLGATHERV)
_REDUCE_SCATTERV = int(Collective.REDUCE_SCATTERV)
_ALLTOALLV = int(Collective.ALLTOALLV)


@options_by_name
class CountedCalls(CollectiveCalls):
    """Collectives of a communicator, with a count for each rank."""

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
        if not options and self._core.quick_counted(
            _GATHERV, src, dst, None, root, in_place, None, None, counts, displacements
        ):
            return dst if root == self.rank else None
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
        try:
            if not options and self._core.quick_counted(
                _SCATTERV, src, dst, None, root, in_place, counts, displacements, None, None
            ):
                return None if self.rank == root and (in_place or dst is IN_PLACE) else dst
        except MismatchedCallError as error:
            error.add_note(SCATTER_NOTE)
            raise
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
        if not options and self._core.quick_counted(
            _ALLGATHERV, src, dst, None, None, False, None, None, counts, displacements
        ):
            return dst  # type: ignore[no-any-return]  # an array, as `quick_counted` has seen
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

    @once_ordered("src", "counts", "dst", "op", optional=True)
    def reduce_scatterv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        op: AnyOp = "sum",
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """`op` over all ranks' src; the counts[r] elements at displacements[r] (packed if None) into rank r's dst.

        Every rank gives all counts. In place (src=IN_PLACE), dst has all blocks and receives the result at its begin.
        """
        if not options and self._core.quick_counted(
            _REDUCE_SCATTERV, src, dst, op, None, False, None, None, counts, displacements
        ):
            return dst  # type: ignore[no-any-return]  # an array, as `quick_counted` has seen
        return self._result(self._reduce_scatterv(src, dst, counts, op, displacements, options))

    @once_ordered("src", "counts", "dst", "op", optional=True)
    def reduce_scatterv_async(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        op: AnyOp = "sum",
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `reduce_scatterv`."""
        return self._start(self._reduce_scatterv(src, dst, counts, op, displacements, options))

    @once_ordered("src", "send_counts", "dst", "recv_counts")
    def alltoallv(
        self,
        src: Any,
        dst: Any,
        send_counts: Sequence[int] | None,
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
        if not options and self._core.quick_counted(
            _ALLTOALLV, src, dst, None, None, False, send_counts, send_displacements, recv_counts, recv_displacements
        ):
            return dst  # type: ignore[no-any-return]  # an array, as `quick_counted` has seen
        return self._result(
            self._alltoallv(src, dst, send_counts, recv_counts, send_displacements, recv_displacements, options)
        )

    @once_ordered("src", "send_counts", "dst", "recv_counts")
    def alltoallv_async(
        self,
        src: Any,
        dst: Any,
        send_counts: Sequence[int] | None,
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `alltoallv`."""
        return self._start(
            self._alltoallv(src, dst, send_counts, recv_counts, send_displacements, recv_displacements, options)
        )

    @once_ordered("src", "send_counts", "send_dtypes", "dst", "recv_counts", "recv_dtypes")
    def alltoallw(
        self,
        src: Any,
        dst: Any,
        send_counts: Sequence[int] | None,
        send_dtypes: Sequence[npt.DTypeLike] | None,
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
                src, dst, send_counts, send_dtypes, recv_counts, recv_dtypes, send_displacements, recv_displacements,
                options,
            )
        )  # fmt: skip

    @once_ordered("src", "send_counts", "send_dtypes", "dst", "recv_counts", "recv_dtypes")
    def alltoallw_async(
        self,
        src: Any,
        dst: Any,
        send_counts: Sequence[int] | None,
        send_dtypes: Sequence[npt.DTypeLike] | None,
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
                src, dst, send_counts, send_dtypes, recv_counts, recv_dtypes, send_displacements, recv_displacements,
                options,
            )
        )  # fmt: skip

    def _gatherv(
        self, src: Any, dst: Any, counts: Any, root: int, displacements: Any, in_place: bool, options: Options
    ) -> Call:
        is_root = self.rank == root
        layout = self._layout("gatherv", "", counts, displacements if is_root else None)
        buffers = Buffers("gatherv", src, dst if is_root else None, in_place=in_place)
        if is_root and not buffers.in_place:
            buffers.need("src")
            buffers.allocate((layout.extent(),))
        buffers.need("dst" if is_root else "src")
        return self._call(Collective.GATHERV, buffers, 0, options, root=root, receives=layout)

    def _scatterv(
        self, src: Any, dst: Any, counts: Any, root: int, displacements: Any, in_place: bool, options: Options
    ) -> Call:
        is_root = self.rank == root
        layout = self._layout("scatterv", "", counts, displacements if is_root else None)
        own = ((layout.counts or [0] * self.size)[self.rank],)
        buffers = Buffers("scatterv", src if is_root else None, dst, in_place=in_place)
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

    def _allgatherv(self, src: Any, dst: Any, counts: Any, displacements: Any, options: Options) -> Call:
        layout = self._layout("allgatherv", "", counts, displacements)
        buffers = Buffers("allgatherv", src, dst)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate((layout.extent(),))
        buffers.need("dst")
        return self._call(Collective.ALLGATHERV, buffers, 0, options, receives=layout)

    def _reduce_scatterv(
        self, src: Any, dst: Any, counts: Any, op: AnyOp, displacements: Any, options: Options
    ) -> Call:
        layout = self._layout("reduce_scatterv", "", counts, displacements)
        buffers = Buffers("reduce_scatterv", src, dst, computes=True)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate(((layout.counts or [0] * self.size)[self.rank],))
        buffers.need("dst")
        return self._call(
            Collective.REDUCE_SCATTERV, buffers, 0, options, op=func_of("reduce_scatterv", op), receives=layout
        )

    def _alltoallv(
        self,
        src: Any,
        dst: Any,
        send_counts: Any,
        recv_counts: Any,
        send_displacements: Any,
        recv_displacements: Any,
        options: Options,
    ) -> Call:
        receives = self._layout("alltoallv", "recv_", recv_counts, recv_displacements)
        sends = self._layout("alltoallv", "send_", send_counts, send_displacements)
        buffers = Buffers("alltoallv", src, dst)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate((receives.extent(),))
        buffers.need("dst")
        return self._call(Collective.ALLTOALLV, buffers, 0, options, sends=sends, receives=receives)

    def _alltoallw(
        self,
        src: Any,
        dst: Any,
        send_counts: Any,
        send_dtypes: Any,
        recv_counts: Any,
        recv_dtypes: Any,
        send_displacements: Any,
        recv_displacements: Any,
        options: Options,
    ) -> Call:
        receives = self._layout("alltoallw", "recv_", recv_counts, recv_displacements)
        sends = self._layout("alltoallw", "send_", send_counts, send_displacements)
        buffers = Buffers("alltoallw", src, dst, typed=False)
        buffers.need("dst")
        if not buffers.in_place:
            buffers.need("src")
        sends, send_datatypes = (NO_LAYOUT, None) if buffers.in_place else self._typed("send", sends, send_dtypes)
        receives, recv_datatypes = self._typed("recv", receives, recv_dtypes)
        return self._call(
            Collective.ALLTOALLV,
            buffers,
            0,
            options,
            sends=sends,
            receives=receives,
            datatypes=(send_datatypes, recv_datatypes),
        )

    def _typed(self, side: str, layout: Layout, given: Any) -> tuple[Layout, list[int]]:
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
