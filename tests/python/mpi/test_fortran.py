"""Unchanged programs in Fortran: what the shim carries is what the MPI below would have done, byte for byte."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from .test_programs import ENVIRONMENT, PROGRAMS, ROOT, SECONDS, right, run

#: How MPI comes to a program: the programs' BINDING.
BINDINGS = {"mpif.h": 0, "use mpi": 1, "use mpi_f08": 8}
#: Buffers of a program with mpif.h have any type.
FLAGS = ["-O1", "-cpp", "-w", "-fallow-argument-mismatch", "-ffree-line-length-none"]


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request: pytest.FixtureRequest) -> str:
    """An MPI that is installed with its bindings of Fortran, and has its shim."""
    kind: str = request.param
    if shutil.which(f"mpif90.{kind}") is None or not (ROOT / f"build/release/libunisono_mpi_{kind}.so").exists():
        pytest.skip(f"there is no Fortran of {kind}, or no shim for it: `make mpi` installs and builds both")
    return kind


def compiled(mpi: str, name: str, binding: str, folder: Path) -> Path:
    program = folder / name
    below = folder / "below.o"
    subprocess.run(
        [f"mpicc.{mpi}", "-O1", "-Wall", "-Wextra", "-Werror", "-c", PROGRAMS / "below.c", "-o", below],
        check=True, timeout=SECONDS,
    )  # fmt: skip
    own = [f"-DBINDING={BINDINGS[binding]}", *(["-DEXTENSION"] if mpi == "openmpi" else [])]
    subprocess.run(
        [f"mpif90.{mpi}", *FLAGS, *own, PROGRAMS / f"{name}.f90", below, "-o", program],
        check=True, timeout=SECONDS, cwd=folder,
    )  # fmt: skip
    return program


@pytest.mark.parametrize("binding", BINDINGS)
def test_blocking_collectives(mpi: str, binding: str, tmp_path: Path) -> None:
    """On several communicators, in place, and of datatypes with gaps; all of them are carried."""
    program = compiled(mpi, "collectives", binding, tmp_path)
    for ranks in (2, 3, 4):
        done = run("-n", ranks, program, UNISONO_MPI_REPORT="1")
        right(done, ranks)
        carried = re.search(r"^([\d.]+) % of (\d+) calls were carried", done.stderr, re.MULTILINE)
        assert carried is not None, done.stderr
        assert carried[1] == "100.0", done.stderr
        assert int(carried[2]) > 400 * ranks
        assert len(re.findall(r"^MPI_\w+ +[1-9]", done.stderr, re.MULTILINE)) >= 16, done.stderr


@pytest.mark.parametrize("binding", BINDINGS)
def test_requests(mpi: str, binding: str, tmp_path: Path) -> None:
    """Collectives that do not block, a send and a receive, ended by all functions there are; operators in Fortran."""
    program = compiled(mpi, "requests", binding, tmp_path)
    for ranks in (2, 3, 4):
        done = run("-n", ranks, program, UNISONO_MPI_REPORT="1")
        right(done, ranks)
        assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE), done.stderr
        for name in ("Iallreduce", "Ialltoallw", "Allreduce_init", "Barrier_init"):
            assert re.search(rf"^MPI_{name} +[1-9]", done.stderr, re.MULTILINE), done.stderr


def test_library_that_is_loaded_later(mpi: str, tmp_path: Path) -> None:
    """A program in C that loads one in Fortran, as Python does, has the functions of Fortran only from then on."""
    library, program = tmp_path / "late.so", tmp_path / "late"
    subprocess.run(
        [f"mpif90.{mpi}", *FLAGS, "-shared", "-fPIC", PROGRAMS / "late.f90", "-o", library],
        check=True, timeout=SECONDS, cwd=tmp_path,
    )  # fmt: skip
    subprocess.run([f"mpicc.{mpi}", "-Wall", PROGRAMS / "late.c", "-o", program, "-ldl"], check=True, timeout=SECONDS)
    done = run("-n", 3, program, library, UNISONO_MPI_REPORT="1")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^MPI_Allreduce +5 ", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize("binding", BINDINGS)
def test_program_of_the_page(mpi: str, binding: str, tmp_path: Path) -> None:
    """Under the launcher of its own as well. It needs no library of MPI that is for C by name."""
    page = (ROOT / "docs/mpi.md").read_text()
    (listing,) = re.findall(r'```fortran title="sums.f90"\n(.*?)```', page, re.DOTALL)
    source = tmp_path / "sums.f90"
    use = {"mpif.h": "include 'mpif.h'", "use mpi": "", "use mpi_f08": ""}[binding]
    listing = listing.replace("  use mpi\n", "" if use else f"  {binding}\n")
    source.write_text(listing.replace("implicit none\n", f"implicit none\n  {use}\n"))
    subprocess.run([f"mpif90.{mpi}", source, "-o", tmp_path / "sums"], check=True, timeout=SECONDS, cwd=tmp_path)
    done = run("-n", 4, tmp_path / "sums", UNISONO_MPI_REPORT="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "ranks:", "6.0", "8.0", "4.0"]
    assert "100.0 % of 4 calls were carried" in done.stderr
    shown = shlex.split(run("--show", "-n", 4, tmp_path / "sums").stdout)
    (before,) = (word.removeprefix("LD_PRELOAD=") for word in shown if "libunisono_mpi" in word)
    words = {
        "openmpi": ["mpirun.openmpi", "-x", f"LD_PRELOAD={before}", "-x", "UNISONO_MPI_REPORT=1"],
        "mpich": ["mpiexec.mpich", "-genv", "LD_PRELOAD", before, "-genv", "UNISONO_MPI_REPORT", "1"],
    }[mpi]
    done = subprocess.run(
        [*words, "-n", "4", tmp_path / "sums"], env=ENVIRONMENT, timeout=SECONDS, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "100.0 % of 4 calls were carried" in done.stderr
