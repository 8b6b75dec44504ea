"""Unchanged programs of MPI on two hosts, which are network namespaces, with two ranks each."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from unisono.bench.namespaces import NamespacesError, hosts

from .test_programs import ENVIRONMENT, ROOT, SECONDS, SEED, compiled, right


@pytest.mark.parametrize("network", ["tcp", "udp"])
@pytest.mark.parametrize("words", [("drawn", SEED, 150), ("requests",), ("afterwards",)], ids=lambda words: words[0])
def test_two_hosts(network: str, words: tuple[object, ...], tmp_path: Path) -> None:
    """MPICH is left out: its launcher looks for hosts by names that only a name server could know."""
    if shutil.which("mpicc.openmpi") is None or not (ROOT / "build/release/libunisono_mpi_openmpi.so").exists():
        pytest.skip("there is no Open MPI, or no shim for it: `make mpi` installs and builds both")
    program = compiled("openmpi", str(words[0]), tmp_path)
    tmp_path.chmod(0o755)
    try:
        with hosts(network, 4, 2, tmp_path) as where:
            before, options = where.openmpi()
            assert where.remote is not None
            mpirun = [sys.executable, "-m", "unisono", "mpirun", "-n", 4, *options, program, *words[1:]]
            done = subprocess.run(
                [*before, shlex.join(map(str, mpirun))], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS,
                env=ENVIRONMENT | {"UNISONO_MPI_REPORT": "1", "UNISONO_TRANSPORT": network},
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
    except NamespacesError as error:
        pytest.skip(f"there can be no network namespaces here: {error}")
    right(done, 4)
    assert "100.0 % of" in done.stderr
