"""What `unisono run --hosts` tells of its job to other tools on its machine: which hosts it has, and how they are
reached. It stands in memory of the launcher, which goes with it, and which only its user can read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from typing import Any

from .jobs import Job, processes

NAME = "unisono-launch"
LINK = f"/memfd:{NAME} (deleted)"  #: what the launcher's descriptor links to
LARGEST = 1 << 20


@dataclass(frozen=True)
class LaunchedHost:
    """A host of a job, with its ranks and their processes there."""

    name: str
    ranks: list[int]
    pids: list[int]


@dataclass(frozen=True)
class Launch:
    """A job of several hosts, as its launcher knows it."""

    pid: int  #: of the launcher
    command: str
    template: str | None  #: --agent
    python: str
    hosts: list[LaunchedHost]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return sum(len(host.ranks) for host in self.hosts)

    def has(self, job: Job) -> bool:
        """Whether a job that this machine shows is the part of it that runs here: numbers of processes are alike on
        other machines, so the ranks must fit too.
        """
        groups = {rank: pid for host in self.hosts for rank, pid in zip(host.ranks, host.pids, strict=True)}
        own = {group_of(pid) for pid in job.pids}
        return any(rank.of == self.size and groups.get(rank.rank) in own for rank in job.ranks)


def group_of(pid: int) -> int | None:
    """The process group, which the ranks of a launcher lead; None if the process has gone."""
    with contextlib.suppress(OSError):
        return os.getpgid(pid)
    return None


def publish(launch: Launch) -> int:
    """Shows a launch to other tools of the user as long as the descriptor is open. Raises `OSError`."""
    descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
    try:
        os.write(descriptor, json.dumps(dataclasses.asdict(launch)).encode())
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def launches() -> list[Launch]:
    """Those of this user's on this machine."""
    found = []
    for pid in processes():
        folder = f"/proc/{pid}/fd"
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{folder}/{entry}") == LINK:
                        launch = _read(f"{folder}/{entry}")
                        if launch is not None and launch.pid == pid:
                            found.append(launch)
    return found


def _read(path: str) -> Launch | None:
    try:
        with open(path, "rb") as file:
            told: dict[str, Any] = json.loads(file.read(LARGEST))
        hosts = [LaunchedHost(str(host["name"]), _numbers(host["ranks"]), _numbers(host["pids"]))
                 for host in told["hosts"]]  # fmt: skip
        if any(len(host.ranks) != len(host.pids) for host in hosts):
            return None
        template = None if told["template"] is None else str(told["template"])
        return Launch(int(told["pid"]), str(told["command"]), template, str(told["python"]), hosts)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # of another version


def _numbers(given: list[Any]) -> list[int]:
    return [int(one) for one in given]
