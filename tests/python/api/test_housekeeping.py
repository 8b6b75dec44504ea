"""Settings of running contexts and jobs, what communicators are like, counters, resets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}


def test_settings_of_a_context() -> None:
    with unisono.init(timeout=20, algorithms="allreduce=ring") as context:
        before = context.settings
        assert (before.timeout, before.lanes, before.determinism) == (20, True, "run_stable")
        assert before.algorithms == "allreduce=ring"
        assert context.world.state.eager_limit == before.eager_limit
        context.configure(eager_limit=123, lanes=False, determinism="size_stable")
        assert context.settings == before._replace(eager_limit=123, lanes=False, determinism="size_stable")
        assert context.world.state.eager_limit == before.eager_limit
        made = context.world.dup()
        assert (made.state.eager_limit, made.state.lanes, made.state.timeout) == (123, False, 20)
        assert made.state.capability.remote_memory
        assert not made.state.revoked
        made.revoke("enough")
        assert made.state.revoked
        with pytest.raises(unisono.UnknownAlgorithmError, match="rnig"):
            context.configure(algorithms="allreduce=rnig")
        with pytest.raises(unisono.InvalidArgumentError, match="algorithms is 5"):
            context.configure(algorithms=5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="colour is no setting"):
            context.configure(colour=5)  # type: ignore[call-arg]
        assert context.settings.eager_limit == 123
    with pytest.raises(unisono.WrongProcessError, match="configure: the context was closed"):
        context.configure(eager_limit=5)


def test_offload_can_be_switched() -> None:
    with unisono.init(offload=True) as context:
        assert context.settings.offload
        context.configure(offload=False)
        assert not context.settings.offload


def test_counters_of_the_native_engine() -> None:
    def member(comm: Communicator) -> None:
        before = comm.counters()
        comm.barrier()
        mine = np.zeros(100_000, np.uint8)
        comm.allgather(mine)
        after = comm.counters()
        assert after["calls"] == before["calls"] + 2
        assert after["bytes_sent"] >= before["bytes_sent"] + len(mine)
        assert after["calls_failed"] == 0

    ThreadJob(3, lanes=False).run(member)


#: A job that makes a communicator whenever it is told to, and goes on after resets.
SCRIPT = """
import os, sys
import numpy as np
import unisono

with unisono.init(timeout=50) as context:
    world = context.world
    if world.rank == 0:
        print(os.getpid(), flush=True)
    while True:
        try:
            word = np.zeros(1, np.int32)
            if world.rank == 0:
                word[0] = int(sys.stdin.readline() or 0)
            world.bcast(word, 0)
            if word[0] == 0:
                break
            if word[0] == 2:  # rank 1 waits for what never comes
                if world.rank == 0:
                    print("stuck", flush=True)
                if world.rank == 1:
                    world.recv(word, 0)
                else:
                    world.barrier()
            made = world.dup()
            made.barrier()
            if world.rank == 0:
                print(made.state.eager_limit, made.state.timeout, world.state.number, flush=True)
            made.free()
        except unisono.RevokedError:
            context.reset()
            assert world.allreduce(np.ones(1))[0] == world.size
            if world.rank == 0:
                print("reset", flush=True)
"""


def cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unisono", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)


class Job:
    """The script on three ranks."""

    def __init__(self, folder: Path) -> None:
        script = folder / "job.py"
        script.write_text(SCRIPT)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unisono", "run", "-n", "3", str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip
        self.pid = int(self.line())

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, word: int) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.line()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate(timeout=60)


def test_a_running_job_from_outside(job: Job) -> None:
    """Its counters can be read, its settings changed, and its communicators be given up."""
    eager, timeout, world = job.say(1).split()
    assert (float(timeout), world) == (50, "0")

    counted = json.loads(cli("counters", job.pid, "--json").stdout)
    assert len(counted) == 1
    assert counted[0]["communicators"] == [2, 2, 2]
    calls: list[Any] = counted[0]["calls"]
    assert min(calls) > 3
    shown = cli("counters", job.pid)
    assert "rank 2" in shown.stdout
    assert "bytes_sent" in shown.stdout

    done = cli("configure", job.pid, "--eager-limit", 999, "--timeout", 33)
    assert done.returncode == 0, done.stderr
    assert job.say(1).split()[:2] == ["999", "33.0"]
    assert int(eager) != 999

    assert job.say(2) == "stuck"
    assert cli("reset", job.pid).returncode == 0
    assert job.line() == "reset"
    assert job.say(1).split()[2] != world
    assert json.loads(cli("counters", job.pid, "--json").stdout)[0]["revocations"] != [0, 0, 0]
    assert job.process.stdin is not None
    job.process.stdin.write("0\n")
    job.process.stdin.flush()
    assert job.process.wait(timeout=60) == 0


def test_what_cannot_be_set_from_outside(job: Job) -> None:
    done = cli("configure", job.pid)
    assert done.returncode == 2
    assert "nothing to set was given" in done.stderr
    done = cli("configure", job.pid, "--segment-bytes", 63)
    assert done.returncode == 2
    assert "segment_bytes is 63" in done.stderr
    with subprocess.Popen(["sleep", "60"]) as stranger:
        for command in (("counters",), ("configure", "--timeout", "5"), ("reset",)):
            done = cli(*command, stranger.pid)
            assert done.returncode == 2
            assert "it has no job of Unisono" in done.stderr
        stranger.kill()
    assert job.say(1)
