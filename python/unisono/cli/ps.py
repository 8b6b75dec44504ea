"""`unisono ps`: the jobs on this machine."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..machine.jobs import Job, jobs


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "ps",
        help="list the jobs on this machine, and what each rank is doing",
        description="Lists the jobs of this user on this machine: each rank with its process, how many calls it has "
        "begun, and what it is doing. The ranks need not answer; their flight records are read from the job's memory.",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    found = jobs()
    if options.json:
        print(json.dumps([dataclasses.asdict(job) | {"command": _command(job)} for job in found], indent=2))
        return 0
    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print("no jobs of yours on this machine")
    for job in found:
        ranks = len(job.ranks)
        console.print(f"[bold]job {job.number}[/], {ranks} rank{'s' * (ranks != 1)}: {escape(_command(job))}")
        console.print(_table(job))
    return 0


def _command(job: Job) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{job.pids[0]}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    return "?"


def _table(job: Job) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", border_style="dim", pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("process", no_wrap=True)
    table.add_column("communicators", justify="right")
    table.add_column("calls", justify="right")
    table.add_column("now")
    for number, rank in enumerate(job.ranks):
        doing = escape(rank.doing)
        if rank.condition:
            doing = f"[red]{escape(rank.condition)}[/]; {doing}"
        table.add_row(str(number), escape(rank.name), str(rank.communicators), str(rank.calls), doing)
    return table
