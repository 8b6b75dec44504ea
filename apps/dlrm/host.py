"""One rank of the recommendation model: gives its kernel what it works on, and writes what it says. See run.py."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import unisono
from model import NODES, RANKS, Model, rates
from unisono import Communicator

AHEAD = 4  #: queries


def feed(world: Communicator, model: Model, queries: int) -> None:
    """Sends each node the rows of each query, as whole words; a few queries ahead of those that have gone."""
    rows = [model.indices(node, queries) for node in range(NODES)]
    count = -(-rows[0].shape[1] // 16) * 16
    under_way = []
    for query in range(queries):
        words = np.zeros((NODES, count), np.int32)
        for node in range(NODES):
            words[node, : rows[node].shape[1]] = rows[node][query]
            under_way.append(world.send_async(words[node], node))
        if query >= AHEAD:
            for request in under_way[:NODES]:
                request.wait()
            del under_way[:NODES]
    for request in under_way:
        request.wait()


def main() -> None:
    """Runs the kernel of this rank."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="has job.json; gets times and scores")
    folder = parser.parse_args().folder
    job = json.loads((folder / "job.json").read_text())
    model = Model(**job["model"] | {"layers": tuple(job["model"]["layers"])})
    queries, access, gap = job["queries"], job["access"], job["gap"]
    first, second, third = rates()
    with unisono.init(timeout=job["timeout"], **job["settings"]) as context:
        world = context.world.dup(streams=True)
        side = world.dup(streams=True)
        group = world.subset(range(NODES, 2 * NODES + 1), streams=True)
        rank = world.rank
        fed = world.size == RANKS + 1
        times = np.zeros((queries, 2), np.int64)
        scores = np.zeros(queries, np.int32)
        if rank == RANKS:
            feed(world, model, queries)
            world.barrier()
            return
        if rank < NODES:
            kernel = context.kernel("look_up")(
                model.indices(rank, queries), model.node_tables(rank), model.row, model.first(rank, 0), queries, first,
                access, gap, fed, times, world, side,
            )  # fmt: skip
        elif rank < 2 * NODES:
            kernel = context.kernel("reduce_half")(
                model.first(rank - NODES, 1), model.inputs, queries, first, times, world, side, group
            )
        elif rank == 2 * NODES:
            kernel = context.kernel("second_layer")(model.bias(), model.second(), queries, second, times, world, group)
        else:
            kernel = context.kernel("third_layer")(
                model.third(), model.last(), model.layers[1], queries, third, scores, times, world
            )
        kernel.wait()
        np.save(folder / f"times-{rank}.npy", times)
        if rank == 2 * NODES + 1:
            np.save(folder / "scores.npy", scores)
        world.barrier()


if __name__ == "__main__":
    main()
