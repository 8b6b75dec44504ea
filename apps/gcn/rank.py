"""One rank of `unisono run`: a node, or, as the last rank, the switch, which runs the handlers' binaries.

Called by run.py with a folder: graph.npz, and job.json that says how to go through both layers, once or several times.
A node writes its rows of each result, and the bytes of payload that it has sent and received.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import unisono
from graphs import Floats, Graph, Ints, Sizes
from model import Plan
from packets import Packet, asked, output_indexes, right_rows, size, weight_rows
from sums import add_in_order, combine, owners
from tiles import bounds
from unisono import handler

HANDLERS = Path(__file__).resolve().parent / "handlers"
BUDGET = 1 << 28  #: instructions for a packet


@dataclass(frozen=True)
class Way:
    """How a layer's right-hand rows reach who needs them."""

    how: str  #: "all_gather", "needed_rows" or "switch"
    plan: Plan

    @staticmethod
    def of(words: dict[str, Any]) -> Way:
        """From JSON."""
        plan = Plan(np.array(words["offload"], np.bool_), words["dataflow"], words["layout"], words["strips"])
        return Way(words["how"], plan)


def strips_of(columns: int, plan: Plan) -> list[slice]:
    """The columns of each strip."""
    width = -(-columns // plan.strips)
    return [slice(at, min(at + width, columns)) for at in range(0, columns, width)]


class Shared:
    """What all ranks know of a job before it begins: the graph, the shares, and so all places in the switch."""

    def __init__(self, folder: Path, nodes: int) -> None:
        held = np.load(folder / "graph.npz")
        self.graph = Graph(Sizes(*held["sizes"].tolist()), held["first"], held["columns"])
        self.features: Floats = held["features"]
        self.weights: list[Floats] = [held["weight0"], held["weight1"]]
        self.nodes, self.bounds = nodes, bounds(self.graph.sizes.vertices, nodes)
        self.owner = owners(self.graph.sizes.vertices, nodes)
        self.rows = self.graph.rows

    def offloaded(self, plan: Plan) -> tuple[Ints, Ints]:
        """Rows and columns of the entries that go to the switch, sorted by row."""
        far = plan.offload[self.owner[self.rows], self.owner[self.graph.columns]]
        return self.rows[far], self.graph.columns[far]


class Node:
    """Rows bounds[rank] to bounds[rank + 1]."""

    def __init__(self, shared: Shared, world: unisono.Communicator, group: unisono.Communicator) -> None:
        self.shared, self.world, self.group = shared, world, group
        self.rank = world.rank
        self.mine = slice(int(shared.bounds[self.rank]), int(shared.bounds[self.rank + 1]))
        here = shared.owner[shared.rows] == self.rank
        self.rows, self.columns = shared.rows[here], shared.graph.columns[here]
        self.sent = self.received = 0

    def forward(self, ways: list[Way]) -> Floats:
        """Both layers, this node's rows."""
        values, scale = self.shared.features[self.mine], self.shared.graph.scale[self.mine, None]
        for layer, (weight, way) in enumerate(zip(self.shared.weights, ways, strict=True)):
            values = self.aggregate(combine(values, weight) * scale, way) * scale
            if layer == 0:
                values = np.maximum(values, 0)
        return values

    def aggregate(self, right: Floats, way: Way) -> Floats:
        """(A + I) times the right-hand matrix."""
        owner = self.shared.owner[self.columns]
        offload = way.plan.offload[self.rank] & (way.how == "switch")
        local, far = owner == self.rank, offload[owner]
        table = np.zeros((self.shared.graph.sizes.vertices, right.shape[1]), np.float32)
        table[self.mine] = right
        sums = right.copy()
        add_in_order(sums, self.rows[local] - self.mine.start, self.columns[local], table)
        if way.how == "all_gather":
            counts = (np.diff(self.shared.bounds) * right.shape[1]).tolist()
            self.group.allgatherv(right.ravel(), table.ravel(), counts)
            self.sent += right.nbytes
            self.received += table.nbytes - right.nbytes
        else:
            self.exchange(right, table, way)
        near = ~local & ~far
        add_in_order(sums, self.rows[near] - self.mine.start, self.columns[near], table)
        if way.how == "switch" and way.plan.offload.any():
            some = np.unique(self.rows[far]) - self.mine.start
            sums[some] += self.from_switch(right, way.plan, len(some))
        return sums

    def exchange(self, right: Floats, table: Floats, way: Way) -> None:
        """Sends rows to the nodes that need them, and puts theirs into the table."""
        apart = way.plan.offload if way.how == "switch" else np.zeros_like(way.plan.offload)
        rows, columns = self.shared.rows, self.shared.graph.columns
        to = self.shared.owner[rows]
        give = [
            np.unique(columns[(to == i) & (self.shared.owner[columns] == self.rank)])
            if i != self.rank and not apart[i, self.rank] else np.empty(0, np.int64)
            for i in range(self.shared.nodes)
        ]  # fmt: skip
        take = [
            np.unique(self.columns[self.shared.owner[self.columns] == j])
            if j != self.rank and not apart[self.rank, j] else np.empty(0, np.int64)
            for j in range(self.shared.nodes)
        ]  # fmt: skip
        width = right.shape[1]
        source = np.ascontiguousarray(right[np.concatenate(give) - self.mine.start])
        landed = np.zeros((sum(map(len, take)), width), np.float32)
        self.group.alltoallv(
            source.ravel(), landed.ravel(), [width * len(k) for k in give], [width * len(k) for k in take]
        )
        table[np.concatenate(take)] = landed
        self.sent += source.nbytes
        self.received += landed.nbytes

    def from_switch(self, right: Floats, plan: Plan, results: int) -> Floats:
        """What the switch adds up for this node: a row for each of its rows that has something there."""
        parts = []
        for strip in strips_of(right.shape[1], plan):
            part = np.ascontiguousarray(right[:, strip])
            lists = self.output_packets(part, plan) if plan.dataflow == "output" else self.weight_packets(part, plan)
            self.world.send_object(lists, self.shared.nodes)
            came: bytes = self.world.recv_object(self.shared.nodes)
            self.sent += sum(map(size, lists))
            self.received += len(came)
            parts.append(np.frombuffer(came, np.float32).reshape(results, part.shape[1]))
        return np.concatenate(parts, axis=1)

    def output_packets(self, right: Floats, plan: Plan) -> list[list[Packet]]:
        """Right-hand rows, then indexes."""
        _, columns = self.shared.offloaded(plan)
        stored = np.unique(columns)
        mine = stored[(stored >= self.mine.start) & (stored < self.mine.stop)]
        far = plan.offload[self.rank, self.shared.owner[self.columns]]
        places = np.searchsorted(stored, self.columns[far])
        return [
            right_rows(right[mine - self.mine.start], int(np.searchsorted(stored, self.mine.start))),
            output_indexes(self.rows[far], places, right.shape[1], plan.layout),
        ]

    def weight_packets(self, right: Floats, plan: Plan) -> list[list[Packet]]:
        """Right-hand rows with the outputs that they are for, then what asks for this node's outputs."""
        rows, columns = self.shared.offloaded(plan)
        outputs = np.unique(rows)
        here = self.shared.owner[columns] == self.rank
        order = np.lexsort((rows[here], columns[here]))
        places, stored = np.searchsorted(outputs, rows[here][order]), columns[here][order]
        firsts = np.flatnonzero(np.diff(stored, prepend=-1))
        first = int(np.searchsorted(outputs, self.mine.start))
        last = int(np.searchsorted(outputs, self.mine.stop))
        return [
            weight_rows(right[stored[firsts] - self.mine.start], np.append(firsts, len(stored)), places),
            asked(first, last - first, right.shape[1]),
        ]


def by_turns(lists: list[list[Packet]]) -> list[tuple[int, Packet]]:
    """The first packet of each node, then each one's second, and so on."""
    longest = max(map(len, lists))
    return [(node, packets[t]) for t in range(longest) for node, packets in enumerate(lists) if t < len(packets)]


def serve(shared: Shared, world: unisono.Communicator, ways: list[Way]) -> None:
    """The switch: gives the handler all packets of the first lists by turns, then those of the second ones."""
    for weight, way in zip(shared.weights, ways, strict=True):
        if way.how != "switch" or not way.plan.offload.any():
            continue
        rows, columns = shared.offloaded(way.plan)
        # An offloaded tile may be empty, but a table cannot.
        held = max(1, len(np.unique(columns if way.plan.dataflow == "output" else rows)))
        for strip in strips_of(weight.shape[1], way.plan):
            made = handler.compile(
                HANDLERS / f"{way.plan.dataflow}_{way.plan.layout}.c",
                [f"COLUMNS={strip.stop - strip.start}", f"ROWS={held}", f"RANKS={shared.nodes}"],
            )
            machine = handler.Handler(made.binary, made.name)  # the binary is all that a switch is given
            lists: list[list[list[Packet]]] = [world.recv_object(node) for node in range(shared.nodes)]
            results: list[list[bytes]] = [[] for _ in lists]
            for stage in (0, 1):
                for node, (tag, payload) in by_turns([of_node[stage] for of_node in lists]):
                    done = machine.run([payload], source=node, ranks=shared.nodes, tag=tag, budget=BUDGET)
                    results[node] += done.outputs
            for node, parts in enumerate(results):
                world.send_object(b"".join(parts), node)


def main() -> None:
    folder = Path(sys.argv[1])
    jobs = [[Way.of(way) for way in ways] for ways in json.loads((folder / "job.json").read_text())]
    with unisono.init() as context:
        world = context.world
        shared = Shared(folder, world.size - 1)
        group = world.split(int(world.rank == shared.nodes))
        assert group is not None  # every rank gives a colour
        for number, ways in enumerate(jobs):
            if world.rank == shared.nodes:
                serve(shared, world, ways)
                continue
            node = Node(shared, world, group)
            np.save(folder / f"rows-{number}-{world.rank}.npy", node.forward(ways))
            (folder / f"bytes-{number}-{world.rank}.json").write_text(json.dumps([node.sent, node.received]))


if __name__ == "__main__":
    main()
