"""The matrix on engines in RTL whose calls switches of the simulated network carry, in C++ or in RTL: the bits of the
interpreter, where members stand in for the same switches. Some members are native.

As `test_rtl`, with UNISONO_TEST_RTL=1 only.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from .case import AUTOMATIC, Case
from .engines import Cluster, interpret
from .matrix import SEED, core, edges
from .test_rtl import WIDTH, same

pytestmark = pytest.mark.skipif(WIDTH == 0, reason="UNISONO_TEST_RTL is not set")

CARRIED = ("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather", "gather", "scatter")
#: Network and tree, by ranks.
SHAPES = {
    2: ("topology = switch\naggregation = ais@switch0\n", "(0 1)"),
    4: ("topology = leaf_spine\nleaves = 2\nspines = 1\naggregation = ais@spine0\n", "(0 1 2 3)"),
    5: ("topology = switch\nnodes = 6\naggregation = aas@node5\n", "(0 1 2 3 4)"),
    6: ("topology = leaf_spine\nleaves = 3\nspines = 1\naggregation = ais@leaf*|ais@spine0\n", "((0 1) (2 3) (4 5))"),
    8: ("topology = leaf_spine\nleaves = 2\nspines = 1\naggregation = ais@leaf*\n", "(0 1 2 3 (4 5 6 7))"),
}


def cases_of(cluster: Cluster, ranks: int) -> list[Case]:
    """Of each collective some, drawn by number, and one beyond a segment; with other calls between them."""
    chosen = []
    for collective in (*CARRIED, "alltoall"):
        rng = random.Random(f"{SEED} {collective} {ranks} switches")
        own = [case for case in core(collective, AUTOMATIC, ranks) if cluster.admits(case)]
        large = [case for case in edges(collective, AUTOMATIC, ranks) if cluster.admits(case) and case.count < 5000]
        chosen += own if WIDTH > 1 else rng.sample(own, min(len(own), 6))
        chosen += rng.sample(large, min(len(large), 2))
    random.Random(SEED).shuffle(chosen)
    return chosen


@pytest.mark.parametrize(
    ("ranks", "native", "switches"),
    [
        (2, (), "native"),
        (4, (2,), "native"),
        (5, (1, 3), "native"),
        (6, (), "native"),
        (8, (0,), "native"),
        (2, (), "rtl"),
        (4, (), "rtl"),
        (5, (1, 3), "rtl"),
        (6, (1,), "rtl"),
        (8, (), "rtl"),
    ],
    ids=[f"{name}{where}" for where in ("", ", RTL") for name in ("two", "one link", "a node", "spine", "leaves")],
)
def test_switches_agree_with_members_in_their_place(
    ranks: int, native: tuple[int, ...], switches: str, tmp_path: Path
) -> None:
    network, tree = SHAPES[ranks]
    file = tmp_path / "network.conf"
    file.write_text(f"policy = pause\n{network}")
    cluster = Cluster(native, ("--network", str(file), "--switch", switches, "--prices", "off"))
    cases = cases_of(cluster, ranks)
    wrong = []
    for case, outcomes in zip(cases, cluster.run(ranks, cases), strict=True):
        carried = case.collective in CARRIED
        algorithm = "switch" if carried else "pairwise"
        expected = interpret(case, "least_permissive", case.seed, algorithm, tree if carried else "")
        for rank, (got, want) in enumerate(zip(outcomes, expected, strict=True)):
            if not same(got, want):
                wrong.append(f"{case}: rank {rank}: {got if isinstance(got, str) else 'another result'}")
    assert not wrong, "\n".join([f"{len(wrong)} wrong of {len(cases)} cases:", *wrong[:20]])


# Rank 2 does not come; who waits for it is told by the switch. In simulated time that is long before it is noticed that
# rank 2 has left.
ABSENT = """
import os

import numpy as np
import unisono

with unisono.init(timeout=30) as context:
    world = context.world
    if world.rank != 2:
        try:
            world.allreduce(np.ones(COUNT, np.int32), np.zeros(COUNT, np.int32), timeout=0.0002)
        except (unisono.DeadlineError, unisono.PeerDeadError) as failure:
            os.write(1, f"{failure}\\n".encode())
"""


@pytest.mark.parametrize("count", [4, 6000])
def test_a_switch_in_hardware_says_for_whom_it_waits(count: int, tmp_path: Path) -> None:
    file, script = tmp_path / "network.conf", tmp_path / "absent.py"
    file.write_text("policy = pause\ntopology = switch\naggregation = ais@switch0\n")
    script.write_text(ABSENT.replace("COUNT", str(count)))
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "--platform", "rtl", "-n", "4", "--network", str(file),
         "--switch", "rtl", str(script)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert len(said) == 3, done.stdout + done.stderr
    assert any("switch 0 (switch0): call 0 allreduce: waits for rank 2" in line for line in said), said
