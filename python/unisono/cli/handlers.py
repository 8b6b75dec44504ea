"""`unisono switch compile` and `try`: handlers from C to binaries, and on packets of one's own (docs/handlers.md)."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .aggregation import AggregationError, address
from .switch_options import add_deadline, add_secret, refuse, secret_of

if TYPE_CHECKING:  # most commands need no compiler
    from ..handler import Result

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
        help="run a handler on packets of a file, here or in a switch",
        description="Runs a handler here, by the interpreter, or with --at in a switch. Each file is the bytes of one "
        "message, which is cut into packets; the handler's memory stays from message to message. A switch takes a "
        "file's handler for these messages only; that of a NAME, which it has, keeps its memory.",
    )
    attempt.add_argument("handler", metavar="FILE", help="its binary (.uh) or source (.c); with --at also a NAME")
    attempt.add_argument("messages", nargs="+", metavar="MESSAGE", help="files, a message each")
    attempt.add_argument("-o", dest="output", metavar="FILE", help="what the handler writes, packet behind packet")
    attempt.add_argument("--packet-bytes", type=int, default=PACKET_BYTES, metavar="N", help=f"({PACKET_BYTES})")
    attempt.add_argument("--tag", type=int, default=0, metavar="N", help="of the messages (0)")
    attempt.add_argument(
        "--budget", type=int, default=BUDGET, metavar="N", help=f"instructions of a function ({BUDGET})"
    )
    attempt.add_argument("--at", metavar="HOST:PORT", help="the switch that runs it")
    add_deadline(attempt)
    add_secret(attempt)
    attempt.set_defaults(execute=_try)


def _compile(options: argparse.Namespace) -> int:
    """Runs `unisono switch compile`."""
    from .. import handler

    if not options.output and not options.text:
        return refuse("compile makes no file without -o FILE.uh; --text prints the instructions")
    both = (options.source, options.output or "")
    if all(map(os.path.exists, both)) and os.path.samefile(*both):
        return refuse(f"-o names {options.output}, which is what is to be compiled; the binary needs a name of its own")
    begin = time.perf_counter()
    try:
        made = handler.opened(options.source, options.macros)
        if options.output:
            Path(options.output).write_bytes(made.binary)
    except handler.HandlerError as failure:
        # Each is a line `file:line: reason`, as compilers write them.
        print(failure, file=sys.stderr)
        return 2
    except OSError as failure:
        return refuse(f"{options.output}: {failure.strerror}")
    took = time.perf_counter() - begin
    if options.text:
        print(made.text, end="")
    else:
        functions = ", ".join(f"{name} {made.most_executed(name)}" for name in made.functions)
        print(f"{options.output}: {made.words} instructions, {len(made.memory)} bytes of memory, {took * 1e3:.0f} ms; "
              f"executes at most: {functions}")  # fmt: skip
    return 0


class _Runs(Protocol):
    """Runs the packets of one message."""

    def __call__(self, packets: list[bytes], *, source: int, ranks: int, tag: int, budget: int) -> Result: ...


@contextlib.contextmanager
def _runner(options: argparse.Namespace) -> Iterator[_Runs]:
    """What runs the handler: the interpreter here, or a switch."""
    from .. import handler

    is_file = options.handler.endswith((".c", ".uh")) or "/" in options.handler
    if not options.at:
        yield handler.opened(options.handler).run
        return
    made = handler.opened(options.handler) if is_file else None
    with handler.RemoteHandlers(address(options.at, "--at"), secret_of(options), options.deadline) as there:
        name = options.handler
        if made is not None:
            name = there.load(made, f"try-{os.getpid()}-{secrets.token_hex(4)}", stays=False)
        yield functools.partial(there.run, name)


def _try(options: argparse.Namespace) -> int:
    """Runs `unisono switch try`."""
    from .. import handler

    if not 1 <= options.packet_bytes <= handler.MOST_PAYLOAD_BYTES:
        return refuse(f"--packet-bytes is {options.packet_bytes}; allowed are 1 to {handler.MOST_PAYLOAD_BYTES}")
    if not 1 <= options.budget < 1 << 64 or not 0 <= options.tag < 1 << 32:
        return refuse("--budget is 1 or more, in 64 bits, and --tag a number of 32 bits")
    written: list[bytes] = []
    try:
        with _runner(options) as run:
            for source, path in enumerate(options.messages):
                message = Path(path).read_bytes()
                step = options.packet_bytes
                packets = [message[at : at + step] for at in range(0, len(message), step)]
                begin = time.perf_counter()
                result = run(packets, source=source, ranks=len(options.messages), tag=options.tag,
                             budget=options.budget)  # fmt: skip
                took = max(time.perf_counter() - begin, 1e-9)
                written += result.outputs
                dropped = ", the rest dropped" if result.dropped else ""
                count = "1 packet" if len(packets) == 1 else f"{len(packets)} packets"
                print(f"{path}: {count}{dropped}; {len(result.outputs)} written, "
                      f"{sum(map(len, result.outputs))} bytes; {result.executed} instructions, {took * 1e3:.3g} ms, "
                      f"{len(message) / took / 1e6:.3g} MB/s")  # fmt: skip
        if options.output:
            Path(options.output).write_bytes(b"".join(written))
    except handler.HandlerError as failure:
        print(failure, file=sys.stderr)
        return 2
    except AggregationError as failure:
        return refuse(failure)
    except OSError as failure:
        return refuse(f"{failure.filename}: {failure.strerror}")
    return 0
