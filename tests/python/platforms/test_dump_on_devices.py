"""`unisono ps` and `unisono dump` on jobs whose calls devices carry out, and deadlines that say who has not arrived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import native_cluster

# Rank 1 does not come to the second call.
SCRIPT = """
import os, signal, sys
import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    pair = world.split(world.rank // 2)
    mine = np.full(1000, world.rank, np.float32)
    world.barrier()
    world.allreduce(mine)
    if world.rank == 1:
        print(os.getpid(), flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    world.allreduce(mine, op="max")
"""


@pytest.fixture(params=["functional", "rtl"])
def stuck(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A job of three ranks of which one has been stopped, and the number of that one."""
    script = tmp_path / "stuck.py"
    script.write_text(SCRIPT)
    command = native_cluster.command(3, script)
    if request.param == "functional":
        command = [sys.executable, "-m", "unisono", "run", "-n", "3", "--platform", "functional", str(script)]
    job = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=native_cluster.environment()
    )
    assert job.stdout is not None
    try:
        yield job, int(job.stdout.readline())
    finally:
        job.kill()
        job.communicate(timeout=60)


def unisono(*arguments: object) -> str:
    return subprocess.run(
        [sys.executable, "-m", "unisono", *map(str, arguments)],
        capture_output=True, text=True, timeout=60, env=native_cluster.environment(), check=True,
    ).stdout  # fmt: skip


def test_a_hung_job_is_seen(stuck: tuple[subprocess.Popen[str], int]) -> None:
    job, pid = stuck
    deadline = time.monotonic() + 20
    while "=>" not in (text := unisono("dump", pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert f"=> rank 0 and rank 2 wait for rank 1 (pid {pid}, stopped by a signal)" in text
    assert "communicator 0, 3 ranks" in text
    assert text.count("in allreduce #") == 2  # simulated time may have stopped before the first one's end there
    assert "of 1000 fp32 by" in text
    assert f"rank 1, pid {pid}, stopped by a signal: in no call; the last was allreduce #" in text
    assert "waits for" in text
    assert "ended: barrier #" in unisono("dump", pid, "--history")
    (seen,) = [one for one in json.loads(unisono("ps", "--json")) if pid in one.get("pids", ())]
    assert [rank["communicators"] for rank in seen["ranks"]] == [2, 2, 2]
    calls = [rank["calls"] for rank in seen["ranks"]]
    assert calls[1] <= calls[0] <= calls[1] + 1
    assert calls[0] == calls[2] > 1
    assert "in allreduce" in seen["ranks"][0]["doing"]
    job.send_signal(signal.SIGQUIT)
    _, errors = job.communicate(timeout=60)
    assert f"=> rank 0 and rank 2 wait for rank 1 (pid {pid}, stopped by a signal)" in errors


def test_hosts_that_wait_for_one_that_computes_are_seen(tmp_path: Path) -> None:
    """Simulated time stands still meanwhile, at whatever the others are with their devices."""
    script = tmp_path / "computes.py"
    script.write_text(
        "import os, time\nimport numpy as np, unisono\n"
        "with unisono.init() as c:\n    w = c.world\n    w.allreduce(np.full(3, 1.0 + w.rank))\n"
        "    if w.rank == 1:\n        print(os.getpid(), flush=True)\n        time.sleep(90)\n"
        "    w.allreduce(np.full(30, 1.0 + w.rank), op='max')\n"
    )
    job = subprocess.Popen(
        native_cluster.command(3, script), stdout=subprocess.PIPE, text=True, env=native_cluster.environment()
    )
    assert job.stdout is not None
    try:
        pid = int(job.stdout.readline())
        deadline = time.monotonic() + 20
        while "=> rank 0 and rank 2" not in (text := unisono("dump", pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert f"=> rank 0 and rank 2 wait for rank 1 (pid {pid})" in text, text
    finally:
        job.kill()
        job.communicate(timeout=60)


@pytest.mark.parametrize("platform", ["functional", "rtl"])
def test_a_deadline_says_who_has_not_arrived(tmp_path: Path, platform: str) -> None:
    script = tmp_path / "late.py"
    script.write_text(
        "import numpy as np, unisono\n"
        "with unisono.init() as c:\n    w = c.world\n    w.barrier()\n"
        "    if w.rank == 2:\n        w.recv(np.empty(3), 0, timeout=10 * TIME)\n"
        "    w.allreduce(np.ones(3), timeout=TIME)\n".replace("TIME", "0.5" if platform == "functional" else "0.002")
    )
    if platform == "rtl":
        done = native_cluster.run(3, script)
    else:
        around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
        done = subprocess.run(
            [sys.executable, "-m", "unisono", "run", "-n", "3", "--platform", "functional", script],
            capture_output=True, text=True, timeout=60, env=around | native_cluster.environment(),
        )  # fmt: skip
    assert done.returncode != 0
    assert "Not arrived: rank 2. Rank 2, endpoint 2" in done.stderr, done.stderr
    assert "is in recv from rank 0" in done.stderr or "is in no call of it" in done.stderr
