"""The environment of ranks: what makes processes a job, and what goes to other hosts."""

from __future__ import annotations

import os
import secrets
from collections.abc import MutableMapping, Sequence
from itertools import groupby

from .hostlist import HostRanks

#: of a job: one that `unisono run` starts does not inherit them from a job around it
JOB_VARIABLES = (
    "UNISONO_RANK",
    "UNISONO_SIZE",
    "UNISONO_RENDEZVOUS",
    "UNISONO_JOIN",
    "UNISONO_JOIN_FD",
    "UNISONO_JOIN_HOSTS",
    "UNISONO_START",
    "UNISONO_SECRET",
    "UNISONO_SECRET_FILE",
    "UNISONO_OBSERVER",
    "UNISONO_DEVICE_FD",
)
#: from the launcher's environment to ranks on all hosts, beside what begins with UNISONO_
CARRIED = ("PYTHONUNBUFFERED", "COLUMNS")
MOST_OF_HOSTS = 1 << 16  # characters; a variable may have twice as many


def job_environment(size: int, *, meet_here: bool) -> dict[str, str]:
    """What makes processes ranks of one new job, beside their numbers. `meet_here`: all are on one host."""
    environment = {"UNISONO_SIZE": str(size), "UNISONO_SECRET": secrets.token_hex(32)}
    if meet_here:
        environment["UNISONO_JOIN"] = f"unix://unisono-{os.getpid()}-{secrets.token_hex(8)}"
    return environment


def hosts_environment(hosts: Sequence[HostRanks]) -> dict[str, str]:
    """What rank 0 names the hosts of late ranks by. Nothing if it would be too long for an environment."""
    of_rank = {rank: host.name for host in hosts for rank in host.ranks}
    runs = groupby(of_rank[rank] for rank in sorted(of_rank))
    text = ",".join(f"{name}:{len(list(run))}" for name, run in runs)
    plain = all("," not in host.name for host in hosts)
    return {"UNISONO_JOIN_HOSTS": text} if plain and len(text) <= MOST_OF_HOSTS else {}


def environment_for_hosts() -> dict[str, str]:
    """What ranks on other hosts have of this process's environment."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("UNISONO_") or name in CARRIED}
    clear_job(environment)
    environment.pop("UNISONO_HOST", None)  # it would make all hosts one
    return environment


def fill_in(environment: MutableMapping[str, str]) -> None:
    """Adds what makes a rank's lines come at once, if nobody has said otherwise.

    What a rank has written is then in the pipe, and not in a buffer that is lost when the rank is ended: Python's, and
    C's when the library is initialised.
    """
    environment.setdefault("PYTHONUNBUFFERED", "1")
    environment.setdefault("UNISONO_STDOUT", "lines")


def clear_job(environment: MutableMapping[str, str]) -> None:
    """Takes out what describes a job."""
    for name in JOB_VARIABLES:
        environment.pop(name, None)
