"""unisono_kernels() of the installed CMake package, in a project of a user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kernels_support import HERE, unisono
from unisono.cli import node_model
from unisono.kernels import parsing

pytestmark = pytest.mark.skipif(not parsing.available(), reason="libclang is not installed")
ROOT = HERE.parents[2]


def has_node() -> bool:
    try:
        node_model.ready_made(16)
    except node_model.NodeError:
        return False
    return True


def cmake(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
    assert libraries, "no build/*/libunisono.so; run `make build` first"
    made = tmp_path_factory.mktemp("prefix")
    for component in ("runtime", "development"):
        done = cmake("--install", libraries[-1].parent, "--prefix", made, "--component", component)
        assert done.returncode == 0, done.stderr
    return made


def configure(source: Path, build: Path, prefix: Path, command: str | None) -> subprocess.CompletedProcess[str]:
    words = [f"-DUNISONO_COMMAND={command}"] if command else []
    return cmake("-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *words)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, prefix: Path) -> tuple[Path, Path]:
    """Source and build of the project, configured and built."""
    source = Path(shutil.copytree(HERE / "project", tmp_path_factory.mktemp("project") / "chain"))
    build = source / "build"
    done = configure(source, build, prefix, f"{sys.executable};-m;unisono.cli")
    assert done.returncode == 0, done.stderr
    done = cmake("--build", build)
    assert done.returncode == 0, done.stdout + done.stderr
    return source, build


def test_a_program_of_two_programs_runs(project: tuple[Path, Path]) -> None:
    done = unisono("run", "-n", 4, project[1] / "chain" / "chain", 6)
    assert done.returncode == 0, done.stderr
    expected, values = [], [i * 3 for i in range(6)]
    for rank in (1, 2, 3):
        values = [value * 10 + rank for value in values]
        expected.append(f"{rank} " + " ".join(map(str, values)))
    assert sorted(done.stdout.splitlines()) == expected


def test_routes_and_report(project: tuple[Path, Path]) -> None:
    _, build = project
    done = cmake("--build", build, "--target", "chain-routes")
    assert done.returncode == 0, done.stdout
    assert {"routes.json", "cks-rank3-channel0", "rank0.bin"} <= {
        path.name for path in (build / "chain/smi-routes").iterdir()
    }
    report = cmake("--build", build, "--target", "chain-report").stdout
    assert "first: 1 endpoints, packets of 64 bytes, R = 16" in report
    assert "later: 2 endpoints" in report


def test_the_same_program_runs_at_simulated_nodes(project: tuple[Path, Path]) -> None:
    if not has_node():
        pytest.skip("the simulated node is not built (make cables)")
    folder = project[1] / "chain" / "generated"
    made_for = f"--endpoints {folder}/first.endpoints.json --endpoints {folder}/later.endpoints.json"
    assert made_for in (project[1] / "build.ninja").read_text()
    assert (folder / "first.endpoints.json").is_file()
    done = cmake("-DUNISONO_NODE_PORTS=16", project[1])  # that is ready made; the other would be built for minutes
    assert done.returncode == 0, done.stdout + done.stderr
    done = cmake("--build", project[1], "--target", "chain-rtl")
    assert done.returncode == 0, done.stdout + done.stderr
    values = [i * 3 for i in range(6)]
    for rank in (1, 2, 3):
        values = [value * 10 + rank for value in values]
        assert f"{rank} " + " ".join(map(str, values)) in done.stdout
    assert re.search(r"kernels took \d+ cycles .* on 4 nodes", done.stdout + done.stderr)


def test_what_is_wrong_in_a_kernel_ends_the_build(project: tuple[Path, Path]) -> None:
    source, build = project
    first = source / "first.cl"
    text = first.read_text()
    try:
        first.write_text(text.replace("int value", "float value"))
        done = cmake("--build", build)
        assert done.returncode != 0
        assert f"{first}:8: SMI_Push is given `&value`, of type float" in done.stdout
    finally:
        first.write_text(text)
    assert cmake("--build", build).returncode == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("unisono_kernels(chain HOST chain.cpp)", "PROGRAMS names no source"),
        ("unisono_kernels(chain MANY HOST chain.cpp PROGRAMS first.cl)", "`MANY` is not understood"),
        ("unisono_kernels(chain HOST chain.cpp PROGRAMS none.cl)", "there is no source"),
    ],
)
def test_what_the_call_got_wrong(tmp_path: Path, prefix: Path, call: str, sentence: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(chain CXX)\nfind_package(unisono REQUIRED)\n{call}\n"
    )
    done = configure(tmp_path, tmp_path / "build", prefix, "unisono")
    assert done.returncode != 0
    assert sentence in " ".join(done.stderr.split())


HOST_OF_SMI = """#include <mpi.h>
#include "smi_generated_host.c"

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hlslib::ocl::Context context;
  const std::string folder = "emulator_" + std::to_string(rank);
  auto program = context.MakeProgram(folder + (rank == 0 ? "/first.aocx" : "/later.aocx"));
  std::vector<hlslib::ocl::Buffer<char, hlslib::ocl::Access::read>> buffers;
  SMI_Comm comm = SmiInit_first(rank, size, "smi-routes", context, program, buffers);
  auto out = context.MakeBuffer<int, hlslib::ocl::Access::write>(1);
  if (rank == 0) program.MakeKernel("start", 1, comm).ExecuteTask();
  else program.MakeKernel("pass", out, 1, comm).ExecuteTask();
  int result = 0;
  out.CopyToHost(&result);
  std::printf("%d %d\\n", rank, result);
  MPI_Finalize();
}
"""


def test_a_project_of_smi(tmp_path: Path, prefix: Path) -> None:
    source = Path(shutil.copytree(HERE / "project", tmp_path / "chain"))
    (source / "host.cpp").write_text(HOST_OF_SMI)
    here = "${CMAKE_CURRENT_SOURCE_DIR}"
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(chain CXX)\nfind_package(unisono REQUIRED)\n"
        f'include_directories({here}/include)\nfile(WRITE ${{CMAKE_CURRENT_BINARY_DIR}}/step.h "#define STEP 7\\n")\n'
        f'smi_target(chain "{here}/chain.json" "{here}/host.cpp" "{here}/first.cl;{here}/later.cl" 4 16 4 OFF)\n'
        "target_link_libraries(chain_host m)\n"
    )
    with (source / "include" / "chain.h").open("a") as header:
        header.write('#include "step.h"\n')
    build = source / "build"
    assert configure(source, build, prefix, f"{sys.executable};-m;unisono.cli").returncode == 0
    done = cmake("--build", build, "--target", "chain_host", "chain_emulator", "chain_routes")
    assert done.returncode == 0, done.stdout
    described = (build / "chain" / "first.json").read_text()
    assert '"consecutive_reads": 16' in described
    assert '"p2p_rendezvous": false' in described
    done = subprocess.run(
        [sys.executable, "-m", "unisono.cli", "run", "-n", "4", "./chain_host"],
        capture_output=True, text=True, timeout=60, check=False, cwd=build / "chain",
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["0 0", "1 1", "2 12", "3 123"], done.stderr
    if has_node():
        done = cmake("--build", build, "--target", "chain_rtl")
        assert done.returncode == 0, done.stdout + done.stderr
        assert {"0 0", "1 1", "2 12", "3 123"} <= set(done.stdout.splitlines())


def test_a_missing_command_is_told(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(each for each in folders if not (Path(each) / "unisono").exists()))
    shutil.copytree(HERE / "project", tmp_path / "chain")
    done = configure(tmp_path / "chain", tmp_path / "build", prefix, None)
    assert done.returncode != 0
    assert "there is no command `unisono`, which compiles kernels" in " ".join(done.stderr.split())
