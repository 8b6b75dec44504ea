"""The halo exchange of apps/halo: by put with signal, by messages, and in Python, against a serial run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .support import ENVIRONMENT, ROOT, build, hosts, run

HALO = ROOT / "apps" / "halo"
PLACES = [["-n", "1"], ["-n", "3"], hosts("a:2,b:1")]


def name_of(on: list[str]) -> str:
    return "_".join(word for word in on if not word.startswith("--"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("halo")
    config = [sys.executable, "-m", "unisono.config", "--cflags", "--libs"]
    flags = subprocess.run(config, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout.split()
    return {
        "put with signal": build(folder, HALO / "shmem.c", "-O2"),
        "send and receive": build(folder, HALO / "messages.c", "-O2", *flags),
    }


@pytest.mark.parametrize("on", PLACES, ids=name_of)
@pytest.mark.parametrize("how", ["put with signal", "send and receive"])
def test_it_is_the_same_as_the_serial_run(programs: dict[str, Path], how: str, on: list[str]) -> None:
    done = run(programs[how], on=on)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{how}: the same as the serial run" in done.stdout


@pytest.mark.parametrize("on", PLACES, ids=name_of)
def test_in_python(on: list[str]) -> None:
    done = run(HALO / "halo.py", on=on)
    assert (done.returncode, done.stderr) == (0, "")
    assert "PEs: the same as the serial run" in done.stdout


def test_one_value_that_is_not_sent_is_seen(tmp_path: Path) -> None:
    shutil.copy(HALO / "grid.h", tmp_path)
    text = (HALO / "shmem.c").read_text()
    spoilt = text.replace("to[1], kColumns, &from_below", "to[1], kColumns - 2, &from_below")
    assert spoilt != text
    (tmp_path / "spoilt.c").write_text(spoilt)
    done = run(build(tmp_path, tmp_path / "spoilt.c"), on=["-n", "2"])
    assert done.returncode == 1
    assert "NOT the serial run" in done.stdout
