"""The models of the slots of a switch, and of two: they hold, and what is wrong on purpose is found wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RULES = {
    "ONE_VERSION": "somebody waits for ever",
    "NO_CLEARING": "a wrong result",
    "CLEARS_LATE": "a wrong result",
    "NO_OVERWRITE": "a wrong result",
    "ONE_BIT": "a frame two rounds late is taken",
    "NO_CLOSING": "a wrong result",
    "NO_GENERATION": "somebody waits for ever",
    "SILENT": "somebody waits for ever",
    "NO_MEETING": "somebody waits for ever",
    "FORGETFUL": "somebody waits for ever",
    "HASTY": "a result without all shares",
    "DEAF": "somebody waits for ever",
    "STEADY": "somebody waits for ever",
    "TRUSTING": "somebody waits for ever",
    "APART": "somebody waits for ever",
}


@pytest.fixture(scope="module")
def lines() -> list[tuple[str, str]]:
    if shutil.which("spin") is None or shutil.which("cc") is None:
        pytest.skip("spin or a C compiler is missing (Debian packages spin and gcc; tools/packages test)")
    done = subprocess.run([ROOT / "tools" / "model", "slots"], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("verdict: the protocol holds\n")
    found = re.findall(r"^  (\w+) +safety +(\S+) states   (.*)$", done.stdout, re.MULTILINE)
    assert all(float(states) > 10 for _, states, _ in found)
    return [(variant, text) for variant, _, text in found]


def test_results_are_right_and_nobody_waits_for_ever(lines: list[tuple[str, str]]) -> None:
    right = [text for variant, text in lines if variant == "RIGHT"]
    assert right == ["right results, nobody waits for ever"] * 4  # two of one switch, two of a tree


@pytest.mark.parametrize("variant", RULES)
def test_no_rule_can_be_left_out(lines: list[tuple[str, str]], variant: str) -> None:
    assert any(
        name == variant and text.startswith(f"found wrong, as it must be: {RULES[variant]}") for name, text in lines
    )
