"""What tests of systems share: systems that run, and blocks of them."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from unisono.bench.launch import peer_is_there, programs
from unisono.bench.machine import placement
from unisono.bench.systems import Outcome, System

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 150
OPS = (
    "pingpong", "bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "gather", "scatter", "allgather",
    "alltoall", "gatherv", "scatterv", "allgatherv", "reduce_scatterv", "alltoallv",
)  # fmt: skip
V_OPS = OPS[11:]
#: Every operation, those with counts in both forms.
FORMS = [*((op, "equal") for op in OPS), *((op, "changing") for op in V_OPS)]
#: Measured from C only. `waited` is what `inflight` is compared with.
C_OPS = ("put", "get", "inflight", "waited", "stream")
C_FORMS = [*FORMS, *((op, "equal") for op in C_OPS)]
FIELDS = {
    "schema", "system", "interface", "op", "algorithm", "auto", "network", "hosts", "link", "round_trip_ms", "platform",
    "ranks", "bytes", "dtype", "buffers", "counts", "median_us", "mean_us", "p99_us", "cycles", "ratio", "ratio_ci",
    "limit_ratio", "iterations", "verified", "processor", "cache_line_ns", "kernel_copies",
}  # fmt: skip


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unisono", "bench", "--quick", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "200"},
    )


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def need_peer(name: str) -> None:
    if not peer_is_there(name):
        pytest.skip(f"{name} is not installed; `make peers` installs it")


def need_fabric() -> None:
    if not (programs() / "bench_fabric").is_file():
        pytest.skip("there is no bench_fabric: the headers of libfabric were missing when it was to be built")
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError:
        pytest.skip("there is no libfabric here; apt-get install libfabric1")


@contextmanager
def running(name: str, ranks: int, folder: Path, **settings: Any) -> Iterator[System]:
    system = System(name, placement(ranks), folder, **settings)
    try:
        system.start()
        yield system
    finally:
        system.stop()


def block(system: System, op: str, *, count: int = 1, dtype: str = "fp32", **changes: Any) -> Outcome:
    arguments = {
        "buffers": "allocated", "counts": "equal", "algorithm": None, "warmup": 5, "calls": 7, "batch": 0, "seed": 3,
    } | changes  # fmt: skip
    return system.block(op=op, dtype=dtype, count=count, seconds=30.0, **arguments)
