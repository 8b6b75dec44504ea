"""`unisono run --carrier smi`: routes are made as `unisono route` makes them, and refused with its sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from unisono.cli.carrier import CarrierError, CarrierOptions, make_routes, usual
from unisono.routing import topology

from .native_cluster import program

TORUS = topology.to_text(topology.torus([2, 4]))


def routes(ranks: int, **options: object) -> dict[str, object]:
    with make_routes(ranks, CarrierOptions("smi", **options)) as folder:  # type: ignore[arg-type]
        files = sorted(os.listdir(folder))
        assert [name for name in files if name.endswith(".bin")] == sorted(f"rank{rank}.bin" for rank in range(ranks))
        found: dict[str, object] = json.loads((Path(folder) / "routes.json").read_text())
        return found


@pytest.mark.parametrize(
    ("ranks", "cables"), [(1, 0), (2, 1), (3, 3), (4, 8), (6, 12), (7, 7), (8, 16), (12, 24), (16, 32)]
)
def test_a_torus_or_a_ring_where_no_file_says_which(ranks: int, cables: int) -> None:
    made = usual(ranks)
    assert (made.size, len(made.cables)) == (ranks, cables)
    found = routes(ranks)
    assert (found["ranks"], found["links"]) == (ranks, 4)
    assert found["virtual_channels"] in (1, 2)


def test_a_file_less_cables_and_nodes(tmp_path: Path) -> None:
    file = tmp_path / "torus.json"
    file.write_text(TORUS)
    cut = "fpga-0000:acl0:ch1-fpga-0001:acl0:ch0"
    whole, less = routes(8, topology=str(file)), routes(8, topology=str(file), without=(cut,))
    assert whole["nodes"] != less["nodes"]
    assert routes(7, topology=str(file))["ranks"] == 7
    names = [node["node"] for node in routes(7, topology=str(file), leave_out=("fpga-0000:acl1",))["nodes"]]  # type: ignore[attr-defined]
    assert len(names) == 7
    assert "fpga-0000:acl1" not in names


@pytest.mark.parametrize(
    ("text", "ranks", "options", "said"),
    [
        (TORUS, 9, {}, "9 ranks were asked for, and the topology has 8 nodes"),
        (TORUS, 8, {"without": ("fpga-0000:acl0:ch9-fpga-0001:acl0:ch0",)}, "fpga-0000:acl0:ch9"),
        ('{"fpgas": {"a:x": "p", "b:x": "p"}, "connections": {}}', 2, {}, "b:x"),
        ('{"fpgas": {}, "connections": {"a:x:ch5": "b:x:ch0"}}', 2, {}, "a:x"),
        ('{"connections": {"a:x:ch5": "b:x:ch0"}}', 2, {}, "has 8 links; those of simulated nodes are 4"),
        ("no JSON", 2, {}, "T.json"),
    ],
)
def test_what_is_wrong_is_said(text: str, ranks: int, options: dict[str, object], said: str, tmp_path: Path) -> None:
    file = tmp_path / "T.json"
    file.write_text(text)
    with pytest.raises(CarrierError, match="(?s).*" + said.replace("(", r"\(")):
        routes(ranks, topology=str(file), **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--topology", "T.json"], "--topology goes with --carrier smi: the simulated network has no cables"),
        (["--carrier", "network", "--without", "a-b"], "--without goes with --carrier smi"),
        (["--carrier", "smi", "--topology", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_refused_before_any_rank_starts(options: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", "2", "--platform", "rtl", *options, "true"],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "UNISONO_CLUSTER": str(program())},
    )  # fmt: skip
    assert done.returncode != 0
    assert said in done.stderr


def test_of_rtl_only() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", "2", "--carrier", "smi", "true"],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "UNISONO_PLATFORM": ""},
    )  # fmt: skip
    assert done.returncode == 2
    assert "--carrier goes with --platform rtl" in done.stderr
