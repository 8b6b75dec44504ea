"""How tests compile programs of OpenSHMEM and run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}
SECONDS = 60


def build(folder: Path, source: Path, *options: str) -> Path:
    """Compiles a program by unisono-oshcc, which must have nothing to say."""
    program = folder / source.stem
    cpp = source.suffix == ".cpp"
    command = [sys.executable, "-m", "unisono.cli.oshcc", "-std=c++17" if cpp else "-std=c11"]
    command += ["-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra"]
    environment = ENVIRONMENT | ({"UNISONO_CC": "c++"} if cpp else {})
    done = subprocess.run(
        [*command, str(source), *options, "-o", str(program)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return program


def run(program: Path, *arguments: object, on: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program; `on` are the options of `unisono run`."""
    return subprocess.run(
        [sys.executable, "-m", "unisono", "run", *on, str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=ENVIRONMENT | environment,
    )


def hosts(names: str, *options: str) -> list[str]:
    """Options for ranks that count as being on several hosts."""
    return ["--hosts", names, "--agent", "local", *options]
