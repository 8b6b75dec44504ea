"""The applications, started as a user starts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOUR = ROOT / "apps/tour/tour.py"
DIGITS = ROOT / "apps/digits/digits.py"

# Runs an application with one operation of the communicator spoilt on one rank.
SPOIL = """
import runpy, sys
import unisono

script, operation, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
right = getattr(unisono.Communicator, operation)

def spoilt(self, *arguments, **options):
    result = right(self, *arguments, **options)
    if self.rank == rank and result.size > 8:
        result.flat[result.size // 2] += 1
    return result

setattr(unisono.Communicator, operation, spoilt)
sys.path.insert(0, script.rpartition("/")[0])
sys.argv = [script, *sys.argv[4:]]
runpy.run_path(script, run_name="__main__")
"""


def run(ranks: int, *command: object) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "unisono", "run", "-n", str(ranks)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [*launcher, *map(str, command)], capture_output=True, text=True, timeout=240, cwd=ROOT, env=environment
    )


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_tour(ranks: int) -> None:
    done = run(ranks, TOUR, "--largest", 65536)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "results are right, on every rank" in done.stdout
    for operation in (
        "send_recv", "put", "get", "bcast", "alltoallv", "alltoallw", "neighbour_alltoall", "exscan", "barrier",
        "allreduce_bf16", "nonblocking", "chained",
    ):  # fmt: skip
        assert operation in done.stdout


@pytest.mark.parametrize(
    ("operation", "rank"),
    [("copy", 2), ("reduce_scatter", 0), ("allgatherv", 1), ("alltoallw", 2), ("neighbour_alltoall", 0)],
)
def test_tour_fails_if_one_element_on_one_rank_is_wrong(tmp_path: Path, operation: str, rank: int) -> None:
    script = tmp_path / "spoil.py"
    script.write_text(SPOIL)
    done = run(3, script, TOUR, operation, rank, "--largest", 1024)
    assert done.returncode != 0
    assert f"rank {rank}: {operation} at 1 KB: 1 wrong elements" in done.stdout + done.stderr


def test_digits() -> None:
    done = run(4, DIGITS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bit for bit" in done.stdout


def test_digits_fails_if_the_weights_of_a_rank_differ(tmp_path: Path) -> None:
    script = tmp_path / "spoil.py"
    script.write_text(SPOIL)
    done = run(2, script, DIGITS, "allreduce", 1, "--epochs", 1, "--accuracy", 0)
    assert done.returncode != 0
    assert "the ranks hold different weights" in done.stdout + done.stderr


def test_digits_fails_below_the_wanted_accuracy() -> None:
    done = run(2, DIGITS, "--epochs", 1, "--accuracy", 0.999)
    assert done.returncode != 0
    assert "99.9% expected" in done.stdout + done.stderr
