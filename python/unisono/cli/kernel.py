"""`unisono kernel`: compiles kernels that were written for SMI (docs/smi.md)."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import config
from ..kernels.building import add_build_options, build_named, is_named

#: Words that may stand before the return type of a kernel.
_KERNEL = re.compile(r"\b(?:__kernel|kernel)\b")
_CHANNEL = re.compile(r"\bchannel\b")
_FLAGS = ["-std=gnu++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing", "-pthread",
          "-Wno-attributes", "-Wno-unknown-pragmas", "-Wno-narrowing", "-ffp-contract=off"]  # fmt: skip


class KernelError(Exception):
    """A source that is not understood, and where."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "kernel",
        help="compile kernels that were written for SMI",
        description="Compiles single-work-item kernels in the dialect of OpenCL C that SMI's programs are written in, "
        "for this machine's processors. docs/smi.md says what is understood.",
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
    check = actions.add_parser("check", help="say by line what hardware has no place for: heap, exceptions, recursion")
    check.add_argument("sources", nargs="+", help="sources in the dialect (.cl), or in C++ (.cpp)")
    check.set_defaults(execute=execute_check)
    parser.set_defaults(help=parser.print_help)


def blank(text: str) -> str:
    """The source with comments and strings as blanks of the same length, so that places stay."""
    pattern = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _balanced(text: str, at: int) -> int:
    """Behind the bracket that closes the one at this place."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise KernelError("a bracket is not closed")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def channels(text: str) -> str:
    """The source with declarations of channels as what the header knows; lines stay where they are."""
    bare = blank(text)
    result, last = "", 0
    for found in _CHANNEL.finditer(bare):
        line_start = bare.rfind("\n", 0, found.start()) + 1
        if bare[line_start : found.start()].strip():
            continue  # another use of the word
        end = bare.find(";", found.end())
        words = bare[found.end() : end]
        declared = re.match(r"\s*((?:unsigned\s+|signed\s+|struct\s+)?\w+)\s+(\w+)\s*", words)
        if end < 0 or declared is None:
            raise KernelError(f"line {_line(text, found.start())}: this declaration of a channel is not understood")
        place, extent, depth = declared.end(), "", "0"
        while place < len(words):
            if words[place] == "[":
                after = _balanced(words, place)
                extent += words[place:after]
                place = after
            elif attribute := re.compile(r"__attribute__\s*\(").match(words, place):
                after = _balanced(words, attribute.end() - 1)
                if depth_at := re.compile(r"\bdepth\s*\(").search(words, attribute.end(), after):
                    depth = words[depth_at.end() : _balanced(words, depth_at.end() - 1) - 1]
                place = after
            elif words[place].isspace():
                place += 1
            else:
                raise KernelError(f"line {_line(text, found.start())}: in this declaration of a channel, "
                                  f"`{words[place:].strip()}` is not understood")  # fmt: skip
        lines = "\n" * text.count("\n", found.start(), end + 1)
        result += text[last : found.start()]
        result += f"UNISONO_DIALECT_CHANNEL({declared[1]}, {declared[2]}, {extent}, {depth.strip() or '0'}){lines}"
        last = end + 1
    return result + text[last:]


def kernels(text: str) -> list[str]:
    """The names of the kernels, in order; they may be macros."""
    bare, names = blank(text), []
    for found in _KERNEL.finditer(bare):
        place = found.end()
        while True:
            attribute = re.compile(r"\s*__attribute__\s*\(").match(bare, place)
            if attribute is None:
                break
            place = _balanced(bare, attribute.end() - 1)
        declared = re.compile(r"\s*void\s+(\w+)\s*\(").match(bare, place)
        if declared is None:
            continue
        body = re.compile(r"\s*[{;]").match(bare, _balanced(bare, declared.end() - 1))
        if body is not None and body[0].endswith("{"):
            names.append(declared[1])
    return names


#: What a kernel that is to become hardware cannot have, and what that is.
_REFUSED = (
    (re.compile(r"\b(?:malloc|calloc|realloc|free|alloca|aligned_alloc|posix_memalign)\s*\("), "memory of the heap"),
    (re.compile(r"\b(?:new|delete)\b"), "memory of the heap"),
    (re.compile(r"\bstd\s*::\s*(?:vector|string|map|set|list|deque|unordered_\w+|function|make_\w+)\b"),
     "a class that uses the heap"),
    (re.compile(r"\b(?:try|catch|throw)\b"), "an exception"),
    (re.compile(r"\b(?:virtual|dynamic_cast|typeid)\b"), "a choice of functions at run time"),
)  # fmt: skip
_DEFINITION = re.compile(r"\b(\w+)\s*\(")
_NO_FUNCTIONS = {
    "if",
    "for",
    "while",
    "switch",
    "return",
    "sizeof",
    "do",
    "else",
    "__attribute__",
    "alignof",
    "decltype",
}


def _functions(bare: str) -> dict[str, tuple[int, str]]:
    """The functions that are defined at the outermost level, by name: where, and their bodies."""
    found: dict[str, tuple[int, str]] = {}
    place = 0
    while (start := _DEFINITION.search(bare, place)) is not None:
        behind = _balanced(bare, start.end() - 1)
        body = re.compile(r"(?:\s|\bconst\b|\bnoexcept\b|__attribute__\s*\(\([^{;]*\)\))*\{").match(bare, behind)
        if start[1] in _NO_FUNCTIONS or body is None:
            place = start.end()
            continue
        depth, end = 1, body.end()
        while depth and end < len(bare):
            depth += {"{": 1, "}": -1}.get(bare[end], 0)
            end += 1
        found.setdefault(start[1], (start.start(), bare[body.end() : end]))
        place = end
    return found


def refused(text: str) -> list[tuple[int, str]]:
    """What hardware has no place for: lines, and why. Read as text: what macros and headers bring is not seen."""
    bare = blank(text)
    bare = re.sub(
        r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda line: re.sub(r"[^\n]", " ", line[0]), bare, flags=re.MULTILINE
    )
    found = [(_line(bare, at.start()), what) for pattern, what in _REFUSED for at in pattern.finditer(bare)]
    functions = _functions(bare)
    calls = {
        name: [called for called in functions if re.search(rf"\b{called}\s*\(", body)]
        for name, (_, body) in functions.items()
    }
    for name, (place, _) in functions.items():
        way, seen = [*calls[name]], set[str]()
        while way:
            at = way.pop()
            if at == name:
                found.append((_line(bare, place), f"recursion: {name} calls itself" + ("" if name in calls[name] else
                              ", by way of others")))  # fmt: skip
                break
            if at not in seen:
                seen.add(at)
                way += calls[at]
    return sorted(found)


def execute_check(arguments: argparse.Namespace) -> int:
    """Prints what is refused, a line each; the exit status is 1 if anything is."""
    status = 0
    for source in arguments.sources:
        try:
            lines = refused(Path(source).read_text())
        except OSError as error:
            print(f"unisono kernel: {source}: {error.strerror}", file=sys.stderr)
            return 1
        for line, what in lines:
            print(f"{source}:{line}: {what}; hardware has no place for it")
            status = 1
    return status


def translate(text: str, name: str) -> str:
    """What the compiler gets for a source."""
    try:
        translated = channels(text)
        names = kernels(text)
    except KernelError as error:
        raise KernelError(f"{name}: {error}") from None
    table = "\n".join(f"UNISONO_DIALECT_KERNEL({kernel})" for kernel in names)
    return f'#line 1 "{name}"\n{translated}\n{table}\n'


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
            text += translate(path.read_text(), str(path.resolve()))
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
        unit.write_text(text)
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
        words = [*_compiler(), "-std=gnu++20", "-O2", "-pthread", "-x", "c++", f"-I{folder}", *_headers(),
                 f"-I{Path(arguments.source).resolve().parent}", *(f"-I{one}" for one in arguments.folders),
                 *(f"-D{one}" for one in arguments.macros), arguments.source, "-x", "none", "-o", arguments.output,
                 *config.libs(), *(f"-l{one}" for one in arguments.libraries)]  # fmt: skip
        return _run(words, arguments.show)
