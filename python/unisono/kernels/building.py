"""`unisono kernel build` of kernels that hosts call by name: C++ against <unisono/kernel.hpp>, and SystemVerilog."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

#: A source of kernels that are called by name says so by including one of these.
_HEADERS = ("unisono/kernel.hpp", "unisono/kernel_export.hpp")
_FLAGS = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra",
          "-Wl,-z,defs", "-Wl,-Bsymbolic"]  # fmt: skip
#: What the library shows; the functions that its kernels call are its own.
_EXPORTS = "{ global: unisono_kernel_library_open; local: *; };\n"


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Options of kernels that are called by name."""
    parser.add_argument("--top", metavar="MODULE", help="SystemVerilog: the module that is the kernel")


def is_named(sources: Sequence[str]) -> bool:
    """Whether these are sources of kernels that are called by name, rather than of SMI's dialect."""
    if any(source.endswith((".sv", ".v")) for source in sources):
        return True
    try:
        return any(header in Path(source).read_text() for source in sources for header in _HEADERS)
    except OSError:
        return False  # who reads it next says so


def build_named(
    arguments: argparse.Namespace,
    compiler: list[str],
    headers: list[str],
    run: Callable[[Sequence[str], bool], int],
) -> int:
    """Compiles all sources to one library."""
    verilog = [source for source in arguments.sources if source.endswith((".sv", ".v"))]
    if verilog:
        print(
            f"unisono kernel: {verilog[0]}: kernels in SystemVerilog are attached in C++ "
            "(docs/rtl/attaching-a-kernel.md); a library has kernels in C++",
            file=sys.stderr,
        )
        return 1
    lines, folders = [], []
    for source in arguments.sources:
        path = Path(source).resolve()
        if not path.is_file():
            print(f"unisono kernel: {source}: there is no such file", file=sys.stderr)
            return 1
        lines.append(f'#include "{path}"')
        folders.append(f"-I{path.parent}")
    lines.append("#include <unisono/kernel_trampolines.hpp>")
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        unit, exports = Path(folder) / "kernels.cpp", Path(folder) / "exports.map"
        unit.write_text("\n".join(lines) + "\n")
        exports.write_text(_EXPORTS)
        words = [*compiler, *_FLAGS, f"-Wl,--version-script={exports}", *headers, *folders,
                 *(f"-I{one}" for one in arguments.folders), *(f"-D{one}" for one in arguments.macros),
                 str(unit), "-o", arguments.output]  # fmt: skip
        return run(words, arguments.show)
