"""`unisono switch`: a process that aggregates collectives of jobs on several hosts, and questions to one."""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
from typing import Any

from rich.console import Console

from .. import _core
from ..errors import UnisonoError
from . import handlers, switch_handlers
from .aggregation import AggregationError, address
from .switch_options import PATIENCE, add_deadline, add_secret, bytes_in, communicator, refuse, secret_of
from .switch_tables import print_jobs, print_pools, print_status

SLOTS = 65536
MOST_SLOTS = (1 << 32) - 1
MOST_THREADS = 256
HANDLERS = 64
MOST_HANDLERS = 4096
HANDLERS_MEMORY = 64 << 20
MOST_HANDLERS_MEMORY = 1 << 40
MOST_BUDGET = 1 << 28


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "switch",
        help="aggregate collectives of jobs on several hosts, and look after who does",
        description="A switch is a process beside an ordinary network. It folds what the ranks of jobs send to it, and "
        "sends each of them the result (`unisono run --aggregate`). Who asks it for anything must know its secret: a "
        "file with one line of 16 characters or more that only its owner may read (openssl rand -hex 32). "
        "`compile`, and `try` without --at, need no switch.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    start = actions.add_parser(
        "start",
        help="be a switch until Ctrl-C, SIGTERM or `unisono switch stop`",
        description="Listens, and aggregates for whoever knows the secret. Needs no privilege. Memory is taken as jobs "
        "ask for it, and bounded by --slots.",
    )
    start.add_argument("--listen", required=True, metavar="HOST:PORT", help="of TCP and UDP; port 0: any that is free")
    start.add_argument("--name", metavar="NAME", help="by which trees know it (HOST:PORT)")
    start.add_argument(
        "--slots", type=int, default=SLOTS, metavar="N", help=f"places for a payload of 1344 bytes ({SLOTS})"
    )
    start.add_argument("--threads", type=int, default=1, metavar="N", help="that take and send datagrams (1)")
    start.add_argument("--uplink", metavar="HOST:PORT", help="the switch above this one in the tree; same secret")
    start.add_argument(
        "--multicast",
        metavar="ADDRESS:PORT|off",
        help="a group of IPv4, to which a result for all goes once (one of the loopback, for a switch there)",
    )
    start.add_argument(
        "--up-to", type=bytes_in, default=0, metavar="BYTES",
        help="largest calls that jobs should have aggregated (32K)",
    )  # fmt: skip
    start.add_argument(
        "--handlers", type=int, default=HANDLERS, metavar="N", help=f"that users may load; 0: none ({HANDLERS})"
    )
    start.add_argument(
        "--handlers-memory", type=bytes_in, default=HANDLERS_MEMORY, metavar="BYTES", help="of all of them (64M)"
    )
    start.add_argument(
        "--handler-budget", type=int, default=handlers.BUDGET, metavar="N",
        help=f"instructions of a handler's function, each time it runs ({handlers.BUDGET})",
    )  # fmt: skip
    add_secret(start)
    start.set_defaults(execute=_start)
    handlers.add_parsers(actions)
    switch_handlers.add_parsers(actions)
    for name, text in (
        ("status", "say how a switch is"),
        ("jobs", "list the jobs that a switch aggregates for"),
        ("show", "show a communicator: its slots, its members, and who is waited for"),
        ("drain", "make no more pools; those that are there go on"),
        ("stop", "end a switch; jobs go on by their endpoints"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == "show":
            action.add_argument("communicator", type=communicator, metavar="COMM", help="its number, of any job")
        action.add_argument("address", metavar="HOST:PORT", help="of the switch")
        if name == "drain":
            action.add_argument("--undo", action="store_true", help="make pools again")
        action.add_argument("--json", action="store_true", help="write JSON")
        add_deadline(action)
        add_secret(action)
        action.set_defaults(execute=_ask, action=name)


def count(number: int, what: str) -> str:
    """2 threads; 1 thread."""
    return f"{number} {what}{'s' * (number != 1)}"


def _start(options: argparse.Namespace) -> int:
    """Runs `unisono switch start`."""
    try:
        if not options.listen.endswith(":0"):
            address(options.listen, "--listen")
        if options.uplink is not None:
            address(options.uplink, "--uplink")
            if options.uplink == options.listen:
                raise AggregationError(f"--uplink names {options.listen}, where this switch listens; name the switch "
                                       f"above it, or leave --uplink out")  # fmt: skip
        for name, value, least, most in (
            ("--slots", options.slots, 8, MOST_SLOTS),
            ("--threads", options.threads, 1, MOST_THREADS),
            ("--handlers", options.handlers, 0, MOST_HANDLERS),
            ("--handlers-memory", options.handlers_memory, 0, MOST_HANDLERS_MEMORY),
            ("--handler-budget", options.handler_budget, 1, MOST_BUDGET),
        ):
            if not least <= value <= most:
                raise AggregationError(f"{name} is {value}; allowed are {least} to {most}")
        secret = secret_of(options)
        _core.switch_serve(
            options.listen, secret, options.name or "", options.slots, options.threads, options.uplink or "",
            options.multicast or "", options.up_to, options.handlers, options.handlers_memory, options.handler_budget,
            lambda where: _tell(options, where, secret),
        )  # fmt: skip
    except (AggregationError, UnisonoError) as failure:
        return refuse(failure)
    return 0


def _tell(options: argparse.Namespace, where: str, secret: str) -> None:
    """Says that the switch listens, once it does."""
    name = f" ({options.name})" if options.name else ""
    about = f"switch {where}{name} listens; {count(options.slots, 'slot')}, {count(options.threads, 'thread')}"
    if not options.uplink:
        print(about, flush=True)
        return

    def ask() -> None:
        # It answers as soon as it serves, which this call holds up.
        state = "not reached"
        with contextlib.suppress(UnisonoError, ValueError):
            uplink = _asked(where, secret, "status", b"", PATIENCE)["uplink"]
            state = "connected" if uplink["connected"] else "not reached"
        print(f"{about}; uplink {options.uplink} {state}", flush=True)

    threading.Thread(target=ask, daemon=True).start()


def _asked(where: str, secret: str, kind: str, body: bytes, seconds: float) -> dict[str, Any]:
    answer = _core.switch_ask(where, secret, kind, body, seconds)
    found = json.loads(answer) if answer else {}
    if not isinstance(found, dict):
        raise ValueError("it answers no object")
    return found


def _ask(options: argparse.Namespace) -> int:
    """Runs the other actions."""
    kind = "undrain" if options.action == "drain" and options.undo else options.action
    body = str(options.communicator).encode() if kind == "show" else b""
    try:
        address(options.address, options.action)
        answer = _asked(options.address, secret_of(options), kind, body, options.deadline)
    except (AggregationError, UnisonoError) as failure:
        return refuse(failure)
    except ValueError as failure:
        return refuse(f"the switch at {options.address} says what cannot be understood: {failure}")
    if "error" in answer:
        return refuse(f"the switch at {options.address}: {answer['error']}")
    if options.json:
        print(json.dumps(answer or {"done": kind}, indent=2))
        return 0
    console = Console(highlight=False, soft_wrap=True)
    if kind == "status":
        print_status(console, answer)
    elif kind == "jobs":
        print_jobs(console, answer)
    elif kind == "show":
        if not answer["pools"]:
            return refuse(
                f"the switch at {options.address} has no communicator {options.communicator}; `unisono switch jobs "
                f"{options.address}` lists those that it has"
            )
        print_pools(console, answer)
    else:
        done = {
            "drain": "makes no more pools; those that are there go on",
            "undrain": "makes pools again",
            "stop": "ends; jobs go on by their endpoints",
        }
        print(f"the switch at {options.address} {done[kind]}")
    return 0
