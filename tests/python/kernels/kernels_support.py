"""What tests of kernels have in common."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def unisono(*arguments: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run(
        [sys.executable, "-m", "unisono.cli", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False, env=environment,
    )  # fmt: skip
