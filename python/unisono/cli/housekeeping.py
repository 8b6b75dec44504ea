"""`unisono counters`, `configure` and `reset`: housekeeping of running jobs."""

from __future__ import annotations

import argparse
import json

from .. import _core
from ..errors import InvalidArgumentError
from ..machine.jobs import chosen, counters
from ..machine.launches import Launch
from .asking import ask
from .counters import counter_table
from .spanning import add_deadline, by_rank, meant, spans, warn_of


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands to the command line."""
    count = commands.add_parser(
        "counters",
        help="show what the engines of a running job have counted",
        description="Shows the counters of the native engine on each rank of a job: calls, messages, bytes, sleeps. "
        "They are read from the job's memory; the ranks need not answer.",
    )
    count.add_argument("--json", action="store_true", help="write JSON")
    count.set_defaults(execute=_counters)

    configure = commands.add_parser(
        "configure",
        help="change settings of a running job",
        description="Changes settings of a job. They act on communicators that the job makes from now on, whose "
        "members agree on the least of all. What the program itself sets later does not undo them.",
    )
    configure.add_argument("--eager-limit", type=int, default=0, metavar="BYTES", help="largest eager message")
    configure.add_argument("--segment-bytes", type=int, default=0, metavar="BYTES", help="largest segment")
    configure.add_argument("--rx-buffer-count", type=int, default=0, metavar="N", help="receive buffers for each peer")
    configure.add_argument("--timeout", type=float, default=0.0, metavar="SECONDS", help="default deadline of calls")
    configure.set_defaults(execute=_configure)

    reset = commands.add_parser(
        "reset",
        help="make a running or stuck job give up its communicators",
        description="Fails all communicators of a job. Calls that its ranks are in end with the error `revoked`, later "
        "ones too; a program that handles it goes on with a new world (`Context.reset`, or `shrink`), others end.",
    )
    reset.set_defaults(execute=_reset)
    add_deadline(count)
    add_deadline(reset)
    for parser in (count, configure, reset):
        parser.add_argument(
            "pid",
            type=int,
            nargs="?",
            metavar="JOB|PID",
            help="the job's number, as `unisono ps` has it, or a process of it; not needed if there is one job",
        )


def _counters(options: argparse.Namespace) -> int:
    """Runs `unisono counters`."""
    job = meant(options.pid)
    if isinstance(job, Launch):
        return _counters_of_hosts(job, options)
    jobs = counters(job)
    if options.json:
        print(json.dumps(jobs, indent=2))
        return 0
    for values in jobs:
        ranks = range(len(next(iter(values.values()), [])))
        print(
            counter_table([{name: of_ranks[rank] for name, of_ranks in values.items()} for rank in ranks], zeros=True)
        )
    return 0


def _configure(options: argparse.Namespace) -> int:
    """Runs `unisono configure`."""
    sizes = {"--eager-limit": options.eager_limit, "--segment-bytes": options.segment_bytes}
    sizes |= {"--rx-buffer-count": options.rx_buffer_count}
    for name, value in sizes.items():
        if not 0 <= value < 1 << 32:
            raise InvalidArgumentError(f"{name} is {value}; allowed are 1 to {(1 << 32) - 1}")
    if not any(sizes.values()) and options.timeout == 0:
        raise InvalidArgumentError(f"nothing to set was given; pass some of {', '.join(sizes)}, --timeout")
    pid = chosen(options.pid)
    _core.process_configure(pid, options.eager_limit, options.segment_bytes, options.rx_buffer_count, options.timeout)
    print(f"the job of process {pid} makes its next communicators so")
    return 0


def _reset(options: argparse.Namespace) -> int:
    """Runs `unisono reset`."""
    pid = meant(options.pid)
    if isinstance(pid, Launch):
        answers = ask(pid, "reset", options.deadline)
        told = sorted(rank for answer in answers for rank, *_ in by_rank(answer))
        if told:
            print(f"{spans(told)} of {pid.size} {'gives' if len(told) == 1 else 'give'} up their communicators")
        return warn_of(answers)
    _core.process_reset(pid)
    print(f"the job of process {pid} gives up its communicators")
    return 0


def _counters_of_hosts(launch: Launch, options: argparse.Namespace) -> int:
    """Of all hosts in one table; the exit status."""
    answers = ask(launch, "counters", options.deadline)
    found: list[dict[str, int | None]] = [{} for _ in range(launch.size)]
    for answer in answers:
        for rank, _, job, place in by_rank(answer):
            for name, values in dict(job.get("counters", {})).items():
                if 0 <= rank < launch.size and place < len(values):
                    value = values[place]
                    found[rank][str(name)] = None if value is None else int(value)
    names = next((list(each) for each in found if each), [])
    whole = [each or dict.fromkeys(names) for each in found]
    if options.json:
        print(json.dumps([{name: [each.get(name) for each in whole] for name in names}], indent=2))
    elif names:
        print(counter_table(whole, zeros=True))
    else:
        print("no counters: no host has told of a job of Unisono")
    return warn_of(answers)
