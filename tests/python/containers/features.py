"""A job that uses what the operations of `job.py` do not: every form of a call, communicators that are made on the way,
graphs, narrow data on the wire, and what looks at a running job."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading

import numpy as np
import unisono


def forms(world: unisono.Communicator) -> None:
    """Grouped, persistent and awaited calls, callbacks, and a thread that makes the progress."""
    ranks = np.arange(world.size)
    mine = np.full(300, float(world.rank))
    with world.group():
        small = [world.allreduce_async(mine + i) for i in range(5)]
        largest = world.allreduce_async(np.full(9, world.rank), op="max")
    for i, request in enumerate(small):
        assert (request.wait() == ranks.sum() + world.size * i).all(), ("group", i)
    assert (largest.wait() == world.size - 1).all(), "group"

    total = np.empty_like(mine)
    persistent = world.allreduce_async(mine, total, start=False)
    for step in range(4):
        mine[:] = world.rank + step
        persistent.start()
        persistent.wait()
        assert (total == ranks.sum() + world.size * step).all(), ("persistent", step)

    told = threading.Event()  # a callback runs on the thread that makes the progress, which may be another one
    request = world.allreduce_async(np.full(20_000, float(world.rank)))
    request.add_done_callback(lambda done: told.set())
    assert (request.wait() == ranks.sum()).all(), "callback"
    assert told.wait(60), "callback"

    async def both() -> None:
        sums, block = await asyncio.gather(
            *(asyncio.ensure_future(wait(r)) for r in (
                world.allreduce_async(np.full(50_000, float(world.rank))), world.bcast_async(mine.copy(), 0)))
        )  # fmt: skip
        assert (sums == ranks.sum()).all(), "await"
        assert (block == 3).all(), "await"

    async def wait(request: unisono.Request) -> np.ndarray:
        return await request

    asyncio.run(both())

    request = world.allreduce_async(np.full(100_000, float(world.rank)))
    request.offload()
    assert (request.wait() == ranks.sum()).all(), "offload"


def data(world: unisono.Communicator) -> None:
    """Narrow data, blocks of several types, and exchanges along a graph."""
    whole = np.full(70_000, 1.0 + world.rank, np.float32)
    for wire in ("fp16", "bf16"):
        assert (world.allreduce(whole, wire_datatype=wire) == world.size * (world.size + 1) / 2).all(), wire

    dtypes = [("f8", "i2", "c8")[(world.rank + peer) % 3] for peer in range(world.size)]  # alike at both ends of a pair
    out = b"".join(np.full(4, 10 * world.rank + peer, dtype).tobytes() for peer, dtype in enumerate(dtypes))
    into = np.zeros(len(out), np.uint8)
    counts = [4] * world.size
    world.alltoallw(np.frombuffer(out, np.uint8), into, counts, dtypes, counts, dtypes)
    expected = b"".join(np.full(4, 10 * peer + world.rank, dtype).tobytes() for peer, dtype in enumerate(dtypes))
    assert into.tobytes() == expected, "alltoallw"

    left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    graph = world.graph([left, world.rank], [right, world.rank])
    blocks = np.array([[world.rank, 1], [world.rank, 2]])
    assert world.neighbour_alltoall(graph, blocks).tolist() == [[left, 1], [world.rank, 2]], "graph"
    for count in (3, 200_000):
        heard = world.neighbour_allgather(graph, np.full(count, world.rank))
        assert (heard == np.array([[left], [world.rank]])).all(), "graph"


def communicators(world: unisono.Communicator) -> None:
    """Communicators beside the first one."""
    other = world.dup()
    first, second = world.allreduce_async(np.ones(1000)), other.allreduce_async(np.full(1000, 2.0))
    assert (second.wait() == 2 * world.size).all(), "dup"
    assert (first.wait() == world.size).all(), "dup"
    other.free()
    if world.rank < 2:
        members = range(min(2, world.size))
        pair = world.create_group(members)
        assert pair.allreduce(np.array([world.rank + 1])).tolist() == [sum(r + 1 for r in members)], "create_group"
        pair.free()


def look(context: unisono.Context) -> None:
    """What a user sees of this job from inside, and with the commands."""
    world = context.world
    world.barrier()
    assert f"rank {world.rank}" in context.dump(history=True), "dump"
    if world.rank == 0:

        def command(*arguments: str) -> str:
            done = subprocess.run(
                [sys.executable, "-m", "unisono", *arguments], capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, (arguments, done.stdout, done.stderr)
            return done.stdout

        (job,) = [job for job in json.loads(command("ps", "--json")) if os.getpid() in job.get("pids", ())]
        assert len(job["ranks"]) == world.size, job
        report = command("dump", str(os.getpid()))
        assert all(f"rank {rank}, pid " in report for rank in range(1, world.size)), report
    world.barrier()


def main() -> None:
    with unisono.init(timeout=60) as context:
        world = context.world
        for part in (forms, data, communicators):
            part(world)
        look(context)
        world.barrier()
    print(f"rank {world.rank} of {world.size} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
