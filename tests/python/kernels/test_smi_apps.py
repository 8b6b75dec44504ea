"""apps/smi: the applications of the SMI paper, small, as a user starts them."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from kernels_support import HERE
from unisono.kernels import parsing

APPS = HERE.parents[2] / "apps" / "smi"
needs_libclang = pytest.mark.skipif(not parsing.available(), reason="libclang is not installed")


def run(folder: Path, *words: object, application: Path = APPS) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(application / "run.py"), *map(str, words), "--folder", str(folder)],
        capture_output=True, text=True, timeout=240, check=False, env=os.environ | {"UNISONO_SMI": "strict"},
    )  # fmt: skip


@needs_libclang
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("gesummv", "--ranks", 1, "--size", 48), "gesummv: 48 x 48 on 1 ranks"),
        (("gesummv", "--ranks", 2, "--size", 96, "--seed", 5), "gesummv: 96 x 96 on 2 ranks"),
        (("stencil", "--ranks", 1, "--size", 64, "--rounds", 3), "3 steps on 1 x 1 ranks"),
        (("stencil", "--ranks", 4, "--size", 256, "--rounds", 5), "5 steps on 2 x 2 ranks, torus"),
        (("stencil", "--ranks", 8, "--size", 512, "--rounds", 4, "--topology", "bus"), "4 steps on 1 x 8 ranks, bus"),
        (("kmeans", "--ranks", 3, "--size", 301, "--rounds", 4), "kmeans: 301 points, 4 rounds on 3 ranks"),
        (("kmeans", "--ranks", 8, "--size", 600, "--rounds", 1), "kmeans: 600 points, 1 rounds on 8 ranks"),
    ],
)
def test_it_agrees_with_numpy(tmp_path: Path, words: Sequence[object], told: str) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told in done.stdout
    assert "NumPy's" in done.stdout


SPOILT = {
    "gesummv": ("gesummv_rank1.cl", "float value = beta *", "float value = (row == 17 ? 2 : 1) * beta *"),
    "stencil": ("stencil.cl", "SMI_Pop(&from, &value);", "SMI_Pop(&from, &value);\n      value += i == 40 && t == 1;"),
    "kmeans": ("kmeans.cl", "sum += apart[w] * apart[w];", "sum = apart[w] * apart[w];"),
}


@needs_libclang
@pytest.mark.parametrize("name", SPOILT)
def test_a_kernel_that_is_wrong_is_found(tmp_path: Path, name: str) -> None:
    """One element in the wrong place, or one lane of sixteen added, does not pass."""
    copied = tmp_path / "apps" / "smi"
    copied.mkdir(parents=True)
    file, text, instead = SPOILT[name]
    for path in APPS.iterdir():
        if path.is_file():
            (copied / path.name).write_text(path.read_text())
    source = copied / file
    assert text in source.read_text()
    source.write_text(source.read_text().replace(text, instead))
    ranks = 2 if name == "gesummv" else 4
    done = run(tmp_path, name, "--ranks", ranks, application=copied)
    assert done.returncode != 0
    assert "wrong:" in done.stderr


def test_the_distributed_form_differs_in_eight_lines() -> None:
    """Between gesummv.cl and its two programs: kernel by kernel, and what stands before the kernels."""

    def parts(*names: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in names:
            head, *kernels = re.split(r"(?m)^(?=__kernel)", (APPS / name).read_text())
            found["head"] = list(dict.fromkeys(found.get("head", []) + head.splitlines()))
            found |= {re.findall(r"\w+", kernel)[2]: kernel.splitlines() for kernel in kernels}
        return found

    one, two = parts("gesummv.cl"), parts("gesummv_rank0.cl", "gesummv_rank1.cl")
    assert one.keys() == two.keys() == {"head", "product_a", "product_b", "add"}
    changed = 0
    for name in one:
        before = [line for line in one[name] if line]
        after = [line for line in two[name] if line]
        for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            changed += max(b - a, d - c) if tag != "equal" else 0
    assert 1 <= changed <= 8, changed
