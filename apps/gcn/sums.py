"""Sums whose order is said: what nodes compute, and what is expected of them and of the switch."""

from __future__ import annotations

import numpy as np
from graphs import Floats, Ints
from tiles import bounds


def combine(inputs: Floats, weight: Floats) -> Floats:
    """X W, features in ascending order: a product of BLAS has none that is said."""
    sums = np.zeros((len(inputs), weight.shape[1]), np.float32)
    for feature, weights in zip(np.ascontiguousarray(inputs.T), weight, strict=True):
        sums += feature[:, None] * weights
    return sums


def add_in_order(sums: Floats, rows: Ints, columns: Ints, table: Floats) -> None:
    """sums[r] += table[c] for pairs r, c: those of one row in the order in which they stand."""
    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    if len(rows) == 0:
        return
    begins = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    turn = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    by_turn = np.argsort(turn, kind="stable")
    for of_turn in np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]):
        sums[rows[of_turn]] += table[columns[of_turn]]


def owners(vertices: int, nodes: int) -> Ints:
    """The node of each vertex."""
    return np.repeat(np.arange(nodes), np.diff(bounds(vertices, nodes)))
