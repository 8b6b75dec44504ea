"""Programs of mpi4py: its modules look functions of MPI up in the process, where the shim is first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .test_programs import ROOT, SECONDS, right, run

PROGRAM = """
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.size, world.rank
mine = array("d", [rank + 0.25 * i for i in range(5)])
sums = array("d", [0.0] * 5)
world.Allreduce(mine, sums, MPI.SUM)
assert list(sums) == [size * (size - 1) / 2 + 0.25 * i * size for i in range(5)], sums
world.Allreduce(MPI.IN_PLACE, sums, MPI.MAX)
world.Bcast(sums, 0)
gathered = array("d", [0.0] * 5 * size)
world.Allgather(mine, gathered)
assert list(gathered) == [r + 0.25 * i for r in range(size) for i in range(5)], gathered
world.Ibcast(sums, 0).Wait()
world.Barrier()
half = world.Split(0, -rank)
assert half.allreduce(rank, MPI.MAX) == size - 1
assert half.bcast({"rank": half.rank}, 0) == {"rank": 0}
half.Free()
print("right")
"""


def environment(mpi: str, folder: Path) -> dict[str, str]:
    """MPICH's wheel wants a name of the library that Debian's package has not."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, timeout=SECONDS, check=False)
    library = re.search(r"^\s*libmpich\.so\.12 .* => (\S+)$", listed.stdout, re.MULTILINE)
    if mpi == "mpich" and library is not None:
        (folder / "libmpi.so.12").symlink_to(library[1])
    return {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")}


def python_for(mpi: str, more: dict[str, str]) -> str:
    """A Python that loads mpi4py with this MPI. UNISONO_TEST_MPI4PY names one of yours."""
    own = [os.environ[name] for name in ("UNISONO_TEST_MPI4PY",) if name in os.environ]
    for python in [*own, ROOT / ".venv-peers/bin/python", sys.executable, "/usr/bin/python3"]:
        if Path(python).exists():
            loads = run("--mpi", mpi, "-n", 1, python, "-c", "from mpi4py import MPI", **more)
            if loads.returncode == 0:
                return str(python)
    pytest.skip(f"no mpi4py loads with {mpi} here: `make mpi peers` installs both")


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_collectives_of_mpi4py(mpi: str, tmp_path: Path) -> None:
    more = environment(mpi, tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("--mpi", mpi, "-n", 3, python_for(mpi, more), tmp_path / "program.py", UNISONO_MPI_REPORT="1", **more)
    right(done, 3)
    assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE), done.stderr
    assert re.search(r"^MPI_Allgather +3 ", done.stderr, re.MULTILINE), done.stderr


def folder_of(module: str, folder: Path, mpi: str) -> str:
    """A folder for PYTHONPATH with a package mpi4py, whose module is a library that needs an MPI."""
    package = folder / "mpi4py"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    source = folder / "module.c"
    source.write_text("int MPI_Initialized(int*);\nint loads(int* flag) { return MPI_Initialized(flag); }\n")
    words = [f"mpicc.{mpi}", "-shared", "-fPIC", source, "-o", package / module]
    subprocess.run(words, check=True, timeout=SECONDS)
    return str(folder)


def test_which_mpi_is_found_by_the_module(tmp_path: Path) -> None:
    """Of Debian's package there is one module, of a wheel one for each MPI."""
    for kind in ("openmpi", "mpich"):
        if not (ROOT / f"build/release/libunisono_mpi_{kind}.so").exists():
            pytest.skip("there are no shims: `make mpi` builds them")
    path = {"PYTHONPATH": f"{ROOT / 'python'}:{folder_of('MPI.one.so', tmp_path, 'mpich')}"}
    shown = run("--show", "-n", 2, sys.executable, "program.py", **path)
    assert "libunisono_mpi_mpich.so" in shown.stdout, shown.stderr
    folder_of("MPI.other.so", tmp_path, "openmpi")
    said = run("--show", "-n", 2, sys.executable, "program.py", **path)
    assert "is there for" in said.stderr
    assert "say which by --mpi" in said.stderr
    for kind in ("openmpi", "mpich"):
        shown = run("--mpi", kind, "--show", "-n", 2, sys.executable, "program.py", **path)
        assert f"libunisono_mpi_{kind}.so" in shown.stdout, shown.stderr
