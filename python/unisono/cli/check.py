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
from .._meaning import FORM, Meaning
from .._spec import Collective
from .._texts import shown
from ..errors import InvalidArgumentError
from ..program import Program
from .arguments import words
from .names import select
from .show import write

MOST_RANKS = 256
MOST_SWITCHES = 6  # of trees that are made; --tree may have more
WIDEST = 32  # characters of the longest name of an algorithm


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="prove programs: right result, no deadlock, no race",
        description="Executes the programs of all ranks on symbols, on the least permissive engine, and examines the "
        "order of all accesses; then runs random schedules, mixes of the channels by which hosts and their ranks are "
        "joined, and the form to which the engine lowers programs. Status 1 if anything is wrong.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME|FILE", help="allreduce, allreduce/ring, or a program file")
    parser.add_argument(
        "--as",
        dest="meaning",
        metavar="MEANING",
        help="what a program file is meant as, so that its result is compared: allreduce:sum, bcast:root=1, "
        f"gatherv:counts=1,2,3; {FORM}",
    )
    parser.add_argument("--ranks", type=_range, default=[], metavar="A:B", help="numbers of ranks (default up to 64)")
    parser.add_argument(
        "--switches", type=_switches, default=[], metavar="A:B",
        help="numbers of switches in the trees of */switch, up to 6 (default 1:2)",
    )  # fmt: skip
    parser.add_argument(
        "--tree", type=words, metavar="TREE", help='of */switch, this one alone, such as "((0 1) (2 3))"'
    )
    parser.add_argument("--schedules", type=_natural, default=24, metavar="N", help="random schedules a call")
    parser.add_argument(
        "--mixes",
        type=_natural,
        default=12,
        metavar="N",
        help="mixes of lanes, credits and grants a call that are drawn, beside the fixed ones (default 12)",
    )
    parser.add_argument("--seed", type=_natural, default=1, help="of the random schedules and mixes")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--svg", type=Path, metavar="OUT", help="where to draw a counterexample (unisono-counterexample.svg)"
    )
    parser.set_defaults(execute=execute)


def _numbers(text: str, most: int) -> list[int] | None:
    """All of "2:9", or the one of "4"; None if that is no range from 1 up to `most`."""
    first, colon, last = text.partition(":")
    with contextlib.suppress(ValueError):
        low, high = int(first), int(last if colon else first)
        if 1 <= low <= high <= most:
            return list(range(low, high + 1))
    return None


def _range(text: str) -> list[int]:
    found = _numbers(text, MOST_RANKS)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of ranks such as 2:9, between 1 and {MOST_RANKS}")
    return found


def _switches(text: str) -> list[int]:
    found = _numbers(text, MOST_SWITCHES)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of switches such as 1:3, between 1 and {MOST_SWITCHES}")
    return found


