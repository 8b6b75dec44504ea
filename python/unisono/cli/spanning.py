"""Jobs of several hosts that were started on this machine, beside those that run on it alone."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..machine.jobs import Job, chosen, jobs
from ..machine.launches import Launch, launches
from .asking import DEADLINE, Answer, plain
from .switch_options import seconds


def add_deadline(parser: argparse.ArgumentParser) -> None:
    """The option of commands that ask hosts."""
    parser.add_argument(
        "--deadline",
        type=seconds,
        default=DEADLINE,
        metavar="SECONDS",
        help=f"how long each host of a job of several hosts has to answer ({DEADLINE:g})",
    )


def all_jobs() -> tuple[list[Launch], list[Job]]:
    """Jobs of several hosts, and those that are no part of one. Raises `InvalidArgumentError` as `jobs` does."""
    launched = launches()
    return launched, [job for job in jobs() if not any(launch.has(job) for launch in launched)]


def meant(pid: int | None) -> Launch | int:
    """The job that a command is about: one of several hosts, by its launcher's number or as the only one there is; or
    a process of one on this machine. Raises `InvalidArgumentError`.
    """
    if pid is None:
        launched, others = all_jobs()
        if not launched:
            return chosen(None)
        if len(launched) == 1 and not others:
            return launched[0]
        raise InvalidArgumentError(
            f"there are {len(launched) + len(others)} jobs on this machine; name one, or a process of it (`unisono ps` "
            "lists them)"
        )
    with contextlib.suppress(InvalidArgumentError):
        for launch in launches():
            if launch.pid == pid:
                return launch
    return chosen(pid)


def missing(answers: Sequence[Answer]) -> list[str]:
    """A sentence for each host that has not answered."""
    return [
        f"host {plain(answer.host.name)}: {answer.fault}; {spans(answer.host.ranks)} "
        f"{'is' if len(answer.host.ranks) == 1 else 'are'} out of sight"
        for answer in answers
        if answer.fault
    ]


def warn_of(answers: Sequence[Answer]) -> int:
    """Names the hosts that have not answered; the exit status."""
    sentences = missing(answers)
    for sentence in sentences:
        print(f"unisono: {sentence}", file=sys.stderr)
    return 1 if sentences else 0


def by_rank(answer: Answer) -> Iterator[tuple[int, dict[str, Any], dict[str, Any], int]]:
    """Of the ranks of a host that it has told of: number, what it said, its job there, and its place in that."""
    for job in answer.jobs:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            for place, seen in enumerate(job["ranks"]):
                yield int(seen["rank"]), seen, job, place


def spans(ranks: Sequence[int]) -> str:
    """`rank 3`; `ranks 0-3, 6`."""
    parts: list[str] = []
    numbers = sorted(ranks)
    begin = 0
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers) or numbers[place + 1] != number + 1:
            first = numbers[begin]
            parts.append(str(first) if first == number else f"{first}-{number}")
            begin = place + 1
    return f"rank{'s' * (len(numbers) != 1)} {', '.join(parts)}"
