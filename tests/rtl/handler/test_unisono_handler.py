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
PACKETS = 16


@pytest.mark.parametrize(
    ("columns", "elements", "banks"),
    [
        *((16, ALL, 16), (2, INTEGERS, 1)),
        *(full(16, ALL, 8), full(16, ALL, 1), full(1, ALL, 1), full(2, ALL, 1), full(4, ALL, 1), full(8, ALL, 1)),
    ],
)
def test_random_programs(columns: int, elements: int, banks: int) -> None:
    count = scaled(4000, 200)
    seen = told([str(build(columns, elements, banks)), "random", "1", str(count), str(elements)], limit_s=900)
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
    most = {"histogram": 250, "filter": 570, "sparse_accumulate": 31, "compressor": 6800}
    assert cycles <= most[name]


TILES = """#include <unisono_handler.h>
static float reals[64];
static uint32_t integers[64];
int payload(void) {
  const us_u32x16 index = us_u32x16_at(0, 0);
%s  return US_GO_ON;
}
"""


def cycles_of_a_tile(indexes: list[int], tables: list[str], folder: Path) -> float:
    """Between two tiles of these indexes that follow one another; tables take turns."""
    found = []
    for tiles in (8, 40):
        source = folder / f"tiles{tiles}.c"
        calls = {"reals": "us_spvacc_vx_f32(reals, 64, index, 1.0f);",
                 "integers": "us_spvacc_vx_u32(integers, 64, index, 1);"}  # fmt: skip
        source.write_text(TILES % "".join(f"  {calls[tables[i % len(tables)]]}\n" for i in range(tiles)))
        found.append(measured(compiled(source, folder), [struct.pack("<16I", *indexes)], folder))
    more = {name: found[1][name] - found[0][name] for name in found[0]}
    assert more["executed"] == 32
    return more["cycles"] / 32


def test_an_idle_tile_costs_one_cycle(tmp_path: Path) -> None:
    assert cycles_of_a_tile([0xFFFFFFFF] * 16, ["reals"], tmp_path) == 1


def test_entries_of_other_banks_go_at_once(tmp_path: Path) -> None:
    apart = [2 * lane for lane in range(16)]  # 8 bytes from one another
    assert cycles_of_a_tile(apart, ["integers"], tmp_path) == 1
    # An entry of floating point is read when the one before it has been written.
    assert cycles_of_a_tile(apart, ["reals"], tmp_path) == 10
    beside = [*range(16)]  # two to a bank
    assert cycles_of_a_tile(beside, ["integers"], tmp_path) == 2
    assert cycles_of_a_tile([5] * 16, ["integers"], tmp_path) == 16
    assert cycles_of_a_tile([5] * 16, ["reals"], tmp_path) == 16 * 10
