"""How tests start programs that use torch, which lives in an environment of its own."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).resolve().parent / "programs"
SECONDS = 100
_LAUNCHERS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")


@functools.cache
def interpreter() -> str:
    """A Python that has torch, or a skipped test."""
    for python in (sys.executable, str(ROOT / ".venv-torch/bin/python")):
        look = [python, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"]
        if Path(python).exists() and subprocess.run(look, check=False).returncode == 0:
            return python
    pytest.skip("torch is not installed: `make torch` installs what these tests need, in .venv-torch")


def environment(**more: str) -> dict[str, str]:
    """For ranks: no other launcher's variables, and one thread each."""
    clean = {name: value for name, value in os.environ.items() if name not in _LAUNCHERS}
    return clean | {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"} | more


def unisono_run(ranks: int, program: str, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    """A program of `programs/` by our own launcher."""
    return launched(["-m", "unisono", "run", "-n", str(ranks)], program, *arguments, **more)


def launched(launcher: list[str], program: str, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    """A program of `programs/`, behind the words of a launcher that is a module."""
    return subprocess.run(
        [interpreter(), *launcher, str(PROGRAMS / program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(**more),
        check=False,
    )


def right(done: subprocess.CompletedProcess[str], ranks: int) -> None:
    """Every rank has said so at its end."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-6000:]
    assert done.stdout.count("right") == ranks, done.stdout[-4000:]
