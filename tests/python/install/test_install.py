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
EXAMPLE = Path(__file__).parent / "example"


def build_folder() -> Path:
    """Where the library was built last."""
    libraries = sorted((ROOT / "build").glob("*/libunisono.so"), key=os.path.getmtime)
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
        ("runtime", {"LICENSE", "libunisono.so.1", "libunisono.so.0.1.0"}),
        (
            "development",
            {
                "libunisono.so", "unisono.h", "unisono.hpp", "unisono.pc", "unisono-config.cmake",
                "unisono-config-version.cmake", "unisono-targets.cmake", "unisono-targets-release.cmake",
            },
        ),
    ):  # fmt: skip
        place = tmp_path / component
        command("cmake", "--install", build_folder(), "--prefix", place, "--component", component)
        assert {file.name for file in place.rglob("*") if not file.is_dir()} == expected


def test_uninstall_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    other = tmp_path / "include" / "other.h"
    other.parent.mkdir()
    other.write_text("")
    command(ROOT / "tools" / "install", tmp_path, DESTDIR="")
    assert (tmp_path / "include" / "unisono" / "unisono.h").is_file()
    command(ROOT / "tools" / "install", "--remove", tmp_path, DESTDIR="")
    assert [file for file in tmp_path.rglob("*") if not file.is_dir()] == [other]
    assert not list(tmp_path.rglob("unisono"))
