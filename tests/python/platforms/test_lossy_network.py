"""Faults of the simulated network: what is lost is told as lost, and no result is ever wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .native_cluster import ROOT, run

RANKS = 4

# Each rank has data of its own in every call, and compares every result. It catches nothing.
CALLS = """
import sys
import numpy as np
import unisono

with unisono.init(timeout=60) as context:
    world = context.world
    rank, size = world.rank, world.size
    for turn in range(int(sys.argv[1])):
        mine = np.arange(3000, dtype=np.int64) * (rank + 1) + turn
        total = world.allreduce(mine, algorithm=("ring", "recursive_doubling")[turn % 2])
        assert (total == np.arange(3000) * sum(range(1, size + 1)) + size * turn).all(), "a wrong sum"
        blocks = world.alltoall(np.arange(size, dtype=np.int32) + 100 * rank + turn)
        assert blocks.tolist() == [100 * r + rank + turn for r in range(size)], "wrong blocks"
        got = np.empty(900, np.float32)
        ahead = world.send_async(np.full(900, rank + turn, np.float32), (rank + 1) % size, tag=5)
        world.recv(got, (rank - 1) % size, tag=5)
        ahead.wait()
        assert (got == (rank - 1) % size + turn).all(), "a wrong message"
    print(f"rank {rank} is right\\n", end="")
"""


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    script = tmp_path / "calls.py"
    script.write_text(CALLS)
    return script


def network(folder: Path, text: str) -> Path:
    path = folder / "network.conf"
    path.write_text(text)
    return path


def expect_told(stderr: str) -> None:
    """Lost frames are told as such, with what to do, and nobody is blamed for other calls."""
    assert "FramesLostError" in stderr, stderr
    for foreign in ("MismatchedCallError", "a wrong", "wrong blocks", "DeadlineError", "CorruptMessageError"):
        assert foreign not in stderr, stderr
    told = re.search(
        r"(\w+) \(communicator 0, rank \d, .*\): frames were lost: frame \d+ of the (data|control messages) .*"
        r"(from rank \d, endpoint \d \(pid \d+\), to this rank has not come|"
        r"from this rank to rank \d, .*, has not arrived).*"
        r"The transport of the simulated network repeats none",
        stderr,
    )
    assert told, stderr
    assert "run on a network without loss" in stderr


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("fault", ["loss = 0.003", "reorder = 0.003", "corrupt = 0.003", "loss@node2>* = 0.02"])
def test_what_is_missing_is_told_at_once(calls: Path, tmp_path: Path, fault: str, seed: int) -> None:
    begin = time.monotonic()
    done = run(RANKS, "--network", network(tmp_path, f"policy = pause\n{fault}\n"), "--seed", seed, calls, 8)
    if done.returncode == 0:  # no frame happened to be hit
        assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(RANKS)]
        assert "frames lost: 0," in done.stderr or "frames lost" not in done.stderr
        return
    expect_told(done.stderr)
    assert time.monotonic() - begin < 50
    assert "warning: this network has faults" in done.stderr


def test_the_last_frame_is_missed_too(tmp_path: Path) -> None:
    """Nothing comes behind it that would show the gap."""
    script = tmp_path / "last.py"
    script.write_text(
        "import numpy as np, unisono\nwith unisono.init() as c:\n    w = c.world\n    w.barrier()\n"
        "    if w.rank == 0:\n        w.send(np.full(9, 4.0), 1)\n    else:\n        w.recv(np.empty(9), 0)\n"
        "    w.barrier()\n"
    )
    told = 0
    for seed in range(1, 9):
        done = run(2, "--network", network(tmp_path, "policy = pause\nloss = 0.1\n"), "--seed", seed, script)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 1:
            assert "FramesLostError" in done.stderr, done.stderr
            told += "nor has any after it" in done.stderr
    assert told > 0


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_comes_twice_counts_once(calls: Path, tmp_path: Path, seed: int) -> None:
    done = run(RANKS, "--network", network(tmp_path, "policy = pause\nduplicate = 0.2\n"), "--seed", seed, calls, 8)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(RANKS)]
    assert "warning: this network has faults (duplicate)" in done.stderr
    assert re.search(r"frames lost: 0, come twice: [1-9]\d+,", done.stderr), done.stderr


def test_a_rank_that_catches_it_is_told_again(tmp_path: Path) -> None:
    """The way stays broken, whatever communicator uses it."""
    script = tmp_path / "again.py"
    script.write_text(
        "import numpy as np, unisono\nwith unisono.init() as c:\n    both = [c.world, c.world.dup()]\n"
        "    for comm in both:\n        try:\n"
        "            for _ in range(300):\n                comm.allreduce(np.ones(2000) * comm.rank)\n"
        "        except unisono.FramesLostError as error:\n            print('told', comm.rank, flush=True)\n"
    )
    done = run(2, "--network", network(tmp_path, "policy = pause\nloss@node1>* = 0.02\n"), script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["told 0"] * 2 + ["told 1"] * 2


@pytest.mark.skipif(os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set")
@pytest.mark.parametrize(("fault", "seed"), [("loss = 0.003", 1), ("reorder = 0.1", 2), ("duplicate = 0.1", 3)])
def test_engines_in_rtl_are_told_too(calls: Path, tmp_path: Path, fault: str, seed: int) -> None:
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    options = ["-n", RANKS, "--platform", "rtl", "--network", network(tmp_path, f"{fault}\n"), "--seed", seed]
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", *map(str, options), calls, "3"],
        capture_output=True, text=True, timeout=300, env=around | {"PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    if done.returncode == 0:
        assert fault.startswith("duplicate")
        assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(RANKS)]
        assert "frames lost: 0, come twice: " in done.stderr
    else:
        assert not fault.startswith("duplicate")
        expect_told(done.stderr)
