"""Deadlines that fail, warn or are off; progress without a wait; and an abort from another thread."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import unisono
from unisono import ThreadJob


def run(tmp_path: Path, program: str, ranks: int = 2, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program that has begun with `comm`, the world of a context."""
    script = tmp_path / "program.py"
    begin = "import threading, time\nimport numpy as np\nimport unisono\n"
    script.write_text(begin + textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", str(ranks), sys.executable, str(script)],
        capture_output=True, text=True, timeout=60, check=False, env=os.environ | environment,
    )  # fmt: skip


LATE = """
with unisono.init(timeout=0.3{settings}) as context:
    comm = context.world
    mine, total = np.full(5, comm.rank + 1.0), np.empty(5)
    comm.allreduce(mine, total)
    assert context.settings.deadlines == "{mode}", context.settings
    if comm.rank == 1:
        time.sleep(1.2)
    {call}
    assert (total == 3).all()
    print("went on")
"""
CALLS = {"blocking": "comm.allreduce(mine, total)", "started": "comm.allreduce_async(mine, total).wait()"}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("by", ["setting", "environment"])
def test_a_deadline_that_warns_says_who_has_not_come_and_goes_on(tmp_path: Path, call: str, by: str) -> None:
    settings = ', deadlines="warn"' if by == "setting" else ""
    environment = {} if by == "setting" else {"UNISONO_DEADLINES": "warn"}
    done = run(tmp_path, LATE.format(settings=settings, mode="warn", call=CALLS[call]), **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went on") == 2
    lines = [line for line in done.stderr.splitlines() if "has waited for" in line]
    assert 2 <= len(lines) <= 4, done.stderr
    assert all("warning: allreduce" in line and "rank 1" in line for line in lines), lines


@pytest.mark.parametrize("call", CALLS)
def test_a_deadline_that_is_off_says_nothing(tmp_path: Path, call: str) -> None:
    done = run(tmp_path, LATE.format(settings=', deadlines="off"', mode="off", call=CALLS[call]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went on") == 2
    assert "waited" not in done.stderr


@pytest.mark.parametrize("call", CALLS)
def test_a_deadline_fails_if_nothing_is_said(tmp_path: Path, call: str) -> None:
    done = run(tmp_path, LATE.format(settings="", mode="fail", call=CALLS[call]))
    assert done.returncode != 0
    assert "timed out after 300 ms" in done.stderr


def test_each_rank_decides_for_itself(tmp_path: Path) -> None:
    """The rank that waits is the one that says so; the late one would fail."""
    program = LATE.format(settings="", mode="fail", call=CALLS["blocking"])
    program = (
        'import os\nif os.environ["UNISONO_RANK"] == "0":\n    os.environ["UNISONO_DEADLINES"] = "off"\n' + program
    )
    done = run(tmp_path, program.replace('assert context.settings.deadlines == "fail", context.settings', "pass"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", ["never", "", "FAIL"])
def test_other_words_are_refused(tmp_path: Path, value: str) -> None:
    done = run(tmp_path, "unisono.init()", 1, UNISONO_DEADLINES=value)
    assert done.returncode != 0
    assert f'UNISONO_DEADLINES is "{value}", but should be fail, warn or off' in done.stderr
    with pytest.raises(
        unisono.InvalidArgumentError, match="deadlines is 'never'; allowed are fail, warn, off, or None"
    ):
        ThreadJob(2, deadlines="never")  # type: ignore[arg-type]


def test_devices_know_deadlines_that_fail_only(tmp_path: Path) -> None:
    done = run(tmp_path, "unisono.init()", 1, UNISONO_DEADLINES="off", UNISONO_PLATFORM="functional")
    assert done.returncode != 0
    assert "a device ends calls whose deadline has passed" in done.stderr


def test_progress_completes_a_call_without_a_wait(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        with unisono.init() as context:
            comm = context.world
            mine, total = np.full(300_000, comm.rank + 1.0), np.empty(300_000)
            request = comm.allreduce_async(mine, total)
            ended = threading.Event()
            request.add_done_callback(lambda _: ended.set())
            end = time.monotonic() + 20
            while not ended.is_set() and time.monotonic() < end:
                context.progress()
            assert ended.is_set()
            assert (total == 3).all()
        """,
    )
    assert done.returncode == 0, done.stderr


ABORT = """
with unisono.init(timeout=30) as context:
    comm = context.world
    other = comm.dup()
    mine, total = np.full(5, comm.rank + 1.0), np.empty(5)
    comm.allreduce(mine, total)
    other.allreduce(mine, total)
    if comm.rank == 1:
        time.sleep(3)  # in no call
    else:
        times = []
        def wait(call):
            try:
                call()
            except unisono.RevokedError as error:
                assert "rank 0" in str(error) or "this rank ended all calls: too late" in str(error), error
                times.append(time.monotonic())
        waiting = [threading.Thread(target=wait, args=(call,)) for call in (
            lambda: comm.allreduce(mine, total), lambda: other.recv(np.empty(3), 1),
            lambda: other.barrier_async().wait())]
        for thread in waiting:
            thread.start()
        time.sleep(0.3)
        begin = time.monotonic()
        context.abort("too late")
        done = time.monotonic() - begin
        for thread in waiting:
            thread.join()
        assert len(times) == 3, times
        assert done < 0.1 and max(times) - begin < {limit}, (done, [t - begin for t in times])
    for each in (comm, other):
        for attempt in range(3):  # what rank 0 had sent before may complete a call of rank 1
            try:
                each.allreduce(mine, total)
            except unisono.RevokedError as error:
                assert "too late" in str(error), error
                break
        else:
            raise AssertionError("the communicator is of no use any more")
    again = comm.shrink()
    again.allreduce(mine, total)
    assert (total == 3).all()
    print("good")
"""


def test_an_abort_ends_what_other_threads_wait_for(tmp_path: Path) -> None:
    """Within 100 ms on a quiet machine; here others may need the cores."""
    done = run(tmp_path, ABORT.format(limit=1.0))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("good") == 2
