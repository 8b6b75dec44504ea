"""Children of fork: what they must not do fails clearly, and how they end harms nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

SCRIPT = """
import gc, os, sys, warnings
import numpy as np
import unisono

HOW = sys.argv[1]
warnings.simplefilter("ignore", DeprecationWarning)

def refused(use):
    try:
        use()
    except unisono.WrongProcessError as error:
        return "fork" in str(error)
    return False

def in_child(context, world, pending):
    uses = {
        "allreduce": lambda: world.allreduce(np.ones(3)),
        "send": lambda: world.send(np.ones(3), 0),
        "recv_async": lambda: world.recv_async(np.ones(3), 0),
        "barrier": lambda: world.barrier(),
        "split": lambda: world.split(0),
        "wait": lambda: pending.wait(),
        "close": lambda: context.close(),
    }
    wrong = [name for name, use in uses.items() if not refused(use)]
    if wrong:
        print("not refused:", wrong, file=sys.stderr, flush=True)
        os._exit(1)

def child(context, world, pending):
    if HOW in ("calls", "exit"):
        in_child(context, world, pending)
    if HOW == "idle":
        os._exit(0)
    if HOW == "calls":
        os._exit(0)
    if HOW == "collected":
        del context, world, pending
        gc.collect()
    sys.exit(0)

def main():
    with unisono.init(timeout=30) as context:
        world = context.world
        expected = world.size * (world.size + 1) / 2
        assert world.allreduce(np.array([world.rank + 1.0]))[0] == expected
        arrived = np.zeros(5)
        pending = world.recv_async(arrived, (world.rank - 1) % world.size)
        children = []
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                child(context, world, pending)
            children.append(pid)
        assert all(os.waitpid(pid, 0)[1] == 0 for pid in children), "a child failed"
        world.send(np.full(5, world.rank + 10.0), (world.rank + 1) % world.size)
        pending.wait()
        assert (arrived == (world.rank - 1) % world.size + 10.0).all()
        for count in (1, 1000, 200_000):
            total = world.allreduce(np.full(count, world.rank + 1.0))
            assert (total == expected).all()
    print("done\\n", end="", flush=True)

main()
"""


@pytest.mark.parametrize("how", ["idle", "calls", "exit", "plain exit", "collected"])
def test_children_of_fork(run: Run, tmp_path: Path, how: str) -> None:
    script = tmp_path / "forks.py"
    script.write_text(SCRIPT)
    done = run([], "run", "-n", 3, "--timeout", 60, script, how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"] * 3
    assert "Traceback" not in done.stderr


def test_a_child_may_join_another_job(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        "import os, sys\nimport numpy as np\nimport unisono\n"
        "with unisono.init() as context:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        for name in list(os.environ):\n"
        "            if name.startswith('UNISONO_'): del os.environ[name]\n"
        "        with unisono.init() as own:\n"
        "            assert own.world.size == 1 and own.world.allreduce(np.array([4.0]))[0] == 4.0\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "    assert context.world.allreduce(np.array([2.0 ** context.world.rank]))[0] == 3.0\n"
    )
    done = run([], "run", "-n", 2, "--timeout", 60, sys.executable, script)
    assert done.returncode == 0, done.stderr


def test_allocated_memory_is_shared_with_a_child(run: Run, tmp_path: Path) -> None:
    """Ordinary memory is not."""
    script = tmp_path / "forks.py"
    script.write_text(
        "import os\nimport numpy as np\nimport unisono\n"
        "with unisono.init(timeout=30) as context:\n"
        "    world = context.world\n"
        "    shared, own = context.zeros(5000), np.zeros(5000)\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        shared[:], own[:] = world.rank + 1, 7\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "    assert (world.allreduce(shared) == 3).all()\n"
        "    assert (world.allreduce(own) == 0).all()\n"
    )
    done = run([], "run", "-n", 2, "--timeout", 60, sys.executable, script)
    assert done.returncode == 0, done.stderr


def test_a_fork_while_threads_are_in_the_library(run: Run, tmp_path: Path) -> None:
    """Neither does the child inherit a lock that is held, nor do the threads notice. The child ends as Python ends."""
    script = tmp_path / "forks.py"
    script.write_text(
        "import os, sys, threading, warnings\nimport numpy as np\nimport unisono\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "with unisono.init(timeout=30, offload=True) as context:\n"
        "    world = context.world\n"
        "    own = [world.dup() for _ in range(3)]\n"
        "    forked = threading.Event()\n"
        "    def work(comm):\n"
        "        while not comm.allreduce(np.array([forked.is_set()]), op='min')[0]: pass\n"
        "    threads = [threading.Thread(target=work, args=(comm,)) for comm in own]\n"
        "    for thread in threads: thread.start()\n"
        "    for _ in range(10):\n"
        "        pid = os.fork()\n"
        "        if pid == 0:\n"
        "            for name in list(os.environ):\n"
        "                if name.startswith('UNISONO_'): del os.environ[name]\n"
        "            with unisono.init() as alone:\n"
        "                assert alone.world.allreduce(np.array([4.0]))[0] == 4.0\n"
        "            sys.exit(0)\n"
        "        assert os.waitpid(pid, 0)[1] == 0\n"
        "    forked.set()\n"
        "    for thread in threads: thread.join()\n"
    )
    done = run([], "run", "-n", 2, "--timeout", 100, sys.executable, script)
    assert done.returncode == 0, done.stderr
