"""The wheel in an environment of its own, outside the checkout, as who has nothing else would use it.

Runs by `make test-wheel`, which builds the wheel first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "tests" / "python" / "install" / "example"

PROGRAM = """
import sys
import numpy as np
import unisono

with unisono.init() as context:
    world = context.world
    mine = world.empty(1000, np.float64)
    mine[:] = np.arange(1000) * (world.rank + 1)
    total = world.allreduce(mine)
    names = sorted({module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)})
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    foreign = [name for name in {*names, *mapped} if name.startswith(sys.argv[1])]
    print(f"{world.rank} of {world.size}: {total[999]:g} {unisono.__file__} {foreign}\\n", end="")
"""


class Environment:
    """A new virtual environment with the wheel, and commands in it that know nothing of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=True)
        (wheel,) = (ROOT / "build" / "dist").glob("unisono-*.whl")
        self.wheel = wheel
        self.run(
            "python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q",
            "--constraint", ROOT / "requirements.txt", wheel,
        )  # fmt: skip

    def run(self, command: str, *words: object, cwd: Path | None = None, **environment: str) -> str:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UNISONO_"))}
        given["PATH"] = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        path = self.folder / "bin" / command
        done = subprocess.run(
            [str(path if path.exists() else command), *map(str, words)],
            cwd=cwd or self.folder, env=given | environment, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("wheel") / "environment"
    assert not folder.is_relative_to(ROOT)
    return Environment(folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def check(environment: Environment, program: Path) -> None:
    output = environment.run("unisono", "run", "-n", 2, program)
    assert sorted(output.splitlines()) == [f"rank {rank} of 2, ABI 1: 21 100" for rank in range(2)]
    assert f"{environment.folder}/lib" in environment.run("ldd", program)


def test_the_tag_says_where_it_runs(environment: Environment) -> None:
    assert re.search(r"-manylinux_2_\d+_x86_64\.whl$", environment.wheel.name), environment.wheel.name


def test_it_carries_the_licenses_of_what_is_in_it(environment: Environment) -> None:
    with zipfile.ZipFile(environment.wheel) as wheel:
        files = [name for name in wheel.namelist() if "dist-info/licenses/" in name and not name.endswith("/")]
        names = {Path(name).name: name for name in files}
        assert set(names) == {"LICENSE", "THIRD-PARTY.md"}
        assert wheel.read(names["THIRD-PARTY.md"]) == (ROOT / "THIRD-PARTY.md").read_bytes()


def test_three_ranks_on_what_the_wheel_brings(environment: Environment, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    output = environment.run("unisono", "run", "-n", 3, script, ROOT, cwd=tmp_path)
    (package,) = environment.folder.glob("lib/python3*/site-packages/unisono/__init__.py")
    assert sorted(output.splitlines()) == [f"{rank} of 3: 5994 {package} []" for rank in range(3)]


def test_the_command_reads_and_proves_programs(environment: Environment) -> None:
    version = environment.run("unisono", "--version").split()[-1]
    assert environment.wheel.name.startswith(f"unisono-{version}-")
    assert "ring" in environment.run("unisono", "algorithms", "allreduce")
    assert environment.run("unisono", "check", "allreduce/ring")


def test_c_and_cpp_with_the_options_that_it_prints(environment: Environment, project: Path) -> None:
    cflags = environment.run("python", "-m", "unisono.config", "--cflags").split()
    libs = environment.run("python", "-m", "unisono.config", "--libs").split()
    environment.run("gcc", "-std=c11", "-Wall", "-Werror", *cflags, project / "sum.c", *libs, "-o", project / "c")
    environment.run("g++", "-std=c++20", "-Wall", "-Werror", *cflags, project / "sum.cpp", *libs, "-o", project / "cpp")
    check(environment, project / "c")
    check(environment, project / "cpp")


def test_cmake(environment: Environment, project: Path) -> None:
    folder = environment.run("python", "-m", "unisono.config", "--cmakedir").strip()
    environment.run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-Dunisono_DIR={folder}")
    environment.run("cmake", "--build", project / "build")
    check(environment, project / "build" / "sum_c")
    check(environment, project / "build" / "sum_cpp")


def test_pkg_config(environment: Environment, project: Path) -> None:
    folder = environment.run("python", "-m", "unisono.config", "--pkgconfigdir").strip()
    environment.run("make", "-C", project, PKG_CONFIG_PATH=folder)
    check(environment, project / "sum_c")
    check(environment, project / "sum_cpp")


def test_programs_of_openshmem(environment: Environment, tmp_path: Path) -> None:
    """In C, by the compiler that the wheel brings, and in Python."""
    (tmp_path / "ring.c").write_text(
        "#include <shmem.h>\n#include <stdio.h>\nstatic long box;\n"
        "int main(void) {\n  shmem_init();\n  const int me = shmem_my_pe(), n = shmem_n_pes();\n"
        "  shmem_long_p(&box, 10 + me, (me + 1) % n);\n  shmem_barrier_all();\n"
        '  printf("%d: %ld\\n", me, box);\n  shmem_finalize();\n  return 0;\n}\n'
    )
    environment.run("unisono-oshcc", tmp_path / "ring.c", "-o", tmp_path / "ring")
    output = environment.run("unisono", "run", "-n", 3, tmp_path / "ring")
    assert sorted(output.splitlines()) == ["0: 12", "1: 10", "2: 11"]
    (tmp_path / "ring.py").write_text(
        "from unisono import shmem\n"
        "with shmem.init() as world:\n"
        "    box = shmem.zeros(1)\n"
        "    shmem.put(box, [10.0 + world.my_pe], (world.my_pe + 1) % world.n_pes)\n"
        "    shmem.barrier_all()\n"
        "    print(world.my_pe, box[0])\n"
    )
    output = environment.run("unisono", "run", "-n", 3, tmp_path / "ring.py")
    assert sorted(output.splitlines()) == ["0 12.0", "1 10.0", "2 11.0"]


def test_it_is_built_for_every_processor() -> None:
    """Vector code is compiled function by function and chosen at run time; no file of its own is."""
    (commands,) = (ROOT / "build" / "wheel").rglob("build.ninja")
    assert not re.findall(r" -m(?:arch|tune|avx|sse4|fma|bmi)\S*", commands.read_text())


def test_what_it_needs_is_there_or_in_the_system(environment: Environment) -> None:
    allowed = {
        "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
        "ld-linux-x86-64.so.2",
    }  # fmt: skip
    (package,) = environment.folder.glob("lib/python3*/site-packages/unisono")
    libraries = [file for file in package.rglob("*.so*") if file.read_bytes()[:4] == b"\x7fELF"]
    brought = {file.name for file in libraries}
    assert len(brought) == 4, brought  # the extension, libunisono, libunisono_shmem, libhwy
    for library in libraries:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", environment.run("readelf", "-dW", library)))
        assert needed <= allowed | brought, f"{library.name} needs {needed - allowed - brought}"
