"""Jobs where containers and permissions are in the way: they run, with the right results."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import environment

HERE = Path(__file__).parent
JOB = HERE / "job.py"
FEATURES = HERE / "features.py"
SURVIVORS = HERE / "survivors.py"
THREADLESS = HERE / "threadless.py"
Run = Callable[..., subprocess.CompletedProcess[str]]
#: What the seccomp profiles of container engines have refused at one time or another.
REFUSED = "membarrier,pidfd_open,process_vm_readv,process_vm_writev"


def assert_done(done: subprocess.CompletedProcess[str], ranks: int) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of {ranks} done" for rank in range(ranks)]


def test_a_small_dev_shm(run: Run) -> None:
    # Each rank's buffers alone are larger than that.
    assert_done(run(["--shm", "64"], "run", "-n", 3, JOB), 3)


def test_a_small_dev_shm_and_many_ranks(run: Run) -> None:
    script = "import numpy as np, unisono\nwith unisono.init() as context:\n    world = context.world\n" \
        "    total = world.allreduce(np.full(70000, 2.0 ** world.rank))\n" \
        "    assert (total == 2.0 ** world.size - 1).all()\n"  # fmt: skip
    done = run(["--shm", "64"], "run", "-n", 16, "--timeout", 100, sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr


def test_an_ordinary_user(run_as_user: Run) -> None:
    assert_done(run_as_user([], "run", "-n", 3, JOB), 3)


def test_an_ordinary_user_with_calls_refused_and_a_small_dev_shm(run_as_user: Run) -> None:
    assert_done(run_as_user(["--shm", "64", "--deny", REFUSED], "run", "-n", 2, JOB), 2)


@pytest.mark.parametrize("refused", [*REFUSED.split(","), REFUSED])
def test_refused_system_calls(run: Run, refused: str) -> None:
    assert_done(run(["--deny", refused], "run", "-n", 2, JOB), 2)


OFFLOADS = pytest.mark.parametrize("offload", ["0", "1"], ids=["no offload", "offload"])


@OFFLOADS
@pytest.mark.parametrize("refused", [REFUSED, "madvise", "sched_getaffinity,sysinfo"])
def test_every_feature_with_calls_refused(
    run: Run, refused: str, offload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNISONO_OFFLOAD", offload)
    assert_done(run(["--deny", refused], "run", "-n", 3, FEATURES), 3)


@OFFLOADS
@pytest.mark.parametrize("options", [[], ["--shm", "64", "--deny", REFUSED]], ids=["as it is", "refused"])
def test_every_feature_as_an_ordinary_user(
    run_as_user: Run, options: list[str], offload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNISONO_OFFLOAD", offload)
    assert_done(run_as_user(options, "run", "-n", 3, FEATURES), 3)


ONE_CORE = ["--cores", str(min(os.sched_getaffinity(0)))]


@pytest.mark.parametrize("options", [["--limit", "NOFILE=24"], ["--hide", "/sys"], ONE_CORE], ids=lambda o: o[0][2:])
def test_every_feature_with_less(run: Run, options: list[str]) -> None:
    assert_done(run(options, "run", "-n", 3, FEATURES), 3)


@pytest.mark.parametrize("options", [["--deny", REFUSED], ["--hide", "/proc"], ["--deny", "madvise"]])
def test_survivors_go_on(run: Run, options: list[str]) -> None:
    done = run(options, "run", "-n", 3, "--keep-going", SURVIVORS)
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2 done", "rank 1 of 2 done"], done.stderr
    assert "rank 1 was ended by SIGKILL; the others go on" in done.stderr


def test_survivors_go_on_as_an_ordinary_user(run_as_user: Run) -> None:
    done = run_as_user(["--deny", REFUSED], "run", "-n", 4, "--keep-going", SURVIVORS)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of 3 done" for rank in range(3)], done.stderr


@OFFLOADS
def test_without_threads(run_as_user: Run, offload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit binds ordinary users only."""
    monkeypatch.setenv("UNISONO_OFFLOAD", offload)
    done = run_as_user([], "run", "-n", 2, THREADLESS)
    assert_done(done, 2)
    # Each rank says once why it has no thread, if its environment asked for one.
    assert done.stderr.count("unisono: warning: an offload thread cannot be started: ") == (2 if offload == "1" else 0)


