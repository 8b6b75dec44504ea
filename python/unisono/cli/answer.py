"""What a host says of a job's ranks there: `unisono ps`, `dump`, `counters` and `reset` start this on each of its
hosts, as `unisono run` starts its agents, write a question and read an answer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
from typing import Any

from .. import _core
from ..errors import UnisonoError
from ..machine.jobs import Job, counters, jobs, report
from ..machine.launches import group_of
from ..version import __version__

MARK = b"unisono-answer "  #: begins the answer: what a shell prints before is no part of it
PATIENCE = 60  # seconds, for who does not see that nobody listens any more
QUESTIONS = ("ps", "dump", "history", "counters", "reset")


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """To a question: what is asked, and the processes that the launcher has started here."""
    what, groups = question["what"], set(question["pids"])
    if what not in QUESTIONS:
        return {"fault": f"Unisono {__version__} there does not know the question {what!r}"}
    try:
        own = [job for job in jobs() if groups & {group_of(pid) for pid in job.pids}]
        return {"version": __version__, "jobs": [_about(job, what) for job in own]}
    except UnisonoError as failure:
        return {"fault": str(failure)}


def _about(job: Job, what: str) -> dict[str, Any]:
    about: dict[str, Any] = {"number": job.number, "ranks": [dataclasses.asdict(rank) for rank in job.ranks]}
    if what in ("dump", "history"):
        about["text"] = report(job.pids[0], history=what == "history")
    elif what == "counters":
        about["counters"] = counters(job.pids[0])[0]
    elif what == "reset":
        try:
            _core.process_reset(job.pids[0])
        except UnisonoError:
            # It spreads: what another host was told may have ended the ranks here.
            if any(group_of(pid) is not None for pid in job.pids):
                raise
    return about


def main() -> int:
    """Answers one question."""
    signal.alarm(PATIENCE)
    # Whatever else is written goes to standard error: the answer is all that its reader looks for.
    sink = os.dup(1)
    os.dup2(2, 1)
    try:
        told = answer(json.loads(sys.stdin.readline()))
    except (ValueError, KeyError, TypeError) as failure:
        told = {"fault": f"the question cannot be understood: {failure}"}
    text = json.dumps(told).encode()
    with contextlib.suppress(BrokenPipeError), os.fdopen(sink, "wb") as file:
        file.write(MARK + str(len(text)).encode() + b"\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
