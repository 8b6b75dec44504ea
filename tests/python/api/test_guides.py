"""The programs of the guides run as the guides say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


def listing(page: str, name: str) -> str:
    found = re.search(
        rf'^```\w+ title="{name}"\n(.*?)^```$', (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert found, f"{page} has no {name}"
    return found[1]


def run(*command: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", "4", "--prefix", *map(str, command)],
        capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"^\[\d\] ", "", done.stdout, flags=re.MULTILINE)


def check(output: str, rest: str = "") -> None:
    assert sorted(line for line in output.splitlines() if "done" in line) == [
        f"rank {rank} of 4 is done{rest}" for rank in range(4)
    ]
    assert "root 4 was given" in output


def compiled(tmp_path: Path, page: str, name: str, *command: str) -> Path:
    """The program of a page, built as the page says."""
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    if not libraries:
        pytest.fail("no build/*/libunisono.so; run `make build` first")
    folder = libraries[-1].parent
    source, program = tmp_path / name, tmp_path / "guide"
    source.write_text(listing(page, name))
    subprocess.run(
        [*command, "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/driver/include", source, f"-L{folder}", "-lunisono",
         f"-Wl,-rpath,{folder}", "-o", program],
        check=True, timeout=120,
    )  # fmt: skip
    return program


def test_python_guide(tmp_path: Path) -> None:
    script = tmp_path / "guide.py"
    script.write_text(listing("guide-python.md", "guide.py"))
    check(run(script))


def test_recovery_page(tmp_path: Path) -> None:
    script = tmp_path / "recovery.py"
    script.write_text(listing("recovery.md", "recovery.py"))
    output = run("--keep-going", script)
    assert sorted(output.splitlines()) == [f"rank {rank} of 3 is done, 18" for rank in range(3)]


def test_cpp_guide(tmp_path: Path) -> None:
    check(run(compiled(tmp_path, "guide-cpp.md", "guide.cpp", "g++", "-std=c++20")))


def test_the_page_of_streams(tmp_path: Path) -> None:
    script = tmp_path / "streams.py"
    script.write_text(listing("streams.md", "streams.py"))
    expected = [f"rank {rank}: the largest sum is 30" for rank in range(4)]
    assert sorted(run(script).splitlines()) == expected
    for rank in range(4):
        assert f"{expected[rank]}\n" in (ROOT / "docs" / "streams.md").read_text()
    # 1000 elements of 1 + 2 + 3 + 4.
    assert run(compiled(tmp_path, "streams.md", "streams.cpp", "g++", "-std=c++20")) == "the sum is 10000\n"
    two = compiled(tmp_path, "streams.md", "kernel.cpp", "g++", "-std=c++20")
    assert run("-n", "2", two) == "499500\n"


def jacobi() -> str:
    """What the program of the page for MPI's users prints, computed by one rank alone."""
    u = np.zeros(4 * 64 + 2)
    u[0] = 1
    sweeps, change = 0, 1.0
    while change > 1e-4:
        following = 0.5 * (u[:-2] + u[2:])
        change = abs(following - u[1:-1]).max()
        u[1:-1] = following
        sweeps += 1
    return f"{sweeps} sweeps, heat {u[1:-1].sum():.6f}\n"


def test_the_page_for_users_of_mpi(tmp_path: Path) -> None:
    page = "migrating-from-mpi.md"
    assert run(compiled(tmp_path, page, "jacobi.c", "gcc", "-std=c11", "-pedantic")) == jacobi()
    script = tmp_path / "jacobi.py"
    script.write_text(listing(page, "jacobi.py"))
    assert run(script) == jacobi()


def test_the_page_of_threads_and_signals(tmp_path: Path) -> None:
    output = run(compiled(tmp_path, "threads-fork-signals.md", "interrupt.c", "gcc", "-std=c11", "-pedantic"))
    assert sorted(output.splitlines()) == [
        "rank 0: revoked, by a signal", *(f"rank {rank}: revoked, by another rank" for rank in range(1, 4))
    ]  # fmt: skip


def test_the_mpi_program_of_that_page(tmp_path: Path) -> None:
    if (compiler := shutil.which("mpicc")) is None or (launcher := shutil.which("mpirun")) is None:
        pytest.skip("no MPI here (make peers)")
    source, program = tmp_path / "jacobi-mpi.c", tmp_path / "jacobi-mpi"
    source.write_text(listing("migrating-from-mpi.md", "jacobi-mpi.c"))
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", source, "-o", program], check=True, timeout=120)
    allowed = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMPI_MCA_rmaps_base_oversubscribe": "1"}  # fmt: skip
    done = subprocess.run([launcher, "-n", "4", program], capture_output=True, text=True, timeout=60, env=allowed)
    assert done.returncode == 0, done.stderr
    assert done.stdout == jacobi()


def test_c_guide(tmp_path: Path) -> None:
    # The largest element of every rank's sum: 4 times 3, and 10 for each rank's number.
    check(run(compiled(tmp_path, "guide-c.md", "guide.c", "gcc", "-std=c11", "-pedantic")), ", 72")
