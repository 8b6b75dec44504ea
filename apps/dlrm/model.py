"""The recommendation model: its sizes, its numbers, and what NumPy says of them.

Numbers are fixed point, 32 bits with 16 of fraction. A product has 32 of fraction; a sum of products is taken in 64
bits, and cut to an element where it leaves a node. So results do not depend on the order of additions, and ten nodes
have NumPy's bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Fixed = npt.NDArray[np.int32]
FRACTION = 16
NODES = 4  #: that look up, and as many that reduce
RANKS = 2 * NODES + 2
BLOCKS = 4  #: of a half of FC1, as in dlrm.cpp
#: Table 4 of the paper: DSPs of a layer, in percent of the 9024 of a U55C, on how many nodes.
DSPS = 9024
LAYER_DSPS = ((580.1, 2 * NODES), (85.1, 1), (16.1, 1))
DSPS_PER_PRODUCT = 4  #: of 32 bits
KERNEL_MHZ, MHZ = 115, 250  #: clocks of the kernels, and of engines and network


def rates() -> list[int]:
    """Products that a node does in a cycle, of each layer."""
    return [int(percent / 100 * DSPS / nodes / DSPS_PER_PRODUCT) for percent, nodes in LAYER_DSPS]


@dataclass(frozen=True)
class Model:
    """Table 3 of the paper. `rows`: of a table; they are what is scaled, for those of the paper have 50 GB."""

    tables: int = 100
    row: int = 32  #: elements of a row
    layers: tuple[int, int, int] = (2048, 512, 256)
    rows: int = 1000
    seed: int = 1

    @property
    def inputs(self) -> int:
        """Of a node: elements of its partial vector."""
        return self.tables // NODES * self.row

    @property
    def table_bytes(self) -> int:
        """Of all tables."""
        return self.tables * self.rows * self.row * 4

    def cycles(self) -> list[float]:
        """Of each layer, on its nodes, by their multipliers alone."""
        first, second, third = self.layers
        products = (self.inputs * first // 2, first * second, second * third)
        return [count / rate for count, rate in zip(products, rates(), strict=True)]

    def check(self) -> None:
        """Ends the program if a message would not be whole words."""
        pieces = (self.inputs / 2, self.layers[0] / 2 / BLOCKS, self.layers[1] / 4, self.row)
        if self.tables % NODES or any(count % 16 for count in pieces):
            raise SystemExit("dlrm: tables go to four nodes, and what goes in a message is whole words of 16 elements")

    def _numbers(self, what: int, node: int, shape: tuple[int, ...], most: float) -> Fixed:
        random = np.random.default_rng([self.seed, what, node])
        limit = int(most * (1 << FRACTION))
        return random.integers(-limit, limit + 1, shape, dtype=np.int32)

    def indices(self, node: int, queries: int) -> Fixed:
        """Rows that the queries ask of the tables of a node."""
        random = np.random.default_rng([self.seed, 100, node])
        return random.integers(0, self.rows, (queries, self.tables // NODES), dtype=np.int32)

    def node_tables(self, node: int) -> Fixed:
        """Tables, rows, elements."""
        return self._numbers(0, node, (self.tables // NODES, self.rows, self.row), 1.0)

    def first(self, node: int, half: int) -> Fixed:
        """Weights of FC1 for the vector of a node: inputs, outputs of that half."""
        return self._numbers(1 + half, node, (self.inputs, self.layers[0] // 2), 1 / 16)

    def bias(self) -> Fixed:
        """Of FC1."""
        return self._numbers(3, 0, (self.layers[0],), 0.5)

    def second(self) -> Fixed:
        """Weights of FC2: inputs, outputs."""
        return self._numbers(4, 0, self.layers[:2], 1 / 16)

    def third(self) -> Fixed:
        """Weights of FC3."""
        return self._numbers(5, 0, self.layers[1:], 1 / 16)

    def last(self) -> Fixed:
        """Weights of the score."""
        return self._numbers(6, 0, self.layers[2:], 1 / 4)

    def vectors(self, node: int, queries: int) -> Fixed:
        """What the queries look up on a node."""
        indices, tables = self.indices(node, queries), self.node_tables(node)
        found: Fixed = tables[np.arange(len(tables)), indices].reshape(queries, self.inputs)
        return found

    def scores(self, queries: int) -> Fixed:
        """Of each query, by NumPy."""
        total = np.tile(self.bias(), (queries, 1))
        for node in range(NODES):
            vectors, halves = self.vectors(node, queries), [self.first(node, half) for half in (0, 1)]
            # Blocks of the two halves take turns.
            blocks = [_product(vectors, half).reshape(queries, BLOCKS, -1) for half in halves]
            total += np.stack(blocks, axis=2).reshape(queries, -1)
        for weights in (self.second(), self.third()):
            total = _product(np.maximum(total, 0), weights)
        return _product(np.maximum(total, 0), self.last()[:, None])[:, 0]


def _product(values: Fixed, weights: Fixed) -> Fixed:
    """By doubles, half of an element after the other: products of 16 and 15 bits, whose sums stay below 2 ** 53."""
    small = weights.astype(np.float64)
    low = (values & 0xFFFF).astype(np.float64) @ small
    high = (values >> 16).astype(np.float64) @ small
    sums = (high.astype(np.int64) << 16) + low.astype(np.int64)
    return (sums >> FRACTION).astype(np.int32)
