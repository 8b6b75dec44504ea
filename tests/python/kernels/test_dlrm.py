"""apps/dlrm: the recommendation model, small, as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernels_support import HERE

APP = HERE.parents[2] / "apps" / "dlrm"
simulated = pytest.mark.skipif(
    os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set (make test-rtl)"
)
PLATFORMS = ["native", "functional", pytest.param("rtl", marks=simulated)]


def run(folder: Path, *words: object, application: Path = APP) -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    return subprocess.run(
        [sys.executable, str(application / "run.py"), "--small", *map(str, words), "--folder", str(folder)],
        capture_output=True, text=True, timeout=280, check=False, env=around,
    )  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
def test_scores_are_numpys(tmp_path: Path, platform: str) -> None:
    done = run(tmp_path, "--platform", platform, "--queries", 3, "--seed", 7)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"all scores of 3 queries on {platform} are NumPy's, bit for bit" in done.stdout


@pytest.mark.parametrize("platform", ["native", pytest.param("rtl", marks=simulated)])
def test_a_processor_feeds_the_queries(tmp_path: Path, platform: str) -> None:
    done = run(tmp_path, "--platform", platform, "--queries", 6, "--seed", 2, "--feed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"all scores of 6 queries on {platform} are NumPy's, bit for bit" in done.stdout


@pytest.mark.parametrize(
    ("file", "text", "instead", "wrong"),
    [
        ("stage.hpp", "sum >> kFraction", "(sum + (1 << 15)) >> kFraction", "of 4 scores differ"),
        (
            "dlrm.cpp",
            "word = tables.subspan(",
            "word = tables.subspan(begun == 2 && table == 1 ? 0 : ",
            "1 of 4 scores",
        ),
    ],
)
def test_a_wrong_bit_is_found(tmp_path: Path, file: str, text: str, instead: str, wrong: str) -> None:
    """Products that are rounded instead of cut; one row of one query that is another one."""
    copied = tmp_path / "apps" / "dlrm"
    copied.mkdir(parents=True)
    for path in APP.iterdir():
        if path.is_file():
            (copied / path.name).write_text(path.read_text())
    source = copied / file
    assert text in source.read_text()
    source.write_text(source.read_text().replace(text, instead))
    done = run(tmp_path, "--platform", "native", "--queries", 4, application=copied)
    assert done.returncode == 1
    assert wrong in done.stderr, done.stderr
