"""Unchanged programs of MPI: what the shim carries is what the MPI below would have done, byte for byte."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from unisono.cli.cluster import ClusterError, find_cluster

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).resolve().parent / "programs"
SECONDS = 100
SEED = int(os.environ.get("UNISONO_SEED", "0") or "0", 0) or random.randrange(1 << 30)
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT / "python"),
    # Open MPI asks for it where the tests run as root, and takes more ranks than cores then.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request: pytest.FixtureRequest) -> str:
    """An MPI that is installed, and has its shim."""
    kind: str = request.param
    if shutil.which(f"mpicc.{kind}") is None or not (ROOT / f"build/release/libunisono_mpi_{kind}.so").exists():
        pytest.skip(f"there is no {kind}, or no shim for it: `make mpi` installs and builds both")
    return kind


def compiled(mpi: str, name: str, folder: Path) -> Path:
    program = folder / name
    words = [
        f"mpicc.{mpi}",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-stringop-overflow",
        "-Wno-stringop-overread",
        PROGRAMS / f"{name}.c",
        "-o",
        program,
        "-pthread",
    ]
    subprocess.run(words, check=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    return program


def run(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unisono", "mpirun", *map(str, words)],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT | more, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def right(done: subprocess.CompletedProcess[str], ranks: int) -> None:
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("right") == ranks, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_drawn_collectives(mpi: str, ranks: int, tmp_path: Path) -> None:
    """Each is made by the function that is carried and by the MPI's own, with datatypes that differ between ranks."""
    program = compiled(mpi, "drawn", tmp_path)
    done = run("-n", ranks, program, SEED + ranks, 300, UNISONO_MPI_REPORT="1")
    right(done, ranks)
    carried = re.search(r"([\d.]+) % of (\d+) calls were carried", done.stderr)
    assert carried is not None, done.stderr
    assert float(carried[1]) > 50
    # A call is left to the MPI for its communicator alone, which has one rank.
    for line in done.stderr.splitlines():
        if line.startswith("MPI_"):
            assert not re.search(r"operator|datatype", line), line
    forms = set(re.findall(r"^MPI_(I)?[A-Za-z_]+?(_init)? +[1-9]", done.stderr, re.MULTILINE))
    assert forms == {("", ""), ("I", ""), ("", "_init")}


def test_nothing_is_carried_where_that_is_said(mpi: str, tmp_path: Path) -> None:
    done = run("-n", 2, compiled(mpi, "drawn", tmp_path), SEED, 50, UNISONO_MPI="off", UNISONO_MPI_REPORT="1")
    right(done, 2)
    assert re.search(r"^0.0 % of \d+ calls were carried", done.stderr, re.MULTILINE)


def test_the_mpi_makes_progress_in_our_waits(mpi: str, tmp_path: Path) -> None:
    right(run("-n", 2, compiled(mpi, "progress", tmp_path)), 2)


@pytest.mark.parametrize("ranks", [2, 3])
def test_requests_beside_those_of_the_mpi(mpi: str, ranks: int, tmp_path: Path) -> None:
    """Who waits in the MPI owes progress to what is in flight, and the other way round; all of it is carried."""
    done = run("-n", ranks, compiled(mpi, "requests", tmp_path), UNISONO_MPI_REPORT="1")
    right(done, ranks)
    assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("ranks", [2, 4])
def test_calls_are_compared(mpi: str, ranks: int, tmp_path: Path) -> None:
    """Some calls are made both ways: results stay what they are, those in place included."""
    done = run("-n", ranks, compiled(mpi, "drawn", tmp_path), SEED, 300, UNISONO_MPI_REPORT="compare")
    right(done, ranks)
    rows = re.findall(
        r"^(MPI_\w+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+$", done.stderr.partition("both ways")[2], re.MULTILINE
    )
    assert rows, done.stderr
    assert all(int(count) % ranks == 0 for name, count in rows if name == "MPI_Barrier")


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_exchanges_with_neighbours(mpi: str, ranks: int, tmp_path: Path) -> None:
    done = run("-n", ranks, compiled(mpi, "neighbours", tmp_path), SEED, UNISONO_MPI_REPORT="1")
    right(done, ranks)
    assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("ranks", [2, 3])
def test_blocks_that_are_sent_lie_between_those_that_are_received(mpi: str, ranks: int, tmp_path: Path) -> None:
    done = run("-n", ranks, compiled(mpi, "between", tmp_path), UNISONO_MPI_REPORT="1")
    right(done, ranks)
    assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("ranks", [2, 3])
