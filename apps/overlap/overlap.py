"""What the offload thread does for a program that computes, and what it costs: run it with `unisono run -n 2`.

A kernel computes while an all-reduce is in flight, and calls nothing of Unisono. Measured on every round, on the
slowest rank: the kernel alone, the all-reduce alone, and both together, with and without the offload thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import unisono


class Kernel:
    """Multiplies and adds over arrays that fit a second-level cache, for about a wanted time."""

    def __init__(self, seconds: float) -> None:
        self._a = np.linspace(0.0, 1.0, 16384)
        self._b = np.linspace(1.0, 2.0, 16384)
        self._c = np.empty_like(self._a)
        self.rounds = 1
        while (took := self._time()) < seconds / 4:
            self.rounds *= 2
        self.rounds = max(1, round(self.rounds * seconds / took))

    def __call__(self) -> None:
        """Computes."""
        for _ in range(self.rounds):
            np.multiply(self._a, self._b, out=self._c)
            np.add(self._c, self._b, out=self._c)

    def _time(self) -> float:
        begin = time.perf_counter()
        self()
        return time.perf_counter() - begin


def measured(comm: unisono.Communicator, rounds: int, work: Callable[[], float]) -> tuple[float, float]:
    """Medians, over rounds, of the time that `work` takes on the slowest rank, and of what it returns there."""
    whole, part = [], []
    for _ in range(rounds):
        comm.barrier()
        begin = time.perf_counter()
        returned = work()
        times = comm.allreduce(np.array([time.perf_counter() - begin, returned]), op="max")
        whole.append(float(times[0]))
        part.append(float(times[1]))
    return statistics.median(whole), statistics.median(part)


def row(comm: unisono.Communicator, count: int, rounds: int) -> str:
    """One line of the table."""
    mine: npt.NDArray[np.float32] = np.full(count, comm.rank + 1, np.float32)
    total = np.empty_like(mine)

    def communicate() -> float:
        comm.allreduce_async(mine, total).wait()
        return 0.0

    communicate()
    communication, _ = measured(comm, rounds, communicate)
    seconds = float(comm.bcast(np.array([2 * communication]), 0)[0])
    kernel = Kernel(seconds)
    kernel.rounds = int(comm.bcast(np.array([kernel.rounds]), 0)[0])

    def compute() -> float:
        begin = time.perf_counter()
        kernel()
        return time.perf_counter() - begin

    def overlap(offload: bool) -> float:
        request = comm.allreduce_async(mine, total)
        if offload:
            request.offload()
        took = compute()
        request.wait()
        return took

    alone, _ = measured(comm, rounds, compute)
    without, _ = measured(comm, rounds, lambda: overlap(False))
    with_thread, slowed = measured(comm, rounds, lambda: overlap(True))
    assert total[0] == total[-1] == comm.size * (comm.size + 1) / 2

    def hidden(together: float) -> str:
        return f"{(alone + communication - together) / communication:6.0%}"

    return (
        f"{count * 4 / 1024:9.0f} KB {alone * 1e3:9.3f} {communication * 1e3:9.3f} {without * 1e3:9.3f} "
        f"{hidden(without)} {with_thread * 1e3:9.3f} {hidden(with_thread)} {slowed / alone - 1:+8.0%}"
    )


def main() -> None:
    """Prints the table on rank 0."""
    parser = argparse.ArgumentParser(description="the effect of the offload thread on a kernel that computes")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each measurement")
    parser.add_argument("--sizes", default="64,1024,8192", help="KB of the all-reduce, separated by commas")
    arguments = parser.parse_args()
    with unisono.init() as context:
        comm = context.world
        if comm.rank == 0:
            print(
                "milliseconds, medians over rounds of the slowest rank; hidden: the share of the all-reduce's time\n"
                "that the kernel hides; slower: how much the kernel itself takes longer beside the offload thread\n"
                "                                          without offload      with offload       kernel\n"
                "  all-reduce    kernel all-reduce  together hidden  together hidden   slower"
            )
        for size in arguments.sizes.split(","):
            line = row(comm, int(size) * 256, arguments.rounds)
            if comm.rank == 0:
                print(line, flush=True)
        comm.barrier()


if __name__ == "__main__":
    main()
