"""Exchanges along the edges of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ._arguments import integer, integers
from ._arrays import Array
from ._buffers import Buffers, Call
from ._calls import Calls
from ._options import Options
from ._order import once_ordered
from ._signatures import options_by_name
from ._spec import Collective
from .errors import InvalidArgumentError, InvalidCountError
from .graph import Graph
from .request import Request


@options_by_name
class NeighbourCalls(Calls):
    """Calls of a communicator that follow a graph."""

    def graph(self, sources: Sequence[int], destinations: Sequence[int]) -> Graph:
        """Collective. A graph of the ranks: edges come here from `sources`, and go from here to `destinations`.

        A rank may stand in a list several times, and name itself. Every edge is named at both of its ends; if they
        disagree, every rank raises MismatchedCallError, which names both.
        """
        ends = [integers("graph", name, given) or [] for name, given in
                (("sources", sources), ("destinations", destinations))]  # fmt: skip
        for name, given in zip(("sources", "destinations"), ends, strict=True):
            for position, rank in enumerate(given):
                integer("graph", f"{name}[{position}]", rank)
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

    @once_ordered("graph", "src", "send_counts", "dst", "recv_counts")
    def neighbour_alltoallv(
        self,
        graph: Graph,
        src: Any,
        dst: Any,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """As `neighbour_alltoall`, with send_counts[j] elements to destination j and recv_counts[i] from source i."""
        return self._result(
            self._neighbour_alltoallv(
                graph, src, dst, send_counts, recv_counts, send_displacements, recv_displacements, options
            )
        )

    @once_ordered("graph", "src", "send_counts", "dst", "recv_counts")
    def neighbour_alltoallv_async(
        self,
        graph: Graph,
        src: Any,
        dst: Any,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        *,
        send_displacements: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> Request:
        """As `neighbour_alltoallv`."""
        return self._start(
            self._neighbour_alltoallv(
                graph, src, dst, send_counts, recv_counts, send_displacements, recv_displacements, options
            )
        )

    def _edges(self, operation: str, graph: Any) -> tuple[int, int]:
        """The numbers of sources and destinations."""
        if not isinstance(graph, Graph):
            raise InvalidArgumentError(
                f"{operation}: graph is a {type(graph).__name__}; pass what the communicator's graph() has made"
            )
        return len(graph.sources), len(graph.destinations)

    def _neighbour_allgather(self, graph: Any, src: Any, dst: Any, options: Options) -> Call:
        sources, _ = self._edges("neighbour_allgather", graph)
        buffers = Buffers("neighbour_allgather", src, dst)
        source = buffers.need("src")
        buffers.allocate((sources, *source.shape))
        return self._call(Collective.ALLGATHER, buffers, source.size, options, graph=graph)

    def _neighbour_allgatherv(
        self, graph: Any, src: Any, dst: Any, counts: Any, displacements: Any, options: Options
    ) -> Call:
        sources, _ = self._edges("neighbour_allgatherv", graph)
        layout = self._layout("neighbour_allgatherv", "", counts, displacements, sources, "sources")
        buffers = Buffers("neighbour_allgatherv", src, dst)
        source = buffers.need("src")
        buffers.allocate((layout.extent(),))
        return self._call(Collective.ALLGATHERV, buffers, source.size, options, receives=layout, graph=graph)

    def _neighbour_alltoall(self, graph: Any, src: Any, dst: Any, options: Options) -> Call:
        operation = "neighbour_alltoall"
        sources, destinations = self._edges(operation, graph)
        buffers = Buffers(operation, src, dst)
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
        dst: Any,
        send_counts: Any,
        recv_counts: Any,
        send_displacements: Any,
        recv_displacements: Any,
        options: Options,
    ) -> Call:
        operation = "neighbour_alltoallv"
        sources, destinations = self._edges(operation, graph)
        sends = self._layout(operation, "send_", send_counts, send_displacements, destinations, "destinations")
        receives = self._layout(operation, "recv_", recv_counts, recv_displacements, sources, "sources")
        buffers = Buffers(operation, src, dst)
        buffers.need("src")
        buffers.allocate((receives.extent(),))
        return self._call(Collective.ALLTOALLV, buffers, 0, options, sends=sends, receives=receives, graph=graph)
