"""A job of which rank 1 dies: the others agree on that, and go on without it."""

from __future__ import annotations

import os
import signal

import numpy as np
import unisono


def main() -> None:
    with unisono.init(timeout=60) as context:
        comm = context.world
        died = comm.size > 1 and comm.rank == 1
        assert (comm.allreduce(np.ones(100_000)) == comm.size).all()
        if died:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            comm.allreduce(np.ones(100_000))
            succeeded = True
        except (unisono.PeerDeadError, unisono.RevokedError):
            succeeded = False
            comm.revoke("a rank has died")
        assert comm.agree(succeeded) == 0
        assert comm.failed == [1]
        left = comm.shrink()
        assert left.size == comm.size - 1
        for count in (1, 1000, 300_000):
            total = left.allreduce(np.full(count, float(comm.rank)))
            assert (total == sum(range(comm.size)) - 1).all(), count
        other = left.dup()
        assert other.bcast(np.full(3, left.rank), 1).tolist() == [1, 1, 1]
        left.barrier()
    print(f"rank {left.rank} of {left.size} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
