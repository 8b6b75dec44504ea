"""The worked example of docs/adding-an-algorithm.md does what the page says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "adding-an-algorithm.md"
BUILD = ROOT / "build" / "prove"
SECONDS = 600


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Output of a command; never longer than `SECONDS`."""
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=SECONDS)


def built(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stdout + result.stderr


def listings() -> dict[str, str]:
    """The page's complete files, by name."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r'^```cpp title="([\w.]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))


def compile_example(folder: Path, files: dict[str, str]) -> Path:
    """The program of the page, built from its files as the page says."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    program = folder / "prove"
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror"]
    libraries = [f"-L{BUILD}", *re.findall(r"-lunisono_\w+", PAGE.read_text(encoding="utf-8"))]
    sources = [folder / name for name in files]
    built(run("g++", "-std=c++20", *warnings, f"-I{ROOT}", *sources, *libraries, "-o", program))
    return program


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    """Interpreter, checker and collectives, built where the page builds them; kept between runs."""
    built(run("cmake", "-G", "Ninja", "-B", BUILD, "-DUNISONO_PYTHON=OFF", "-DUNISONO_TESTS=OFF"))
    jobs = str(os.cpu_count() or 1)
    built(run("cmake", "--build", BUILD, "-j", jobs, "--target", "unisono_reference"))


def test_page_holds_both_files() -> None:
    assert set(listings()) == {"linear.cpp", "prove.cpp"}


def test_example_is_proven(tmp_path: Path) -> None:
    result = run(compile_example(tmp_path, listings()))
    assert result.returncode == 0, result.stdout
    assert "proven" in result.stdout


def test_example_without_its_restriction_deadlocks_as_told(tmp_path: Path) -> None:
    files = listings()
    restricted = files["prove.cpp"]
    files["prove.cpp"] = re.sub(r",\n\s*\.admits = \w+::\w+", "", restricted)
    assert files["prove.cpp"] != restricted
    result = run(compile_example(tmp_path, files))
    assert result.returncode == 1
    shown = re.search(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown is not None
    for line in shown.group(1).splitlines():
        assert line in result.stdout


def test_checker_refuses_a_spoilt_example(tmp_path: Path) -> None:
    files = listings()
    correct = files["linear.cpp"]
    files["linear.cpp"] = correct.replace("keep(dst(peer * block))", "keep(dst(call.rank * block))")
    assert files["linear.cpp"] != correct
    assert run(compile_example(tmp_path, files)).returncode == 1
