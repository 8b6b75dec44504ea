"""The program that measures the offload thread runs, and its all-reduces are right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_overlap_prints_a_line_for_each_size() -> None:
    command = ["-m", "unisono", "run", "-n", "3", "apps/overlap/overlap.py", "--rounds", "2", "--sizes", "4,64"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[-2:]] == [["4", "KB"], ["64", "KB"]]
    assert all(line.count("%") == 3 for line in lines[-2:])
