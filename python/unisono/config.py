"""What compilers need to know of this package: `python -m unisono.config --cflags --libs`.

A wheel holds the headers and the library of the C and C++ interface; in a checkout they are in driver/include
and build/release.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .version import __version__

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = (_PACKAGE / "include").is_dir()


def include_dir() -> Path:
    """The folder of `unisono/unisono.h` and `unisono/unisono.hpp`, for -I."""
    return _PACKAGE / "include" if _INSTALLED else _PACKAGE.parents[1] / "driver" / "include"


def library_dir() -> Path:
    """The folder of libunisono, for -L and for the loader."""
    return _PACKAGE / "lib" if _INSTALLED else _PACKAGE.parents[1] / "build" / "release"


def cmake_dir() -> Path:
    """The folder for `find_package(unisono)`: CMake takes it as `unisono_DIR`. Only installed packages have one."""
    return library_dir() / "cmake" / "unisono"


def pkgconfig_dir() -> Path:
    """The folder for PKG_CONFIG_PATH. Only installed packages have one."""
    return library_dir() / "pkgconfig"


def cflags() -> list[str]:
    """Options of a compiler."""
    return [f"-I{include_dir()}"]


def libs() -> list[str]:
    """Options of a linker; the program finds the library where it lies now."""
    return [f"-L{library_dir()}", f"-Wl,-rpath,{library_dir()}", "-lunisono"]


def shmem_include_dir() -> Path:
    """The folder of `shmem.h`, for -I."""
    return include_dir() / "unisono-shmem" if _INSTALLED else _PACKAGE.parents[1] / "doors" / "shmem" / "include"


def shmem_cflags() -> list[str]:
    """Options of a compiler for programs of OpenSHMEM."""
    return [f"-I{shmem_include_dir()}"]


def shmem_libs() -> list[str]:
    """Options of a linker for programs of OpenSHMEM."""
    return [f"-L{library_dir()}", f"-Wl,-rpath,{library_dir()}", "-lunisono_shmem"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what was asked for, in one line that a shell can take apart; a single folder as it is."""
    parser = argparse.ArgumentParser(prog="python -m unisono.config", description="Options for compilers.")
    answers = {
        "--cflags": ("options for the compiler", cflags),
        "--libs": ("options for the linker", libs),
        "--includedir": ("folder of the headers", lambda: [str(include_dir())]),
        "--libdir": ("folder of the library", lambda: [str(library_dir())]),
        "--cmakedir": ("folder for find_package: cmake -Dunisono_DIR=...", lambda: [str(cmake_dir())]),
        "--pkgconfigdir": ("folder for PKG_CONFIG_PATH", lambda: [str(pkgconfig_dir())]),
        "--shmem-cflags": ("options for the compiler, of OpenSHMEM", shmem_cflags),
        "--shmem-libs": ("options for the linker, of OpenSHMEM", shmem_libs),
        "--version": ("version of the package", lambda: [__version__]),
    }
    for option, (text, answer) in answers.items():
        parser.add_argument(option, dest="asked", action="append_const", const=answer, help=text)
    asked = parser.parse_args(arguments).asked
    if not asked:
        parser.error("say what is wanted, for instance --cflags --libs")
    words = [word for answer in asked for word in answer()]
    print(words[0] if len(words) == 1 and not words[0].startswith("-") else shlex.join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
