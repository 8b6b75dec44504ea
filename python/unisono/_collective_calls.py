# Generated from spec/ by `python -m spec.generator`. Do not edit.
"""Collectives of a communicator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ._arguments import AnyOp
from ._arrays import Array
from ._options import IN_PLACE, Options
from ._order import once_ordered
from ._prepared import SCATTER_NOTE, Form, PreparedCalls, Shape, Uses
from ._signatures import options_by_name
from ._spec import Collective
from .errors import MismatchedCallError
from .request import Request

# What they use of src and dst: on the root and elsewhere, then the same in place.
_BCAST = Shape(Collective.BCAST, Form(Uses("", "n"), Uses("", "n")), Form(Uses("", "n"), Uses("", "n")))
_REDUCE = Shape(
    Collective.REDUCE, Form(Uses("n", "n"), Uses("n", "")), Form(Uses("", "n"), Uses("n", "")), reduces=True
)
_ALLREDUCE = Shape(
    Collective.ALLREDUCE, Form(Uses("n", "n"), Uses("n", "n")), Form(Uses("", "n"), Uses("", "n")), reduces=True
)
_REDUCE_SCATTER = Shape(
    Collective.REDUCE_SCATTER,
    Form(Uses("all", "n"), Uses("all", "n")),
    Form(Uses("", "all"), Uses("", "all")),
    reduces=True,
)
_ALLGATHER = Shape(
    Collective.ALLGATHER, Form(Uses("n", "all"), Uses("n", "all")), Form(Uses("", "all"), Uses("", "all"))
)
_GATHER = Shape(Collective.GATHER, Form(Uses("n", "all"), Uses("n", "")), Form(Uses("", "all"), Uses("n", "")))
_SCATTER = Shape(Collective.SCATTER, Form(Uses("all", "n"), Uses("", "n")), Form(Uses("all", ""), Uses("", "n")))
_GATHERV = Shape(
    Collective.GATHERV,
    Form(Uses("own", "received"), Uses("own", "")),
    Form(Uses("", "received"), Uses("own", "")),
    counts_at_root=True,
)
_SCATTERV = Shape(
    Collective.SCATTERV,
    Form(Uses("sent", "own"), Uses("", "own")),
    Form(Uses("sent", ""), Uses("", "own")),
    counts_at_root=True,
)
_ALLGATHERV = Shape(
    Collective.ALLGATHERV,
    Form(Uses("own", "received"), Uses("own", "received")),
    Form(Uses("", "received"), Uses("", "received")),
)
_ALLTOALL = Shape(
    Collective.ALLTOALL, Form(Uses("all", "all"), Uses("all", "all")), Form(Uses("", "all"), Uses("", "all"))
)
_ALLTOALLV = Shape(
    Collective.ALLTOALLV,
    Form(Uses("sent", "received"), Uses("sent", "received")),
    Form(Uses("", "received"), Uses("", "received")),
)
_SCAN = Shape(Collective.SCAN, Form(Uses("n", "n"), Uses("n", "n")), Form(Uses("", "n"), Uses("", "n")), reduces=True)
_EXSCAN = Shape(
    Collective.EXSCAN,
    Form(Uses("n", "n"), Uses("n", "n")),
    Form(Uses("", "n"), Uses("", "n")),
    reduces=True,
    partial=True,
)
_BARRIER = Shape(Collective.BARRIER, Form(Uses("", ""), Uses("", "")), Form(Uses("", ""), Uses("", "")))
_REDUCE_SCATTERV = Shape(
    Collective.REDUCE_SCATTERV,
    Form(Uses("received", "own"), Uses("received", "own")),
    Form(Uses("", "received"), Uses("", "received")),
    reduces=True,
)

# What `_core.Communicator.quick` takes: plain ints, so that a call compares no enumerators.
_QUICK_BCAST = int(Collective.BCAST)
_QUICK_REDUCE = int(Collective.REDUCE)
_QUICK_ALLREDUCE = int(Collective.ALLREDUCE)
_QUICK_REDUCE_SCATTER = int(Collective.REDUCE_SCATTER)
_QUICK_ALLGATHER = int(Collective.ALLGATHER)
_QUICK_GATHER = int(Collective.GATHER)
_QUICK_SCATTER = int(Collective.SCATTER)
_QUICK_GATHERV = int(Collective.GATHERV)
_QUICK_SCATTERV = int(Collective.SCATTERV)
_QUICK_ALLGATHERV = int(Collective.ALLGATHERV)
_QUICK_ALLTOALL = int(Collective.ALLTOALL)
_QUICK_ALLTOALLV = int(Collective.ALLTOALLV)
_QUICK_SCAN = int(Collective.SCAN)
_QUICK_EXSCAN = int(Collective.EXSCAN)
_QUICK_BARRIER = int(Collective.BARRIER)
_QUICK_REDUCE_SCATTERV = int(Collective.REDUCE_SCATTERV)


@options_by_name
class CollectiveCalls(PreparedCalls):
    """Collectives of a communicator."""

    def bcast(self, buffer: Any, root: int = 0, **options: Unpack[Options]) -> Array:
        """The root's buffer to every rank's buffer; all have the same number of elements.

        Args:
            buffer: What the root gives, and where it comes to stand on the others: n elements. Nobody may use it
                before the call has ended.
            root: The rank that gives or gets; equal on all ranks.

        """
        if not options and self._core.quick(_QUICK_BCAST, None, buffer, None, root, False):
            return buffer  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._prepared(_BCAST, None, buffer, options, root=root))

    def bcast_async(self, buffer: Any, root: int = 0, **options: Unpack[Options]) -> Request:
        """As `bcast`."""
        quick = self._quick_start(options, "bcast", _QUICK_BCAST, None, buffer, None, root, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_BCAST, None, buffer, options, root=root))

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
        """`op` over all ranks' src, into the root's dst. All have the same number of elements.

        Returns dst; None on the other ranks.

        Args:
            src: What this rank gives: n elements, but not on the root in place. It is only read.
            dst: Where its result comes to stand: n elements, on the root alone. Nobody may use it before the call
                has ended. None: it is made.
            op: The operator: its name, or one of the user's.
            root: The rank that gives or gets; equal on all ranks.
            in_place: On the root: its input stands in its dst, or its part of src stays where it is. The others' is
                ignored.

        """
        if not options and self._core.quick(_QUICK_REDUCE, src, dst, op, root, in_place):
            return dst if root == self.rank else None
        return self._run(self._prepared(_REDUCE, src, dst, options, op=op, root=root, in_place=in_place))

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
        quick = self._quick_start(options, "reduce", _QUICK_REDUCE, src, dst, op, root, in_place)
        if quick is not None:
            return quick
        return self._start(self._prepared(_REDUCE, src, dst, options, op=op, root=root, in_place=in_place))

    def allreduce(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over all ranks' src, into every rank's dst. All have the same number of elements.

        Args:
            src: What this rank gives: n elements, but not in place. It is only read.
            dst: Where its result comes to stand: n elements. Nobody may use it before the call has ended. None: it
                is made.
            op: The operator: its name, or one of the user's.

        """
        if dst is not None and not options and self._core.quick(_QUICK_ALLREDUCE, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        if dst is None and not options and (made := self._core.quick_new(_QUICK_ALLREDUCE, src, op)) is not None:
            return made
        return self._result(self._prepared(_ALLREDUCE, src, dst, options, op=op))

    def allreduce_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `allreduce`."""
        quick = self._quick_start(options, "allreduce", _QUICK_ALLREDUCE, src, dst, op, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_ALLREDUCE, src, dst, options, op=op))

    def reduce_scatter(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over all ranks' src, which has `size` blocks of n; block r into rank r's dst (n).

        In place, dst has `size` blocks and receives the result at its begin.

        Args:
            src: What this rank gives: `size` blocks of n elements, but not in place. It is only read.
            dst: Where its result comes to stand: n elements, in place `size` blocks of n elements. Nobody may use
                it before the call has ended. None: it is made.
            op: The operator: its name, or one of the user's.

        """
        if dst is not None and not options and self._core.quick(_QUICK_REDUCE_SCATTER, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._prepared(_REDUCE_SCATTER, src, dst, options, op=op))

    def reduce_scatter_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `reduce_scatter`."""
        quick = self._quick_start(options, "reduce_scatter", _QUICK_REDUCE_SCATTER, src, dst, op, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_REDUCE_SCATTER, src, dst, options, op=op))

    def allgather(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Every rank's src (n) into every rank's dst (size * n), by rank.

        In place, the input is block `rank` of dst.

        A dst that is made has the shape (size, *src.shape).

        Args:
            src: What this rank gives: n elements, but not in place. It is only read.
            dst: Where its result comes to stand: `size` blocks of n elements. Nobody may use it before the call has
                ended. None: it is made.

        """
        if dst is not None and not options and self._core.quick(_QUICK_ALLGATHER, src, dst, None, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        if dst is None and not options and (made := self._core.quick_new(_QUICK_ALLGATHER, src, None)) is not None:
            return made
        return self._result(self._prepared(_ALLGATHER, src, dst, options))

    def allgather_async(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `allgather`."""
        quick = self._quick_start(options, "allgather", _QUICK_ALLGATHER, src, dst, None, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_ALLGATHER, src, dst, options))

    def gather(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Array | None:
        """Every rank's src (n) into the root's dst (size * n), by rank.

        In place, the root's input is its own block of dst.

        Returns dst; None on the other ranks.

        Args:
            src: What this rank gives: n elements, but not on the root in place. It is only read.
            dst: Where its result comes to stand: `size` blocks of n elements, on the root alone. Nobody may use it
                before the call has ended. None: it is made.
            root: The rank that gives or gets; equal on all ranks.
            in_place: On the root: its input stands in its dst, or its part of src stays where it is. The others' is
                ignored.

        """
        if not options and self._core.quick(_QUICK_GATHER, src, dst, None, root, in_place):
            return dst if root == self.rank else None
        return self._run(self._prepared(_GATHER, src, dst, options, root=root, in_place=in_place))

    def gather_async(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Request:
        """As `gather`."""
        quick = self._quick_start(options, "gather", _QUICK_GATHER, src, dst, None, root, in_place)
        if quick is not None:
            return quick
        return self._start(self._prepared(_GATHER, src, dst, options, root=root, in_place=in_place))

    def scatter(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Array | None:
        """Block r of the root's src (size * n) into rank r's dst (n).

        In place, the root's block stays where it is.

        Ranks other than the root pass None as src. All ranks pass dst, or none does: it is then made on each, and the
        root first tells the others the elements and shape of a block, by a small bcast, so that even the start waits
        for it.

        Returns dst; None on the root in place.

        Args:
            src: What this rank gives: `size` blocks of n elements, on the root alone. It is only read.
            dst: Where its result comes to stand: n elements, but not on the root in place. Nobody may use it before
                the call has ended. None: it is made.
            root: The rank that gives or gets; equal on all ranks.
            in_place: On the root: its input stands in its dst, or its part of src stays where it is. The others' is
                ignored.

        """
        try:
            if not options and self._core.quick(_QUICK_SCATTER, src, dst, None, root, in_place):
                return None if self.rank == root and (in_place or dst is IN_PLACE) else dst
        except MismatchedCallError as error:
            error.add_note(SCATTER_NOTE)
            raise
        return self._run_noted(self._prepared(_SCATTER, src, dst, options, root=root, in_place=in_place))

    def scatter_async(
        self, src: Any, dst: Any = None, root: int = 0, *, in_place: bool = False, **options: Unpack[Options]
    ) -> Request:
        """As `scatter`."""
        quick = self._quick_start(options, "scatter", _QUICK_SCATTER, src, dst, None, root, in_place)
        if quick is not None:
            return quick
        return self._start(self._prepared(_SCATTER, src, dst, options, root=root, in_place=in_place))

    def gatherv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int] | None = None,
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Array | None:
        """Gathers counts[r] elements of rank r to displacements[r] of the root's dst.

        The root gives all counts; the others may leave them out. Displacements matter on the root.

        In place, the root's input is its own block of dst.

        Returns dst; None on the other ranks.

        Args:
            src: What this rank gives: this rank's count of elements, but not on the root in place. It is only read.
            dst: Where its result comes to stand: all blocks, as the counts say, on the root alone. Nobody may use
                it before the call has ended. None: it is made.
            counts: The elements of each rank's block. Ranks other than the root may pass None: the length of their
                src is theirs then.
            root: The rank that gives or gets; equal on all ranks.
            displacements: Where each rank's block begins, in elements. If None, one block stands behind the other.
            in_place: On the root: its input stands in its dst, or its part of src stays where it is. The others' is
                ignored.

        """
        if not options and self._core.quick_counted(
            _QUICK_GATHERV, src, dst, None, root, in_place, None, None, counts, displacements
        ):
            return dst if root == self.rank else None
        return self._run(
            self._prepared(
                _GATHERV, src, dst, options, root=root, displacements=displacements, in_place=in_place, counts=counts
            )
        )

    def gatherv_async(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int] | None = None,
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Request:
        """As `gatherv`."""
        quick = self._quick_start_counted(
            options, "gatherv", _QUICK_GATHERV, src, dst, None, root, in_place, None, None, counts, displacements
        )
        if quick is not None:
            return quick
        return self._start(
            self._prepared(
                _GATHERV, src, dst, options, root=root, displacements=displacements, in_place=in_place, counts=counts
            )
        )

    def scatterv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int] | None = None,
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Array | None:
        """Scatters counts[r] elements from displacements[r] of the root's src to rank r.

        The root gives all counts; the others may leave them out. Displacements matter on the root.

        In place, the root's block stays where it is.

        All ranks pass dst, or none does, as in `scatter`.

        Returns dst; None on the root in place.

        Args:
            src: What this rank gives: all blocks, as the counts say, on the root alone. It is only read.
            dst: Where its result comes to stand: this rank's count of elements, but not on the root in place.
                Nobody may use it before the call has ended. None: it is made.
            counts: The elements of each rank's block. Ranks other than the root may pass None: the length of their
                dst is theirs then.
            root: The rank that gives or gets; equal on all ranks.
            displacements: Where each rank's block begins, in elements. If None, one block stands behind the other.
            in_place: On the root: its input stands in its dst, or its part of src stays where it is. The others' is
                ignored.

        """
        try:
            if not options and self._core.quick_counted(
                _QUICK_SCATTERV, src, dst, None, root, in_place, counts, displacements, None, None
            ):
                return None if self.rank == root and (in_place or dst is IN_PLACE) else dst
        except MismatchedCallError as error:
            error.add_note(SCATTER_NOTE)
            raise
        return self._run_noted(
            self._prepared(
                _SCATTERV, src, dst, options, root=root, displacements=displacements, in_place=in_place, counts=counts
            )
        )

    def scatterv_async(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int] | None = None,
        root: int = 0,
        *,
        displacements: Sequence[int] | None = None,
        in_place: bool = False,
        **options: Unpack[Options],
    ) -> Request:
        """As `scatterv`."""
        quick = self._quick_start_counted(
            options, "scatterv", _QUICK_SCATTERV, src, dst, None, root, in_place, counts, displacements, None, None
        )
        if quick is not None:
            return quick
        return self._start(
            self._prepared(
                _SCATTERV, src, dst, options, root=root, displacements=displacements, in_place=in_place, counts=counts
            )
        )

    def allgatherv(
        self,
        src: Any,
        dst: Any,
        counts: Sequence[int],
        *,
        displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """As `gatherv`, into every rank's dst.

        Args:
            src: What this rank gives: this rank's count of elements, but not in place. It is only read.
            dst: Where its result comes to stand: all blocks, as the counts say. Nobody may use it before the call
                has ended. None: it is made.
            counts: The elements of each rank's block; equal on all ranks.
            displacements: Where each rank's block begins, in elements. If None, one block stands behind the other.

        """
        if not options and self._core.quick_counted(
            _QUICK_ALLGATHERV, src, dst, None, None, False, None, None, counts, displacements
        ):
            return dst  # type: ignore[no-any-return]  # an array, as `quick_counted` has seen
        return self._result(self._prepared(_ALLGATHERV, src, dst, options, displacements=displacements, counts=counts))

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
        quick = self._quick_start_counted(
            options, "allgatherv", _QUICK_ALLGATHERV, src, dst, None, None, False, None, None, counts, displacements
        )
        if quick is not None:
            return quick
        return self._start(self._prepared(_ALLGATHERV, src, dst, options, displacements=displacements, counts=counts))

    def alltoall(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Array:
        """Block j of rank i's src into block i of rank j's dst; both have `size` blocks.

        Args:
            src: What this rank gives: `size` blocks of n elements, but not in place. It is only read.
            dst: Where its result comes to stand: `size` blocks of n elements. Nobody may use it before the call has
                ended. None: it is made.

        """
        if dst is not None and not options and self._core.quick(_QUICK_ALLTOALL, src, dst, None, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._prepared(_ALLTOALL, src, dst, options))

    def alltoall_async(self, src: Any, dst: Any = None, **options: Unpack[Options]) -> Request:
        """As `alltoall`."""
        quick = self._quick_start(options, "alltoall", _QUICK_ALLTOALL, src, dst, None, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_ALLTOALL, src, dst, options))

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

        In place, what a pair exchanges has one size, given for what is received. The ranks then first agree on their
        largest block, so that even the start waits for all of them, unless every rank gives the same bound of all
        blocks as count.

        In place, send_counts is None.

        Args:
            src: What this rank gives: all blocks, as the counts say, but not in place. It is only read.
            dst: Where its result comes to stand: all blocks, as the counts say. Nobody may use it before the call
                has ended. None: it is made.
            send_counts: The elements of the block for each rank.
            recv_counts: The elements of the block of each rank.
            send_displacements: Where each rank's block begins, in elements. If None, one block stands behind the
                other.
            recv_displacements: Where each rank's block begins, in elements. If None, one block stands behind the
                other.

        """
        if not options and self._core.quick_counted(
            _QUICK_ALLTOALLV,
            src,
            dst,
            None,
            None,
            False,
            send_counts,
            send_displacements,
            recv_counts,
            recv_displacements,
        ):
            return dst  # type: ignore[no-any-return]  # an array, as `quick_counted` has seen
        return self._result(
            self._exchanged(
                _ALLTOALLV, src, dst, options, send_counts, recv_counts, send_displacements, recv_displacements
            )
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
        quick = self._quick_start_counted(
            options,
            "alltoallv",
            _QUICK_ALLTOALLV,
            src,
            dst,
            None,
            None,
            False,
            send_counts,
            send_displacements,
            recv_counts,
            recv_displacements,
        )
        if quick is not None:
            return quick
        return self._start(
            self._exchanged(
                _ALLTOALLV, src, dst, options, send_counts, recv_counts, send_displacements, recv_displacements
            )
        )

    def scan(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over src of ranks 0 .. rank, into dst.

        Args:
            src: What this rank gives: n elements, but not in place. It is only read.
            dst: Where its result comes to stand: n elements. Nobody may use it before the call has ended. None: it
                is made.
            op: The operator: its name, or one of the user's.

        """
        if dst is not None and not options and self._core.quick(_QUICK_SCAN, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        if dst is None and not options and (made := self._core.quick_new(_QUICK_SCAN, src, op)) is not None:
            return made
        return self._result(self._prepared(_SCAN, src, dst, options, op=op))

    def scan_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `scan`."""
        quick = self._quick_start(options, "scan", _QUICK_SCAN, src, dst, op, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_SCAN, src, dst, options, op=op))

    def exscan(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Array:
        """`op` over src of ranks 0 .. rank-1, into dst; rank 0's dst stays as it is.

        Rank 0's dst is zeros if it is allocated here.

        Args:
            src: What this rank gives: n elements, but not in place. It is only read.
            dst: Where its result comes to stand: n elements. Nobody may use it before the call has ended. None: it
                is made.
            op: The operator: its name, or one of the user's.

        """
        if dst is not None and not options and self._core.quick(_QUICK_EXSCAN, src, dst, op, None, False):
            return dst  # type: ignore[no-any-return]  # an array, as `quick` has seen
        return self._result(self._prepared(_EXSCAN, src, dst, options, op=op))

    def exscan_async(self, src: Any, dst: Any = None, op: AnyOp = "sum", **options: Unpack[Options]) -> Request:
        """As `exscan`."""
        quick = self._quick_start(options, "exscan", _QUICK_EXSCAN, src, dst, op, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_EXSCAN, src, dst, options, op=op))

    def barrier(self, **options: Unpack[Options]) -> None:
        """No rank returns before every rank has called."""
        if not options and self._core.quick(_QUICK_BARRIER, None, None, None, None, False):
            return
        self._run(self._prepared(_BARRIER, None, None, options))

    def barrier_async(self, **options: Unpack[Options]) -> Request:
        """As `barrier`."""
        quick = self._quick_start(options, "barrier", _QUICK_BARRIER, None, None, None, None, False)
        if quick is not None:
            return quick
        return self._start(self._prepared(_BARRIER, None, None, options))

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
        """`op` over all ranks' src; the counts[r] elements at displacements[r] into rank r's dst.

        Every rank gives all counts.

        In place, dst has all blocks and receives the result at its begin.

        Args:
            src: What this rank gives: all blocks, as the counts say, but not in place. It is only read.
            dst: Where its result comes to stand: this rank's count of elements, in place all blocks, as the counts
                say. Nobody may use it before the call has ended. None: it is made.
            counts: The elements of each rank's block; equal on all ranks.
            op: The operator: its name, or one of the user's.
            displacements: Where each rank's block begins, in elements. If None, one block stands behind the other.

        """
        if not options and self._core.quick_counted(
            _QUICK_REDUCE_SCATTERV, src, dst, op, None, False, None, None, counts, displacements
        ):
            return dst  # type: ignore[no-any-return]  # an array, as `quick_counted` has seen
        return self._result(
            self._prepared(_REDUCE_SCATTERV, src, dst, options, op=op, displacements=displacements, counts=counts)
        )

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
        quick = self._quick_start_counted(
            options,
            "reduce_scatterv",
            _QUICK_REDUCE_SCATTERV,
            src,
            dst,
            op,
            None,
            False,
            None,
            None,
            counts,
            displacements,
        )
        if quick is not None:
            return quick
        return self._start(
            self._prepared(_REDUCE_SCATTERV, src, dst, options, op=op, displacements=displacements, counts=counts)
        )
