"""Channels of SMI at simulated nodes on cables: the same bits as natively, the same cycles in every run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kernels_support import HERE, unisono
from unisono import config
from unisono.cli import node_model
from unisono.kernels import parsing


def is_built() -> bool:
    try:
        node_model.ready_made(4)
    except node_model.NodeError:
        return False
    return True


needs_node = pytest.mark.skipif(not is_built(), reason="the simulated node is not built (make cables)")
APPS = HERE.parents[2] / "apps" / "smi"


def compiled(source: Path, program: Path) -> Path:
    words = ["g++", "-std=c++20", "-O2", str(source), "-o", str(program), *config.cflags(), *config.libs()]
    subprocess.run(words, check=True, timeout=120)
    return program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cables")


@pytest.fixture(scope="module")
def channels(folder: Path) -> Path:
    return compiled(HERE / "cables_channels.cpp", folder / "channels")


def topology(folder: Path, shape: str) -> Path:
    kind, _, size = shape.partition(" ")
    path = folder / f"{kind}-{size}.json"
    if not path.exists():
        done = unisono("route", f"--{kind}", size, "-o", path)
        assert done.returncode == 0, done.stderr
    return path


def job(*words: object, seconds: float = 20, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"UNISONO_SMI_TIMEOUT_S": str(seconds)} | more
    return subprocess.run(
        [sys.executable, "-m", "unisono.cli", "run", *map(str, words)],
        capture_output=True, text=True, timeout=240, check=False, env=environment,
    )  # fmt: skip


def on_cables(
    ranks: int, network: Path, *words: object, seconds: float = 20, **more: str
) -> subprocess.CompletedProcess[str]:
    return job("-n", ranks, "--platform", "rtl", "--cables", network, *words, seconds=seconds, **more)


def cycles_of(done: subprocess.CompletedProcess[str]) -> int:
    found = re.search(r"kernels took (\d+) cycles", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


CASES = [
    # What, type, count, degree, pause; ranks and network; environment
    ("line", "int", 1, -1, 0, 2, "bus 2", {}),
    ("line", "float", 10000, 2048, 0, 8, "torus 2x4", {}),
    ("line", "double", 700, 700, 5, 4, "bus 4", {}),
    ("line", "int", 300, 0, 3, 2, "bus 2", {"UNISONO_SMI": "strict"}),
    ("line", "char", 90, 7, 0, 3, "ring 3", {"UNISONO_SMI": "strict"}),
    ("ring", "ulong", 200, 16, 3, 4, "torus 2x2", {}),
    ("ring", "short", 60, 3, 0, 5, "ring 5", {"UNISONO_SMI": "strict"}),
    ("ring", "float", 100, 1, 0, 1, "bus 1", {}),
    ("vector", "float", 1000, -1, 0, 2, "bus 2", {}),
    ("vector", "double", 333, 64, 0, 3, "bus 3", {}),
    ("vector", "complex", 101, 0, 0, 2, "bus 2", {}),
    ("line", "complex", 300, 300, 3, 3, "bus 3", {}),
    ("line", "complex", 70, 5, 0, 2, "bus 2", {"UNISONO_SMI": "strict"}),
    ("line", "complex", 30, 0, 3, 2, "bus 2", {"UNISONO_SMI": "strict"}),
    ("ring", "complex", 40, 3, 3, 3, "ring 3", {"UNISONO_SMI": "strict"}),
    ("ring", "complex", 90, 16, 5, 4, "torus 2x2", {}),
    ("bcast", "complex", 33, -1, 0, 4, "torus 2x2", {}),
    ("reduce", "complex", 21, -1, 0, 5, "ring 5", {}),
    ("scatter", "complex", 15, 2, 4, 4, "bus 4", {}),
    ("others", "complex", 9, -1, 0, 3, "bus 3", {}),
    ("bcast", "char", 120, -1, 7, 8, "bus 8", {}),
    ("bcast", "int", 30, 4, 0, 4, "torus 2x2", {"UNISONO_SMI": "strict"}),
    ("reduce", "float", 40, -1, 0, 8, "torus 2x4", {}),
    ("reduce", "int", 12, -1, 0, 3, "bus 3", {"UNISONO_SMI": "strict"}),
    ("scatter", "double", 25, 2, 4, 4, "bus 4", {}),
    ("gather", "short", 35, -1, 4, 5, "ring 5", {}),
    ("others", "int", 12, -1, 0, 4, "torus 2x2", {}),
    ("others", "float", 3, -1, 0, 3, "bus 3", {"UNISONO_SMI": "strict"}),
    ("bcast", "int", 30, 4, 3, 8, "bus 8", {"SPLIT": "1"}),
    ("reduce", "double", 30, -1, 0, 6, "torus 2x3", {"SPLIT": "1"}),
    ("gather", "int", 20, -1, 0, 6, "bus 6", {"SPLIT": "1"}),
]


@needs_node
@pytest.mark.parametrize(
    ("what", "kind", "count", "degree", "pause", "ranks", "shape", "more"),
    CASES,
    ids=["-".join(map(str, (*case[:4], case[6], *case[7]))) for case in CASES],
)
def test_it_has_the_same_bits_as_natively(
    folder: Path, channels: Path, what: str, kind: str, count: int, degree: int, pause: int, ranks: int, shape: str,
    more: dict[str, str],
) -> None:  # fmt: skip
    words = (channels, what, kind, count, degree, pause)
    simulated = on_cables(ranks, topology(folder, shape), *words, **more)
    assert lines(simulated) == lines(job("-n", ranks, *words, **more))
    assert cycles_of(simulated) > 0


@needs_node
def test_equal_runs_have_equal_cycles_however_loaded_the_machine_is(folder: Path, channels: Path) -> None:
    words = (channels, "reduce", "int", 50, 8, 3)
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
    assert cycles_of(on_cables(4, network, "--cable-latency", 200, *words)) > calm


TWO_ENDS = """
#include <cstdlib>
#include <string>
#include <unisono/smi.hpp>
int main(int, char** argv) {
  SMI_Comm comm = SMI_COMM_WORLD;
  const std::string what = argv[1];
  unisono::kernel::launch("ends", [&] {
    double values[16] = {};
    if (comm->rank == 0) {
      SMI_Channel to = SMI_Open_send_channel_ad(10, SMI_INT, what == "nobody" ? 7 : 1,
                                                what == "port" ? 40 : 3, comm, 4);
      for (int i = 0; i < 10; ++i) SMI_Push(&to, &values[i]);
    } else {
      const int count = what == "count" ? 12 : 10;
      const SMI_Datatype type = what == "type" ? SMI_FLOAT : SMI_INT;
      SMI_Channel from = SMI_Open_receive_channel_ad(count, type, 0, 3, comm, what == "degree" ? 10 : 4);
      for (int i = 0; i < count; ++i) SMI_Pop(&from, &values[i]);
    }
  });
  if (what == "stuck") {
    unisono::kernel::launch("a", [&] {
      SMI_Channel from = SMI_Open_receive_channel(1, SMI_INT, 1 - comm->rank, 1, comm);
      SMI_Channel to = SMI_Open_send_channel(1, SMI_INT, 1 - comm->rank, 1, comm);
      int value = 0;
      SMI_Pop(&from, &value);
      SMI_Push(&to, &value);
    });
  }
  unisono::kernel::launch_forever(unisono::smi::Group::world(), "server", [&] {
    SMI_Channel from = SMI_Open_receive_channel(1, SMI_INT, 1 - comm->rank, 2, comm);
    int value = 0;
    while (true) SMI_Pop(&from, &value);
  });
  try {
    unisono::kernel::wait_all();
  } catch (const unisono::Error& error) {
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
}
"""


@pytest.fixture(scope="module")
def ends(folder: Path) -> Path:
    source = folder / "ends.cpp"
    source.write_text(TWO_ENDS)
    return compiled(source, folder / "ends")


@needs_node
def test_kernels_that_never_return_are_no_error(folder: Path, ends: Path) -> None:
    done = on_cables(2, topology(folder, "bus 2"), ends, "well")
    assert done.returncode == 0, done.stderr


@needs_node
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("count", "the ends of port 3 from rank 0 to rank 1 differ: rank 0 sends 10 elements, rank 1 receives 12"),
        ("type", "the ends of port 3 from rank 0 to rank 1 differ: rank 0 sends int32, rank 1 receives fp32"),
        ("degree", "in hardware both ends need the same asynchronicity degree"),
        ("nobody", "port 3: destination 7 was given, which does not exist; the communicator has ranks 0 to 1"),
        ("port", "the node has ports 0 to 3"),
        ("stuck", "which closes the circle"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, ends: Path, what: str, told: str) -> None:
    done = on_cables(2, topology(folder, "bus 2"), ends, what, seconds=3)
    assert done.returncode != 0
    assert told in done.stderr
    if what == "stuck":
        assert "kernel a (rank 0) waits to pop element 1 of 1 of port 1 from rank 1" in done.stderr


@needs_node
@pytest.mark.parametrize(("ranks", "elements"), [(2, 300), (4, 64)])
def test_a_program_of_all_that_the_dialect_has(folder: Path, ranks: int, elements: int) -> None:
    """The same library and the same host as natively."""
    library, host = folder / "pipeline.so", folder / "pipeline"
    if not host.exists():
        built = unisono("kernel", "build", HERE / "pipeline.cl", "-o", library)
        assert built.returncode == 0, built.stderr
        built = unisono("kernel", "host", HERE / "pipeline_host.cpp", "-o", host, "--programs", "pipeline")
        assert built.returncode == 0, built.stderr
    done = on_cables(ranks, topology(folder, f"bus {ranks}"), "--node-ports", 4, host, library, elements)
    assert lines(done) == [f"rank {rank} right" for rank in range(ranks)]


@needs_node
@pytest.mark.skipif(not parsing.available(), reason="libclang is not installed")
@pytest.mark.parametrize(
    "words",
    [
        ("gesummv", "--ranks", 2, "--size", 96),
        ("stencil", "--ranks", 4, "--size", 256, "--rounds", 3),
        ("stencil", "--ranks", 8, "--size", 512, "--rounds", 2, "--topology", "bus"),
        ("kmeans", "--ranks", 3, "--size", 301, "--rounds", 2),
    ],
    ids=lambda words: f"{words[0]}-{words[2]}",
)
def test_applications_agree_with_numpy(tmp_path: Path, words: tuple[object, ...]) -> None:
    done = subprocess.run(
        [sys.executable, str(APPS / "run.py"), *map(str, words), "--platform", "rtl", "--folder", str(tmp_path)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ cycles: .*NumPy's", done.stdout)


@needs_node
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-n", 3, "--platform", "rtl", "--cables", "{bus}"), "has 2 nodes, and the job 3 ranks"),
        (("-n", 2, "--cables", "{bus}"), "--cables goes with --platform rtl; the platform is native"),
        (("-n", 2, "--platform", "rtl", "--cables", "{none}"), "none.json"),
        (("-n", 2, "--platform", "rtl", "--cable-latency", 5), "--cable-latency goes with --cables"),
        (("-n", 2, "--platform", "rtl", "--cables", "{bus}", "--wave", "w"), "--wave is of engines in hardware"),
        (("-n", 2, "--platform", "rtl", "--cables", "{bus}", "--cable-latency", 0), "allowed are 1 to"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, words: tuple[object, ...], told: str) -> None:
    network = topology(folder, "bus 2")
    named = [str(word).format(bus=network, none=folder / "none.json") for word in words]
    done = job(*named, "true")
    assert done.returncode != 0
    assert told in done.stderr


@needs_node
def test_cycles_are_written_to_a_file(folder: Path, channels: Path) -> None:
    report = folder / "cycles.json"
    done = on_cables(2, topology(folder, "bus 2"), "--cycles", report, channels, "line", "int", 100, -1, 0)
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert told["cycles"] == cycles_of(done)
    assert told["clock_khz"] == 250_000
    assert [rank["begin"] for rank in told["ranks"]] == [0, 0]
    assert told["ranks"][0]["packets"] >= 15
