"""`unisono switch compile` and `try`: handlers from C to binaries, and on packets of one's own (docs/handlers.md)."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # most commands need no compiler
    from ..handler import Handler

BUDGET = 1 << 20  #: instructions of a function, each time it runs
PACKET_BYTES = 1344  #: of a payload, as a switch's frames have it


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the actions to `unisono switch`."""
    make = actions.add_parser(
        "compile",
        help="make the binary of a handler in C",
        description="Compiles a handler, a program in C that works on packets in a switch (docs/handlers.md). What "
        "handlers cannot have is refused, `file:line: reason`.",
    )
    make.add_argument("source", metavar="FILE.c", help="its source")
    make.add_argument("-o", dest="output", metavar="FILE.uh", help="the binary")
    make.add_argument("-D", dest="macros", action="append", default=[], help="a macro, as NAME or NAME=VALUE")
    make.add_argument("--text", action="store_true", help="print its instructions; FILE may be a binary, too")
    make.set_defaults(execute=_compile)
    attempt = actions.add_parser(
        "try",
        help="run a handler on packets of a file, without a switch",
        description="Runs a handler here, by the interpreter. Each file is the bytes of one message, which is cut into "
        "packets; the handler's memory stays from message to message.",
    )
    attempt.add_argument("handler", metavar="FILE", help="its binary (.uh) or source (.c)")
    attempt.add_argument("messages", nargs="*", metavar="MESSAGE", help="files, a message each")
    attempt.add_argument("-o", dest="output", metavar="FILE", help="what the handler writes, packet behind packet")
    attempt.add_argument("--packet-bytes", type=int, default=PACKET_BYTES, metavar="N", help=f"({PACKET_BYTES})")
    attempt.add_argument("--tag", type=int, default=0, metavar="N", help="of the messages (0)")
    attempt.add_argument(
        "--budget", type=int, default=BUDGET, metavar="N", help=f"instructions of a function ({BUDGET})"
    )
    attempt.set_defaults(execute=_try)


def _refuse(failure: object) -> int:
    print(f"unisono switch: {failure}", file=sys.stderr)
    return 2


def _opened(path: str, macros: list[str]) -> Handler:
    from .. import handler

    return handler.compile(path, macros) if path.endswith(".c") else handler.load(path)


def _compile(options: argparse.Namespace) -> int:
    """Runs `unisono switch compile`."""
    from .. import handler

    if not options.output and not options.text:
        return _refuse("compile makes no file without -o FILE.uh; --text prints the instructions")
    begin = time.perf_counter()
    try:
        made = _opened(options.source, options.macros)
        if options.output:
            Path(options.output).write_bytes(made.binary)
    except handler.HandlerError as failure:
        # Each is a line `file:line: reason`, as compilers write them.
        print(failure, file=sys.stderr)
        return 2
    except OSError as failure:
        return _refuse(f"{options.output}: {failure.strerror}")
    took = time.perf_counter() - begin
    if options.text:
        print(made.text, end="")
    else:
        functions = ", ".join(f"{name} {made.most_executed(name)}" for name in made.functions)
        print(f"{options.output}: {made.words} instructions, {len(made.memory)} bytes of memory, {took * 1e3:.0f} ms; "
              f"executes at most: {functions}")  # fmt: skip
    return 0


def _try(options: argparse.Namespace) -> int:
    """Runs `unisono switch try`."""
    from .. import handler

    if not 1 <= options.packet_bytes <= handler.MOST_PAYLOAD_BYTES:
        return _refuse(f"--packet-bytes is {options.packet_bytes}; allowed are 1 to {handler.MOST_PAYLOAD_BYTES}")
    if options.budget < 1 or not 0 <= options.tag < 1 << 32:
        return _refuse("--budget is 1 or more, and --tag a number of 32 bits")
    written: list[bytes] = []
    try:
        made = _opened(options.handler, [])
        for source, path in enumerate(options.messages):
            message = Path(path).read_bytes()
            step = options.packet_bytes
            packets = [message[at : at + step] for at in range(0, len(message), step)]
            result = made.run(packets, source=source, ranks=len(options.messages), tag=options.tag,
                              budget=options.budget)  # fmt: skip
            written += result.outputs
            dropped = ", the rest dropped" if result.dropped else ""
            print(f"{path}: {len(packets)} packets{dropped}; {len(result.outputs)} written, "
                  f"{sum(map(len, result.outputs))} bytes; {result.executed} instructions")  # fmt: skip
        if options.output:
            Path(options.output).write_bytes(b"".join(written))
    except handler.HandlerError as failure:
        print(failure, file=sys.stderr)
        return 2
    except OSError as failure:
        return _refuse(f"{failure.filename}: {failure.strerror}")
    return 0
