"""Exchanges with a datatype for each pair, which engines know as alltoallv of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ._arrays import Array, elements_of
from ._buffers import NO_LAYOUT, Buffers, Call, Layout
from ._collective_calls import CollectiveCalls
from ._options import Options
from ._order import once_ordered
from ._signatures import options_by_name
from ._spec import MAX_COUNT, Collective
from ._texts import shown
from .errors import InvalidCountError, InvalidDatatypeError
from .request import Request


@options_by_name
class TypedCalls(CollectiveCalls):
    """Calls of a communicator that are made of collectives."""

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
            raise InvalidDatatypeError(f"alltoallw: {name} is {shown(given)}; pass a dtype for each rank") from failure
        elements = [elements_of("alltoallw", f"{name}[{i}]", dtype, computes=False) for i, dtype in enumerate(dtypes)]
        counts = layout.counts
        if counts is not None and len(counts) == len(elements):
            for rank, (count, element) in enumerate(zip(counts, elements, strict=True)):
                if count * element.own_bytes > MAX_COUNT:
                    raise InvalidCountError(
                        f"alltoallw: {side}_counts[{rank}] is {count}; allowed are 0 to "
                        f"{MAX_COUNT // element.own_bytes} elements of {dtypes[rank]}"
                    )
            counts = [count * max(1, element.own_bytes) for count, element in zip(counts, elements, strict=True)]
        return layout._replace(counts=counts), [int(element.datatype) for element in elements]
