"""`unisono show`: the program of a rank, move by move."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from .. import _core
from .._spec import Collective, Datatype, Func
from ..errors import InvalidArgumentError
from .names import select

DATATYPES = [datatype.name.lower() for datatype in Datatype if datatype != Datatype.NONE]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser("show", help="show the moves of a program")
    parser.add_argument("name", metavar="COLLECTIVE/ALGORITHM")
    parser.add_argument("--ranks", type=int, default=4, metavar="P", help="number of ranks (4)")
    parser.add_argument("--rank", type=int, metavar="R", help="only this rank's program")
    parser.add_argument("--count", type=int, default=16, metavar="N", help="elements (16)")
    parser.add_argument("--datatype", choices=DATATYPES, default="fp32", help="of the elements (fp32)")
    parser.add_argument("--root", type=int, default=0, metavar="R", help="root, or peer (0)")
    parser.add_argument("--in-place", action="store_true", help="the in-place form")
    parser.add_argument("--group-size", type=int, default=0, metavar="G", help="ranks of a group (one level)")
    parser.add_argument("--file", type=Path, help="write all ranks' programs to a program file")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    entries = select(options.name)
    if len(entries) != 1:
        names = ", ".join(str(entry) for entry in entries)
        raise InvalidArgumentError(f"show takes one algorithm; {options.name} has {names}")
    for what in ("ranks", "count", "root", "group_size"):
        if getattr(options, what) < (1 if what == "ranks" else 0):
            raise InvalidArgumentError(f"{what.replace('_', ' ')} is {getattr(options, what)}; it cannot be that small")
    entry = entries[0]
    collective = int(Collective[entry.collective.upper()])
    datatype = int(Datatype[options.datatype.upper()])
    call = (options.root, int(Func.SUM), datatype, options.count, options.in_place, options.group_size)
    console = Console(highlight=False)
    if options.file is not None:
        text = _core.program_file(collective, entry.name, options.ranks, *call)
        options.file.write_text(text, encoding="utf-8")
        console.print(f"{entry} for {options.ranks} ranks: {options.file}", markup=False, soft_wrap=True)
        return 0
    ranks = range(options.ranks) if options.rank is None else [options.rank]
    for rank in ranks:
        listing = _core.program_listing(collective, entry.name, options.ranks, rank, *call)
        console.print(f"[bold]{entry}[/], rank {rank} of {options.ranks}")
        console.print(listing.rstrip(), markup=False, soft_wrap=True)
    return 0
