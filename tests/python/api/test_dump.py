"""`unisono ps` and `unisono dump` on a job with a rank that is stopped; the report of a job that is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import unisono as unisono_package
from unisono import _core
from unisono.machine.jobs import jobs

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}

SCRIPT = """
import os, signal, sys
import numpy as np
import unisono
with unisono.init() as context:
    world = context.world
    mine = np.full(1000, world.rank, np.float32)
    world.allreduce(mine)
    if world.rank == 1:
        print(os.getpid(), flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    world.allreduce(mine, op="max", timeout=float(sys.argv[1]))
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "unisono", *map(str, arguments)]


def unisono(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60, env=ENVIRONMENT)


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A job of three ranks of which one has been stopped, and the number of that one."""
    script = tmp_path / "stuck.py"
    script.write_text(SCRIPT)
    job = subprocess.Popen(
        command("run", "-n", 3, script, 50),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert job.stdout is not None
    try:
        yield job, int(job.stdout.readline())
    finally:
        job.kill()
        job.communicate(timeout=60)


def dump_with(pid: int, part: str, *options: str) -> str:
    deadline = time.monotonic() + 20
    while True:
        text = unisono("dump", pid, *options).stdout
        if part in text or time.monotonic() > deadline:
            return text
        time.sleep(0.1)


def test_a_stopped_rank_is_seen(stuck: tuple[subprocess.Popen[str], int]) -> None:
    _, pid = stuck
    text = dump_with(pid, "=>")
    assert f"=> rank 0 and rank 2 wait for rank 1 (pid {pid}, stopped by a signal)" in text
    assert "in allreduce #1 of 1000 fp32 by max" in text
    assert f"rank 1, pid {pid}, stopped by a signal: in no call; the last was allreduce #0, ended" in text
    assert "ended: allreduce #0 of 1000 fp32 by sum" in unisono("dump", pid, "--history").stdout

    jobs = json.loads(unisono("ps", "--json").stdout)
    (job,) = [job for job in jobs if pid in job.get("pids", ())]
    assert len(job["pids"]) == len(job["ranks"]) == 3
    assert job["ranks"][1]["name"] == f"pid {pid}"
    assert job["ranks"][1]["condition"] == "stopped by a signal"
    assert [rank["calls"] for rank in job["ranks"]] == [2, 1, 2]
    assert "stuck.py" in job["command"]
    shown = unisono("ps").stdout
    assert "stuck.py" in shown

    # The number that `ps` prints is as good as that of a process.
    assert f"job {job['number']}," in shown
    assert (
        f"=> rank 0 and rank 2 wait for rank 1 (pid {pid}, stopped by a signal)"
        in unisono("dump", job["number"]).stdout
    )
    assert json.loads(unisono("counters", job["number"], "--json").stdout)[0]["calls"] == [2, 1, 2]
    assert unisono("configure", job["number"], "--timeout", 40).returncode == 0
    assert unisono("reset", job["number"]).returncode == 0


def test_a_job_whose_ranks_have_ended_is_none(tmp_path: Path) -> None:
    """Even while a process that one of them has left behind holds its memory."""
    script = tmp_path / "leaves.py"
    script.write_text(
        "import os, time\nimport unisono\n"
        "context = unisono.init()\ncontext.world.barrier()\n"
        "if context.world.rank == 1 and os.fork() == 0:\n"
        "    os.setsid()\n"
        "    null = os.open(os.devnull, os.O_RDWR)\n"
        "    for number in range(3): os.dup2(null, number)\n"
        f"    open('{tmp_path}/child', 'w').write(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        f"while not os.path.exists('{tmp_path}/child') or not open('{tmp_path}/child').read(): time.sleep(0.01)\n"
        "context.world.barrier()\n"
    )
    result = unisono("run", "-n", 2, script)
    child = int((tmp_path / "child").read_text())
    try:
        assert result.returncode == 0, result.stderr
        links = [os.readlink(path) for path in Path(f"/proc/{child}/fd").iterdir()]
        assert "/memfd:unisono (deleted)" in links, "nothing holds the memory; the test shows nothing"
        assert [job for job in json.loads(unisono("ps", "--json").stdout) if child in job.get("pids", ())] == []
        assert "leaves.py" not in unisono("ps").stdout
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_process_of_many_jobs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells of all its jobs: to ask it again for each of some hundred takes minutes."""
    asked: list[int] = []

    def dump(pid: int, what: int, real: Callable[[int, int], str] = _core.dump_process) -> str:
        asked.append(pid)
        return real(pid, what)

    monkeypatch.setattr(_core, "dump_process", dump)
    with unisono_package.init(), unisono_package.init(), unisono_package.init():
        own = [job for job in jobs() if os.getpid() in job.pids]
        assert len(own) == 3
        assert all(len(job.ranks) == 1 for job in own)
    assert asked.count(os.getpid()) == 1


def test_sigquit_says_what_the_ranks_do(stuck: tuple[subprocess.Popen[str], int]) -> None:
    job, pid = stuck
    dump_with(pid, "=>")
    job.send_signal(signal.SIGQUIT)
    _, errors = job.communicate(timeout=60)
    assert f"=> rank 0 and rank 2 wait for rank 1 (pid {pid}, stopped by a signal)" in errors
    assert job.returncode == 128 + signal.SIGQUIT


def test_a_timeout_dumps_where_the_environment_says(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(SCRIPT.replace("os.kill(os.getpid(), signal.SIGSTOP)", "import time; time.sleep(3)"))
    result = subprocess.run(
        command("run", "-n", 3, script, 1),
        capture_output=True,
        text=True,
        timeout=60,
        env=ENVIRONMENT | {"UNISONO_DUMP": str(tmp_path / "flight")},
    )
    assert result.returncode != 0
    assert "Not arrived: rank 1" in result.stderr
    assert "is in no call of it; its last was allreduce #0" in result.stderr
    written = "".join(path.read_text() for path in tmp_path.glob("flight.*"))
    assert "timed out after 1000 ms" in written
    assert "in progress: allreduce #1 of 1000 fp32 by max" in written


def test_run_with_a_timeout_tells(tmp_path: Path) -> None:
    script = tmp_path / "stuck.py"
    script.write_text(SCRIPT)
    result = unisono("run", "-n", 2, "--timeout", 4, script, 50)
    assert result.returncode == 124
    assert "=> rank 0 waits for rank 1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["dump", os.getppid()], "it has no job of Unisono"),
        (["dump", "4194305"], "there is none of that number"),
        (["dump", "-5"], "pass the number of a process"),
    ],
)
def test_what_cannot_be_dumped(arguments: list[object], text: str) -> None:
    result = unisono(*arguments)
    assert result.returncode == 2
    assert text in " ".join(result.stderr.split())


def test_a_context_tells_of_its_own_job() -> None:
    code = (
        "import unisono\n"
        "with unisono.init() as context:\n"
        "    context.world.barrier()\n"
        "    print(context.dump(history=True))\n"
        "try:\n"
        "    context.dump()\n"
        "except unisono.WrongProcessError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert "communicator 0, 1 rank\n" in result.stdout, result.stderr
    assert "ended: barrier #0" in result.stdout
    assert "the context was closed" in result.stdout
