"""Graphs: which ranks of a communicator are neighbours."""

from __future__ import annotations

from . import _core


class Graph:
    """Edges between ranks, as `Communicator.graph` makes it. Of the communicator that made it only."""

    def __init__(self, core: _core.Graph, sources: list[int], destinations: list[int]) -> None:
        self._core = core
        self._sources = tuple(sources)
        self._destinations = tuple(destinations)

    @property
    def sources(self) -> tuple[int, ...]:
        """The ranks from which edges come, in the order in which blocks arrive in dst."""
        return self._sources

    @property
    def destinations(self) -> tuple[int, ...]:
        """The ranks to which edges go, in the order of the blocks of src."""
        return self._destinations

    def __repr__(self) -> str:
        return f"<unisono.Graph: edges from {list(self._sources)}, to {list(self._destinations)}>"
