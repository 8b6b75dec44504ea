"""A job that may start no thread: it has no offload thread, and does without. Not for root, whom no limit binds."""

from __future__ import annotations

import asyncio
import resource
import signal

import numpy as np
import unisono


async def awaited(request: unisono.Request) -> np.ndarray:
    return await request


def main() -> None:
    with unisono.init(timeout=30) as context:
        world = context.world
        world.barrier()
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        for _ in range(3):
            total = world.allreduce_async(np.full(100_000, world.rank + 1.0)).wait()
            assert (total == 3).all()
        request = world.bcast_async(np.full(70_000, float(world.rank)), 1)
        refusal = ""
        try:
            request.offload()
        except unisono.CapacityError as error:
            refusal = str(error)
        assert "an offload thread cannot be started" in refusal
        assert (request.wait() == 1).all()
        assert (asyncio.run(awaited(world.allreduce_async(np.ones(100_000)))) == 2).all()
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())  # as it was
    print(f"rank {world.rank} of {world.size} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
