"""`unisono calibrate`: measures the machine, or the network between hosts, and writes the rules that follow."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .. import _core
from ..communicator import Communicator
from ..context import init
from ..errors import InvalidArgumentError
from . import connections, network_prices, register_from, simulated_prices
from . import table as tables

LEVELS = ("near", "shared", "memory")
TIMES = {
    "line": "a line from core to core",
    "issue": "issue of a move",
    "segment": "cells of a segment",
    "sync": "entry into a direct call, per peer",
    "yield": "giving a core to another rank",
}
NETWORK = {
    "latency": "way of a message",
    "message": "a message, at each end",
    "near_latency": "way of a message within a host",
    "near_message": "a message within a host, at each end",
}
SECONDS = 120  #: for the other ranks, while one measures its machine
START_OPTIONS = {
    "hosts": "hosts and how many ranks each has, best two",
    "hostfile": "the same in a file",
    "agent": "what starts a program on a host",
    "python": "the interpreter there",
    "transport": "what carries data",
    "interfaces": "which interfaces carry it",
}
BYTES = {
    "reduce": "combining (fp32)",
    "reduce_half": "combining (fp16, bf16)",
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "calibrate",
        help="measure this machine, and choose algorithms accordingly",
        description="Measures for a few seconds, on the cores that this process may use, and writes a tuning file that "
        "every job started afterwards follows. All ranks of a job must find the same file. With --network the ranks of "
        "a job of several hosts measure what lies between these, and each host gets the file.",
    )
    parser.add_argument("--ranks", type=int, metavar="P", help="most ranks of a job to make rules for (by cores)")
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="where to write ($UNISONO_TUNING, or ~/.config/unisono/tuning.json)"
    )
    parser.add_argument("--json", action="store_true", help="print the file instead of a table")
    parser.add_argument(
        "--network",
        action="store_true",
        help="measure between hosts: those of --hosts, or those of the job that this command is a rank of",
    )
    parser.add_argument(
        "--switch",
        nargs="?",
        const="native",
        choices=("native", "rtl"),
        help="measure the parameters of `unisono explain --network` in the simulated network, with switches that take "
        "no time (native) or as in hardware (rtl), and print them; with --file also write them, for its --parameters",
    )
    for name, text in START_OPTIONS.items():
        parser.add_argument(f"--{name}", metavar="TEXT", help=f"with --network: {text} (see `unisono run --help`)")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.network and options.switch:
        raise InvalidArgumentError("--network measures between hosts, --switch in simulation; name one of them")
    if options.network:
        return _network(options)
    for name in START_OPTIONS:
        if getattr(options, name) is not None:
            raise InvalidArgumentError(f"--{name} goes with --network")
    if options.switch:
        if options.ranks is not None:
            raise InvalidArgumentError("--ranks is of rules; --switch measures messages")
        return simulated_prices.calibrate(options, write)
    path = options.file or place()
    ranks = _ranks(options, 2 * _core.cores_for_ranks())
    console = Console(highlight=False)
    with Console(stderr=True).status("measuring"):
        text = _with_known_network(path, _core.calibrate(ranks), ranks)
        _core.measure_copy_class()
    write(path, text)
    if options.json:
        print(json.dumps({"file": str(path)} | json.loads(text), indent=2))
        return 0
    found = _core.check_tuning(text)
    console.print(_table(found["machine"]))
    rules = found["rules"]
    count = f"{len(rules)} rules differ from the built-in choice" if rules else "the built-in choice is best everywhere"
    console.print(
        f"{found['processor']}, {found['machine']['cores']} cores; up to {ranks} ranks: {count}.", markup=False
    )
    console.print(f"Written to {path}", markup=False, soft_wrap=True)
    if options.file is not None and str(path) not in (_core.usual_tuning_path(), os.environ.get("UNISONO_TUNING")):
        console.print(f"Set UNISONO_TUNING={path} to follow it.", markup=False, soft_wrap=True)
    return 0


def _ranks(options: argparse.Namespace, usual: int) -> int:
    ranks: int = options.ranks if options.ranks is not None else max(8, min(64, usual))
    if ranks < 2 or ranks > 64:
        raise InvalidArgumentError(f"{ranks} ranks were given; allowed are 2 to 64")
    return ranks


def _network(options: argparse.Namespace) -> int:
    """Starts ranks on the hosts that were named, or is one of them."""
    if options.hosts is not None or options.hostfile is not None:
        command = [sys.executable, "-m", "unisono.cli", "run"]
        for name in START_OPTIONS:
            if getattr(options, name) is not None:
                command += [f"--{name}", getattr(options, name)]
        command += ["-m", "unisono.cli", "calibrate", "--network", *(["--json"] if options.json else [])]
        command += ["--ranks", str(options.ranks)] if options.ranks is not None else []
        command += ["--file", str(options.file)] if options.file is not None else []
        return subprocess.call(command)
    path = options.file or place()
    os.environ["UNISONO_TUNING"] = "off"  # hosts that have different files by now must not refuse each other
    os.environ[connections.VARIABLE] = "1"  # with which the others are compared
    with init(timeout=SECONDS) as context:
        return _as_a_rank(context.world, options, path)


def _as_a_rank(world: Communicator, options: argparse.Namespace, path: Path) -> int:
    where = network_prices.layout_of(world)
    ranks = _ranks(options, max(2 * _core.cores_for_ranks(), world.size))
    prices = network_prices.measure(world, where)
    transport = network_prices.transport()
    several = connections.measure(world, where.far, transport)
    prices = prices.by(several.time)
    registered = register_from.measure(world, where.far, transport)
    text = ""
    if world.rank == 0:
        text = _core.tune_network(_of_one_host(path, ranks), transport, *prices, several.connections, registered, ranks)
    text = world.bcast_object(text)
    # Every host gets the file, for a job whose ranks find different ones does not start.
    fault = ""
    try:
        if where.leads(world.rank):
            write(path, text)
    except InvalidArgumentError as failure:
        fault = f"on the host of rank {world.rank}: {failure}"
    faults = [told for told in world.allgather_object(fault) if told]
    if faults:
        raise InvalidArgumentError("; ".join(faults))
    if world.rank == 0:
        _say_network(options, path, text, where, ranks)
    return 0


def _with_known_network(path: Path, text: str, ranks: int) -> str:
    """The text with what the file that is there says of a network."""
    try:
        network = _core.check_tuning(path.read_text(encoding="utf-8"))["network"]
    except (OSError, UnicodeDecodeError, InvalidArgumentError):
        return text
    return text if network is None else _core.tune_network(text, **network, most_ranks=ranks)


def _of_one_host(path: Path, ranks: int) -> str:
    """The text of the file that is there, so that what it says of the machine stays; else the machine is measured."""
    try:
        text = path.read_text(encoding="utf-8")
        _core.check_tuning(text)
    except (OSError, UnicodeDecodeError, InvalidArgumentError):
        return _core.calibrate(ranks)
    return text


def _say_network(options: argparse.Namespace, path: Path, text: str, where: network_prices.Layout, ranks: int) -> None:
    if options.json:
        print(json.dumps({"file": str(path)} | json.loads(text), indent=2))
        return
    console = Console(highlight=False)
    found = _core.check_tuning(text)
    network = found["network"]
    table = tables.plain()
    table.add_column(f"measured between hosts ({network['transport']})")
    table.add_column("", justify="right")
    rows = NETWORK if where.near else dict(itertools.islice(NETWORK.items(), 2))
    for name, words in rows.items():
        table.add_row(words, f"{network[name] / 1000:.3g} µs")
    table.add_row("bytes on the way", _rate(network["byte"]))
    table.add_row("connections of a pair that pay", str(network["connections"]))
    if network["register_from"] is not None:
        table.add_row("ordinary memory is registered, from", _length(network["register_from"]))
    console.print(table)
    count = sum(rule["hosts"] is True for rule in found["rules"])
    differ = f"{count} rules differ from the built-in choice" if count else "the built-in choice is best everywhere"
    console.print(f"{where.hosts} hosts; communicators over hosts, up to {ranks} ranks: {differ}.", markup=False)
    if not where.near:
        console.print("No host has two ranks, so messages within a host were not measured.", markup=False)
    console.print(f"Written to {path} on each host", markup=False, soft_wrap=True)


def place() -> Path:
    """Where the file goes if nothing is said. Raises InvalidArgumentError if there is no such place."""
    named = os.environ.get("UNISONO_TUNING", "")
    usual = _core.usual_tuning_path()
    if named and named != "off":
        return Path(named)
    if not usual:
        raise InvalidArgumentError("there is no home folder to write to; say where with --file")
    return Path(usual)


def write(path: Path, text: str) -> None:
    """Writes the whole file or nothing: jobs may start while we write. What is no file, such as a terminal or
    /dev/null, stays what it is, and so does a link: it is what it leads to that is written.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be written: {error.strerror}") from None


def _table(machine: dict[str, Any]) -> Table:
    table = tables.plain()
    table.add_column("measured")
    table.add_column("", justify="right")
    for name, text in TIMES.items():
        table.add_row(text, f"{machine[name]:.3g} ns")
    for name, text in (("copy", "copying at hand"), ("cross", "copying what another core wrote")):
        for level, cost in zip(LEVELS, machine[name], strict=True):
            table.add_row(f"{text}, {level}", _rate(cost))
    for name, text in BYTES.items():
        table.add_row(text, _rate(machine[name]))
    table.add_row("near and shared memory", f"{machine['near_bytes'] >> 10} KiB, {machine['shared_bytes'] >> 10} KiB")
    return table


def _rate(cost: float) -> str:
    """Nanoseconds a byte as GB/s."""
    return f"{1 / cost:.3g} GB/s" if cost > 0 else "nothing beside the copy"


def _length(least: int) -> str:
    """Bytes from which on something is done, in words."""
    return "no length on" if least == register_from.NEVER else f"{least >> 10} KiB on"
