"""`unisono check`: proves the programs of algorithms, and checks program files."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import _core
from .._spec import Collective
from ..program import Program
from .names import select
from .show import write

WIDEST = 32  # characters of the longest name


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="prove programs: right result, no deadlock, no race",
        description="Executes the programs of all ranks on symbols, on the least permissive engine, and examines the "
        "order of all accesses; then runs random schedules, and the form to which the engine lowers programs. Status 1 "
        "if anything is wrong.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME|FILE", help="allreduce, allreduce/ring, or a program file")
    parser.add_argument("--ranks", type=_range, default=[], metavar="A:B", help="numbers of ranks (default up to 64)")
    parser.add_argument("--schedules", type=_natural, default=24, metavar="N", help="random schedules a call")
    parser.add_argument("--seed", type=_natural, default=1, help="of the random schedules")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--svg", type=Path, metavar="OUT", help="where to draw a counterexample (unisono-counterexample.svg)"
    )
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
    begin = time.monotonic()
    reports: dict[str, dict[str, Any]] = {}
    if options.name is not None and os.path.isfile(options.name):
        data = bytes(Program.load(options.name))
        reports[options.name] = _core.check_program(data, options.schedules, options.seed)
        if not options.json:
            _print(console, options.name, reports[options.name], time.monotonic() - begin)
    else:
        entries = select(options.name)
        live = not options.json and sys.stdout.isatty()
        with Progress(
            TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=console, transient=True, disable=not live,
        ) as progress:  # fmt: skip
            task = progress.add_task("", total=len(entries))
            for entry in entries:
                started = time.monotonic()
                progress.update(task, description=str(entry))
                collective = Collective[entry.collective.upper()]
                report = _core.check_algorithm(
                    int(collective), entry.name, options.ranks, options.schedules, options.seed
                )
                reports[str(entry)] = report
                if not options.json:
                    _print(console, str(entry), report, time.monotonic() - started)
                progress.advance(task)
    failed = {name: report for name, report in reports.items() if not report["ok"]}
    picture = _draw(options, failed)
    if options.json:
        for report in reports.values():
            del report["svg"]
        print(json.dumps({"ok": not failed, "picture": picture, "reports": reports}, indent=2))
        return 1 if failed else 0
    if picture is not None:
        console.print(f"Picture of the counterexample: {picture}", markup=False, soft_wrap=True)
    _summary(console, reports, len(failed), time.monotonic() - begin)
    return 1 if failed else 0


def _draw(options: argparse.Namespace, failed: dict[str, dict[str, Any]]) -> str | None:
    """Writes the picture of the first counterexample; its path."""
    svg = next((report["svg"] for report in failed.values() if report["svg"] is not None), None)
    if svg is None:
        return None
    path: Path = options.svg or Path("unisono-counterexample.svg")
    write(path, svg.encode())
    return os.fspath(path)


def _summary(console: Console, reports: dict[str, dict[str, Any]], failed: int, seconds: float) -> None:
    total = {
        key: sum(report[key] for report in reports.values())
        for key in ("calls", "same", "refused", "moves", "pairs", "schedules", "lowered", "lowered_runs")
    }
    what = "program" if len(reports) == 1 else f"of {len(reports)} programs"
    verdict = (
        f"[bold red]{failed} {what} {'is' if failed == 1 else 'are'} wrong[/]" if failed else "[green]all right[/]"
    )
    console.print(
        f"{verdict}: {total['calls']} calls proven, {total['moves']} moves, {total['pairs']} pairs of accesses "
        f"ordered; {total['schedules']} random schedules run; {seconds:.1f} s",
        soft_wrap=True,
    )
    if total["lowered"] and not failed:
        console.print(
            f"lowered for the engine: {total['lowered']} calls, in order and with equal bits; "
            f"{total['lowered_runs']} straight, windowed and mixed forms run, no circular wait",
            soft_wrap=True,
        )


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
