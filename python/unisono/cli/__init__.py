"""The command `unisono`."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

from rich.console import Console

from ..errors import UnisonoError
from ..version import __version__
from . import (
    algorithms,
    bench,
    calibrate,
    check,
    doctor,
    dump,
    explain,
    housekeeping,
    kernel,
    mpirun,
    ps,
    route,
    run,
    show,
    switch,
)
from .arguments import Parser
from .asking import plain
from .output import fill_standard_streams

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  #: what a write to a full disk, or a lost one, fails with
COMMANDS = (
    run,
    mpirun,
    switch,
    kernel,
    ps,
    dump,
    housekeeping,
    algorithms,
    show,
    check,
    explain,
    bench,
    calibrate,
    route,
    doctor,
)


def parser() -> Parser:
    """The command line."""
    top = Parser(prog="unisono", description="Collective communication: run, read and check it.")
    top.add_argument("--version", action="version", version=f"unisono {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit status; 2 for what the command line got wrong."""
    fill_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # Tables have signs that an older encoding has not.
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")
    options = parser().parse_args(arguments)
    try:
        status: int = options.execute(options)
        sys.stdout.flush()
    except UnisonoError as error:
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(f"[bold red]{error.code.name.lower()}[/]: ", end="")
        console.print(plain(str(error)), markup=False)
        if error.code.advice:
            console.print(f"[dim]{error.code.advice}[/]")
        return 2
    except BrokenPipeError:
        # The reader has what it wanted. Nothing may be written on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        print(f"unisono: standard output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return status
