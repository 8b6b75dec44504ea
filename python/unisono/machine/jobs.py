"""The jobs that run on this machine, found by the memory that their ranks share."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from .. import _core
from ..errors import InvalidArgumentError, UnisonoError

MEMORY = "/memfd:unisono (deleted)"  #: what the descriptor of a job's memory links to

GONE = ("has left", "has died")  #: conditions of a rank that comes to nothing any more

NOW, HISTORY, TABLE, COUNTERS = range(4)  # of the C interface: UNISONO_DUMP_...


@dataclass
class RankSeen:
    """A rank as its job's memory shows it."""

    name: str  #: "pid 4711"
    condition: str  #: "stopped by a signal", "has died", ...; empty: nothing special
    communicators: int
    calls: int  #: begun ever
    doing: str  #: in words
    rank: int = 0  #: its number in the whole job
    of: int = 0  #: ranks of the whole job
    network: str = "-"  #: what carries data to ranks on other hosts; "-" if there are none


@dataclass
class Job:
    """A job with at least one rank alive."""

    number: int  #: inode of its memory: unlike that of any other job on this machine now
    pids: list[int] = field(default_factory=list)  #: processes that have its memory open, ranks first
    ranks: list[RankSeen] = field(default_factory=list)

    def lives(self) -> bool:
        """Whether a rank of it is there. Its memory may be open in a child of one, or in who counts, for longer."""
        return not self.ranks or any(rank.condition not in GONE for rank in self.ranks)


def processes() -> list[int]:
    """Those that this process may see. Raises `InvalidArgumentError` where the system shows none, not even this one."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        found = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    if not found:
        raise InvalidArgumentError("the jobs of this machine cannot be seen: /proc shows no processes here")
    return found


def memories(pid: int) -> set[int]:
    """The jobs whose memory a process has open, by number; empty if it may not be looked at."""
    found = set()
    folder = Path("/proc") / str(pid) / "fd"
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            with contextlib.suppress(OSError):
                if os.readlink(folder / entry) == MEMORY:
                    found.add(os.stat(folder / entry).st_ino)
    return found


def jobs() -> list[Job]:
    """All jobs of this user's that run, oldest process first. Raises `InvalidArgumentError` if they cannot be seen.

    Those whose ranks have all ended are none, even if a process still has their memory open.
    """
    found: dict[int, Job] = {}
    for pid in processes():
        for number in memories(pid):
            found.setdefault(number, Job(number)).pids.append(pid)
    # A process whose ranks are threads may have many jobs, and tells of all of them: it is asked once.
    answers: dict[int, str] = {}
    for job in found.values():
        mine = False
        with contextlib.suppress(UnisonoError):
            if job.pids[0] not in answers:
                answers[job.pids[0]] = _core.dump_process(job.pids[0], TABLE)
            for fields in (line.split("\t") for line in answers[job.pids[0]].splitlines()):
                if fields[0] == "job":
                    mine = int(fields[1]) == job.number
                elif mine:
                    job.ranks.append(
                        RankSeen(fields[0], fields[1], int(fields[2]), int(fields[3]), fields[4], int(fields[5]),
                                 int(fields[6]), fields[7])
                    )  # fmt: skip
        names = {rank.name.partition(" (")[0] for rank in job.ranks}
        job.pids.sort(key=lambda pid: f"pid {pid}" not in names)
    return [job for job in found.values() if job.lives()]


def chosen(pid: int | None) -> int:
    """A process of the job that is meant: given by its own number or the job's, or one of the only job.

    Raises `InvalidArgumentError`.
    """
    if pid is None:
        found = jobs()
        if len(found) != 1:
            number = f"there are {len(found)} jobs" if found else "there is no job of yours"
            raise InvalidArgumentError(
                f"{number} on this machine; name one, or a process of it (`unisono ps` lists them)"
            )
        return found[0].pids[0]
    if pid <= 0 or pid >= 1 << 32:
        raise InvalidArgumentError(f"pid is {pid}; pass the number of a process")
    if memories(pid):
        return pid
    with contextlib.suppress(InvalidArgumentError):
        for job in jobs():
            if job.number == pid:
                return job.pids[0]
    return pid


def counters(pid: int) -> list[dict[str, list[int | None]]]:
    """Of each job of a process, what the ranks have counted, by name, then rank. Raises `UnisonoError`."""
    return [
        {name: [None if value == "-" else int(value) for value in values] for name, *values in map(str.split, lines)}
        for lines in (text.splitlines() for text in _core.dump_process(pid, COUNTERS).split("\n\n"))
    ]


def numbers_of_ranks(pid: int) -> list[list[int]]:
    """Of each job of a process, in the order of `counters`: the numbers that its ranks here have in the whole job.

    Raises `UnisonoError`.
    """
    found: list[list[int]] = []
    for fields in (line.split("\t") for line in _core.dump_process(pid, TABLE).splitlines()):
        if fields[0] == "job":
            found.append([])
        elif found:
            found[-1].append(int(fields[5]))
    return found


def report(pid: int, *, history: bool = False) -> str:
    """What the ranks of the jobs of a process are doing, and who waits for whom. Raises `UnisonoError`."""
    return _core.dump_process(pid, HISTORY if history else NOW)


def group_report(groups: set[int]) -> str:
    """The report of the jobs whose processes are in these process groups; empty if there are none, or none are seen."""
    seen: set[int] = set()
    parts: list[str] = []
    try:
        shown = processes()
    except InvalidArgumentError:
        return ""
    for pid in shown:
        with contextlib.suppress(OSError, UnisonoError):
            if os.getpgid(pid) not in groups:
                continue
            new = memories(pid) - seen
            if new:
                seen |= new
                parts.append(report(pid))
    return "\n".join(parts)
