"""`unisono dump`: what a running or stuck job is doing."""

from __future__ import annotations

import argparse

from ..errors import InvalidArgumentError
from ..machine.jobs import jobs, report


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "dump",
        help="say what a running or stuck job is doing, and who waits for whom",
        description="Reads the flight records of the job that a process belongs to, of all its ranks: for each "
        "communicator what every rank is in and what it waits for, calls that differ, and who waits for whom. The "
        "ranks need not answer.",
    )
    parser.add_argument("pid", type=int, nargs="?", help="a process of the job; not needed if there is one job only")
    parser.add_argument("--history", action="store_true", help="the last calls of each rank as well")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    pid = options.pid
    if pid is None:
        found = jobs()
        if len(found) != 1:
            number = f"there are {len(found)} jobs" if found else "there is no job of yours"
            raise InvalidArgumentError(f"{number} on this machine; name a process (`unisono ps` lists them)")
        pid = found[0].pids[0]
    elif pid <= 0 or pid >= 1 << 32:
        raise InvalidArgumentError(f"pid is {pid}; pass the number of a process")
    print(report(pid, history=options.history), end="")
    return 0
