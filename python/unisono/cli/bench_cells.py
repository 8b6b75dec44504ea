"""What `unisono bench` does with a set of cells: says what it will do, measures them, and sums up."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import IO

from rich.console import Console

from ..bench import plan, report
from ..bench.machine import Placement, Processor
from ..bench.network import Network
from ..bench.plan import Cell, Effort
from ..bench.session import Measured, Row, Session
from ..bench.statistics import DISTURBED


def announce(
    console: Console, cells: list[Cell], systems: list[str], where: Placement, effort: Effort, network: Network | None
) -> None:
    """Says what will be measured, and how long it takes."""
    seconds = sum(plan.estimate(cell, len(systems) + (cell.compared is not None), effort) for cell in cells)
    cores = (
        f"{where.usable} of {len(where.cores)} cores" if where.usable < len(where.cores) else f"{where.usable} cores"
    )
    bound = "not bound: ranks share cores" if where.crowded else f"bound to cores {where.binding}"
    console.print(f"{where.ranks} ranks, {bound} ({cores} usable); {', '.join(systems)}", markup=False)
    if network is not None:
        console.print(network.text, markup=False)
    figure = "means" if where.crowded else "medians"
    console.print(
        f"{len(cells)} cells, {figure} of at least {effort.rounds} rounds of {1000 * effort.block_seconds:g} ms for "
        f"each system; about {_duration(seconds)}, more if the machine is disturbed",
        markup=False,
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def measure(
    session: Session,
    cells: list[Cell],
    printer: report.TablePrinter,
    console: Console,
    sink: IO[str] | None,
    here: Processor,
) -> list[Row]:
    """Measures all cells; writes each as soon as it is there."""

    def keep(measured: Measured) -> None:
        if sink is not None:
            sink.write(json.dumps(report.record(measured, session.facts(here))) + "\n")
            sink.flush()

    progress = _progress()
    for name, failure in session.start().items():
        console.print(f"{name} {failure}", style="bold red", markup=False)
    dtypes = dict.fromkeys(cell.dtype for cell in cells)
    limits = []
    for dtype in dtypes:
        sizes = dict.fromkeys(cell.bytes for cell in cells if cell.dtype == dtype and cell.bytes)
        asked = [("cache_line", 64)] if dtype == next(iter(dtypes)) and session.has_line else []
        # Between hosts the limit is what plain sockets take.
        asked += [(op, size) for op in ("memcpy", "reduce") for size in sizes if cells[0].network is None]
        for op, size in asked:
            progress(f"limits: {op} {plan.size_text(size)}")
            limits.append(session.machine_limit(op, dtype, size))
            keep(limits[-1])
    progress("")
    printer.limits(limits, session.facts(here))
    rows = []
    begin = time.monotonic()
    for number, cell in enumerate(cells):
        left = f", {_duration((time.monotonic() - begin) / number * (len(cells) - number))} left" if number else ""
        progress(f"[{number + 1}/{len(cells)}] {cell.title} {plan.size_text(cell.bytes)}{left}")
        row = session.measure(cell)
        progress("")
        rows.append(row)
        printer.row(row)
        for measured in [row.limit, *row.systems]:
            if measured.times or measured.failure is not None:  # plain sockets have some operations only
                keep(measured)
    return rows


def _progress() -> Callable[[str], None]:
    """A line that is overwritten; nothing where nobody watches."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(text: str) -> None:
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()

    return show


def verdict(console: Console, rows: list[Row], printer: report.TablePrinter, session: Session) -> int:
    """Sums up; the exit status."""
    wrong = sum(not measured.verified for row in rows for measured in [row.limit, *row.systems])
    failed = sum(measured.failure is not None for row in rows for measured in row.systems)
    ours = sum(measured.failure is not None for row in rows for measured in row.systems if measured.system == "unisono")
    rounds = sum(row.rounds for row in rows)
    disturbed = rounds - sum(row.quiet for row in rows)
    noisy = sum(row.noisy for row in rows)
    console.print()
    text = (
        f"{disturbed} of {rounds} rounds were disturbed (the limit above {DISTURBED:g} times its minimum, or a core "
        "taken by others) and left out"
    )
    if noisy:
        text += f"; {noisy} of {len(rows)} cells had too few quiet ones, so the quietest quarter was taken"
    console.print(f"{text}.", markup=False)
    if session.kernel_copies is False:
        console.print(
            "The kernel refuses copies between processes here, so the limit of ordinary memory is that of cells alone.",
            markup=False,
        )
    if printer.met or printer.missed:
        console.print(f"Targets: {printer.met} met, {printer.missed} missed.", markup=False)
    if failed:
        console.print(f"{failed} figures are missing because a system failed.", style="bold red", markup=False)
    if wrong:
        console.print(f"{wrong} figures belong to WRONG RESULTS.", style="bold red", markup=False)
    else:
        console.print("All results verified.", markup=False)
    return 1 if wrong or ours else 0
