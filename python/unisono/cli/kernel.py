"""`unisono kernel`: compiles kernels, those that were written for SMI too (docs/kernels.md, docs/smi.md)."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import config
from ..kernels.building import add_build_options, build_named, is_named
from ..kernels.dialect import KernelError, translate
from . import kernel_sources

_FLAGS = ["-std=gnu++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing", "-pthread",
          "-Wno-attributes", "-Wno-unknown-pragmas", "-Wno-narrowing", "-ffp-contract=off"]  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "kernel",
        help="compile kernels, and look at their sources",
        description="Compiles kernels in C++ and SystemVerilog that hosts call by name (docs/kernels.md), and "
        "single-work-item kernels in the dialect of OpenCL C that SMI's programs are written in (docs/smi.md).",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    build = actions.add_parser("build", help="make a library of kernels", prefix_chars="-")
    build.add_argument("sources", nargs="+", help="sources in the dialect (.cl), or in C++ (.cpp)")
    add_build_options(build)
    build.add_argument("-o", dest="output", required=True, help="the library; hosts load it by this name")
    build.add_argument("-I", dest="folders", action="append", default=[], help="a folder of headers")
    build.add_argument("-D", dest="macros", action="append", default=[], help="a macro, as NAME or NAME=VALUE")
    build.add_argument("--show", action="store_true", help="print the compiler's command, and run nothing")
    build.set_defaults(execute=execute_build)
    host = actions.add_parser("host", help="compile a host of SMI's")
    host.add_argument("source", help="its source, in C++")
    host.add_argument("-o", dest="output", required=True, help="the program")
    host.add_argument("--programs", nargs="+", default=[], help="names of programs, for their SmiInit functions")
    host.add_argument("-I", dest="folders", action="append", default=[], help="a folder of headers")
    host.add_argument("-D", dest="macros", action="append", default=[], help="a macro, as NAME or NAME=VALUE")
    host.add_argument("-l", dest="libraries", action="append", default=[], help="a library to link")
    host.add_argument("--show", action="store_true", help="print the compiler's command, and run nothing")
    host.set_defaults(execute=execute_host)
    kernel_sources.add_parsers(actions)
    parser.set_defaults(help=parser.print_help)


def _headers() -> list[str]:
    folder = config.include_dir()
    return [f"-I{folder}", f"-I{folder}/unisono/dialect"]


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("UNISONO_CXX", "g++"))


def _run(words: Sequence[str], show: bool) -> int:
    if show:
        print(shlex.join(words))
        return 0
    if shutil.which(words[0]) is None:
        print(f"unisono kernel: there is no compiler {words[0]}; install one, or name it by UNISONO_CXX",
              file=sys.stderr)  # fmt: skip
        return 127
    return subprocess.call(words)


def execute_build(arguments: argparse.Namespace) -> int:
    """Compiles sources of kernels to one library."""
    if is_named(arguments.sources):
        return build_named(arguments, _compiler(), _headers(), _run)
    text = '#include "unisono/dialect/kernel.hpp"\n'
    folders = []
    for source in arguments.sources:
        path = Path(source)
        try:
            text += translate(path.read_text(encoding="utf-8", errors="surrogateescape"), str(path.resolve()))
        except OSError as error:
            print(f"unisono kernel: {source}: {error.strerror}", file=sys.stderr)
            return 1
        except KernelError as error:
            print(f"unisono kernel: {error}", file=sys.stderr)
            return 1
        folders.append(f"-I{path.resolve().parent}")
    text += "UNISONO_DIALECT_TABLE\n"
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "kernels.cpp"
        unit.write_text(text, encoding="utf-8", errors="surrogateescape")
        words = [*_compiler(), *_FLAGS, *_headers(), *folders, *(f"-I{one}" for one in arguments.folders),
                 *(f"-D{one}" for one in arguments.macros), str(unit), "-o", arguments.output]  # fmt: skip
        return _run(words, arguments.show)


def execute_host(arguments: argparse.Namespace) -> int:
    """Compiles a host with the headers that stand in for hlslib, OpenCL and MPI."""
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder) / "smi_generated_host.c"
        inits = "\n".join(f"UNISONO_SMI_INIT({name})" for name in arguments.programs)
        generated.write_text(
            f"#include <hlslib/intel/OpenCL.h>\n#include <utils/smi_utils.hpp>\n#include <vector>\n{inits}\n"
        )
        # What `unisono kernel generate` has made goes first, unless programs are named here.
        named = [*arguments.folders, folder] if not arguments.programs else [folder, *arguments.folders]
        words = [*_compiler(), "-std=gnu++20", "-O2", "-pthread", "-x", "c++", *_headers(),
                 f"-I{Path(arguments.source).resolve().parent}", *(f"-I{one}" for one in named),
                 *(f"-D{one}" for one in arguments.macros), arguments.source, "-x", "none", "-o", arguments.output,
                 *config.libs(), *(f"-l{one}" for one in arguments.libraries)]  # fmt: skip
        return _run(words, arguments.show)
