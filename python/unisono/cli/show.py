"""`unisono show`: the programs of an algorithm, or of a program file, move by move or as a picture."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console

from .. import _core
from .._spec import Collective, Datatype, Func
from ..algorithms import Algorithm
from ..errors import InvalidArgumentError
from ..program import Program
from .arguments import words
from .names import select

DATATYPES = [datatype.name.lower() for datatype in Datatype if datatype != Datatype.NONE]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser("show", help="show the moves of a program")
    parser.add_argument("name", metavar="COLLECTIVE/ALGORITHM|FILE", help="allreduce/ring, or a program file")
    parser.add_argument("--ranks", type=int, metavar="P", help="number of ranks (4)")
    parser.add_argument("--rank", type=int, metavar="R", help="only this rank's program")
    parser.add_argument("--count", type=int, default=16, metavar="N", help="elements (16)")
    parser.add_argument("--datatype", choices=DATATYPES, default="fp32", help="of the elements (fp32)")
    parser.add_argument("--root", type=int, default=0, metavar="R", help="root, or peer (0)")
    parser.add_argument("--in-place", action="store_true", help="the in-place form")
    parser.add_argument("--group-size", type=int, default=0, metavar="G", help="ranks of a group (one level)")
    parser.add_argument(
        "--tree", type=words, metavar="TREE", help='of */switch: members and switches, such as "((0 1) (2 3))"'
    )
    parser.add_argument("--stand-in", action="store_true", help="members in place of the tree's switches")
    parser.add_argument("--file", type=Path, metavar="OUT", help="write all ranks' programs to a program file")
    parser.add_argument("--svg", type=Path, metavar="OUT", help="draw a run of all ranks")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    console = Console(highlight=False, soft_wrap=True)
    if os.path.isfile(options.name):
        if options.tree is not None or options.stand_in:
            raise InvalidArgumentError(f"{options.name} is a program file; --tree and --stand-in go with an algorithm")
        return _show_file(console, options)
    entries = select(options.name)
    if len(entries) != 1:
        names = ", ".join(str(entry) for entry in entries)
        raise InvalidArgumentError(f"show takes one algorithm; {options.name} has {names}")
    entry = entries[0]
    switches = _apply_tree(options, entry)
    for what in ("ranks", "count", "root", "group_size"):
        least = 1 if what == "ranks" else 0
        if getattr(options, what) < least:
            raise InvalidArgumentError(
                f"{what.replace('_', ' ')} {getattr(options, what)} was given; allowed are {least} and more"
            )
    collective = int(Collective[entry.collective.upper()])
    datatype = int(Datatype[options.datatype.upper()])
    call = (
        options.root, int(Func.SUM), datatype, options.count, options.in_place, options.group_size,
        options.tree or "", options.stand_in,
    )  # fmt: skip
    job = (collective, entry.name, options.ranks, *call)
    subject = f"{entry} for {options.ranks} {'rank' if options.ranks == 1 else 'ranks'}"
    if options.file is not None:
        if switches:
            raise InvalidArgumentError(
                "a program file holds programs of ranks; with --stand-in members play the switches"
            )
        write(options.file, _core.program_file(*job))
        console.print(f"{subject}: {options.file}", markup=False)
    if options.svg is not None:
        write(options.svg, _core.draw_algorithm(*job).encode())
        console.print(f"{subject}: {options.svg}", markup=False)
    if options.file is not None or options.svg is not None:
        return 0
    for rank in _ranks(options.rank, options.ranks + switches):
        listing = _core.program_listing(collective, entry.name, options.ranks, rank, *call)
        if rank < options.ranks:
            _print(console, str(entry), rank, options.ranks, listing)
        else:
            _print(console, str(entry), rank - options.ranks, switches, listing, "switch")
    return 0


def _apply_tree(options: argparse.Namespace, entry: Algorithm) -> int:
    """Takes the number of ranks from the tree, or 4 if there is none; how many switches have programs."""
    if options.tree is None:
        if options.stand_in:
            raise InvalidArgumentError("--stand-in goes with --tree")
        if entry.name == "switch":
            raise InvalidArgumentError(f'{entry} needs a tree of members and switches, such as --tree "((0 1) (2 3))"')
        options.ranks = 4 if options.ranks is None else options.ranks
        return 0
    if entry.name != "switch":
        raise InvalidArgumentError(f"--tree was given with {entry}; it goes with {entry.collective}/switch")
    if options.ranks is not None:
        raise InvalidArgumentError("--tree and --ranks were given; a tree says how many ranks it has")
    options.ranks, switches = _core.tree_nodes(options.tree)
    return 0 if options.stand_in else switches


def write(path: Path, data: bytes) -> None:
    """Writes a file that the command line names."""
    try:
        path.write_bytes(data)
    except OSError as failure:
        raise InvalidArgumentError(f"{path} cannot be written: {failure.strerror}") from failure


def _ranks(rank: int | None, size: int) -> range:
    if rank is None:
        return range(size)
    if not 0 <= rank < size:
        raise InvalidArgumentError(f"rank {rank} was asked for; there are ranks 0 to {size - 1}")
    return range(rank, rank + 1)


def _show_file(console: Console, options: argparse.Namespace) -> int:
    program = Program.load(options.name)
    if options.file is not None:
        raise InvalidArgumentError(f"{options.name} is a program file already; --file goes with an algorithm")
    if options.svg is not None:
        write(options.svg, program.draw().encode())
        console.print(f"{options.name}: {options.svg}", markup=False)
        return 0
    for rank in _ranks(options.rank, program.size):
        _print(console, options.name, rank, program.size, program.text(rank))
    return 0


def _print(console: Console, name: str, rank: int, size: int, listing: str, what: str = "rank") -> None:
    console.print(f"{name}, {what} {rank} of {size}", style="bold", markup=False)
    console.print(listing.rstrip(), markup=False)
