"""How tests start jobs on several hosts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RUN = [sys.executable, "-m", "unisono", "run"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}
LOCAL = ["--hosts", "a:2,b:2", "--agent", "local"]
SECONDS = 90


def run(*arguments: object, stdin: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=ENVIRONMENT | more,
        input=stdin,
    )


def start(*arguments: object, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*RUN, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | more,
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(alive(pid) for pid in pids)


def agents_of(job: subprocess.Popen[str]) -> list[int]:
    """The processes of the agents of a launcher, in the order in which they were started."""
    return [int(pid) for pid in Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]


EXCHANGE = """
import os
import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    rank, size = world.rank, world.size
    for count in (1, 1000, 200_000):
        mine = np.arange(count, dtype=np.int64) * (rank + 1) + rank
        expected = sum(np.arange(count, dtype=np.int64) * (r + 1) + r for r in range(size))
        assert np.array_equal(world.allreduce(mine), expected), count
        blocks = np.concatenate([np.full(count, 1000 * rank + to, np.int64) for to in range(size)])
        got = np.empty_like(blocks)
        world.alltoall(blocks, got)
        assert np.array_equal(got, np.concatenate([np.full(count, 1000 * r + rank, np.int64) for r in range(size)]))
    print("right", rank, size, os.environ.get("UNISONO_HOST", "-"))
"""
