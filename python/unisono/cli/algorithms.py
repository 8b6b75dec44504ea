"""`unisono algorithms`: the table of algorithms."""

from __future__ import annotations

import argparse
import dataclasses
import json

from rich.console import Console
from rich.table import Table

from ..algorithms import Algorithm
from ..algorithms import algorithms as table_of
from ..errors import InvalidArgumentError


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser("algorithms", help="list the algorithms of each collective")
    parser.add_argument("collective", nargs="?", help="only those of one collective")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    entries = table_of(options.collective)
    if not entries:
        known = ", ".join(dict.fromkeys(entry.collective for entry in table_of()))
        raise InvalidArgumentError(f"there is no collective {options.collective!r}; there are {known}")
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in entries], indent=2))
        return 0
    console = Console(highlight=False)
    console.print(_table(entries) if console.width >= 100 else _list(entries))
    console.print(
        "[dim]Cost: alpha latency, beta per byte, gamma per reduced byte, P ranks, n bytes. "
        "o: combines in rank order.[/]"
    )
    return 0


def _table(entries: list[Algorithm]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column, options in (
        ("algorithm", {"no_wrap": True}),
        ("", {}),
        ("cost", {"ratio": 3}),
        ("restriction", {"ratio": 2}),
        ("source", {"ratio": 4}),
    ):
        table.add_column(column, **options)
    before = ""
    for entry in entries:
        if before and entry.collective != before:
            table.add_section()
        before = entry.collective
        table.add_row(
            f"{entry.collective}/[bold cyan]{entry.name}[/]",
            "o" if entry.ordered else "",
            entry.cost,
            entry.restriction,
            f"[dim]{entry.source}[/]",
        )
    return table


def _list(entries: list[Algorithm]) -> str:
    lines = []
    for entry in entries:
        lines.append(f"{entry.collective}/[bold cyan]{entry.name}[/]{' (o)' if entry.ordered else ''}")
        lines += [f"    {text}" for text in (entry.cost, entry.restriction, f"[dim]{entry.source}[/]") if text]
    return "\n".join(lines)
