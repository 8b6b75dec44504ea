"""Elements of vectors by their names, vectors made of others, structures in channels; the generated host."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels_support import HERE, unisono
from unisono.kernels import dialect, parsing

pytestmark = pytest.mark.skipif(not parsing.available(), reason="libclang is not installed")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    for words in (
        ("build", HERE / "vectors.cl", "-o", folder / "vectors.so"),
        ("generate", HERE / "vectors.cl", "--ranks", 3, "-o", folder),
        ("host", HERE / "vectors_host.cpp", "-I", folder, "-o", folder / "host"),
    ):
        done = unisono("kernel", *words)
        assert done.returncode == 0, done.stderr
    return folder / "host"


def made(rank: int, i: int) -> list[float]:
    """What the kernel of a rank makes in its step `i`."""
    v = [i * 1.5 + rank, i, i, -rank]
    r = v[::-1]
    r[0], r[1] = v[2] * 2, v[3] * 2
    r[2], r[3] = r[2] + v[0], r[3] + v[1]
    v[0], v[2] = r[1], r[3]
    v[0] = -v[0]
    every = v + r
    every[0], every[1] = every[7] + every[6], every[1] + every[2]
    every[2] = i + 100
    wide = every + [-value for value in every]
    wide[15] = wide[10]
    wide[3], wide[4], wide[5] = wide[13] / 2, wide[12] / 2, wide[11] / 2
    return wide


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_elements_by_name(program: Path, ranks: int) -> None:
    done = unisono("run", "-n", ranks, program, 5)
    assert done.returncode == 0, done.stderr
    got = {int(line.split()[0]): [float(word) for word in line.split()[1:]] for line in done.stdout.splitlines()}
    for rank in range(ranks):
        before = (rank - 1) % ranks
        assert got[rank] == [value for i in range(5) for value in made(before, i)]


def test_more_ranks_than_it_was_generated_for_are_refused(program: Path) -> None:
    done = unisono("run", "-n", 4, program, 1)
    assert done.returncode != 0
    assert "the kernels are generated for up to 3 ranks, and the job has 4" in done.stderr


@pytest.mark.parametrize(
    ("text", "is_now"),
    [
        ("x = (float4)(a, b);", "x = float4(a, b);"),
        ("x = (float4)(a);", "x = (float4)(a);"),
        ("x = (int)(f(a, b));", "x = (int)(f(a, b));"),
        ("if (x) (a, b);", "if (x) (a, b);"),
        ("return (V)\n(a, b);", "return V\n(a, b);"),
        ("v.s01 = w.sFE; // v.s01", "v.elements<0, 1>() = w.elements<15, 14>(); // v.s01"),
        ("v.s1 + v.size + v.s12345", "v.s1 + v.size + v.s12345"),
        ("v.s01234567", "v.elements<0, 1, 2, 3, 4, 5, 6, 7>()"),
    ],
)
def test_what_the_compiler_gets(text: str, is_now: str) -> None:
    assert dialect.translated(text) == is_now


def test_an_element_is_not_assigned_twice(tmp_path: Path) -> None:
    source = tmp_path / "twice.cl"
    source.write_text("#include <smi.h>\n__kernel void f() {\n  float4 v = 0;\n  v.xx = (float2)(1, 2);\n}\n")
    done = unisono("kernel", "build", source, "-o", tmp_path / "twice.so")
    assert done.returncode != 0
    assert f"{source}:4:" in done.stderr
    assert "an element is assigned twice" in done.stderr
