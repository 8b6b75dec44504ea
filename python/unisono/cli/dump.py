"""`unisono dump`: what a running or stuck job is doing."""

from __future__ import annotations

import argparse

from ..machine.jobs import chosen, report


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "dump",
        help="say what a running or stuck job is doing, and who waits for whom",
        description="Reads the flight records of the job that a process belongs to, of all its ranks: for each "
        "communicator what every rank is in and what it waits for, calls that differ, and who waits for whom. The "
        "ranks need not answer.",
    )
    parser.add_argument(
        "pid",
        type=int,
        nargs="?",
        metavar="JOB|PID",
        help="the job's number, as `unisono ps` has it, or a process of it; not needed if there is one job only",
    )
    parser.add_argument("--history", action="store_true", help="the last calls of each rank as well")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    print(report(chosen(options.pid), history=options.history), end="")
    return 0
