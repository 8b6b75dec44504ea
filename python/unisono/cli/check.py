"""`unisono check`: proves the programs of algorithms, and checks program files."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from .. import _core
from .._spec import Collective
from .names import select

WIDEST = 32  # characters of the longest name


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="prove programs: right result, no deadlock, no race",
        description="Executes the programs of all ranks on symbols, on the least permissive engine, and examines the "
        "order of all accesses; then runs random schedules. Status 1 if anything is wrong.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME|FILE", help="allreduce, allreduce/ring, or a program file")
    parser.add_argument("--ranks", type=_range, default=[], metavar="A:B", help="numbers of ranks (default up to 64)")
    parser.add_argument("--schedules", type=_natural, default=24, metavar="N", help="random schedules a call")
    parser.add_argument("--seed", type=_natural, default=1, help="of the random schedules")
    parser.set_defaults(execute=execute)


def _range(text: str) -> list[int]:
    first, _, last = text.partition(":")
    with contextlib.suppress(ValueError):
        low, high = int(first), int(last or first)
        if 1 <= low <= high <= 256:
            return list(range(low, high + 1))
    raise argparse.ArgumentTypeError(f"{text!r} is no range of ranks such as 2:9, between 1 and 256")


def _natural(text: str) -> int:
    with contextlib.suppress(ValueError):
        if int(text) >= 0:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of 0 and more")


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    console = Console(highlight=False)
    if options.name is not None and os.path.isfile(options.name):
        report = _core.check_program(Path(options.name).read_bytes(), options.schedules, options.seed)
        _print(console, options.name, report, 0.0)
        return 0 if report["ok"] else 1
    entries = select(options.name)
    begin = time.monotonic()
    total: dict[str, int] = dict.fromkeys(("calls", "moves", "pairs", "schedules"), 0)
    failed = 0
    for entry in entries:
        started = time.monotonic()
        collective = Collective[entry.collective.upper()]
        arguments = (int(collective), entry.name, options.ranks, options.schedules, options.seed)
        if sys.stdout.isatty():
            with console.status(f"{entry} …"):
                report = _core.check_algorithm(*arguments)
        else:
            report = _core.check_algorithm(*arguments)
        failed += not report["ok"]
        for key in total:
            total[key] += report[key]
        _print(console, str(entry), report, time.monotonic() - started)
    verdict = f"[bold red]{failed} of {len(entries)} algorithms are wrong[/]" if failed else "[green]all right[/]"
    console.print(
        f"{verdict}: {total['calls']} calls proven, {total['moves']} moves, {total['pairs']} pairs of accesses "
        f"ordered; {total['schedules']} random schedules run; {time.monotonic() - begin:.1f} s",
        soft_wrap=True,
    )
    return 1 if failed else 0


def _print(console: Console, name: str, report: dict[str, Any], seconds: float) -> None:
    if not report["ok"]:
        console.print(f"[bold red]✗[/] [bold]{escape(name)}[/]")
        console.print(str(report["text"]), markup=False, soft_wrap=True)
        return
    ranks = report["ranks"]
    sizes = f"P {_spans(ranks)}" if ranks else ""
    sampled = f"sampled up to P {report['most_ranks_sampled']}: " if report["most_ranks_sampled"] else ""
    refused = f", {report['refused']} not admitted" if report["refused"] else ""
    console.print(
        f"[green]✓[/] {escape(name):{WIDEST}} proven for {report['calls']:5} calls{refused}, {sizes}; "
        f"{sampled}{report['schedules']} schedules  [dim]{seconds:.1f} s[/]",
        soft_wrap=True,
    )


def _spans(numbers: list[int]) -> str:
    """1, 2, 3, 7 as "1-3 7"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in spans)
