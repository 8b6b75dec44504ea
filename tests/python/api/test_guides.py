"""The programs of the guides run as the guides say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_c_guide(tmp_path: Path) -> None:
    # The largest element of every rank's sum: 4 times 3, and 10 for each rank's number.
    check(run(compiled(tmp_path, "guide-c.md", "guide.c", "gcc", "-std=c11", "-pedantic")), ", 72")
