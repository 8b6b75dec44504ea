"""unisono_handler: its bits, outcomes and memory are those of the interpreter, for random programs and the examples."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import hdl
import pytest
from hdl import full, scaled
from machine import ALL, INTEGERS, build, told

EXAMPLES = hdl.ROOT / "examples" / "handlers"
PACKETS = 4


@pytest.mark.parametrize(
    ("columns", "elements"),
    [(16, ALL), (2, INTEGERS), full(1, ALL), full(2, ALL), full(4, ALL), full(8, ALL)],
)
def test_random_programs(columns: int, elements: int) -> None:
    count = scaled(4000, 200)
    seen = told([str(build(columns, elements)), "random", "1", str(count), str(elements)], limit_s=900)
    for reason in ("none", "budget", "loop_bound", "memory", "payload", "divide", "output"):
        assert seen[f"stop_{reason}"] >= count // 100, reason
    for reason in (1, 2) if elements == ALL else (1, 2, 3):
        assert seen[f"refused_{reason}"], reason


def compiled(source: Path, folder: Path) -> Path:
    """The binary of a source in C, if what reads C is there."""
    binary = folder / f"{source.stem}.uh"
    words = [sys.executable, "-m", "unisono", "switch", "compile", str(source), "-o", str(binary)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=hdl.ROOT / "python")
    if done.returncode and ("clang" in done.stderr or "No module named" in done.stderr):
        pytest.skip(f"handlers are not compiled here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return binary


def measured(binary: Path, packets: list[bytes], folder: Path, ranks: int = 1) -> dict[str, int]:
    """Runs a handler on both, and says in how many cycles."""
    file = folder / "packets"
    file.write_bytes(b"".join(struct.pack("<I", len(packet)) + packet for packet in packets))
    return told([str(build(16)), "file", str(binary), str(ranks), str(file)])


def message(name: str, dice: random.Random) -> list[bytes]:
    """Packets of 1408 bytes, as the example wants them."""
    if name == "histogram":
        return [dice.randbytes(1408) for _ in range(PACKETS)]
    if name == "filter":
        return [struct.pack("<352f", *(dice.gauss(0, 1) for _ in range(352))) for _ in range(PACKETS)]
    if name == "compressor":
        return [struct.pack("<352I", *sorted(dice.choices(range(1 << 20), k=352))) for _ in range(PACKETS)]
    blocks = [
        struct.pack("<16I16f", *dice.choices(range(4200), k=16), *(dice.gauss(0, 1) for _ in range(16)))
        for _ in range(11 * PACKETS)
    ]
    return [b"".join(blocks[11 * i : 11 * i + 11]) for i in range(PACKETS)]


@pytest.mark.parametrize("name", ["histogram", "filter", "sparse_accumulate", "compressor"])
def test_examples(name: str, tmp_path: Path) -> None:
    binary = compiled(EXAMPLES / f"{name}.c", tmp_path)
    packets = message(name, random.Random(name))
    measured(binary, packets, tmp_path)
    # Of two ranks the first one's message leaves the table as it is.
    all_of_them = measured(binary, packets, tmp_path, 2)
    half = measured(binary, packets[: PACKETS // 2], tmp_path, 2)
    cycles = (all_of_them["cycles"] - half["cycles"]) / (PACKETS - PACKETS // 2)
    print(f"{name}: {cycles:.0f} cycles for a packet of 1408 bytes, {1408 / cycles:.3f} bytes per cycle")
    most = {"histogram": 1500, "filter": 900, "sparse_accumulate": 210, "compressor": 10_000}
    assert cycles <= most[name]


IDLE = """#include <unisono_handler.h>
static float table[64];
int payload(void) {
  const us_u32x16 idle = us_u32x16_at(0, 0);
%s  return US_GO_ON;
}
"""


def test_an_idle_tile_costs_one_cycle(tmp_path: Path) -> None:
    found = []
    for tiles in (8, 40):
        source = tmp_path / f"idle{tiles}.c"
        source.write_text(IDLE % ("  us_spvacc_vx_f32(table, 64, idle, 1.0f);\n" * tiles))
        found.append(measured(compiled(source, tmp_path), [b"\xff" * 64], tmp_path))
    more = {name: found[1][name] - found[0][name] for name in found[0]}
    assert more["executed"] == 32
    assert more["cycles"] == 32
