"""A tour of all operations: each at several sizes, each result checked on every rank, in a table.

Run it with `unisono run -n 4 apps/tour/tour.py`. Every rank has data of its own, and computes what it
must receive in NumPy from the inputs of all ranks (oracle.py), not from anything communicated. Buffers
are in memory of `comm.empty`, which the ranks read and write directly; the largest block is also sent from
and to ordinary memory, for comparison.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import exercises
import numpy as np
import unisono
from exercises import Exercise, Memory
from rich.console import Console
from rich.table import Table

SIZES = (4, 1 << 10, 1 << 16, 1 << 22)  # bytes of a block
ODD = 10_007  # elements at which every algorithm is tried: divisible by nothing, and beyond the eager limit
TIMED_SECONDS = 0.03  # about how long a call is repeated for its time
Make = Callable[..., Exercise]
#: On a device some operations do not exist; they are refused on all ranks, before anything is sent.
ON_DEVICE = os.environ.get("UNISONO_PLATFORM", "native") != "native"


def text_of_bytes(count: int) -> str:
    """4 B, 64 KB, 4 MB."""
    for unit in ("B", "KB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} MB"


def text_of_seconds(seconds: float) -> str:
    """Three digits and a unit."""
    value, unit = (seconds * 1e6, "µs") if seconds < 1e-3 else (seconds * 1e3, "ms")
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


class Tour:
    """Runs exercises on a communicator and counts what was wrong."""

    def __init__(self, comm: unisono.Communicator) -> None:
        self.comm = comm
        self.checked = 0  # results compared
        self.wrong = 0  # of them on any rank
        self.ratios: list[float] = []  # times in ordinary memory over times in allocated memory

    def verify(self, exercise: Exercise, what: str) -> bool:
        """One call on fresh buffers; whether all results on all ranks are right."""
        exercise.prepare()
        self.comm.barrier()  # a neighbour may write here only from now on
        exercise.call()
        errors = exercise.errors()
        if errors:
            print(f"rank {self.comm.rank}: {what}: {errors} wrong elements", file=sys.stderr)
        right = self.largest(errors) == 0
        self.checked += 1
        self.wrong += not right
        return right

    def seconds(self, exercise: Exercise) -> float:
        """Time of a call on the slowest rank, the mean of as many calls as fit.

        The first call is not timed: in it ranks map one another's new buffers, page by page.
        """
        exercise.prepare()
        exercise.call()
        repeat = 1
        elapsed = self.timed(exercise, repeat)
        if elapsed < TIMED_SECONDS / 2:
            repeat = max(1, min(2000, int(TIMED_SECONDS / max(elapsed, 1e-6))))
            elapsed = self.timed(exercise, repeat)
        return elapsed / repeat

    def timed(self, exercise: Exercise, repeat: int) -> float:
        """Seconds for some calls, agreed between the ranks."""
        self.comm.barrier()
        begin = time.perf_counter()
        for _ in range(repeat):
            exercise.call()
        return self.largest(time.perf_counter() - begin)

    def largest(self, value: float) -> float:
        """The largest of the ranks' values."""
        values = np.array([value])
        self.comm.allreduce(values, values, "max")
        return float(values[0])

    def cell(self, make: Make, size: int, *, allocated: bool = True) -> tuple[str, float]:
        """Time and verdict of an operation at a size, and the time in seconds."""
        exercise = make(self.comm, Memory(self.comm, allocated), max(size // 4, 1))
        seconds = self.seconds(exercise)
        right = self.verify(exercise, f"{make.__name__} at {text_of_bytes(size)}{'' if allocated else ', ordinary'}")
        return f"{text_of_seconds(seconds)} {'[green]✓[/green]' if right else '[bold red]✗[/bold red]'}", seconds

    def row(self, make: Make, sizes: list[int]) -> list[str]:
        """All cells of an operation: by size, and the largest size in ordinary memory."""
        try:
            cells = [self.cell(make, size) for size in sizes]
        except unisono.UnsupportedError:
            if not ON_DEVICE:
                raise
            return ["[dim]not here[/dim]"] * (len(sizes) + 1)
        cells.append(self.cell(make, sizes[-1], allocated=False))
        if (
            not ON_DEVICE
            and make in exercises.COLLECTIVES
            and "direct" in (a.name for a in unisono.algorithms(make.__name__))
        ):
            self.ratios.append(cells[-1][1] / cells[-2][1])
        return [text for text, _ in cells]

    def algorithms(self, make: Make) -> str:
        """Verdict on every algorithm of a collective, one by one."""
        words = []
        for algorithm in unisono.algorithms(make.__name__):
            name = algorithm.name
            try:
                right = self.verify(make(self.comm, Memory(self.comm), ODD, algorithm=name), str(algorithm))
                words.append(name if right else f"[bold red]{name} ✗[/bold red]")
            except unisono.UnsupportedError:  # refused on all ranks, before anything was sent
                if not algorithm.restriction and not ON_DEVICE:
                    raise
                words.append(f"[dim]({name})[/dim]")
        return " ".join(words)


def main() -> int:
    """Shows the table; 1 if any result on any rank was wrong."""
    parser = argparse.ArgumentParser(description="Every operation of Unisono, checked.")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes of the largest block")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.largest]
    with unisono.init() as context:
        tour = Tour(context.world)
        console = Console(quiet=context.world.rank != 0, highlight=False, width=118)
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("operation", min_width=14)
        for size in sizes:
            table.add_column(text_of_bytes(size), justify="right", min_width=10)
        table.add_column("ordinary", justify="right", min_width=10)
        table.add_column("every algorithm by name, 40 KB", max_width=48)
        for group in (exercises.PRIMITIVES, exercises.COLLECTIVES, exercises.COMBINATIONS):
            for make in group:
                table.add_row(make.__name__, *tour.row(make, sizes), tour.algorithms(make))
            table.add_section()
        console.print(
            f"\n[bold]Tour[/bold]: {context.world.size} ranks, time per call on the slowest rank by bytes of a block; "
            f"✓: right on all ranks;\n"
            f"buffers are in memory of comm.empty, in the column 'ordinary' ({text_of_bytes(sizes[-1])}) in NumPy's;\n"
            f"(in parentheses: not for this call)"
        )
        console.print(table)
        if tour.wrong:
            console.print(f"[bold red]✗ {tour.wrong} of {tour.checked} results are wrong.[/bold red]")
        else:
            console.print(f"[green]✓[/green] all {tour.checked} results are right, on every rank.")
        if tour.ratios and context.world.size > 1:
            console.print(
                f"  The {len(tour.ratios)} collectives that reach buffers directly, {text_of_bytes(sizes[-1])}: "
                f"{np.exp(np.mean(np.log(tour.ratios))):.1f} times as fast as in ordinary memory (mean of this run)."
            )
    return 1 if tour.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
