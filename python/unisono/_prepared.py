"""Makes the call of any collective out of what its entry in spec/collectives.yaml says of its buffers."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from ._announce import Block, announced
from ._arguments import AnyOp, func_of
from ._arrays import Array, allocation_of
from ._buffers import NO_LAYOUT, Buffers, Call, Layout
from ._operators import LoadedOperator, OperatorCalls
from ._options import IN_PLACE, Options
from ._spec import Collective, Func
from .errors import InvalidArgumentError, InvalidCountError, MismatchedCallError, NoMemoryError
from .operator import Operator
from .stream import Stream, is_streamed, streamed

SCATTER_NOTE = "Of a scatter all ranks pass dst, or none does: the root then begins with a bcast."


class Uses(NamedTuple):
    """Which parts of src and dst a rank uses: n, all, own, sent, received, or nothing."""

    src: str
    dst: str


class Form(NamedTuple):
    """What a collective uses of its buffers, on the root and on all others."""

    root: Uses
    elsewhere: Uses


class Shape(NamedTuple):
    """What is known of a collective's arguments."""

    collective: Collective
    plain: Form
    in_place: Form
    reduces: bool = False
    #: The root knows all counts, and the others need know their own only.
    counts_at_root: bool = False
    #: On some rank the result is not written, so that a destination made here is zero at first.
    partial: bool = False
    #: An input stands in dst, not in place alone, so that dst is always given.
    reads_dst: bool = False


