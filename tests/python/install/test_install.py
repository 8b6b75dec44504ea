"""What is installed serves projects that know the library by its name only: CMake and pkg-config, C and C++."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADERS = ROOT / "driver" / "include" / "unisono"
EXAMPLE = Path(__file__).parent / "example"


def build_folder() -> Path:
    """Where the library was built last, but for a wheel, which is installed otherwise."""
    libraries = sorted(
        (file for file in (ROOT / "build").glob("*/libunisono.so") if file.parent.name != "wheel"), key=os.path.getmtime
    )
    assert libraries, "no build/*/libunisono.so; run `make build` first"
    return libraries[-1].parent


def command(*words: object, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation that has been moved after it was made: nothing in it may say where it was."""
    made = tmp_path_factory.mktemp("installation") / "made"
    for component in ("runtime", "development"):
        command("cmake", "--install", build_folder(), "--prefix", made, "--component", component)
    moved = made.rename(made.with_name("moved"))
    for file in moved.rglob("*"):
        if file.is_file() and not file.is_symlink() and not file.name.startswith("libunisono"):
            assert str(made) not in file.read_text(), f"{file} says where it was installed"
            assert str(ROOT) not in file.read_text(), f"{file} says where it was built"
    return moved


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def check(program: Path, prefix: Path) -> None:
    loaded = command("ldd", program)
    assert f"{prefix}/lib/" in loaded.replace("/x86_64-linux-gnu", ""), loaded
    output = command(
        sys.executable, "-m", "unisono", "run", "-n", 2, program, PYTHONPATH=str(ROOT / "python")
    )  # fmt: skip
    assert sorted(output.splitlines()) == [f"rank {rank} of 2, ABI 1: 21 100" for rank in range(2)]


