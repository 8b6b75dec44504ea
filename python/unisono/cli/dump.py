"""`unisono dump`: what a running or stuck job is doing."""

from __future__ import annotations

import argparse

from ..machine.jobs import report
from ..machine.launches import Launch
from .asking import ask, plain
from .spanning import add_deadline, meant, spans, warn_of


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "dump",
        help="say what a running or stuck job is doing, and who waits for whom",
        description="Reads the flight records of the job that a process belongs to, of all its ranks: for each "
        "communicator what every rank is in and what it waits for, calls that differ, and who waits for whom. The "
        "ranks need not answer. Of a job of several hosts that `unisono run` has started here, all hosts are asked.",
    )
    parser.add_argument(
        "pid",
        type=int,
        nargs="?",
        metavar="JOB|PID",
        help="the job's number, as `unisono ps` has it, or a process of it; its `unisono run` means all hosts; not "
        "needed if there is one job only",
    )
    parser.add_argument("--history", action="store_true", help="the last calls of each rank as well")
    add_deadline(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    job = meant(options.pid)
    if isinstance(job, Launch):
        return _of_hosts(job, options)
    print(report(job, history=options.history), end="")
    return 0


def _of_hosts(launch: Launch, options: argparse.Namespace) -> int:
    """The reports of all hosts, one below the other; the exit status."""
    answers = ask(launch, "history" if options.history else "dump", options.deadline)
    for answer in answers:
        if answer.fault:
            continue
        print(f"host {plain(answer.host.name)}, {spans(answer.host.ranks)}:")
        texts = [plain(str(job.get("text", ""))) for job in answer.jobs]
        print("\n".join(texts) if texts else "no job of Unisono\n")
    return warn_of(answers)
