"""Tiles of A: node i has a share of the rows, and tile (i, j) holds their entries in node j's columns.

A placement says of each tile who multiplies it: `offload[i, j]` is true for those that go to the switch. The others are
neighbours, whose rows of the right-hand matrix node j sends to node i; the diagonal is always local.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from graphs import Graph, Ints, Sizes
from numpy.typing import NDArray

Placement = NDArray[np.bool_]
Masks = NDArray[np.uint32]
MOST_NODES = 24  #: as many nodes as the thesis has; one bit each, and no more flags than that for a vertex


def bounds(vertices: int, nodes: int) -> Ints:
    """The first row of each node, and the end."""
    if not 2 <= nodes <= min(MOST_NODES, vertices):
        raise ValueError(f"{vertices} vertices on {nodes} nodes: give 2 to {min(MOST_NODES, vertices)} nodes")
    return np.arange(nodes + 1) * vertices // nodes


@dataclass(frozen=True)
class Tiles:
    """What the model counts. All counts are exact."""

    sizes: Sizes
    bounds: Ints
    entries: Ints  #: [i, j] of each tile
    row_masks: Masks  #: bit j of row r: it has an entry in node j's columns
    column_masks: Masks  #: bit i of column k: it has an entry in node i's rows
    row_beats: Ints  #: [i] sum over rows of the 16s of entries that are not local
    column_beats: Ints  #: [j] the same over columns

    @property
    def nodes(self) -> int:
        """Nodes that share the rows."""
        return len(self.entries)

    @property
    def shares(self) -> Ints:
        """Rows of each node."""
        return np.diff(self.bounds)

    def needed(self) -> Ints:
        """[i, j]: rows of node j that node i needs."""
        found = np.zeros((self.nodes, self.nodes), np.int64)
        for j in range(self.nodes):
            masks = self.column_masks[self.bounds[j] : self.bounds[j + 1]]
            for i in range(self.nodes):
                found[i, j] = np.count_nonzero(masks >> np.uint32(i) & np.uint32(1)) if i != j else 0
        return found

    def stored(self, offload: Placement) -> Ints:
        """[j]: rows of node j that an offloaded tile needs."""
        return self._some(self.column_masks, offload.T)

    def results(self, offload: Placement) -> Ints:
        """[i]: rows of node i to which the switch adds something."""
        return self._some(self.row_masks, offload)

    def _some(self, masks: Masks, wanted: Placement) -> Ints:
        bits = (wanted.astype(np.uint32) << np.arange(self.nodes, dtype=np.uint32)).sum(axis=1)
        parts = [masks[self.bounds[k] : self.bounds[k + 1]] for k in range(self.nodes)]
        return np.array([np.count_nonzero(m & np.uint32(b)) for m, b in zip(parts, bits, strict=True)], np.int64)


def count(sizes: Sizes, pieces: Iterable[tuple[Ints, Ints]], nodes: int) -> Tiles:
    """Counts entries that come in pieces."""
    n, edge = sizes.vertices, bounds(sizes.vertices, nodes)
    owner = np.repeat(np.arange(nodes), np.diff(edge))
    entries = np.zeros(nodes * nodes, np.int64)
    in_row, in_column = np.zeros((n, nodes), np.bool_), np.zeros((n, nodes), np.bool_)
    row_degrees, column_degrees = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for rows, cols in pieces:
        i, j = owner[rows], owner[cols]
        entries += np.bincount(i * nodes + j, minlength=nodes * nodes)
        in_row[rows, j] = True
        in_column[cols, i] = True
        far = i != j
        row_degrees += np.bincount(rows[far], minlength=n)
        column_degrees += np.bincount(cols[far], minlength=n)
    bits = np.uint32(1) << np.arange(nodes, dtype=np.uint32)
    beats = [np.add.reduceat(-(-degrees // 16), edge[:-1]) for degrees in (row_degrees, column_degrees)]
    return Tiles(
        sizes, edge, entries.reshape(nodes, nodes), (in_row @ bits).astype(np.uint32),
        (in_column @ bits).astype(np.uint32), *beats,
    )  # fmt: skip


def tiles_of(graph: Graph, nodes: int) -> Tiles:
    """Counts a graph that is held as a whole."""
    return count(graph.sizes, [(graph.rows, graph.columns)], nodes)


def circulant(nodes: int, near: int) -> Placement:
    """Node i has rows from the `near` nodes behind it; all other tiles but the diagonal go to the switch."""
    distance = (np.arange(nodes)[None, :] - np.arange(nodes)[:, None]) % nodes
    return np.asarray(distance > near, np.bool_)


def group(nodes: int, size: int) -> Placement:
    """Groups of `size` nodes are neighbours of one another, as the thesis has them."""
    which = np.arange(nodes) // size
    return np.asarray(which[:, None] != which[None, :], np.bool_)