def test_elements_in_a_row_are_not_packed(mpi: str, ranks: int, tmp_path: Path) -> None:
    right(run("-n", ranks, compiled(mpi, "dense", tmp_path)), ranks)


@pytest.mark.parametrize("ranks", [3, 4])
def test_persistent_collectives_are_started_in_any_order(mpi: str, ranks: int, tmp_path: Path) -> None:
    done = run("-n", ranks, compiled(mpi, "order", tmp_path), UNISONO_MPI_REPORT="1")
    right(done, ranks)
    assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE)


def test_a_collective_that_is_started_waits_for_nobody(mpi: str, tmp_path: Path) -> None:
    right(run("-n", 2, compiled(mpi, "starts", tmp_path)), 2)


def test_who_has_ended_a_collective_may_wait_in_the_mpi(mpi: str, tmp_path: Path) -> None:
    right(run("-n", 3, compiled(mpi, "afterwards", tmp_path)), 3)


@pytest.mark.parametrize("ranks", [2, 3])
def test_threads_and_handles_that_are_used_again(mpi: str, ranks: int, tmp_path: Path) -> None:
    right(run("-n", ranks, compiled(mpi, "threads", tmp_path)), ranks)


@pytest.mark.parametrize("platform", ["functional", "rtl"])
def test_devices_carry_an_unchanged_program(mpi: str, platform: str, tmp_path: Path) -> None:
    if platform == "rtl":
        try:
            find_cluster()
        except ClusterError as error:
            pytest.skip(str(error))
    done = run("--platform", platform, "-n", 2, compiled(mpi, "devices", tmp_path), UNISONO_MPI_REPORT="1")
    right(done, 2)
    assert "75.0 % of 8 calls were carried" in done.stderr
    assert re.search(r"^MPI_Gatherv .* device: 2$", done.stderr, re.MULTILINE)
    assert ("unisono-cluster: 2 nodes" in done.stderr) == (platform == "rtl")


@pytest.mark.parametrize("ranks", [2, 3])
def test_errors_are_those_of_mpi(mpi: str, ranks: int, tmp_path: Path) -> None:
    done = run("-n", ranks, compiled(mpi, "errors", tmp_path))
    right(done, ranks)
    assert "unisono: MPI_Allreduce: allreduce" in done.stderr


def test_a_killed_rank_ends_the_job(mpi: str, tmp_path: Path) -> None:
    done = run("-n", 3, compiled(mpi, "killed", tmp_path))
    assert done.returncode != 0
    assert "not killed" not in done.stdout


def test_what_cannot_be_started_is_said(mpi: str, tmp_path: Path) -> None:
    program = compiled(mpi, "progress", tmp_path)
    other = {"openmpi": "mpich", "mpich": "openmpi"}[mpi]
    for words, said in [
        ((), "nothing to run"),
        (("-n", 2, "/bin/ls"), "needs neither Open MPI nor MPICH"),
        (("-n", 2, "no-such-program"), "no program among: -n 2 no-such-program"),
        (("--mpi", "other", "ls"), "--mpi other: allowed are openmpi, mpich"),
        (("--platform", "card", "ls"), "--platform card: allowed are native, functional, rtl"),
        (("--platform", "rtl", program), "needs a number of ranks"),
        (("--mpi", other, "-n", 2, program), f"and --mpi says {other}"),
    ]:
        done = run(*words)
        assert done.returncode == 2
        assert said in done.stderr
    shown = run("--show", "-n", 2, program)
    assert f"libunisono_mpi_{mpi}.so" in shown.stdout
    assert shown.stdout.rstrip().endswith(f"-n 2 {program}")


def test_program_of_the_page(mpi: str, tmp_path: Path) -> None:
    page = (ROOT / "docs/mpi.md").read_text()
    (listing,) = re.findall(r'```c title="sums.c"\n(.*?)```', page, re.DOTALL)
    (tmp_path / "sums.c").write_text(listing)
    subprocess.run([f"mpicc.{mpi}", tmp_path / "sums.c", "-o", tmp_path / "sums"], check=True, timeout=SECONDS)
    done = run("-n", 4, tmp_path / "sums", UNISONO_MPI_REPORT="1")
    assert done.returncode == 0, done.stderr
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]  # type: ignore[index]
    times = re.compile(r"\d+\.\d+ $", re.MULTILINE)
    assert times.sub("T", done.stdout + done.stderr).split() == times.sub("T", shown).split()
