"""Both layers in NumPy, on one machine, with every sum in the order that nodes and switch have.

An output row is (its own right-hand row + its local entries' + its neighbours', columns ascending) + what the switch
sends. The switch begins at 0. Output stationary, it adds columns in ascending order; weight stationary, in the order in
which packets come, which nodes send by turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from graphs import Floats, Graph, Ints
from model import SEGMENT, Plan
from sums import add_in_order, combine, owners


def turns(graph: Graph, plan: Plan, nodes: int, width: int) -> Ints:
    """Weight stationary: when each entry comes to the switch, as numbers that ascend, in the order of graph.columns.

    A node sends its right-hand rows one behind the other, cut into packets: a row begins in one that has room for its
    values and one index, and goes on in the next with its values again.
    """
    owner = owners(graph.sizes.vertices, nodes)
    rows, columns = graph.rows, graph.columns
    far = np.flatnonzero(plan.offload[owner[rows], owner[columns]])
    far = far[np.lexsort((rows[far], columns[far]))]
    number = np.zeros(len(columns), np.int64)
    packet, room, last, node = 0, SEGMENT // 4, -1, -1
    for place, (entry, column) in enumerate(zip(far.tolist(), columns[far].tolist(), strict=True)):
        if owner[column] != node:
            node, packet, room, last = owner[column], 0, SEGMENT // 4, -1
        begins = column != last
        if (begins and room < 2 + width) or room < 1:
            packet, room, begins = packet + 1, SEGMENT // 4, True
        room -= 1 + (1 + width) * begins
        last = column
        number[entry] = (packet * nodes + node) * len(far) + place
    return number


def aggregate(graph: Graph, right: Floats, plan: Plan, nodes: int) -> Floats:
    """(A + I) times the right-hand matrix."""
    owner = owners(graph.sizes.vertices, nodes)
    rows, columns = graph.rows, graph.columns
    local = owner[rows] == owner[columns]
    far = plan.offload[owner[rows], owner[columns]]
    sums, switch = right.copy(), np.zeros_like(right)
    add_in_order(sums, rows[local], columns[local], right)
    near = ~local & ~far
    add_in_order(sums, rows[near], columns[near], right)
    width = -(-right.shape[1] // plan.strips)
    for at in range(0, right.shape[1], width):
        strip = slice(at, min(at + width, right.shape[1]))
        order = np.flatnonzero(far)
        if plan.dataflow == "weight":
            order = order[np.argsort(turns(graph, plan, nodes, strip.stop - at)[order])]
        part = np.zeros((len(right), strip.stop - at), np.float32)
        add_in_order(part, rows[order], columns[order], right[:, strip])
        switch[:, strip] = part
    some = np.unique(rows[far])
    sums[some] += switch[some]
    return sums


def forward(graph: Graph, features: Floats, weights: Sequence[Floats], plans: Sequence[Plan], nodes: int) -> Floats:
    """Both layers: scaled on both sides, and no negative numbers behind the first."""
    values, scale = features, graph.scale[:, None]
    for layer, (weight, plan) in enumerate(zip(weights, plans, strict=True)):
        values = aggregate(graph, combine(values, weight) * scale, plan, nodes) * scale
        if layer == 0:
            values = np.maximum(values, 0)
    return values
