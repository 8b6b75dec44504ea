"""Kernels in SMI's dialect, compiled by `unisono kernel` and run on several ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels_support import HERE, unisono
from unisono.kernels import dialect


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The kernels and the host of the program, compiled."""
    folder = tmp_path_factory.mktemp("pipeline")
    library, host = folder / "kernels.so", folder / "host"
    built = unisono("kernel", "build", HERE / "pipeline.cl", "-o", library)
    assert built.returncode == 0, built.stderr
    built = unisono("kernel", "host", HERE / "pipeline_host.cpp", "-o", host, "--programs", "pipeline")
    assert built.returncode == 0, built.stderr
    return host, library


@pytest.mark.parametrize(("ranks", "elements"), [(1, 4), (2, 1000), (4, 64), (8, 128)])
def test_a_program_of_all_that_the_dialect_has(pipeline: tuple[Path, Path], ranks: int, elements: int) -> None:
    host, library = pipeline
    done = unisono("run", "-n", ranks, host, library, elements)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == [f"rank {rank} right" for rank in range(ranks)]


def test_the_host_is_told_what_is_wrong_with_its_kernels(pipeline: tuple[Path, Path], tmp_path: Path) -> None:
    host, _ = pipeline
    missing = unisono("run", "-n", 1, host, tmp_path / "none.so", 4)
    assert missing.returncode != 0
    assert "make them by unisono kernel build" in missing.stderr
    source = tmp_path / "other.cl"
    source.write_text('#include "smi.h"\n__kernel void poll(int n) {}\n__kernel void forever(SMI_Comm comm) {}\n')
    assert unisono("kernel", "build", source, "-o", tmp_path / "other.so").returncode == 0
    wrong = unisono("run", "-n", 1, host, tmp_path / "other.so", 4)
    assert "has no kernel scale_stage; it has: poll, forever" in wrong.stderr


def test_errors_of_the_compiler_name_the_source_and_its_line(tmp_path: Path) -> None:
    source = tmp_path / "faulty.cl"
    source.write_text(
        "#include <smi.h>\nchannel int c\n  __attribute__((depth(2)));\n\n__kernel void f() { nothing(); }\n"
    )
    built = unisono("kernel", "build", source, "-o", tmp_path / "faulty.so")
    assert built.returncode != 0
    assert f"{source}:5:" in built.stderr


@pytest.mark.parametrize(
    ("declared", "translated"),
    [
        ("channel float a;", "UNISONO_DIALECT_CHANNEL(float, a, , 0)"),
        ("channel V b[B] __attribute__((depth((Y/(W*B))/P)));", "UNISONO_DIALECT_CHANNEL(V, b, [B], (Y/(W*B))/P)"),
        ("channel unsigned int c[2][3] __attribute__((depth(W)));",
         "UNISONO_DIALECT_CHANNEL(unsigned int, c, [2][3], W)"),
        ("// channel float a;", "// channel float a;"),
    ],
)  # fmt: skip
def test_declarations_of_channels(declared: str, translated: str) -> None:
    assert dialect.translate_channels(declared) == translated


def test_what_is_no_declaration_is_refused_by_line() -> None:
    with pytest.raises(dialect.KernelError, match="line 2: in this declaration of a channel, `= 3` is not understood"):
        dialect.translate_channels("\nchannel int c = 3;")


def test_kernels_are_found_whatever_stands_around_them() -> None:
    text = """
    __attribute__((autorun)) __kernel void a(int n) { if (n) { } }
    kernel __attribute__((max_global_work_dim(0))) void B_NAME(
        __global float *restrict x, int (*p)(int)) {
    }
    __kernel void declared(int n);
    /* __kernel void no(int n) {} */
    """
    assert dialect.kernel_names(text) == ["a", "B_NAME"]


def test_check_names_what_hardware_has_no_place_for(tmp_path: Path) -> None:
    source = tmp_path / "soft.cpp"
    source.write_text(
        "#define grow(n) malloc(n)\n"
        "int odd(int n);\n"
        "int even(int n) { return n == 0 ? 1 : odd(n - 1); }\n"
        "int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n"
        "int fine(int n) { return n; } // new malloc(3)\n"
        "__kernel void f(int n) {\n"
        "  float* a = new float[n];\n"
        "  if (n) throw fine(n);\n"
        "}\n"
    )
    done = unisono("kernel", "check", source)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{source}:3: recursion: even calls itself, by way of others; hardware has no place for it",
        f"{source}:4: recursion: odd calls itself, by way of others; hardware has no place for it",
        f"{source}:7: memory of the heap; hardware has no place for it",
        f"{source}:8: an exception; hardware has no place for it",
    ]
    right = unisono("kernel", "check", HERE / "pipeline.cl")
    assert (right.returncode, right.stdout) == (0, "")
