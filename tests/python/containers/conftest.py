"""Starting commands in the sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SANDBOX = Path(__file__).with_name("sandbox.py")
SECONDS = 120
Run = Callable[..., subprocess.CompletedProcess[str]]


def interpreters() -> list[str]:
    """Pythons that may have our packages: another user may be kept from the folder of the one that runs this."""
    return [sys.executable, "/usr/bin/python3"]


def environment() -> dict[str, str]:
    """As here, and with the packages on the path, whichever Python runs them."""
    paths = [str(ROOT / "python"), *(path for path in sys.path if path.endswith("-packages"))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def sandboxed(options: list[str], command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command in the sandbox; skips the test with the reason where the machine does not permit that."""
    done = subprocess.run(
        [sys.executable, str(SANDBOX), *options, "--", *command],
        capture_output=True, text=True, timeout=SECONDS, env=environment(), cwd="/",
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip(f"not permitted here: {done.stderr.strip()}")
    return done


@pytest.fixture
def run() -> Run:
    """Runs `unisono ARGUMENT ...` in the sandbox."""

    def unisono(options: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
        return sandboxed(options, [sys.executable, "-m", "unisono", *map(str, arguments)])

    return unisono


@pytest.fixture
def run_as_user() -> Run:
    """The same as an ordinary user, with a Python that this user may use."""

    def unisono(options: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
        options = [*options, "--uid", "65534"]
        reasons = []
        for python in interpreters():
            if not Path(python).exists():
                continue
            tried = subprocess.run(
                [sys.executable, str(SANDBOX), "--uid", "65534", "--", python, "-c", "import unisono"],
                capture_output=True, text=True, timeout=SECONDS, env=environment(), cwd="/",
            )  # fmt: skip
            if tried.returncode == 0:
                return sandboxed(options, [python, "-m", "unisono", *map(str, arguments)])
            reasons.append(f"{python}: {(tried.stderr.strip() or 'fails').splitlines()[-1]}")
        pytest.skip(f"user 65534 has no Python with our packages here: {'; '.join(reasons)}")

    return unisono
