"""`unisono ps`: the jobs on this machine."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..machine.jobs import Job
from ..machine.launches import Launch
from .asking import Answer, ask, plain
from .spanning import add_deadline, all_jobs, by_rank, missing


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "ps",
        help="list the jobs on this machine, and what each rank is doing",
        description="Lists the jobs of this user on this machine: each rank with its process, how many calls it has "
        "begun, and what it is doing. The ranks need not answer; their flight records are read from the job's memory. "
        "The hosts of jobs that `unisono run --hosts` has started here are asked, all at once.",
    )
    add_deadline(parser)
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    launched, found = all_jobs()
    answers = {launch.pid: ask(launch, "ps", options.deadline) for launch in launched}
    if options.json:
        entries = [_entry(launch, answers[launch.pid]) for launch in launched]
        entries += [dataclasses.asdict(job) | {"command": _command(job)} for job in found]
        print(json.dumps(entries, indent=2))
        return 0
    console = Console(highlight=False, soft_wrap=True)
    if not found and not launched:
        console.print("no jobs of yours on this machine")
    for launch in launched:
        hosts = len(launch.hosts)
        what = f"{launch.size} rank{'s' * (launch.size != 1)} on {hosts} host{'s' * (hosts != 1)}"
        console.print(f"[bold]job of unisono run {launch.pid}[/], {what}: {escape(launch.command)}")
        console.print(_table_of_hosts(answers[launch.pid]))
        for sentence in missing(answers[launch.pid]):
            console.print(f"[red]{escape(sentence)}[/]")
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


def _entry(launch: Launch, answers: list[Answer]) -> dict[str, Any]:
    """A job of several hosts, for programs."""
    return {
        "launcher": launch.pid,
        "command": launch.command,
        "hosts": [
            {"name": answer.host.name, "ranks": answer.host.ranks, "fault": answer.fault or None} for answer in answers
        ],
        "ranks": [
            seen | {"host": answer.host.name, "job": job.get("number")}
            for answer in answers
            for _, seen, job, _ in by_rank(answer)
        ],
    }


def _table_of_hosts(answers: list[Answer]) -> Table:
    """The ranks of all hosts, in their order. Those of a host that has not answered have lines, too."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", border_style="dim", pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("host", no_wrap=True)
    table.add_column("process", no_wrap=True)
    table.add_column("communicators", justify="right")
    table.add_column("calls", justify="right")
    table.add_column("now")
    lines: dict[int, list[str]] = {}
    for answer in answers:
        name = escape(plain(answer.host.name))
        nothing = "not known" if answer.fault else "no job of Unisono"
        for rank, pid in zip(answer.host.ranks, answer.host.pids, strict=True):
            lines[rank] = [str(rank), name, f"pid {pid}", "", "", f"[dim]{nothing}[/]"]
        for rank, seen, _, _ in by_rank(answer):
            doing = escape(plain(str(seen.get("doing", ""))))
            if seen.get("condition"):
                doing = f"[red]{escape(plain(str(seen['condition'])))}[/]; {doing}"
            process = escape(plain(str(seen.get("name", ""))))
            lines[rank] = [str(rank), name, process, str(seen.get("communicators")), str(seen.get("calls")), doing]
    for rank in sorted(lines):
        table.add_row(*lines[rank])
    return table
