"""The matrix on engines in RTL that are joined by cables: the same bits as the interpreter has, and as over a switch.

As `test_rtl`, with UNISONO_TEST_RTL=1 only. A part of its cases is drawn, on some shapes; UNISONO_TEST_CABLES=whole
takes all of them, on all shapes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .engines import Cluster
from .test_rtl import WIDTH, agree_with_the_interpreter

pytestmark = pytest.mark.skipif(WIDTH == 0, reason="UNISONO_TEST_RTL is not set")

SHAPES = {
    "bus": ("--bus", "{ranks}"),
    "ring": ("--ring", "{ranks}"),
    "torus": ("--torus", "2x{half}"),
}
#: Ranks and shape, in every width and in the wide one alone.
NARROW = [(2, "bus"), (4, "ring"), (8, "torus")]
#: Of the cases of `test_rtl`, one of so many; they take long on cables.
WHOLE = os.environ.get("UNISONO_TEST_CABLES") == "whole"
PART = 1 if WHOLE else 8
WIDE = [(4, "bus"), (8, "bus"), (8, "ring"), (4, "torus"), (5, "ring")]


def unisono(*arguments: str, limit: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unisono", *arguments], capture_output=True, text=True, timeout=limit, check=False
    )


def topology(folder: Path, ranks: int, shape: str) -> str:
    """A topology file."""
    file = folder / f"{shape}{ranks}.json"
    words = [word.format(ranks=ranks, half=ranks // 2) for word in SHAPES[shape]]
    done = unisono("route", *words, "-o", str(file))
    assert done.returncode == 0, done.stderr
    return str(file)


def on_cables(file: str, *options: str) -> tuple[str, ...]:
    return ("--carrier", "smi", "--topology", file, *options)


@pytest.mark.parametrize(("ranks", "shape"), NARROW + (WIDE if WHOLE else []))
def test_engines_on_cables_agree_with_the_interpreter(ranks: int, shape: str, tmp_path: Path) -> None:
    part = PART if WHOLE or ranks < 8 else 4 * PART
    agree_with_the_interpreter(Cluster(options=on_cables(topology(tmp_path, ranks, shape))), ranks, 1, part)


def test_some_members_are_native(tmp_path: Path) -> None:
    """Native engines send the same frames, over the same transport."""
    agree_with_the_interpreter(Cluster((1, 2), on_cables(topology(tmp_path, 4, "ring"))), 4, 1, PART)


# Rank r sends what no other has; long messages, short ones, and both at once.
PROGRAM = """
import os
import sys

import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    for count in (1, 1000, 30000):
        mine = np.arange(count, dtype=np.int32) * (world.rank + 3)
        total = world.allreduce(mine, np.zeros(count, np.int32))
        assert (total == np.arange(count) * sum(range(3, 3 + world.size))).all(), count
        pieces = world.alltoall(
            np.concatenate([np.full(count, 100 * world.rank + to, np.int32) for to in range(world.size)]),
            np.zeros(count * world.size, np.int32),
        )
        assert (pieces == np.repeat(np.arange(world.size) * 100 + world.rank, count)).all(), count
    world.barrier()
    os.write(1, b"right\\n")
"""


def run(tmp_path: Path, ranks: int, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return unisono("run", "--platform", "rtl", "-n", str(ranks), *options, str(script))


CUT = "fpga-0000:acl0:ch1-fpga-0001:acl0:ch0"


@pytest.mark.parametrize(
    ("ranks", "options"),
    [(7, ()), (8, ("--without", CUT)), (7, ("--leave-out", "fpga-0000:acl1"))],
    ids=["7 of 8", "a cut cable", "without a node"],
)
def test_other_cables_need_nothing_new(ranks: int, options: tuple[str, ...], tmp_path: Path) -> None:
    """Of one torus of 8: only the tables are others."""
    done = run(tmp_path, ranks, *on_cables(topology(tmp_path, 8, "torus"), *options))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["right"] * ranks


@pytest.mark.parametrize("ranks", [1, 3])
def test_cables_that_nobody_named(ranks: int, tmp_path: Path) -> None:
    done = run(tmp_path, ranks, "--carrier", "smi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["right"] * ranks


def test_skipped_cycles_change_nothing(tmp_path: Path) -> None:
    """Each engine beside one that is evaluated in every cycle; words that wait for a full cable included."""
    network = tmp_path / "slow.txt"
    network.write_text("topology = cables\ngbps = 25\n")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("(1, 1000, 30000)", "(1, 6000)"))
    cluster = tmp_path / "unisono-cluster"
    cluster.write_text(f"#!/bin/sh\nexec '{found()}' --check-skip \"$@\"\n")
    cluster.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "--platform", "rtl", "-n", "2", "--carrier", "smi",
         "--network", str(network), str(script)],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "UNISONO_CLUSTER": str(cluster)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["right"] * 2


def found() -> str:
    from unisono.cli.cluster import find_cluster

    return find_cluster()


# Rank 2 does not come; who waits for it is told.
ABSENT = """
import os

import numpy as np
import unisono

with unisono.init(timeout=0.002) as context:
    world = context.world
    if world.rank != 2:
        try:
            world.allreduce(np.ones(4000, np.int32), np.zeros(4000, np.int32))
        except (unisono.DeadlineError, unisono.PeerDeadError) as failure:
            os.write(1, f"{failure}\\n".encode())
"""


def test_a_rank_that_does_not_come_is_named(tmp_path: Path) -> None:
    script = tmp_path / "absent.py"
    script.write_text(ABSENT)
    done = unisono("run", "--platform", "rtl", "-n", "4", "--carrier", "smi", str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 3
    assert all("rank 2" in line for line in said)
