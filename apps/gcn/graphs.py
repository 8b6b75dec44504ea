"""Graphs: those of the thesis' table 4.2, generated with its numbers, and the neighbours of scikit-learn's digits.

A graph is a matrix A of 0 and 1. Its entries are the table's edges, without a diagonal: each vertex adds itself at
home.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
BLOCKS = 64  #: rows are drawn block by block, so that no more than a block's edges need be held
HIDDEN = 16  #: the thesis' hidden dimension
NEIGHBOURS = 10  #: of a digit


@dataclass(frozen=True)
class Sizes:
    """A line of table 4.2 (Haghi 2023)."""

    vertices: int
    edges: int
    features: int
    classes: int

    @property
    def layers(self) -> tuple[int, int]:
        """Columns of the two right-hand matrices."""
        return HIDDEN, self.classes

    def scaled(self, by: int) -> Sizes:
        """A graph of one vertex in `by`, with as many edges for each."""
        return Sizes(self.vertices // by, self.edges // by, self.features, self.classes)


TABLE = {
    "ppi": Sizes(2372, 34113, 50, 121),
    "citeseer": Sizes(3327, 9464, 3703, 6),
    "pubmed": Sizes(19717, 88676, 500, 3),
    "ogbn-mag": Sizes(736389, 5416271, 128, 349),
    "ogbn-products": Sizes(2449029, 61859140, 100, 47),
}


@dataclass(frozen=True)
class Graph:
    """Rows of A: the columns of row r are columns[first[r]:first[r + 1]], ascending."""

    sizes: Sizes
    first: Ints
    columns: Ints

    @property
    def rows(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(self.sizes.vertices), np.diff(self.first))

    @property
    def scale(self) -> Floats:
        """1 / sqrt(entries of a row + 1): nodes multiply right-hand rows and sums by it."""
        degrees = np.diff(self.first) + 1
        return np.asarray(1 / np.sqrt(degrees), np.float32)


def edges(sizes: Sizes, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Rows and columns of all entries, sorted, in pieces. Both degrees are skewed: few vertices have many edges, and
    these stand anywhere. No pair is drawn twice, and none on the diagonal.
    """
    n = sizes.vertices
    place = np.random.default_rng([seed, n]).permutation(n)
    for block in range(BLOCKS):
        begin, end = block * n // BLOCKS, (block + 1) * n // BLOCKS
        wanted = (block + 1) * sizes.edges // BLOCKS - block * sizes.edges // BLOCKS
        random = np.random.default_rng([seed, n, block])
        within = random.permutation(end - begin)
        keys = np.empty(0, np.int64)
        if wanted > (end - begin) * (n - 1):
            raise ValueError(f"a graph of {n} vertices has no room for {sizes.edges} edges")
        while len(keys) < wanted:
            missing = wanted - len(keys)
            more = missing + missing // 4 + 16
            rows = begin + within[((end - begin) * random.random(more) ** 1.5).astype(np.int64)]
            cols = place[(n * random.random(more) ** 1.5).astype(np.int64)]
            new = (rows * n + cols)[rows != cols]
            keys = np.sort(np.concatenate([keys, new]))
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
            if len(keys) > wanted:
                keys = np.delete(keys, random.choice(len(keys), len(keys) - wanted, replace=False, shuffle=False))
        yield keys // n, keys % n


def generate(sizes: Sizes, seed: int) -> Graph:
    """All of a graph."""
    pieces = list(edges(sizes, seed))
    rows = np.concatenate([rows for rows, _ in pieces])
    return from_pairs(sizes, rows, np.concatenate([cols for _, cols in pieces]))


def from_pairs(sizes: Sizes, rows: Ints, cols: Ints) -> Graph:
    """A graph of entries in any order."""
    order = np.lexsort((cols, rows))
    counts = np.bincount(rows, minlength=sizes.vertices)
    return Graph(sizes, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), cols[order].astype(np.int64))


def features(sizes: Sizes, seed: int) -> Floats:
    """Features of generated graphs, dense: they differ in each place."""
    random = np.random.default_rng([seed, 1])
    return random.standard_normal((sizes.vertices, sizes.features), np.float32)


def weights(sizes: Sizes, seed: int) -> list[Floats]:
    """Weights of both layers, as they are before training."""
    random = np.random.default_rng([seed, 2])
    shapes = ((sizes.features, HIDDEN), (HIDDEN, sizes.classes))
    return [(random.standard_normal(s, np.float32) * np.float32(np.sqrt(2 / s[0]))) for s in shapes]


def digits() -> tuple[Graph, Floats, NDArray[np.int64]]:
    """The digits: which are among one another's nearest, in either direction; brightnesses in [0, 1]; labels."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    images, labels = load_digits(return_X_y=True)
    near = kneighbors_graph(images, NEIGHBOURS).tocoo()
    pairs = np.unique(np.concatenate([near.row * len(labels) + near.col, near.col * len(labels) + near.row]))
    sizes = Sizes(len(labels), len(pairs), images.shape[1], 10)
    graph = from_pairs(sizes, pairs // len(labels), pairs % len(labels))
    return graph, (images / 16).astype(np.float32), labels.astype(np.int64)