class PreparedCalls(OperatorCalls):
    """Makes calls of collectives, for the methods that are generated."""

    def _prepared(
        self,
        shape: Shape,
        src: Any,
        dst: Any,
        options: Options,
        *,
        op: AnyOp | None = None,
        root: int = 0,
        in_place: bool = False,
        counts: Any = None,
        displacements: Any = None,
    ) -> Call:
        """A call of a collective whose ranks, or whose root, know all counts, or that has none."""
        name = shape.collective.name.lower()
        is_root = self.rank == root
        plain, own_place = (form.root if is_root else form.elsewhere for form in (shape.plain, shape.in_place))
        layout = NO_LAYOUT
        own_only = counts is None and not is_root and shape.counts_at_root
        if (counted := {"own", "sent", "received"} & {*plain, *own_place}) and not own_only:
            displaced = "sent" in counted or "received" in counted
            layout = self._layout(name, "", counts, displacements if displaced else None)
        own = ((layout.counts or [0] * self.size)[self.rank],) if counted and not own_only else None
        if is_streamed(src, dst):
            placed = in_place or src is IN_PLACE or dst is IN_PLACE
            streams, n = streamed(
                name,
                src,
                dst,
                own_place if placed else plain,
                self.size,
                None if not own_only else self._own_count(name, src, dst),
                computes=shape.reduces,
                in_place=placed,
                dst_name="buffer" if shape.collective == Collective.BCAST else "dst",
            )
            return self._counted(shape, streams, n, options, op, root, layout)
        buffers = Buffers(
            name,
            src if plain.src or own_place.src else None,
            dst if plain.dst or own_place.dst else None,
            in_place=in_place,
            computes=shape.reduces,
            element_bytes=op.element_bytes if isinstance(op, Operator) else 0,
            dst_name="buffer" if shape.collective == Collective.BCAST else "dst",
        )
        uses = own_place if buffers.in_place else plain
        # The root alone knows what the others get: it tells them, if nobody has a destination.
        away = shape.plain.elsewhere
        tells = away.src == "" != shape.plain.root.src and away.dst != "" and not shape.reads_dst
        if tells and not is_root and dst is None and not in_place:
            if own_only:
                raise InvalidArgumentError(
                    f"{name}: dst and counts are both None; pass dst, whose length is the count of this rank, or the "
                    "counts of all ranks"
                )
            buffers = self._of_announced(shape.collective, name, root, options, own)
        count = 0
        if uses.src:
            source = buffers.need("src")
            if not counted:
                count = self._count_of(name, "src", source, uses.src)
            if uses.dst and not shape.reads_dst:
                made = buffers.dst is None
                extent = own if own and uses.dst == "own" else (layout.extent(),)
                buffers.allocate(extent if counted else self._result_shape(source, uses))
                if made and shape.partial:
                    buffers.need("dst").fill(0)
                if made and tells:
                    self._announce(shape.collective, buffers, root, options)
        if uses.dst:
            result = buffers.need("dst", " for the block of this rank" if tells and not is_root else "")
            if not counted and not uses.src:
                count = self._count_of(name, "dst", result, uses.dst)
        if own_only:
            count = buffers.need("src" if uses.src else "dst").size
        return self._counted(shape, buffers, count, options, op, root, layout)

    def _own_count(self, operation: str, src: Any, dst: Any) -> int:
        """The count of a rank that knows no other's, of a call with a stream."""
        for end in (src, dst):
            if isinstance(end, Stream) and end.count is not None:
                return end.count
        raise InvalidCountError(
            f"{operation}: no count is known; give that of this rank, as in unisono.Stream(0, 10), or counts"
        )

    def _counted(
        self,
        shape: Shape,
        buffers: Buffers,
        count: int,
        options: Options,
        op: AnyOp | None,
        root: int,
        layout: Layout,
    ) -> Call:
        """A call whose buffers are known."""
        name = shape.collective.name.lower()
        if buffers.own_bytes and isinstance(op, LoadedOperator):
            return self._by_hand(shape.collective, buffers, options, op, root)
        sends = "sent" in {part for form in (shape.plain.root, shape.plain.elsewhere) for part in form}
        return self._call(
            shape.collective,
            buffers,
            count,
            options,
            op=Func.NONE if op is None else func_of(name, op),
            root=root,
            sends=layout if sends else NO_LAYOUT,
            receives=NO_LAYOUT if sends else layout,
        )

    def _by_hand(
        self, collective: Collective, buffers: Buffers, options: Options, op: LoadedOperator, root: int
    ) -> Call:
        """A reduction of elements that no datatype is as large as."""
        name = buffers.operation
        func_of(name, op)  # a freed operator has none
        if rest := options.keys() - {"timeout"}:
            raise InvalidArgumentError(
                f"{name}: elements of {op.element_bytes} bytes are folded without {', '.join(sorted(rest))}; leave "
                f"that out"
            )
        if buffers.in_place and collective == Collective.REDUCE_SCATTER:
            raise InvalidArgumentError(
                f"{name}: elements of {op.element_bytes} bytes are not folded in place; pass src and dst"
            )
        call = self._call(collective, buffers, 0, options, op=Func.NONE, root=root)
        run = self._gathered_fold(collective, op, buffers, root, options.get("timeout"))
        return call._replace(by_hand=run)

    def _exchanged(
        self,
        shape: Shape,
        src: Any,
        dst: Any,
        options: Options,
        send_counts: Any,
        recv_counts: Any,
        send_displacements: Any,
        recv_displacements: Any,
        op: AnyOp | None = None,
    ) -> Call:
        """A call of a collective whose ranks know the counts of what they send and of what they receive."""
        name = shape.collective.name.lower()
        receives = self._layout(name, "recv_", recv_counts, recv_displacements)
        sends = self._layout(name, "send_", send_counts, send_displacements)
        func = Func.NONE if op is None else func_of(name, op)
        if is_streamed(src, dst):
            buffers, _ = streamed(name, src, dst, ("sent", "received"), self.size, computes=shape.reduces)
            if buffers.dst_port < 0 and buffers.dst is None:
                raise InvalidArgumentError(f"{name}: dst is missing; pass a buffer or a stream")
            return self._call(shape.collective, buffers, 0, options, op=func, sends=sends, receives=receives)
        own = op.element_bytes if isinstance(op, Operator) else 0
        buffers = Buffers(name, src, dst, computes=shape.reduces, element_bytes=own)
        if not buffers.in_place:
            buffers.need("src")
            buffers.allocate((receives.extent(),))
        buffers.need("dst")
        return self._call(shape.collective, buffers, 0, options, op=func, sends=sends, receives=receives)

    def _count_of(self, operation: str, name: str, array: Array, part: str) -> int:
        """The count of a call, from the part of a buffer that an array is."""
        return self._blocks(operation, name, array) if part == "all" else array.size

    def _result_shape(self, source: Array, uses: Uses) -> tuple[int, ...]:
        """The shape of a destination that is made for a source."""
        if uses.src == uses.dst:
            return source.shape
        return (self.size, *source.shape) if uses.dst == "all" else self._block_shape(source)

    def _run_noted(self, call: Call) -> Array | None:
        """Runs a call of which all ranks pass a destination, or none does."""
        try:
            return self._run(call)
        except MismatchedCallError as error:
            error.add_note(SCATTER_NOTE)
            raise

    def _announce(self, collective: Collective, buffers: Buffers, root: int, options: Options) -> None:
        """Tells the other ranks of their blocks, for which they have no destination either."""
        if self.size > 1:
            self._call(collective, buffers, 0, options, root=root)  # refuses what is wrong before that
            block = buffers.need("dst")
            told = Block(block.dtype, block.shape, allocation_of(block) is not None)
            announced(self._all, buffers.operation, root, told, options.get("timeout"))

    def _of_announced(
        self, collective: Collective, operation: str, root: int, options: Options, shape: tuple[int, ...] | None
    ) -> Buffers:
        """The destination of a block: of the elements and shape that the root tells of, or of `shape`."""
        empty = Buffers(operation, None, None)
        self._call(collective, empty, 0, options, root=root)
        block = announced(self._all, operation, root, None, options.get("timeout"))
        shape = block.shape if shape is None else shape
        if block.allocated:
            with contextlib.suppress(NoMemoryError):
                return Buffers(operation, None, self._all.empty(shape, block.dtype))
        return Buffers(operation, None, np.empty(shape, block.dtype))