def test_where_processes_are_not_shown(run: Run) -> None:
    assert_done(run(["--hide", "/proc"], "run", "-n", 3, JOB), 3)
    hidden = run(["--hide", "/proc"], "ps")
    assert hidden.returncode == 2
    assert "/proc shows no processes here" in hidden.stderr
    hidden = run(["--hide", "/proc"], "dump", os.getpid())
    assert hidden.returncode == 2
    assert f"process {os.getpid()}: it cannot be looked at: /proc does not show it" in hidden.stderr
    late = run(["--hide", "/proc"], "run", "-n", 2, "--timeout", 1, "sleep", 60)
    assert late.returncode == 124, late.stderr


def test_the_job_of_another_user_is_not_shown(run: Run, run_as_user: Run, tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(
        "import os, time, unisono\n"
        "with unisono.init() as context:\n"
        "    if context.world.rank == 0: print(os.getpid(), flush=True)\n"
        "    if context.world.rank == 1: time.sleep(60)\n"
        "    context.world.barrier()\n"
    )
    command = [sys.executable, "-m", "unisono", "run", "-n", "2", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as job:
        assert job.stdout is not None
        pid = int(job.stdout.readline())
        try:
            other = run_as_user([], "dump", pid)
            assert other.returncode == 2
            assert "it must belong to the same user" in other.stderr
            assert str(script) not in run_as_user([], "ps").stdout
            assert str(script) in run([], "ps").stdout
            assert "rank 0 waits for rank 1" in run([], "dump", pid).stdout
        finally:
            job.kill()


def test_one_rank_without_membarrier(run: Run, tmp_path: Path) -> None:
    # The others may use it, so it is for them to find out that this one cannot be relied upon.
    script = tmp_path / "mixed.sh"
    sandbox = f"{sys.executable} {HERE / 'sandbox.py'} --deny membarrier --"
    script.write_text(f"[ $UNISONO_RANK = 1 ] && exec {sandbox} {sys.executable} {JOB}\nexec {sys.executable} {JOB}\n")
    assert_done(run([], "run", "-n", 3, "sh", script), 3)


def test_more_ranks_than_cores(run: Run) -> None:
    core = min(os.sched_getaffinity(0))
    assert_done(run(["--cores", str(core)], "run", "-n", 4, JOB), 4)


def test_few_descriptors(run: Run) -> None:
    assert_done(run(["--limit", "NOFILE=24"], "run", "-n", 3, JOB), 3)


@pytest.mark.parametrize("options", [[], ["--deny", REFUSED]], ids=["as it is", "calls refused"])
def test_death_is_noticed_within_a_second(run: Run, tmp_path: Path, options: list[str]) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, signal, time\nimport numpy as np\nimport unisono\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    world.barrier()\n"
        "    if world.rank == 1:\n"
        "        time.sleep(0.5)\n"  # the other one sleeps in the kernel by now
        "        print(f'died {time.monotonic()}\\n', end='', flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    try: world.recv(np.zeros(4), 1)\n"
        "    except unisono.PeerDeadError: print(f'noticed {time.monotonic()}\\n', end='', flush=True)\n"
    )
    done = run(options, "run", "-n", 2, script)
    assert "rank 1 of 2 was ended by SIGKILL" in done.stderr
    assert done.returncode == 137
    times = dict(line.split() for line in done.stdout.splitlines())
    assert float(times["noticed"]) - float(times["died"]) < 1.0


def test_launcher_without_pidfds(run: Run) -> None:
    begin = time.monotonic()
    done = run(["--deny", "pidfd_open"], "run", "-n", 3, "sh", "-c", "[ $UNISONO_RANK != 1 ] && exec sleep 60; exit 7")
    assert done.returncode == 7
    assert "rank 1 of 3 exited with status 7; the others were ended" in done.stderr
    assert time.monotonic() - begin < 20
    done = run(["--deny", "pidfd_open"], "run", "-n", 2, "--prefix", "sh", "-c", "echo out; kill -USR1 $$")
    assert done.returncode == 128 + 10
    assert done.stdout.count("out") >= 1


def test_without_memfd_the_error_says_so(run: Run) -> None:
    done = run(["--deny", "memfd_create"], "run", "-n", 2, JOB)
    assert done.returncode != 0
    assert "memfd_create" in done.stderr
    assert "Operation not permitted" in done.stderr


def test_the_launcher_as_first_process_without_a_network() -> None:
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--net", sys.executable, "-m", "unisono", "run", "-n", "3", JOB],
        capture_output=True, text=True, timeout=120, env=environment(),
    )  # fmt: skip
    if done.stderr.startswith("unshare:"):
        pytest.skip(f"not permitted here: {done.stderr.strip()}")
    assert_done(done, 3)
