"""bench/streams/engine.py: what it measures is verified, in segments as long as the engine has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernels_support import HERE

ROOT = HERE.parents[2]
STREAMS = ROOT / "bench" / "streams"
simulated = pytest.mark.skipif(
    os.environ.get("UNISONO_TEST_RTL", "0") == "0", reason="UNISONO_TEST_RTL is not set (make test-rtl)"
)


def measure(folder: Path, ranks: int, sizes: str, spoil: tuple[str, str] | None = None) -> tuple[int, list[Any], str]:
    """Exit status, lines, and what was said beside them."""
    source = folder / "kernels.cpp"
    text = (STREAMS / "engine_kernels.cpp").read_text()
    if spoil is not None:
        assert spoil[0] in text
        text = text.replace(*spoil)
    source.write_text(text)
    around = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    command = [sys.executable, "-m", "unisono"]
    built = subprocess.run(
        [*command, "kernel", "build", source, "-o", folder / "k.so"], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    options = ["-n", str(ranks), "--platform", "rtl", "--kernels", str(folder / "k.so")]
    done = subprocess.run(
        [*command, "run", *options, STREAMS / "engine.py", "--sizes", sizes],
        capture_output=True, text=True, check=False, timeout=280, env=around,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"], done.stderr


@simulated
def test_sends_are_verified_and_fill_the_link(tmp_path: Path) -> None:
    """Four segments of 8128 bytes, and one of a word: the cycles are those of any run."""
    status, lines, said = measure(tmp_path, 2, "32576")
    assert status == 0, said
    assert all(line["verified"] and line["segment_bytes"] == 8128 for line in lines)
    found = {line["op"]: line for line in lines}
    assert set(found) == {"kernel_call_to_word", "word_on_open_call", "empty_call", "send_stream", "send_buffer"}
    assert found["word_on_open_call"]["beyond_wire"] <= 52
    assert found["kernel_call_to_word"]["beyond_wire"] <= 75
    # What comes before the first segment is stored there, so the link's share of it does not count.
    assert 0.9 < found["send_stream"]["limit_ratio"] < 1.02


@simulated
def test_collectives_are_verified(tmp_path: Path) -> None:
    status, lines, said = measure(tmp_path, 3, "192")
    assert status == 0, said
    six = ["bcast", "scatter", "gather", "reduce", "allreduce", "allgather"]
    assert [line["op"] for line in lines] == [op for op in six for _ in range(2)]
    assert [line["made"] for line in lines[:2]] == ["one call", "linear: sends and receives of the kernels"]
    assert all(line["verified"] and line["limit_ratio"] >= 1 for line in lines)


@simulated
def test_a_wrong_element_is_found(tmp_path: Path) -> None:
    status, lines, _ = measure(tmp_path, 3, "64", ("total += ", "total += rank == 2 && lane == 5 ? 1U : "))
    assert status == 1
    assert {line["op"] for line in lines if not line["verified"]} == {"reduce", "allreduce"}
