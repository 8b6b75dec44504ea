"""`unisono kernel check`: what is wrong in sources of kernels, by line, before they are compiled."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..kernels import checks, parsing, text_check
from ..kernels.dialect import KernelError
from ..kernels.hardware import NO_PLACE


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the actions to `unisono kernel`."""
    check = actions.add_parser(
        "check", help="say by line what is wrong with channels, and what hardware has no place for"
    )
    add_sources(check)
    check.add_argument(
        "--one-program", action="store_true", help="the sources are one program, whose kernels all run at once"
    )
    check.set_defaults(execute=execute_check)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The sources, and what a compiler is told beside them."""
    parser.add_argument("sources", nargs="+", help="sources in the dialect (.cl), in C or in C++")
    parser.add_argument("-I", dest="folders", action="append", default=[], help="a folder of headers")
    parser.add_argument("-D", dest="macros", action="append", default=[], help="a macro, as NAME or NAME=VALUE")


def options_of(arguments: argparse.Namespace) -> parsing.Options:
    """What sources are read with."""
    return parsing.Options(tuple(arguments.folders), tuple(arguments.macros))


def execute_check(arguments: argparse.Namespace) -> int:
    """Prints what is found, a line each; the exit status is 1 if anything is."""
    if not parsing.available():
        return _by_text(arguments)
    options, status = options_of(arguments), 0
    sources = []
    for path in arguments.sources:
        try:
            sources.append(parsing.parse(path, options))
        except OSError as error:
            print(f"unisono kernel: {path}: {error.strerror}", file=sys.stderr)
            return 1
        except KernelError as error:
            print(error)
            status = 1
    programs = [sources] if arguments.one_program else [[source] for source in sources]
    for program in programs:
        for finding in checks.check(program):
            print(checks.as_line(finding))
            status = 1
    return status


def _by_text(arguments: argparse.Namespace) -> int:
    print("unisono kernel: libclang is not installed (pip install libclang, or unisono[kernels]): the sources are read "
          "as text, without macros and headers; types and ports of channels are not looked at",
          file=sys.stderr)  # fmt: skip
    status = 0
    for path in arguments.sources:
        try:
            lines = text_check.refused(Path(path).read_text())
        except OSError as error:
            print(f"unisono kernel: {path}: {error.strerror}", file=sys.stderr)
            return 1
        for line, what in lines:
            print(f"{path}:{line}: {what}{NO_PLACE}")
            status = 1
    return status
