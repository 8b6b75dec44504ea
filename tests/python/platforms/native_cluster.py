"""Runs programs on a simulated cluster whose nodes are all native: the real network, without Verilated engines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 100


def program() -> Path:
    """The cluster; skips the test where it is not built."""
    built = sorted((ROOT / "build").glob("*/tests/cpp/native_cluster"), key=os.path.getmtime)
    if not built:
        pytest.skip("native_cluster is not built (tools/build --tests)")
    return built[-1]


def environment() -> dict[str, str]:
    """Of commands that use it."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    return around | {"PYTHONPATH": str(ROOT / "python"), "UNISONO_CLUSTER": str(program())}


def command(ranks: int, *arguments: object) -> list[str]:
    """`unisono run` on that many native nodes."""
    native = ",".join(map(str, range(ranks)))
    options = ["-n", ranks, "--platform", "rtl", "--native", native, *arguments]
    return [sys.executable, "-m", "unisono", "run", *map(str, options)]


def run(ranks: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    return subprocess.run(
        command(ranks, *arguments), capture_output=True, text=True, timeout=SECONDS, env=environment()
    )
