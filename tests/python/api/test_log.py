"""UNISONO_LOG: how much the library and the launcher write to standard error by themselves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LEVELS = ("error", "warn", "info", "debug")

SCRIPT = """
import numpy as np
import unisono
with unisono.init() as context:
    half = context.world.split(context.world.rank % 2, name="half")
    assert half.allreduce(np.array([half.rank + 1.0]))[0] == sum(range(1, half.size + 1))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a script, and a tuning file that is none: the library leaves it aside with a warning."""
    (tmp_path / "unisono").mkdir()
    (tmp_path / "unisono" / "tuning.json").write_text("{\n")
    (tmp_path / "program.py").write_text(SCRIPT)
    return tmp_path


def run(home: Path, level: str | None, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "XDG_CONFIG_HOME": str(home)} | more
    environment.pop("UNISONO_LOG", None)
    if level is not None:
        environment["UNISONO_LOG"] = level
    return subprocess.run(
        list(map(str, words)) or [sys.executable, "-m", "unisono", "run", "-n", "3", str(home / "program.py")],
        capture_output=True, text=True, timeout=120, env=environment,
    )  # fmt: skip


def expected(home: Path, level: str) -> list[str]:
    """What a job of three ranks writes, sorted, without numbers that differ from run to run."""
    lines: list[str] = []
    for rank, (number, half) in enumerate([(0, 2), (0, 1), (1, 2)]):
        if level != "error":
            lines.append(
                f"unisono: warning: the tuning file {home}/unisono/tuning.json: line 1: the name of a field is "
                "missing; the text ends here; it is left aside. Run `unisono calibrate` again, or remove it"
            )
        if level in ("info", "debug"):
            lines.append("unisono: info: algorithms: no tuning file; before it, bcast=linear")
            lines.append(f"unisono: info: rank {rank} of 3 (process #) has joined its job on platform native")
        if level == "debug":
            lines.append(f'unisono: debug: split: communicator # "half", of which this is rank {number} of {half}')
            lines.append(f"unisono run: debug: rank {rank} is process #")
            lines.append(f"unisono run: debug: rank {rank} exited with status 0")
    if level in ("info", "debug"):
        lines.append("unisono run: info: the job ended after # s with status 0")
    return sorted(lines)


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_adds_its_own_sentences(home: Path, level: str) -> None:
    done = run(home, level, UNISONO_ALGORITHM="bcast=linear")
    assert done.returncode == 0, done.stderr
    said = re.sub(r"(process|after|communicator) [\d.]+", r"\1 #", done.stderr)
    assert sorted(said.splitlines()) == expected(home, level)


def test_without_it_there_are_warnings(home: Path) -> None:
    assert sorted(run(home, None).stderr.splitlines()) == expected(home, "warn")


WRONG = 'warning: UNISONO_LOG is "loud"; known are error, warn (as without it), info, debug'


def test_an_unknown_level_is_mentioned_once_and_means_warn(home: Path) -> None:
    done = run(home, "loud")
    assert done.returncode == 0
    assert sorted(done.stderr.splitlines()) == sorted([f"unisono run: {WRONG}", *expected(home, "warn")])


def test_without_a_launcher_the_library_says_so(home: Path) -> None:
    done = run(home, "loud", sys.executable, home / "program.py")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] in (f"unisono: {WRONG}", expected(home, "warn")[0])
    assert done.stderr.count(WRONG) == 1


def test_errors_are_said_at_every_level(home: Path) -> None:
    (home / "program.py").write_text("raise SystemExit(3)")
    done = run(home, "error")
    assert done.returncode == 3
    assert re.fullmatch(r"unisono run: rank \d of 3 exited with status 3; the others were ended", done.stderr.strip())
