"""A job that uses the network in every way: sizes from nothing to many megabytes, all ranks' data different."""

from __future__ import annotations

import numpy as np
import unisono


def data(rank: int, count: int, salt: int) -> np.ndarray:
    return (np.arange(count, dtype=np.int64) * (rank + 3) + salt * 1000 + rank) % 100_003


def main() -> None:
    with unisono.init(timeout=60) as context:
        world = context.world
        everyone = range(world.size)
        for salt, count in enumerate((0, 1, 5, 100, 4_097, 300_000, 2_000_001)):
            own = data(world.rank, count, salt)
            total = sum((data(rank, count, salt) for rank in everyone), np.zeros(count, np.int64))
            assert np.array_equal(world.allreduce(own), total), ("allreduce", count)
            root = salt % world.size
            received = data(root, count, salt) if world.rank == root else np.zeros(count, np.int64)
            world.bcast(received, root)
            assert np.array_equal(received, data(root, count, salt)), ("bcast", count)
            gathered = world.allgather(own).reshape(world.size, -1)
            assert all(np.array_equal(gathered[rank], data(rank, count, salt)) for rank in everyone), count
            if world.size > 1:
                left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
                arrived = np.empty(count, np.int64)
                request = world.recv_async(arrived, left)
                world.send(own, right)
                request.wait()
                assert np.array_equal(arrived, data(left, count, salt)), ("send", count)
        world.barrier()
    print(f"rank {world.rank} of {world.size} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
