"""The model of the wake-up protocol: it holds, and the variants that are wrong on purpose are found wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RIGHT = ("MEMBARRIER", "FENCE", "JOINING", "REVOKING", "BELL", "BELL_FENCE", "BELL_JOINING", "BELL_REVOKING")
WRONG = ("NO_BARRIER", "EARLY", "NO_RECHECK", "NO_COMPARE", "HASTY", "CLEARS_LATE", "NO_SLEEP")


@pytest.fixture(scope="module")
def verdicts() -> dict[tuple[str, str], str]:
    if shutil.which("spin") is None or shutil.which("cc") is None:
        pytest.skip("spin or a C compiler is missing (Debian packages spin and gcc; tools/packages test)")
    done = subprocess.run([ROOT / "tools" / "model", "2", "1"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("verdict: the protocol holds\n")
    lines = re.findall(r"^  (\w+) +(safety|progress) +(\S+) states   (.*)$", done.stdout, re.MULTILINE)
    assert all(float(states) > 10 for _, _, states, _ in lines)
    return {(variant, kind): text for variant, kind, _, text in lines}


@pytest.mark.parametrize("variant", RIGHT)
def test_no_wake_up_is_lost(verdicts: dict[tuple[str, str], str], variant: str) -> None:
    assert verdicts[variant, "safety"] == "no lost wake-up, no deadlock"
    assert verdicts[variant, "progress"] == "no endless loop"


@pytest.mark.parametrize("variant", WRONG)
def test_what_is_wrong_is_found_wrong(verdicts: dict[tuple[str, str], str], variant: str) -> None:
    kind = "progress" if variant == "NO_SLEEP" else "safety"
    assert verdicts[variant, kind].startswith("found wrong, as it must be")
