"""Collectives of kernels by the units of nodes on cables, and nodes that are made for a program."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kernels_support import HERE, unisono
from test_cables import compiled, job, lines, on_cables, topology
from unisono.cli import node_model
from unisono.cli.node_shape import NodeShape, ShapeError, are_eager, of_programs

needs_tools = pytest.mark.skipif(
    os.environ.get("UNISONO_TEST_RTL", "0") == "0" or node_model.lacking() is not None,
    reason="UNISONO_TEST_RTL is not set (make test-rtl), or no node can be built here",
)


def description(**more: Any) -> dict[str, Any]:
    head = {"format": "unisono-endpoints", "version": 1, "program": "test", "ranks": 8, "reads": 8, "packet": 32}
    return {**head, "protocol": "credits", "endpoints": [], **more}


def endpoint(port: int, kind: str, dtype: str = "fp32", op: str | None = None) -> dict[str, Any]:
    return {"port": port, "kind": kind, "type": dtype, "element_bytes": 8 if dtype == "fp64" else 4, "op": op}


#: Of cables_collectives.cpp; cables_channels.cpp uses ports 0 and 1 for broadcast and reduction, too.
ENDPOINTS = [
    endpoint(0, "bcast", "int32"),
    *(endpoint(1, "reduce", dtype, op) for dtype in ("int32", "fp32") for op in ("sum", "max", "min")),
    endpoint(2, "bcast", "int32"),
    endpoint(3, "reduce", "fp32", "max"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("units")


@pytest.fixture(scope="module")
def made(folder: Path) -> Path:
    """A description, whose node is built."""
    path = folder / "units.json"
    path.write_text(json.dumps(description(endpoints=ENDPOINTS)))
    node_model.built(of_programs([str(path)]), print)
    return path


@pytest.fixture(scope="module")
def channels(folder: Path) -> Path:
    return compiled(HERE / "cables_channels.cpp", folder / "channels")


@pytest.fixture(scope="module")
def collectives(folder: Path) -> Path:
    return compiled(HERE / "cables_collectives.cpp", folder / "collectives")


def cycles(done: subprocess.CompletedProcess[str]) -> int:
    found = re.search(r"(\d+) cycles", done.stdout)
    assert done.returncode == 0, done.stderr
    assert found is not None, done.stderr
    return int(found[1])


@needs_tools
@pytest.mark.parametrize(
    ("what", "kind", "count", "pause", "ranks", "shape", "more"),
    [
        ("bcast", "char", 121, 7, 8, "torus 2x4", {}),
        ("bcast", "double", 10, 0, 5, "bus 5", {}),
        ("bcast", "int", 1, 0, 2, "bus 2", {}),
        ("bcast", "complex", 27, 3, 4, "torus 2x2", {}),
        ("reduce", "complex", 9, 0, 3, "bus 3", {}),  # units add no elements of 16 bytes: over channels
        ("bcast", "int", 30, 3, 8, "bus 8", {"SPLIT": "1"}),
        ("reduce", "int", 100, 7, 2, "bus 2", {}),
        ("reduce", "float", 33, 3, 8, "bus 8", {}),
        ("reduce", "int", 40, 0, 6, "torus 2x3", {"SPLIT": "1"}),
        ("reduce", "double", 11, 3, 4, "bus 4", {}),  # the node has no unit for it: over channels
        ("reduce", "int", 12, 0, 3, "bus 3", {"UNISONO_SMI": "strict"}),  # likewise
        ("others", "int", 9, 0, 4, "torus 2x2", {}),
    ],
)
def test_units_give_the_same_bits_as_the_native_library(
    folder: Path, made: Path, channels: Path, what: str, kind: str, count: int, pause: int, ranks: int, shape: str,
    more: dict[str, str],
) -> None:  # fmt: skip
    words = (channels, what, kind, count, -1, pause)
    simulated = on_cables(ranks, topology(folder, shape), "--endpoints", made, *words, **more)
    assert lines(simulated) == lines(job("-n", ranks, *words, **more))


@needs_tools
@pytest.mark.parametrize(
    ("what", "count", "root", "ranks", "shape"),
    [
        ("order", 61, 0, 4, "torus 2x2"),
        ("order", 40, 0, 7, "bus 7"),
        ("lockstep", 30, 0, 4, "bus 4"),
        ("lockstep", 30, 2, 8, "torus 2x4"),
        ("at-once", 200, 3, 8, "torus 2x4"),
        ("at-once", 100, 1, 3, "ring 3"),
    ],
)
def test_order_waiting_and_several_at_once(
    folder: Path, made: Path, collectives: Path, what: str, count: int, root: int, ranks: int, shape: str
) -> None:
    words = (collectives, what, count, root)
    simulated = on_cables(ranks, topology(folder, shape), "--endpoints", made, *words)
    assert lines(simulated) == lines(job("-n", ranks, *words))


@needs_tools
@pytest.mark.parametrize(("shape", "wire"), [("bus 8", 4), ("torus 2x4", 40)])
def test_an_element_takes_a_cycle(folder: Path, made: Path, collectives: Path, shape: str, wire: int) -> None:
    network = topology(folder, shape)
    words = ("--cable-latency", wire, "--endpoints", made, collectives, "times", 7000, 7)
    for more in ({"BCAST": "1"}, {}):
        took = cycles(on_cables(8, network, *words, **more))
        assert 7000 <= took <= (1.05 if wire == 4 else 1.15) * 7000


@needs_tools
def test_the_channels_can_still_be_chosen(folder: Path, made: Path, collectives: Path) -> None:
    """Kernels of the chain pass elements on, so it takes longer to begin."""
    words = ("--cables", topology(folder, "bus 8"), "--endpoints", made)
    took = {}
    for way in ("units", "channels"):
        chosen = ("--collectives", way, collectives, "times", 70, 7)
        took[way] = cycles(job("-n", 8, "--platform", "rtl", *words, *chosen, BCAST="1"))
    assert took["units"] < took["channels"]


MISTAKES = """
#include <cstdlib>
#include <string>
#include <unisono/smi.hpp>
int main(int, char** argv) {
  SMI_Comm comm = SMI_COMM_WORLD;
  const std::string what = argv[1];
  unisono::kernel::launch("collects", [&] {
    const bool other = comm->rank == 2;
    const int count = other && what == "count" ? 12 : 10;
    const int root = other && what == "root" ? 1 : 0;
    int value = comm->rank, result = 0;
    if (what == "bcast" || what == "root") {
      const bool differs = other && what == "bcast";
      SMI_BChannel channel = SMI_Open_bcast_channel(10, differs ? SMI_FLOAT : SMI_INT, 0, root, comm);
      for (int i = 0; i < 10; ++i) SMI_Bcast(&channel, &value);
      return;
    }
    if (what == "late" && other) return;
    SMI_RChannel channel = SMI_Open_reduce_channel(count, SMI_INT, other && what == "op" ? SMI_MAX : SMI_ADD, 1, 0,
                                                   comm);
    for (int i = 0; i < count; ++i) SMI_Reduce(&channel, &value, &result);
  });
  try {
    unisono::kernel::wait_all();
  } catch (const unisono::Error& error) {
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
}
"""


@needs_tools
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("count", r"differ: rank 2 (sends|receives) 12 elements|differ: rank \d sends 1\d elements, rank \d receives"),
        ("op", "reduces by max|by max"),
        ("bcast", "sends int32, rank 2 receives fp32"),
        ("root", "rank 1 has root 0, rank 2 root 1"),
        ("late", "nothing has gone on for 3 s.*waits to (pop|push) element"),
    ],
)
def test_ends_that_differ_are_named(folder: Path, made: Path, what: str, told: str) -> None:
    source, program = folder / "mistakes.cpp", folder / "mistakes"
    if not program.exists():
        source.write_text(MISTAKES)
        compiled(source, program)
    done = on_cables(3, topology(folder, "bus 3"), "--endpoints", made, program, what, seconds=3)
    assert done.returncode != 0
    assert re.search(told, done.stderr, re.DOTALL), done.stderr


@needs_tools
def test_other_packets_another_r_and_protocols(folder: Path, made: Path, channels: Path) -> None:
    """A node of its own: two ports, R = 1, packets of 64 bytes."""
    path = folder / "wide.json"
    ends = [endpoint(1, "send"), endpoint(1, "receive")]
    path.write_text(json.dumps(description(reads=1, packet=64, endpoints=ends)))
    node_model.built(of_programs([str(path)]), print)
    network = topology(folder, "bus 3")
    words = (channels, "line", "float", 500, 8, 0)
    natively = lines(job("-n", 3, *words))
    for protocol in ("degree", "eager", "credits"):
        done = on_cables(3, network, "--endpoints", path, "--protocol", protocol, *words)
        assert lines(done) == natively
    narrow = on_cables(3, network, "--endpoints", made, *words)
    packets = [int(re.search(r"(\d+) packets", each.stderr)[1]) for each in (narrow, done)]  # type: ignore[index]
    assert packets[1] < packets[0]


def test_shapes_of_descriptions(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps(description(endpoints=ENDPOINTS[:2], protocol="eager")))
    other.write_text(json.dumps(description(endpoints=[endpoint(6, "send"), endpoint(4, "reduce", "fp64", "max")])))
    assert of_programs([str(one)]) == NodeShape(2, 8, 32, 1, 2, 1 << 2, 1 << 1)
    both = of_programs([str(one), str(other)])
    assert both == NodeShape(7, 8, 32, 1, 1 << 1 | 1 << 4, 1 << 2 | 1 << 7, 1 << 1 | 1 << 4)
    assert "7 ports, R = 8, packets of 32 bytes, broadcast at port 0" in str(both)
    assert are_eager([str(one)])
    assert not are_eager([str(one), str(other)])
    other.write_text(json.dumps(description(reads=4)))
    with pytest.raises(ShapeError, match="all nodes of a job are alike"):
        of_programs([str(one), str(other)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is no JSON"),
        ("{}", "give PROGRAM.endpoints.json, which `unisono kernel generate` writes"),
        (json.dumps(description(reads=3)), "R = 3; simulated nodes have one of 1, 2, 4, 8, 16"),
        (json.dumps(description(packet=33)), "packets of 33 bytes"),
        (json.dumps(description(endpoints=[endpoint(32, "send")])), "up to 32 ports"),
        (json.dumps(description(endpoints=[{"port": 1}])), "is not understood"),
    ],
)
def test_descriptions_that_no_node_is_built_for(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "program.json"
    path.write_text(content)
    network = tmp_path / "bus.json"
    assert unisono("route", "--bus", 2, "-o", network).returncode == 0
    done = on_cables(2, network, "--endpoints", path, "true")
    assert done.returncode != 0
    assert told in done.stderr
    with pytest.raises(ShapeError):
        of_programs([str(path)])


def test_without_tools_a_ready_made_node_serves_or_the_command_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unisono.cli import cables

    monkeypatch.delenv("UNISONO_SMI_NODE", raising=False)
    monkeypatch.setattr(node_model, "lacking", lambda: "verilator")
    monkeypatch.setattr(node_model, "ready_made", lambda ports: f"node of {ports}")
    assert cables._node(NodeShape(3, broadcasts=1), made=True) == ("node of 4", NodeShape(4))
    assert cables._node(NodeShape(9), made=True) == ("node of 16", NodeShape(16))
    for shape in (NodeShape(17), NodeShape(4, reads=4), NodeShape(4, packet=64)):
        with pytest.raises(node_model.NodeError, match="must be built, and here is no verilator"):
            cables._node(shape, made=True)
