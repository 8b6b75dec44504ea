"""`unisono kernel build` of kernels that hosts call by name: C++ against <unisono/kernel.hpp>, and SystemVerilog."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .verilog import VerilogError, verilate

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
        texts = [Path(source).read_text(encoding="utf-8", errors="replace") for source in sources]
        return any(header in text for text in texts for header in _HEADERS)
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
    lines, folders = [], []
    for source in arguments.sources:
        if source in verilog:
            continue
        path = Path(source).resolve()
        if not path.is_file():
            print(f"unisono kernel: {source}: there is no such file", file=sys.stderr)
            return 1
        lines.append(f'#include "{path}"')
        folders.append(f"-I{path.parent}")
    lines.append("#include <unisono/kernel_trampolines.hpp>")
    if arguments.top is not None and not verilog:
        print("unisono kernel: --top is of kernels in SystemVerilog, and no source is", file=sys.stderr)
        return 2
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        objects: list[str] = []
        if verilog:
            try:
                module = verilate(verilog, arguments.top, Path(folder) / "verilated")
            except VerilogError as error:
                print(f"unisono kernel: {error}", file=sys.stderr)
                return 1
            lines += module.lines
            folders += module.folders
            objects = module.objects
        unit, exports = Path(folder) / "kernels.cpp", Path(folder) / "exports.map"
        unit.write_text("\n".join(lines) + "\n")
        exports.write_text(_EXPORTS)
        words = [*compiler, *_FLAGS, f"-Wl,--version-script={exports}", *headers, *folders,
                 *(f"-I{one}" for one in arguments.folders), *(f"-D{one}" for one in arguments.macros),
                 str(unit), *objects, "-o", arguments.output, "-lpthread"]  # fmt: skip
        return run(words, arguments.show)