def test_cmake_project(prefix: Path, project: Path) -> None:
    build = project / "build"
    command("cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    command("cmake", "--build", build)
    check(build / "sum_c", prefix)
    check(build / "sum_cpp", prefix)


@pytest.mark.skipif(not (ROOT / "build/release/libunisono_shmem.so").exists(), reason="build/release is not built")
def test_make_installs_and_removes_it_anywhere(tmp_path: Path) -> None:
    prefix = tmp_path / "a folder of its own"
    said = command("make", "--no-print-directory", "-o", "library", "install", f"PREFIX={prefix}", cwd=ROOT)
    folder = said.partition("PKG_CONFIG_PATH=")[2].strip()
    assert command("pkg-config", "--modversion", "unisono", "unisono-shmem", PKG_CONFIG_PATH=folder).split()
    command("make", "--no-print-directory", "uninstall", f"PREFIX={prefix}", cwd=ROOT)
    assert not [file for file in prefix.rglob("*") if not file.is_dir()]


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_shim_takes_the_library_that_lies_beside_it(prefix: Path, mpi: str, tmp_path: Path) -> None:
    shim = build_folder() / f"libunisono_mpi_{mpi}.so"
    if not shim.exists():
        pytest.skip(f"there is no shim for {mpi} (make mpi)")
    (library,) = prefix.rglob("libunisono.so.1")
    shutil.copy(library, tmp_path)
    loaded = command("ldd", shutil.copy(shim, tmp_path))
    assert f"libunisono.so.1 => {tmp_path}/" in loaded, loaded


@pytest.mark.parametrize("ranks", [1, 4])
def test_a_shell_starts_it(prefix: Path, project: Path, ranks: int) -> None:
    """The launcher of docs/installing.md, with no Python about."""
    (folder,) = {file.parent for file in prefix.rglob("unisono.pc")}
    command("make", "-C", project, PKG_CONFIG_PATH=str(folder))
    page = (ROOT / "docs" / "installing.md").read_text()
    found = re.search(r'^```sh title="launch"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    assert found
    launch = project / "launch"
    launch.write_text(found[1])
    launch.chmod(0o755)
    bare = {"PATH": "/usr/bin:/bin"}
    for program in ("sum_c", "sum_cpp"):
        done = subprocess.run(
            [launch, str(ranks), project / program], env=bare, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert sorted(line.partition(":")[0] for line in done.stdout.splitlines()) == [
            f"rank {rank} of {ranks}, ABI 1" for rank in range(ranks)
        ]
    failing = [launch, str(ranks), "sh", "-c", f"exit $((UNISONO_RANK == {ranks - 1} ? 7 : 0))"]
    assert subprocess.run(failing, env=bare, timeout=60).returncode == 7


def test_cmake_refuses_another_version(prefix: Path, project: Path) -> None:
    text = (project / "CMakeLists.txt").read_text()
    (project / "CMakeLists.txt").write_text(text.replace("unisono 0.1", "unisono 0.2"))
    done = subprocess.run(
        ["cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0
    assert 'compatible with requested version "0.2"' in " ".join(done.stderr.split())


def test_pkg_config_project(prefix: Path, project: Path) -> None:
    (folder,) = {file.parent for file in prefix.rglob("unisono.pc")}
    command("make", "-C", project, PKG_CONFIG_PATH=str(folder))
    check(project / "sum_c", prefix)
    check(project / "sum_cpp", prefix)


def test_components(tmp_path: Path) -> None:
    """Programs need the library alone; headers and links are for those who build them."""
    for component, expected in (
        (
            "runtime",
            {
                "LICENSE", "THIRD-PARTY.md", "libunisono.so.1", "libunisono.so.0.1.0", "libunisono_shmem.so.1",
                "libunisono_shmem.so.0.1.0",
            },
        ),
        (
            "development",
            {
                *(file.name for file in HEADERS.rglob("*.h*")), "libunisono.so", "unisono.pc", "unisono-config.cmake",
                "unisono-config-version.cmake", "unisono-kernels.cmake", "unisono-targets.cmake",
                "unisono-targets-release.cmake", "libunisono_shmem.so", "shmem.h", "lists.h", "deprecated.h",
                "generic.h", "overloads.h", "names.h", "pshmem.h", "unisono-shmem.pc", "unisono-oshcc",
            },
        ),
    ):  # fmt: skip
        place = tmp_path / component
        command("cmake", "--install", build_folder(), "--prefix", place, "--component", component)
        assert {file.name for file in place.rglob("*") if not file.is_dir()} == expected


def test_headers_need_the_standard_library_alone(prefix: Path) -> None:
    """The libraries that Unisono is built with are its own affair."""
    folder = prefix / "include" / "unisono"
    headers = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.h*")}
    assert headers.keys() == {str(file.relative_to(HEADERS)) for file in HEADERS.rglob("*.h*")}
    own = {f"unisono/{name}" for name in headers} | {name.removeprefix("dialect/") for name in headers}
    included = {name for text in headers.values() for name in re.findall(r"#\s*include\s*[<\"](.+)[>\"]", text)}
    assert "unisono/unisono.h" in included
    assert not {name for name in included if "/" in name} - own


def test_uninstall_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    other = tmp_path / "include" / "other.h"
    other.parent.mkdir()
    other.write_text("")
    command(ROOT / "tools" / "install", tmp_path, DESTDIR="")
    assert (tmp_path / "include" / "unisono" / "unisono.h").is_file()
    command(ROOT / "tools" / "install", "--remove", tmp_path, DESTDIR="")
    assert [file for file in tmp_path.rglob("*") if not file.is_dir()] == [other]
    assert not list(tmp_path.rglob("unisono"))


HELLO = """
#include <cstdio>
#include <unisono/unisono.hpp>

int main() {
  unisono::Context context;
  unisono::Communicator world = context.world();
  unisono::Buffer<float> mine(4), total(4);
  mine[0] = 1 + world.rank();
  world.allreduce(mine, total, unisono::Op::kSum);
  std::printf("%g\\n", total[0]);
}
"""


@pytest.mark.parametrize("standard", ["", "set(CMAKE_CXX_STANDARD 17)"])
def test_cmake_target_asks_for_the_language(prefix: Path, tmp_path: Path, standard: str) -> None:
    """The two lines of docs/installing.md are enough, whatever the project says of C++."""
    page = (ROOT / "docs" / "installing.md").read_text()
    lines = page.split("```cmake\n", 1)[1].split("```", 1)[0]
    assert len(lines.splitlines()) == 2
    (tmp_path / "sum.cpp").write_text(HELLO)
    head = f"cmake_minimum_required(VERSION 3.16)\nproject(sum CXX)\n{standard}\nadd_executable(sum sum.cpp)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + lines)
    command("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    command("cmake", "--build", tmp_path / "build")
    environment = {"PYTHONPATH": str(ROOT / "python")}
    output = command(sys.executable, "-m", "unisono", "run", "-n", 2, tmp_path / "build" / "sum", **environment)
    assert output == "3\n" * 2


def test_cmake_projects_in_c_alone(prefix: Path, project: Path) -> None:
    """They are asked for no language of C++, and need no compiler of it."""
    text = "cmake_minimum_required(VERSION 3.16)\nproject(sum LANGUAGES C)\nfind_package(unisono 0.1 REQUIRED)\n"
    text += "add_executable(sum_c sum.c)\ntarget_link_libraries(sum_c PRIVATE unisono::unisono)\n"
    (project / "CMakeLists.txt").write_text(text)
    command("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    command("cmake", "--build", project / "build")


@pytest.mark.parametrize("standard", [11, 14, 17])
def test_older_language_is_told_in_one_sentence(prefix: Path, tmp_path: Path, standard: int) -> None:
    """As by pkg-config, which cannot ask for a language: the first error says it all, and nothing follows from it."""
    (folder,) = {file.parent for file in prefix.rglob("unisono.pc")}
    flags = command("pkg-config", "--cflags", "unisono", PKG_CONFIG_PATH=str(folder)).split()
    (tmp_path / "sum.cpp").write_text(HELLO)
    done = subprocess.run(
        ["g++", f"-std=c++{standard}", *flags, "-c", tmp_path / "sum.cpp", "-o", tmp_path / "sum.o"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0
    first, *rest = [line.split("error: ", 1)[1] for line in done.stderr.splitlines() if "error: " in line]
    assert first.startswith('#error "unisono.hpp needs C++20: compile with -std=c++20 or newer')
    assert rest == ["unisono.hpp ends here.: No such file or directory"], done.stderr


def test_programs_of_openshmem(prefix: Path, tmp_path: Path) -> None:
    """By the compiler's wrapper and by pkg-config, with no word of the checkout."""
    source = tmp_path / "ring.c"
    source.write_text(
        """#include <shmem.h>
        #include <stdio.h>
        static int from = -1;
        int main(void) {
          shmem_init();
          shmem_int_p(&from, shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
          shmem_barrier_all();
          printf("%d of %d: %d\\n", shmem_my_pe(), shmem_n_pes(), from);
          shmem_finalize();
          return 0;
        }"""
    )
    (folder,) = {file.parent for file in prefix.rglob("unisono-shmem.pc")}
    flags = command("pkg-config", "--cflags", "--libs", "unisono-shmem", PKG_CONFIG_PATH=str(folder)).split()
    command("cc", source, "-o", tmp_path / "by_pkg_config", *flags, f"-Wl,-rpath,{folder.parent}")
    command(prefix / "bin" / "unisono-oshcc", source, "-o", tmp_path / "by_wrapper")
    for name in ("by_pkg_config", "by_wrapper"):
        loaded = command("ldd", tmp_path / name)
        assert loaded.count(f"{prefix}/lib/") == 2, loaded
        run = [sys.executable, "-m", "unisono", "run", "-n", 3, tmp_path / name]
        output = command(*run, PYTHONPATH=str(ROOT / "python"))
        assert sorted(output.splitlines()) == [f"{rank} of 3: {(rank + 2) % 3}" for rank in range(3)]
