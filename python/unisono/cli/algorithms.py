"""`unisono algorithms`: the table of algorithms."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from rich import box
from rich.console import Console
from rich.table import Table

from .._texts import shown
from ..algorithms import Algorithm
from ..algorithms import algorithms as table_of
from ..errors import InvalidArgumentError
from . import table as tables

WIDE = 120  # columns from which on a table of five columns reads well


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
        raise InvalidArgumentError(f"there is no collective {shown(options.collective)}; there are {known}")
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in entries], indent=2))
        return 0
    console = Console(highlight=False)
    console.print(_wide(entries) if console.width >= WIDE else _narrow(entries))
    console.print()
    console.print(
        "[dim]Cost: alpha latency, beta per byte, gamma per reduced byte, P ranks, n bytes, "
        "sigma entry of all ranks (direct access). o: combines in rank order. NAME:k, r: takes a radix, r by itself.[/]"
    )
    return 0


def _wide(entries: list[Algorithm]) -> Table:
    table = Table(box=box.ROUNDED, header_style="bold", border_style="dim", expand=True)
    table.add_column("algorithm", no_wrap=True)
    table.add_column("o")
    table.add_column("cost", ratio=4)
    table.add_column("restriction", ratio=3)
    table.add_column("source", ratio=5, style="dim")
    for entry, ends in _with_ends(entries):
        table.add_row(
            _name(entry), "o" if entry.ordered else "", entry.cost, entry.restriction, entry.source, end_section=ends
        )
    return table


def _narrow(entries: list[Algorithm]) -> Table:
    table = tables.plain(expand=True)
    table.add_column("algorithm", no_wrap=True)
    table.add_column("o")
    table.add_column("cost, restriction, source", ratio=1)
    for entry, ends in _with_ends(entries):
        texts = [entry.cost, entry.restriction, f"[dim]{entry.source}[/]"]
        table.add_row(
            _name(entry), "o" if entry.ordered else "", "\n".join(text for text in texts if text), end_section=ends
        )
    return table


def _name(entry: Algorithm) -> str:
    usual = f", {entry.radix}" if entry.radix > 1 else ""
    radix = f"[dim]:k{usual}[/]" if entry.radix else ""
    return f"{entry.collective}/[bold cyan]{entry.name}[/]{radix}"


def _with_ends(entries: list[Algorithm]) -> Iterator[tuple[Algorithm, bool]]:
    """Each entry, and whether a line follows: around every collective of several algorithms."""
    several = Counter(entry.collective for entry in entries)
    for entry, following in zip_longest(entries, entries[1:]):
        last = following is not None and following.collective != entry.collective
        yield entry, last and several[entry.collective] + several[following.collective] > 2
