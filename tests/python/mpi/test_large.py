"""Counts that are more than int, which MPI 4 has; Open MPI 4 has them not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .test_programs import ROOT, compiled, right, run


@pytest.mark.parametrize("ranks", [2, 3])
def test_counts_of_mpi_4(ranks: int, tmp_path: Path) -> None:
    if shutil.which("mpicc.mpich") is None or not (ROOT / "build/release/libunisono_mpi_mpich.so").exists():
        pytest.skip("there is no MPICH, or no shim for it: `make mpi` installs and builds both")
    done = run("-n", ranks, compiled("mpich", "large", tmp_path), UNISONO_MPI_REPORT="1")
    right(done, ranks)
    assert re.search(r"^100.0 % of \d+ calls were carried", done.stderr, re.MULTILINE), done.stderr
