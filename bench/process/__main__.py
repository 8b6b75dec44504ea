"""The benchmark's loop in Python: one process of one system."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from .connection import Block, Connection, die_with_parent, pin
from .data import DTYPES, STAMPS, Array, Call, fill, is_right, stamp
from .libraries import LIBRARIES, Library, Mpi4py, Step, Unisono, launched_rank


@dataclass
class Memory:
    """A buffer of the last call, kept while it fits."""

    key: tuple[int, str, str]
    array: Array
    held: object  #: its registration, or None


class Process:
    """A rank of a system."""

    def __init__(self, library: Library, connection: Connection, rank: int, size: int, *, damage: bool) -> None:
        self._library = library
        self._connection = connection
        self._rank = rank
        self._size = size
        self._damage = damage
        self._memory: dict[str, Memory] = {}
        self._schedule = Path("/proc/thread-self/schedstat")

    def serve(self) -> None:
        """Measures until there is nothing more to do."""
        while (block := self._connection.next_block()) is not None:
            self._measure(block)
        self._memory.clear()

    def _buffer(self, name: str, elements: int, block: Block) -> Array | None:
        key = (elements, block.dtype, block.buffers)
        if elements == 0:
            return None
        if name not in self._memory or self._memory[name].key != key:
            self._memory.pop(name, None)
            array = self._library.allocate(*key)
            held = self._library.register(array) if block.buffers == "registered" else None
            self._memory[name] = Memory(key, array, held)
        return self._memory[name].array

    def _measure(self, block: Block) -> None:
        if block.dtype not in DTYPES or block.buffers not in ("malloc", "registered", "allocated"):
            self._connection.fail(f"there are no {block.buffers} buffers of {block.dtype} here")
        call = Call(
            block.op, block.dtype, block.count, self._rank, self._size, block.changing, algorithm=block.algorithm
        )
        call.src = self._buffer("src", call.src_elements, block)
        call.dst = self._buffer("dst", call.dst_elements, block)
        loop = Loop(self._library, call)
        right = self._verify(loop, 2 * block.seed)
        fill(call, 2 * block.seed + 1)
        self._library.barrier()
        self._library.barrier()
        loop.run(0, block.warmup)
        waited = self._waited()
        median, p99 = 0.0, 0.0
        if block.batch == 0:
            begin = perf_counter()
            loop.run(block.warmup, block.calls)
            seconds = perf_counter() - begin
            waited = self._waited() - waited
        else:
            seconds, median, p99 = loop.sample(block)
            waited = 0.0
        right &= is_right(call, 2 * block.seed + 1, block.warmup + block.calls - 1)
        name = self._library.algorithm()
        right &= self._verify(loop, 2 * block.seed + 2)
        self._connection.reply(f"done {seconds:.9f} {waited:.9f} {median:.12f} {p99:.12f} {right:d} {name or '-'}")

    def _verify(self, loop: Loop, seed: int) -> bool:
        """A few calls with data of their own, so that every rank is the root of one."""
        call = loop.call
        fill(call, seed)
        loop.run(0, call.turns)
        if self._damage and call.rank == 0 and call.dst is not None:
            call.dst[0] += 1
        return is_right(call, seed, call.turns - 1)

    def _waited(self) -> float:
        """Seconds in which this thread was ready to run but waited for a core; 0 where the kernel does not say."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            return 1e-9 * int(self._schedule.read_text().split()[1])
        return 0.0


class Loop:
    """The calls of a block, one after the other."""

    def __init__(self, library: Library, call: Call) -> None:
        self.call = call
        self._steps: list[Step] = [library.step(call, number) for number in range(call.period)]
        # Where a call has no source of this rank, a stamp is written nevertheless, since that takes time.
        nowhere = memoryview(bytearray(16)).cast("d")
        source = nowhere if call.src is None else call.src.data
        self._stamped = [source] * call.turns
        if call.op == "bcast" and call.dst is not None:
            self._stamped[call.rank] = call.dst.data
        self._stamps = [stamp(call.rank, number) for number in range(STAMPS)]

    def run(self, first: int, calls: int) -> None:
        """Calls number `first` to `first + calls - 1`, the stamp of each written before it."""
        steps, stamped, stamps = self._steps, self._stamped, self._stamps
        period, turns = len(steps), len(stamped)
        if period == 1:
            step, place = steps[0], stamped[0]
            for number in range(first, first + calls):
                place[0] = stamps[number % STAMPS]
                step()
            return
        for number in range(first, first + calls):
            stamped[number % turns][0] = stamps[number % STAMPS]
            steps[number % period]()

    def sample(self, block: Block) -> tuple[float, float, float]:
        """Calls in batches, a look at the clock after each: seconds of all, median and 99th percentile of a call."""
        batches = block.calls // block.batch
        times = [0.0] * (batches + 1)
        times[0] = perf_counter()
        for i in range(batches):
            self.run(block.warmup + i * block.batch, block.batch)
            times[i + 1] = perf_counter()
        # The rest, for all ranks make equally many calls.
        self.run(block.warmup + batches * block.batch, block.calls % block.batch)
        each = sorted((after - before) / block.batch for before, after in itertools.pairwise(times))
        return times[-1] - times[0], each[batches // 2], each[(batches * 99 + 99) // 100 - 1]


def main() -> int:
    """Entry point."""
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--library", "--socket", "--system", "--cores"):
        parser.add_argument(name, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--damage", action="store_true")
    options = parser.parse_args()
    variables = (Unisono if options.library == "unisono" else Mpi4py).rank_variables
    pin(options.cores, launched_rank(variables))
    library = LIBRARIES[options.library]()
    rank, size = library.open()
    connection = Connection(options, rank, size)
    if size != options.ranks:
        connection.fail(f"the job has {size} ranks instead of {options.ranks}")
    try:
        Process(library, connection, rank, size, damage=options.damage).serve()
        library.close()
    except BaseException as failure:
        connection.fail(f"{type(failure).__name__}: {failure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