def _natural(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= int(text) < 1 << 32:
            return int(text)
    raise argparse.ArgumentTypeError(f"{shown(text)} is no number from 0 to {(1 << 32) - 1}")


def _check_trees(options: argparse.Namespace) -> None:
    """Trees go with algorithms of switches, and say how many ranks and switches they have."""
    for option in ("switches", "tree"):
        if getattr(options, option) in (None, []):
            continue
        entries = [] if os.path.isfile(options.name or "") else select(options.name)
        named = [entry.name == "switch" for entry in entries]
        if not named or not (all(named) if option == "tree" else any(named)):
            raise InvalidArgumentError(f"--{option} goes with algorithms of switches, such as allreduce/switch")
    if options.tree is not None:
        for option in ("ranks", "switches"):
            if getattr(options, option):
                raise InvalidArgumentError(f"--tree and --{option} were given; a tree says how many {option} it has")
        _core.tree_nodes(options.tree)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    console = Console(highlight=False)
    begin = time.monotonic()
    reports: dict[str, dict[str, Any]] = {}
    _check_trees(options)
    if options.name is not None and os.path.isfile(options.name):
        data = bytes(Program.load(options.name))
        meaning = None if options.meaning is None else Meaning.parse(options.meaning).encoded()
        reports[options.name] = _core.check_program(data, options.schedules, options.seed, meaning, options.mixes)
        if not options.json:
            _file(console, options.name, reports[options.name])
    else:
        entries = select(options.name)
        if options.meaning is not None:
            raise InvalidArgumentError(
                f"--as {options.meaning} was given with {options.name or 'all algorithms'}; it goes with a program "
                "file, for algorithms are compared with their collective anyway"
            )
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
                    int(collective), entry.name, options.ranks, options.schedules, options.seed, options.mixes,
                    options.switches, options.tree or "",
                )  # fmt: skip
                reports[str(entry)] = report
                if not options.json:
                    if len(reports) == 1:
                        _head(console, report)
                    _row(console, str(entry), report, time.monotonic() - started)
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
        for key in (
            "calls",
            "same",
            "refused",
            "moves",
            "pairs",
            "schedules",
            "mixed",
            "lowered",
            "lowered_runs",
            "not_carried",
            "trees",
            "any",
        )
    }
    what = "program" if len(reports) == 1 else f"of {len(reports)} programs"
    compared = all(report["compared"] is not None for report in reports.values())
    right = "[green]all right[/]" if compared else "[yellow]the ranks fit each other[/]"
    verdict = f"[bold red]{failed} {what} {'is' if failed == 1 else 'are'} wrong[/]" if failed else right
    calls = f"{total['calls']} call{'s' * (total['calls'] != 1)}"
    sampled = max(report["most_ranks_sampled"] for report in reports.values())
    proven = (
        f"{calls} proven, {total['moves']} moves, {total['pairs']} pairs of accesses ordered; "
        f"{total['schedules']} random schedules run{f', up to P {sampled}' if sampled else ''}; "
    )
    # Beside a counterexample stands nothing that reads as a proof of the same program.
    before = f"{calls} proven before that; " if total["calls"] else ""
    console.print(f"{verdict}: {before if failed else proven}{seconds:.1f} s")
    if total["mixed"] and not failed:
        console.print(
            f"mixes of lanes, credits and grants: {total['mixed']} runs, all to the same end; no channel "
            "held more than it may"
        )
    if total["trees"] and not failed:
        console.print(
            f"switches: {total['trees']} calls, with one slot and shared ports, too, and in the order of members that "
            f"stand in for them; {total['any']} arrivals in any order, proven by normal form"
        )
    if total["lowered"] and not failed:
        console.print(
            f"lowered for the engine: {total['lowered']} calls, in order and with equal bits; "
            f"{total['lowered_runs']} straight, windowed and mixed forms run, no circular wait; "
            f"not carried: {total['not_carried']}"
        )


def _head(console: Console, report: dict[str, Any]) -> None:
    """The heading of the rows that `_row` prints, all of the same numbers of ranks."""
    console.print(
        f"{'algorithm, P ' + _spans(report['ranks']):{WIDEST + 2}}  {'calls':>5}  not admitted  schedules     time",
        style="dim",
    )


def _row(console: Console, name: str, report: dict[str, Any], seconds: float) -> None:
    if not report["ok"]:
        _counterexample(console, name, report)
        return
    console.print(
        f"[green]✓[/] {escape(name):{WIDEST}}  {report['calls']:5}  {report['refused'] or '-':>12}  "
        f"{report['schedules']:9}  [dim]{seconds:5.1f} s[/]"
    )


def _file(console: Console, name: str, report: dict[str, Any]) -> None:
    """A program file: what was proven of it in words."""
    if not report["ok"]:
        _counterexample(console, name, report)
        return
    compared = report["compared"]
    result = (
        "[yellow]result not compared with anything[/] (--as allreduce:sum compares it with that)"
        if compared is None
        else f"right result of {escape(compared)}"
    )
    console.print(
        f"[green]✓[/] {escape(name)} proven: no deadlock on any engine, messages match, within bounds, no race; "
        f"{result}"
    )


def _counterexample(console: Console, name: str, report: dict[str, Any]) -> None:
    console.print(f"[bold red]✗[/] [bold]{escape(name)}[/]", soft_wrap=True)
    console.print(str(report["text"]), markup=False, soft_wrap=True)


def _spans(numbers: list[int]) -> str:
    """1, 2, 3, 7 as "1-3 7"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in spans)
