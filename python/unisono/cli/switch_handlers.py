"""`unisono switch load`, `unload` and `stat`: handlers in a switch that serves (docs/handlers.md)."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import _core
from ..errors import UnisonoError
from .aggregation import AggregationError, address
from .switch_options import add_deadline, add_secret, refuse, secret_of
from .switch_tables import print_handlers


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the actions to `unisono switch`."""
    load = actions.add_parser(
        "load",
        help="load a handler into a switch",
        description="Loads a handler into a switch, where it stays until it is unloaded or the switch ends. "
        "It checks every instruction, and refuses what it has no room for.",
    )
    load.add_argument("address", metavar="HOST:PORT", help="of the switch")
    load.add_argument("handler", metavar="FILE", help="its binary (.uh) or source (.c)")
    load.add_argument("--name", metavar="NAME", help="by which it is run (the file's name without its ending)")
    load.add_argument(
        "--operator", action="store_true",
        help="it is an operator for reductions: jobs that load the same one need not send it",
    )  # fmt: skip
    load.add_argument(
        "--anew", action="store_true", help="in place of what has that name, with memory as at the beginning"
    )
    unload = actions.add_parser("unload", help="take a handler out of a switch", description="Its memory goes, too.")
    unload.add_argument("address", metavar="HOST:PORT", help="of the switch")
    unload.add_argument("handler", metavar="NAME", help="of the handler")
    stat = actions.add_parser(
        "stat",
        help="show the handlers and operators of a switch",
        description="Shows handlers: their hashes (as sha256sum gives them), what they have run, and why they were "
        "stopped; and the operators by which it folds for communicators.",
    )
    stat.add_argument("address", metavar="HOST:PORT", help="of the switch")
    stat.add_argument("handler", nargs="?", default="", metavar="NAME", help="of one handler")
    stat.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write JSON, to a file or here")
    for parser, execute in ((load, _load), (unload, _unload), (stat, _stat)):
        add_deadline(parser)
        add_secret(parser)
        parser.set_defaults(execute=execute)


def _load(options: argparse.Namespace) -> int:
    """Runs `unisono switch load`."""
    from .. import handler

    try:
        where = address(options.address, "load")
        made = handler.opened(options.handler)
        if options.operator:
            _core.OperatorInC(made.binary)  # which says why it is none
        begin = time.perf_counter()
        with handler.RemoteHandlers(where, secret_of(options), options.deadline) as there:
            name = there.load(made, options.name, anew=options.anew)
        took = time.perf_counter() - begin
    except (AggregationError, UnisonoError) as failure:
        return refuse(failure)
    kind = "operator" if options.operator else "handler"
    print(f"the switch at {where} has the {kind} {name}, {made.hash}; {took * 1e3:.1f} ms")
    return 0


def _unload(options: argparse.Namespace) -> int:
    """Runs `unisono switch unload`."""
    from .. import handler

    try:
        where = address(options.address, "unload")
        with handler.RemoteHandlers(where, secret_of(options), options.deadline) as there:
            there.unload(options.handler)
    except (AggregationError, handler.HandlerError) as failure:
        return refuse(failure)
    print(f"the switch at {where} has the handler {options.handler} no longer")
    return 0


def _stat(options: argparse.Namespace) -> int:
    """Runs `unisono switch stat`."""
    from .. import handler

    try:
        where = address(options.address, "stat")
        with handler.RemoteHandlers(where, secret_of(options), options.deadline) as there:
            answer: dict[str, Any] = there.stat(options.handler)
        if options.handler and not answer["handlers"]:
            return refuse(f"the switch at {where} has no handler {options.handler}; `unisono switch stat {where}` "
                          f"lists those that it has")  # fmt: skip
        if options.json not in (None, "-"):
            Path(options.json).write_text(json.dumps(answer, indent=2) + "\n")
    except (AggregationError, handler.HandlerError) as failure:
        return refuse(failure)
    except OSError as failure:
        return refuse(f"{options.json}: {failure.strerror}")
    except (ValueError, KeyError) as failure:
        return refuse(f"the switch at {where} says what cannot be understood: {failure}")
    if options.json == "-":
        print(json.dumps(answer, indent=2))
    elif options.json is None:
        print_handlers(Console(highlight=False, soft_wrap=True), answer)
    return 0
