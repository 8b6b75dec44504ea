"""Sources of kernels as libclang understands them: C, C++ with <unisono/smi.hpp>, and SMI's dialect of OpenCL C.

libclang is found in the Python package of this name (`pip install libclang`, or `unisono[kernels]`). It is needed for
nothing else, so that everything here says if it is missing.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import config
from .dialect import KernelError, blank, translated
from .libclang import cindex

#: What a function of the dialect is marked with, so that it is known as a kernel.
KERNEL_MARK = "unisono kernel"
_MARKS = f"""
#include "unisono/dialect/kernel.hpp"
#undef __kernel
#undef kernel
#define __kernel __attribute__((annotate("{KERNEL_MARK}"))) static
#define kernel __kernel
"""
_OF_THE_DIALECT = re.compile(r"\b__kernel\b|^\s*kernel\s+(?:__attribute__|void\b)|^\s*channel\s+\w", re.MULTILINE)
_WITHOUT_WARNINGS = ["-w", "-Wno-c++11-narrowing"]


@dataclass(frozen=True)
class Options:
    """What a compiler would be given: folders of headers, and macros as NAME or NAME=VALUE."""

    folders: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A source that was read without an error."""

    path: str  #: as it was named
    cursor: Any  #: its translation unit
    unit: Any  #: keeps the cursors alive
    dialect: bool  #: whether it is in SMI's dialect

    def functions(self) -> Iterator[Any]:
        """The functions that are defined in it, in order; not those of headers."""
        waiting = list(self.cursor.get_children())[::-1]
        while waiting:
            at = waiting.pop()
            if at.location.file is None or at.location.file.name != self.path:
                continue
            if at.kind in (
                cindex.CursorKind.NAMESPACE,
                cindex.CursorKind.LINKAGE_SPEC,
                cindex.CursorKind.UNEXPOSED_DECL,
            ):
                waiting += list(at.get_children())[::-1]
            elif at.kind == cindex.CursorKind.FUNCTION_DECL and at.is_definition():
                yield at


def available() -> bool:
    """Whether libclang is installed, and loads."""
    if cindex is None:
        return False
    try:
        cindex.conf.lib  # noqa: B018 - loads the library
    except cindex.LibclangError:
        return False
    return True


@functools.cache
def _system_folders() -> list[str]:
    """The folders of the C++ compiler's own headers, which the libclang of PyPI comes without."""
    compiler = shlex.split(os.environ.get("UNISONO_CXX", "g++"))
    try:
        said = subprocess.run(
            [*compiler, "-E", "-v", "-x", "c++", os.devnull], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except OSError:
        raise KernelError(
            f"there is no compiler {compiler[0]}, whose headers are needed; install one, or name it by UNISONO_CXX"
        ) from None
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search list.")[0]
    return [f"-isystem{folder.strip()}" for folder in listed.splitlines() if folder.strip()]


def is_dialect(path: str, text: str) -> bool:
    """Whether a source is in SMI's dialect: it ends with .cl, or has kernels or channels of OpenCL."""
    return path.endswith(".cl") or _OF_THE_DIALECT.search(blank(text)) is not None


def parse(path: str, options: Options | None = None) -> Source:
    """Reads a source.

    Raises KernelError, a line for each error that the compiler finds, and OSError.
    """
    options = options or Options()
    text = Path(path).read_text(encoding="utf-8", errors="replace")  # comments may be in any encoding
    dialect = is_dialect(path, text)
    headers = config.include_dir()
    words = [f"-I{Path(path).resolve().parent}", *(f"-I{folder}" for folder in options.folders),
             *(f"-D{macro}" for macro in options.macros), f"-isystem{headers}", f"-isystem{headers}/unisono/dialect",
             *_system_folders(), *_WITHOUT_WARNINGS]  # fmt: skip
    unsaved = []
    if dialect:
        marks = str(Path(path).resolve().parent / "unisono-kernel-marks.h")
        try:
            unsaved = [(path, translated(text)), (marks, _MARKS)]
        except KernelError as error:
            raise KernelError(f"{path}: {error}") from None
        words = ["-xc++", "-std=gnu++20", "-include", marks, *words]
    elif path.endswith(".c"):
        words = ["-xc", "-std=gnu17", *words]
    else:
        words = ["-xc++", "-std=gnu++20", *words]
    try:
        unit = cindex.Index.create().parse(path, args=words, unsaved_files=unsaved)
    except cindex.TranslationUnitLoadError as error:
        raise KernelError(f"{path}: libclang cannot read it: {error}") from None
    faults = [found for found in unit.diagnostics if found.severity >= cindex.Diagnostic.Error]
    if faults:
        raise KernelError("\n".join(_fault(path, found) for found in faults))
    return Source(path, unit.cursor, unit, dialect)


def _fault(path: str, found: Any) -> str:
    place = found.location
    return f"{place.file.name if place.file else path}:{place.line}: {found.spelling}"


def is_own(cursor: Any) -> bool:
    """Whether something stands in the user's files, and not in headers of the system or of Unisono."""
    return cursor.location.file is not None and not cursor.location.is_in_system_header


def is_marked(function: Any) -> bool:
    """Whether a function of the dialect is a kernel."""
    return any(
        child.kind == cindex.CursorKind.ANNOTATE_ATTR and child.spelling == KERNEL_MARK
        for child in function.get_children()
    )


def kinds(names: Sequence[str]) -> frozenset[Any]:
    """Kinds of cursors by their names; none where libclang is not installed."""
    return frozenset(getattr(cindex.CursorKind, name) for name in names) if cindex is not None else frozenset()
