"""The layer that is split by columns gives the result that integers give, on any number of ranks."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
APP = ROOT / "apps/vector_matrix"
LIBRARY = Path(os.environ.get("UNISONO_BUILD", ROOT / "build/release")).resolve()

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/eigen3").is_dir(), reason="there is no Eigen: `make bench-vector-matrix` installs it"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("layer") / "layer"
    flags = ["-std=c++20", "-O2", "-Wall", "-Werror", "-isystem/usr/include/eigen3", f"-I{ROOT / 'driver/include'}"]
    link = [f"-L{LIBRARY}", "-lunisono", f"-Wl,-rpath,{LIBRARY}"]
    subprocess.run(["g++", *flags, str(APP / "unisono.cpp"), *link, "-o", str(to)], check=True, timeout=120)
    return to


def run(program: Path, ranks: int, *layers: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), str(program), *layers]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_results_are_right(program: Path, ranks: int) -> None:
    done = run(program, ranks, "5x7", "96x130")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["outputs"], line["inputs"], line["ranks"]) for line in lines] == [(5, 7, ranks), (96, 130, ranks)]
    assert all(line["verified"] for line in lines)
    assert all(0 < line["product_us"] <= line["total_us"] for line in lines)


@pytest.mark.parametrize("layer", ["5", "0x5", "5x2", "5x7x", "x"])
def test_what_is_no_layer_is_refused(program: Path, layer: str) -> None:
    done = run(program, 3, layer)
    assert done.returncode != 0
    assert f"{layer} is no layer" in done.stderr


def test_sizes_are_those_of_the_caches() -> None:
    spec = importlib.util.spec_from_file_location("compare", APP / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    compare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compare)
    for level2, level3, ranks in [(1 << 20, 32 << 20, 2), (512 << 10, 16 << 20, 3), (2 << 20, 0, 8)]:
        sizes = {what: 4 * edge * edge for what, edge in compare.layers(level2, level3, ranks)}
        fits = sizes["a part fits L2, the whole does not"]
        assert fits / ranks < level2 < fits
        assert ("half of L3" in sizes) == (level3 > 0)
