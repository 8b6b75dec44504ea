"""simulated_calls.py OP BYTES CALLS: so many calls in a row, each result compared. For tools/bench-simulated-switch."""

from __future__ import annotations

import sys

import numpy as np
import unisono


def main(op: str, size: int, calls: int) -> None:
    """Gives each rank numbers of its own, which have no rounding in their sums."""
    with unisono.init(timeout=1.0) as context:
        world = context.world
        given = [np.arange(size // 4, dtype=np.float32) % 97 + rank for rank in range(world.size)]
        mine, result = given[world.rank], np.zeros(size // 4, np.float32)
        world.barrier()
        for _ in range(calls):
            match op:
                case "allreduce":
                    world.allreduce(mine, result)
                case "reduce":
                    world.reduce(mine, result if world.rank == 0 else None, root=0)
                case _:
                    result[:] = given[0] if world.rank == 0 else 0
                    world.bcast(result, 0)
            wanted = given[0] if op == "bcast" else sum(given)
            if (op != "reduce" or world.rank == 0) and not np.array_equal(result, wanted):
                sys.exit(f"rank {world.rank}: {op} of {size} bytes has another result")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
