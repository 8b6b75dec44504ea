"""Ctrl-C while ranks wait: everybody hears of it at once, and nothing is left."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import environment

WAITS = """
import os, sys, time
import numpy as np
import unisono
what = sys.argv[1]
with unisono.init() as context:
    world = context.world
    world.barrier()
    os.write(1, b"ready %d\\n" % os.getpid())
    try:
        if what == "recv":
            world.recv(np.zeros(1), (world.rank + 1) % world.size)
        elif what == "request":
            world.recv_async(np.zeros(1), (world.rank + 1) % world.size).wait()
        elif world.rank != 0:
            world.allreduce(np.zeros(1000))
        else:
            time.sleep(60)
    except KeyboardInterrupt:
        os.write(1, b"interrupted %.6f\\n" % time.monotonic())
        raise
"""


def script(tmp_path: Path) -> str:
    path = tmp_path / "waits.py"
    path.write_text(WAITS)
    return str(path)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def check(output: list[str], ranks: int, sent: float, pids: list[int]) -> None:
    # "^C" may stand before it; errors may speak of interrupted calls, too.
    times = [float(found[1]) for line in output if (found := re.search(r"(?:^|\^C)interrupted (\d+\.\d+)$", line))]
    assert len(times) == ranks, output
    assert max(times) - sent < 0.8
    assert not any(running(pid) for pid in pids), "a rank is left"


@pytest.mark.parametrize("what", ["recv", "request", "allreduce"])
def test_interrupt_of_the_launcher(tmp_path: Path, what: str) -> None:
    ranks = 3
    job = subprocess.Popen(
        [sys.executable, "-m", "unisono", "run", "--timeout", "60", "-n", str(ranks), script(tmp_path), what],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert job.stdout is not None
    pids = [int(job.stdout.readline().split()[1]) for _ in range(ranks)]
    time.sleep(0.3)  # all sleep in the kernel by now
    sent = time.monotonic()
    job.send_signal(signal.SIGINT)
    output, errors = job.communicate(timeout=60)
    ended = time.monotonic()
    assert job.returncode == 130, errors
    assert "SIGINT was passed on to all ranks" in errors
    assert ended - sent < 4
    check(output.splitlines(), ranks, sent, pids)


def test_ctrl_c_at_a_terminal(tmp_path: Path) -> None:
    """The terminal's driver sends the signal, to its foreground process group."""
    ranks = 2
    master, terminal = pty.openpty()
    job = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, os, sys, termios\n"
         "os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
         "-m", "unisono", "run", "--timeout", "60", "-n", str(ranks), script(tmp_path), "recv"],
        stdin=terminal, stdout=terminal, stderr=terminal, env=environment(),
    )  # fmt: skip
    os.close(terminal)
    try:
        text = ""
        pids: list[int] = []
        deadline = time.monotonic() + 60
        while len(pids) < ranks and time.monotonic() < deadline:
            text += os.read(master, 4096).decode()
            pids = [int(line.split()[1]) for line in text.splitlines(keepends=True) if line.startswith("ready ")
                    and line.endswith("\n")]  # fmt: skip
        assert len(pids) == ranks, text
        time.sleep(0.3)
        sent = time.monotonic()
        os.write(master, b"\x03")
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:  # how a terminal says that nobody holds its other end
                break
            if not more:
                break
            text += more.decode()
        assert job.wait(60) == 130, text
        check(text.splitlines(), ranks, sent, pids)
    finally:
        job.kill()
        job.wait()
        os.close(master)


def test_ranks_that_do_not_heed_it_end_at_the_second(tmp_path: Path) -> None:
    path = tmp_path / "stubborn.py"
    path.write_text(
        "import os, signal\nimport numpy as np\nimport unisono\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "with unisono.init() as context:\n"
        "    context.world.barrier()\n"
        "    os.write(1, b'ready %d\\n' % os.getpid())\n"
        "    context.world.recv(np.zeros(1), 1 - context.world.rank)\n"
    )
    job = subprocess.Popen(
        [sys.executable, "-m", "unisono", "run", "--timeout", "60", "-n", "2", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert job.stdout is not None
    pids = [int(job.stdout.readline().split()[1]) for _ in range(2)]
    job.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert job.poll() is None
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGKILL
    assert "had to be killed" in errors
    assert not any(running(pid) for pid in pids)


def test_an_interrupt_outside_of_a_job(tmp_path: Path) -> None:
    """A script that is its own job of one rank."""
    path = tmp_path / "alone.py"
    path.write_text(
        "import os\nimport numpy as np\nimport unisono\n"
        "with unisono.init() as context:\n"
        "    os.write(1, b'ready\\n')\n"
        "    context.world.recv(np.zeros(1), 0)\n"
    )
    job = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment())  # fmt: skip
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    time.sleep(0.2)
    sent = time.monotonic()
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=60)
    assert time.monotonic() - sent < 3
    assert job.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
