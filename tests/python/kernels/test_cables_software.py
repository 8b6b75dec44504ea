"""Nodes in software on the cables of simulated ones: the same bits as natively, and the same sentences."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernels_support import HERE
from test_cables import CASES, TWO_ENDS, compiled, cycles_of, job, lines, needs_node, on_cables, topology
from test_cables_units import ENDPOINTS, MISTAKES, description, endpoint
from unisono.cli import node_model

needs_tools = pytest.mark.skipif(
    os.environ.get("UNISONO_TEST_RTL", "0") == "0" or node_model.lacking() is not None,
    reason="UNISONO_TEST_RTL is not set (make test-rtl), or no node can be built here",
)


def everybody(ranks: int) -> str:
    return ",".join(map(str, range(ranks)))


def names(cases: list[tuple[Any, ...]]) -> list[str]:
    return ["-".join(map(str, (*case[:4], case[6], *case[7], *case[8:]))) for case in cases]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("software")


@pytest.fixture(scope="module")
def channels(folder: Path) -> Path:
    return compiled(HERE / "cables_channels.cpp", folder / "channels")


@pytest.fixture(scope="module")
def collectives(folder: Path) -> Path:
    return compiled(HERE / "cables_collectives.cpp", folder / "collectives")


MORE = [
    ("line", "char", 10000, -1, 0, 8, "bus 8", {}),
    ("line", "short", 33, 8, 5, 8, "bus 8", {"UNISONO_SMI": "strict"}),
    ("line", "ulong", 500, 0, 3, 5, "ring 5", {}),
    ("ring", "double", 77, 5, 2, 8, "torus 2x4", {}),
    ("ring", "char", 300, 300, 0, 7, "bus 7", {}),
    ("vector", "short", 1000, 1000, 0, 2, "bus 2", {}),
    ("bcast", "ulong", 40, -1, 5, 6, "torus 2x3", {}),
    ("reduce", "double", 15, 3, 2, 5, "ring 5", {}),
    ("scatter", "char", 30, -1, 0, 8, "torus 2x4", {}),
    ("gather", "float", 9, 0, 3, 3, "bus 3", {"UNISONO_SMI": "strict"}),
    ("others", "double", 7, -1, 0, 8, "bus 8", {}),
]


@pytest.mark.parametrize(
    ("what", "kind", "count", "degree", "pause", "ranks", "shape", "more"),
    [*CASES, *MORE],
    ids=names([*CASES, *MORE]),
)
def test_all_ranks_in_software_need_no_simulated_node(
    folder: Path, channels: Path, what: str, kind: str, count: int, degree: int, pause: int, ranks: int, shape: str,
    more: dict[str, str],
) -> None:  # fmt: skip
    words = (channels, what, kind, count, degree, pause)
    here = on_cables(
        ranks, topology(folder, shape), "--native", everybody(ranks), *words, UNISONO_SMI_NODE="/nowhere", **more
    )
    assert lines(here) == lines(job("-n", ranks, *words, **more))
    assert cycles_of(here) > 0
    assert f"on {ranks} nodes, all in software; " in here.stderr


MIXED = [
    # As above, and the ranks in software.
    ("line", "float", 4000, 2048, 0, 8, "torus 2x4", {}, "0"),
    ("line", "int", 900, -1, 3, 8, "bus 8", {}, "1,2,3,4,5,6"),
    ("line", "int", 900, 900, 0, 8, "bus 8", {}, "2,5"),
    ("line", "int", 300, 0, 3, 2, "bus 2", {"UNISONO_SMI": "strict"}, "0"),
    ("line", "int", 300, 0, 3, 2, "bus 2", {"UNISONO_SMI": "strict"}, "1"),
    ("line", "char", 90, 7, 0, 3, "ring 3", {"UNISONO_SMI": "strict"}, "2"),
    ("line", "double", 700, 700, 5, 4, "bus 4", {}, "3"),
    ("ring", "ulong", 200, 16, 3, 4, "torus 2x2", {}, "0,2"),
    ("ring", "short", 60, 3, 0, 5, "ring 5", {"UNISONO_SMI": "strict"}, "1,3,4"),
    ("ring", "char", 300, 300, 0, 5, "ring 5", {}, "0,1,2,3"),
    ("vector", "float", 1000, -1, 0, 2, "bus 2", {}, "1"),
    ("vector", "double", 333, 64, 0, 3, "bus 3", {}, "0,2"),
    ("bcast", "char", 60, -1, 7, 8, "bus 8", {}, "3,4"),
    ("bcast", "int", 30, 4, 0, 4, "torus 2x2", {"UNISONO_SMI": "strict"}, "1"),
    ("reduce", "float", 20, -1, 0, 8, "torus 2x4", {}, "1,2,3,4,5,6,7"),
    ("reduce", "int", 12, -1, 0, 3, "bus 3", {"UNISONO_SMI": "strict"}, "0,1"),
    ("line", "complex", 30, 0, 3, 2, "bus 2", {"UNISONO_SMI": "strict"}, "1"),
    ("ring", "complex", 40, 3, 3, 3, "ring 3", {"UNISONO_SMI": "strict"}, "0,1"),
    ("scatter", "double", 25, 2, 4, 4, "bus 4", {}, "0,3"),
    ("gather", "short", 35, -1, 4, 5, "ring 5", {}, "2"),
    ("others", "int", 12, -1, 0, 4, "torus 2x2", {}, "1,2"),
    ("bcast", "int", 30, 4, 3, 8, "bus 8", {"SPLIT": "1"}, "0,1,6"),
    ("reduce", "double", 20, -1, 0, 6, "torus 2x3", {"SPLIT": "1"}, "2,5"),
]


@needs_node
@pytest.mark.parametrize(
    ("what", "kind", "count", "degree", "pause", "ranks", "shape", "more", "software"), MIXED, ids=names(MIXED)
)
def test_nodes_of_both_kinds_are_on_one_network(
    folder: Path, channels: Path, what: str, kind: str, count: int, degree: int, pause: int, ranks: int, shape: str,
    more: dict[str, str], software: str,
) -> None:  # fmt: skip
    words = (channels, what, kind, count, degree, pause)
    mixed = on_cables(ranks, topology(folder, shape), "--native", software, *words, **more)
    assert lines(mixed) == lines(job("-n", ranks, *words, **more))
    assert f"on {ranks} nodes, {len(software.split(','))} in software; " in mixed.stderr


@pytest.mark.parametrize(
    ("software", "what", "count", "root", "ranks", "shape"),
    [
        ("all", "order", 61, 0, 4, "torus 2x2"),
        ("all", "lockstep", 30, 2, 8, "torus 2x4"),
        ("all", "at-once", 200, 3, 8, "torus 2x4"),
        pytest.param("1,2", "order", 40, 0, 4, "bus 4", marks=needs_node),
        pytest.param("0", "lockstep", 12, 1, 3, "ring 3", marks=needs_node),
        pytest.param("0,2,3", "at-once", 60, 1, 4, "torus 2x2", marks=needs_node),
    ],
)
def test_order_waiting_and_several_at_once(
    folder: Path, collectives: Path, software: str, what: str, count: int, root: int, ranks: int, shape: str
) -> None:
    words = (collectives, what, count, root)
    named = everybody(ranks) if software == "all" else software
    here = on_cables(ranks, topology(folder, shape), "--native", named, *words)
    assert lines(here) == lines(job("-n", ranks, *words))


@pytest.mark.parametrize("packet", [64, 128, 256])
@pytest.mark.parametrize("protocol", ["eager", "credits"])
def test_wide_packets(folder: Path, channels: Path, packet: int, protocol: str) -> None:
    words = (channels, "line", "float", 500, 8, 0)
    network = topology(folder, "bus 3")
    wide = on_cables(
        3, network, "--native", "0,1,2", "--node-packet", packet, "--protocol", protocol, "--cycles",
        folder / "wide.json", *words,
    )  # fmt: skip
    assert lines(wide) == lines(job("-n", 3, *words))
    carried = json.loads((folder / "wide.json").read_text())["ranks"][0]["packets"]
    full = -(-500 // ((packet - 8) // 4))
    # With credits the sender asks once, and its first packet does not wait until it is full.
    assert carried == full if protocol == "eager" else full < carried <= full + 2


@needs_tools
def test_wide_packets_between_nodes_of_both_kinds(folder: Path, channels: Path) -> None:
    """A node that is built for a program, whose packets have 64 bytes."""
    path = folder / "wide-program.json"
    path.write_text(json.dumps(description(reads=1, packet=64, endpoints=[endpoint(1, "send"), endpoint(1, "bcast")])))
    words = (channels, "line", "float", 500, 8, 0)
    for software in ("0", "1", "0,2"):
        mixed = on_cables(3, topology(folder, "bus 3"), "--native", software, "--endpoints", path, *words)
        assert lines(mixed) == lines(job("-n", 3, *words))


@pytest.mark.parametrize("software", ["0,1,2,3", pytest.param("1,2", marks=needs_node)])
def test_equal_runs_have_equal_cycles_however_loaded_the_machine_is(
    folder: Path, channels: Path, software: str
) -> None:
    words = ("--native", software, channels, "reduce", "int", 50, 8, 3)
    network = topology(folder, "torus 2x2")
    calm = cycles_of(on_cables(4, network, *words))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        loaded = cycles_of(on_cables(4, network, *words))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert calm == loaded


def test_what_takes_time(folder: Path, channels: Path) -> None:
    """The wires, the words and the delay, and nothing else: an element crosses h cables of 40 cycles each."""

    def cycles(ranks: int, count: int, *more: object, degree: int = 1) -> int:
        words = (channels, "line", "int", count, degree, 0)
        return cycles_of(
            on_cables(ranks, topology(folder, f"bus {ranks}"), "--native", everybody(ranks), *more, *words)
        )

    # Nodes send when they have heard from the node at the other end: that is a wire's time, too.
    one, four = cycles(2, 1), cycles(5, 1)
    assert one == 2 * 40 + 1
    assert four - one == 3 * 40
    assert cycles(2, 1, "--cable-latency", 100) == 2 * 100 + 1
    assert cycles(2, 1, "--native-delay", 100) == 100 + 40 + 1
    assert cycles(2, 7000, degree=7000) - cycles(2, 700, degree=700) == 6300
    assert cycles(2, 1, degree=0) == 3 * 40 + 1
    assert cycles(2, 1, "--native-delay", 100, degree=0) == 2 * (100 + 40) + 1


@pytest.fixture(scope="module")
def ends(folder: Path) -> Path:
    source = folder / "ends.cpp"
    source.write_text(TWO_ENDS)
    return compiled(source, folder / "ends")


@pytest.mark.parametrize("software", ["0,1", pytest.param("0", marks=needs_node), pytest.param("1", marks=needs_node)])
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("well", ""),
        ("count", "the ends of port 3 from rank 0 to rank 1 differ: rank 0 sends 10 elements, rank 1 receives 12"),
        ("type", "the ends of port 3 from rank 0 to rank 1 differ: rank 0 sends int32, rank 1 receives fp32"),
        ("degree", "in hardware both ends need the same asynchronicity degree"),
        ("nobody", "port 3: destination 7 was given, which does not exist; the communicator has ranks 0 to 1"),
        ("port", "the node has ports 0 to 3"),
        ("stuck", "kernel a (rank 0) waits to pop element 1 of 1 of port 1 from rank 1"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, ends: Path, software: str, what: str, told: str) -> None:
    done = on_cables(2, topology(folder, "bus 2"), "--native", software, ends, what, seconds=3)
    assert (done.returncode == 0) == (what == "well"), done.stderr
    assert told in done.stderr
    if what == "stuck":
        assert "which closes the circle" in done.stderr


FOREIGN = """
#include <unisono/smi.hpp>
int main() {
  SMI_Comm comm = SMI_COMM_WORLD;
  unisono::kernel::launch("ends", [&] {
    int value = comm->rank;
    if (comm->rank == 1) {
      SMI_Channel from = SMI_Open_receive_channel_ad(2, SMI_INT, 2, 3, comm, 2);
      for (int i = 0; i < 2; ++i) SMI_Pop(&from, &value);
    } else {
      if (comm->rank == 2) unisono_kernel_tick(2000);
      SMI_Channel to = SMI_Open_send_channel_ad(2, SMI_INT, 1, 3, comm, 2);
      for (int i = 0; i < 2; ++i) SMI_Push(&to, &value);
    }
  });
  try {
    unisono::kernel::wait_all();
  } catch (const unisono::Error& error) {
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
}
"""


@pytest.mark.parametrize(
    "software",
    ["0,1,2", *(pytest.param(each, marks=needs_node) for each in ("0", "1", "0,2"))],
)
def test_a_foreign_packet_is_named(folder: Path, software: str) -> None:
    source, program = folder / "foreign.cpp", folder / "foreign"
    if not program.exists():
        source.write_text(FOREIGN)
        compiled(source, program)
    done = on_cables(3, topology(folder, "bus 3"), "--native", software, program, seconds=3)
    assert done.returncode != 0
    assert "a packet of rank 0 of the job came at port 3" in done.stderr
    assert "and was left out" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--native", "2"), "--native: there is no rank 2; the job has ranks 0 to 1"),
        (("--native-delay", 3), "--native-delay is of ranks that --native names, and none is named"),
        (("--native", "0,1", "--node-packet", 33), "packets of 33 bytes"),
        (("--native", "0,1", "--node-ports", 33), "allowed are 1 to 32"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, words: tuple[object, ...], told: str) -> None:
    done = on_cables(2, topology(folder, "bus 2"), *words, "true")
    assert done.returncode != 0
    assert told in done.stderr


UNITS = [
    ("channels", "bcast", "char", 121, -1, 7, 8, "torus 2x4", {}),
    ("channels", "bcast", "double", 10, -1, 0, 5, "bus 5", {}),
    ("channels", "bcast", "int", 1, -1, 0, 2, "bus 2", {}),
    ("channels", "bcast", "complex", 27, -1, 3, 4, "torus 2x2", {}),
    ("channels", "bcast", "int", 30, -1, 3, 8, "bus 8", {"SPLIT": "1"}),
    ("channels", "reduce", "int", 100, -1, 7, 2, "bus 2", {}),
    ("channels", "reduce", "float", 33, -1, 3, 8, "bus 8", {}),
    ("channels", "reduce", "int", 40, -1, 0, 6, "torus 2x3", {"SPLIT": "1"}),
    ("channels", "reduce", "double", 11, -1, 3, 4, "bus 4", {}),  # no unit for it: over channels
    ("channels", "reduce", "int", 12, -1, 0, 3, "bus 3", {"UNISONO_SMI": "strict"}),  # likewise
    ("collectives", "order", 61, 0, 4, "torus 2x2", {}),
    ("collectives", "order", 40, 0, 7, "bus 7", {}),
    ("collectives", "lockstep", 30, 2, 8, "torus 2x4", {}),
    ("collectives", "at-once", 200, 3, 8, "torus 2x4", {}),
    ("collectives", "at-once", 100, 1, 3, "ring 3", {}),
]


@pytest.fixture(scope="module")
def units(folder: Path) -> Path:
    path = folder / "units.json"
    path.write_text(json.dumps(description(endpoints=ENDPOINTS)))
    return path


def check_units(folder: Path, units: Path, case: tuple[Any, ...], software: str) -> str:
    """Runs a case at units, and compares; what the command said."""
    program, *arguments, ranks, shape, more = case
    words = (compiled_once(folder, program), *arguments)
    here = on_cables(ranks, topology(folder, shape), "--native", software, "--endpoints", units, *words, **more)
    assert lines(here) == lines(job("-n", ranks, *words, **more))
    return here.stderr


def compiled_once(folder: Path, program: str) -> Path:
    made = folder / program
    return made if made.exists() else compiled(HERE / f"cables_{program}.cpp", made)


@pytest.mark.parametrize("case", UNITS, ids=[f"{case[1]}-{case[-2]}-{at}" for at, case in enumerate(UNITS)])
def test_units_in_software(folder: Path, units: Path, case: tuple[Any, ...]) -> None:
    check_units(folder, units, case, everybody(case[-3]))


@needs_tools
@pytest.mark.parametrize(
    ("case", "software"),
    [
        (UNITS[0], "0,3,5"),
        (UNITS[0], "1,2,3,4,5,6,7"),
        (UNITS[1], "2"),
        (UNITS[3], "0,3"),
        (UNITS[4], "0,1,6"),
        (UNITS[5], "0"),
        (UNITS[6], "1,2,3,4,5,6,7"),
        (UNITS[6], "4"),
        (UNITS[8], "1,2"),
        (UNITS[10], "0,3"),
        (UNITS[11], "2,4"),
        (UNITS[12], "1,2,7"),
        (UNITS[14], "1"),
    ],
)
def test_units_of_both_kinds_are_in_one_tree(folder: Path, units: Path, case: tuple[Any, ...], software: str) -> None:
    check_units(folder, units, case, software)


def test_units_in_software_take_an_element_in_a_cycle(folder: Path, units: Path) -> None:
    words = (compiled_once(folder, "collectives"), "times", 7000, 7)
    more = ("--native", everybody(8), "--endpoints", units, "--cable-latency", 4)
    for way in ({"BCAST": "1"}, {}):
        done = on_cables(8, topology(folder, "bus 8"), *more, *words, **way)
        assert 6999 <= int(done.stdout.split()[0]) <= 7350


@pytest.mark.parametrize("software", ["0,1,2", *(pytest.param(each, marks=needs_tools) for each in ("2", "0,1"))])
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
def test_ends_of_trees_that_differ_are_named(folder: Path, units: Path, software: str, what: str, told: str) -> None:
    source, program = folder / "mistakes.cpp", folder / "mistakes"
    if not program.exists():
        source.write_text(MISTAKES)
        compiled(source, program)
    network = topology(folder, "bus 3")
    done = on_cables(3, network, "--native", software, "--endpoints", units, program, what, seconds=3)
    assert done.returncode != 0
    assert re.search(told, done.stderr, re.DOTALL), done.stderr


def test_the_report_names_ranks_in_software(folder: Path, channels: Path) -> None:
    report = folder / "cycles.json"
    words = ("--native", "1,0", "--cycles", report, channels, "line", "int", 100, 100, 0)
    assert on_cables(2, topology(folder, "bus 2"), *words).returncode == 0
    told = json.loads(report.read_text())
    assert told["software"] == [0, 1]
    assert told["ranks"][0]["packets"] == -(-100 // 7)
