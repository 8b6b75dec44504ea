"""`unisono bench`: Unisono, its peers and the machine's limit, measured side by side."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from rich.console import Console

from ..bench import guard, plan, plot, report, targets
from ..bench.launch import (
    Build,
    find_build,
    kinds_of_buffers,
    peer_is_there,
    programs,
    require_buffers,
    require_interface,
    require_peer,
)
from ..bench.machine import Placement, Processor, placement, processor
from ..bench.plan import Cell, Effort
from ..bench.session import Measured, Row, Session
from ..bench.statistics import DISTURBED
from ..bench.systems import System, SystemFailedError
from ..errors import InvalidArgumentError, UnknownAlgorithmError
from .names import select
from .show import write

MOST_RANKS = 64
PREFIX = "unisono-bench-"
SOCKET_NAME = 108  #: bytes of a socket's name, with the zero at its end


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "bench",
        help="measure Unisono, its peers and the machine's limit",
        description="Measures all systems alive together and in turns, and reports ratios of neighbouring blocks. "
        "docs/bench.md says how. The exit status is 1 if a result was wrong or Unisono failed.",
    )
    parser.add_argument("--list", action="store_true", help="name the operations, and what their figures mean")
    parser.add_argument("--ranks", type=int, default=2, metavar="P", help="number of ranks (2)")
    parser.add_argument("--op", default="all", metavar="A,B|all", help=f"operations (all): {', '.join(plan.OPS)}")
    parser.add_argument("--sizes", default="4:4M", metavar="A:B", help="bytes by powers of two, or a list (4:4M)")
    parser.add_argument(
        "--peers",
        metavar="A,B|none",
        help=f"of {', '.join(plan.PEERS)} (those that `make peers` has built), with --python "
        f"{', '.join(plan.PYTHON_PEERS)}; NAME=DIR: another checkout or build of Unisono",
    )
    parser.add_argument("--python", action="store_true", help="call from Python, against mpi4py, instead of from C")
    parser.add_argument("--buffers", default="malloc", metavar="A,B", help=f"{', '.join(plan.BUFFERS)} (malloc)")
    parser.add_argument(
        "--counts", default="all", metavar="A,B", help=f"of v-collectives: {', '.join(plan.COUNTS)} (both)"
    )
    parser.add_argument("--dtype", default="fp32", metavar="A,B", help=f"{', '.join(plan.ELEMENT_BYTES)} (fp32)")
    parser.add_argument("--algorithm", metavar="NAME", help="of Unisono, for one collective (its own choice)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a line for each figure")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw time against size (SVG)")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer blocks, for a first look")
    parser.add_argument(
        "--guard", action="store_true", help="exit status 1, too, if Unisono is slower than a peer NAME=DIR"
    )
    parser.add_argument("--refuse-copies", action="store_true", help=argparse.SUPPRESS)  # tests: of the limit
    parser.add_argument("--damage", action="store_true", help=argparse.SUPPRESS)  # tests: results are spoilt
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.list:
        return _list()
    if not 2 <= options.ranks <= MOST_RANKS:
        raise InvalidArgumentError(f"{options.ranks} ranks were asked for; allowed are 2 to {MOST_RANKS}")
    programs()
    interface = "python" if options.python else "c"
    ops = plan.operations(options.op, interface)
    _check_algorithm(options.algorithm, ops)
    cells = list(
        plan.cells(
            ops=ops,
            sizes=plan.parse_sizes(options.sizes),
            dtypes=plan.parse_names(options.dtype, tuple(plan.ELEMENT_BYTES), "datatype"),
            buffers=_buffers(options.buffers),
            ranks=options.ranks,
            algorithm=options.algorithm,
            counts=plan.parse_names(options.counts, plan.COUNTS, "kind of counts"),
            interface=interface,
        )
    )
    peers = _peers(options.peers, interface)
    builds = [name for name, build in peers.items() if build is not None]
    if options.guard and not builds:
        raise InvalidArgumentError("--guard compares with another state of Unisono, given as --peers NAME=DIR")
    where = placement(options.ranks)
    effort = Effort.of(crowded=where.crowded, quick=options.quick)
    console = Console(highlight=False)
    _announce(console, cells, ["unisono", *peers], where, effort)
    with ExitStack() as stack:
        sink = stack.enter_context(_open(options.json)) if options.json else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX, dir=_place())))
        systems = [
            System(name, where, folder, damage=options.damage, build=build, interface=interface)
            for name, build in {"unisono": None, **peers}.items()
        ]
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
                stack.callback(signal.signal, number, signal.signal(number, _leave))
        limit = System("limit", where, folder, options=["--refuse-copies"] if options.refuse_copies else [])
        session = stack.enter_context(Session(systems, limit, effort, crowded=where.crowded))
        printer = report.TablePrinter(console, [*peers, "unisono"], where, targets.load(), mean=where.crowded)
        try:
            rows = _measure(session, cells, printer, console, sink, processor())
        except SystemFailedError as failure:
            print(f"unisono bench: the limit cannot be measured: {failure}", file=sys.stderr)
            return 1
    if options.plot:
        write(options.plot, plot.svg(rows).encode())
    return max(_verdict(console, rows, printer, session), _guarded(console, rows, builds, wanted=options.guard))


def _list() -> int:
    """Writes the operations."""
    for op in plan.OPS:
        print(f"{op:<16} {plan.MEANING.get(op, 'a blocking call of this name')}")
    return 0


def _buffers(text: str) -> list[str]:
    there = kinds_of_buffers() if text.strip() == "all" else plan.BUFFERS
    kinds = plan.parse_names(text, there, "kind of buffers")
    require_buffers(kinds)
    return kinds


def _guarded(console: Console, rows: list[Row], builds: list[str], *, wanted: bool) -> int:
    """Says how Unisono stands to its other states; the exit status."""
    kept = True
    for name in builds:
        comparison = guard.compare(rows, name)
        console.print(comparison.text, markup=False, style="" if comparison.kept else "bold red")
        kept &= comparison.kept
    return 1 if wanted and not kept else 0


def _leave(number: int, _: object) -> None:
    """Ends the command in good order, so that nothing of its systems is left."""
    raise SystemExit(128 + number)


def _check_algorithm(algorithm: str | None, ops: list[str]) -> None:
    if algorithm is None:
        return
    if len(ops) != 1:
        raise InvalidArgumentError(
            f"algorithm {algorithm} was given with {len(ops)} operations; --algorithm goes with one (--op)"
        )
    if ops[0] == "pingpong":
        raise UnknownAlgorithmError("a ping-pong consists of send and recv, which have no algorithms to choose from")
    if ops[0] in ("put", "get"):
        raise UnknownAlgorithmError(f"{ops[0]} has no algorithms to choose from")
    select(f"{'allreduce' if ops[0] == 'inflight' else ops[0]}/{algorithm}")


def _peers(text: str | None, interface: str) -> dict[str, Build | None]:
    """The peers by name; those that are other states of Unisono with their builds."""
    known = plan.PYTHON_PEERS if interface == "python" else plan.PEERS
    if text is None:
        return {peer: None for peer in known if peer_is_there(peer)}
    if text.strip() in ("", "none"):
        return {}
    peers: dict[str, Build | None] = {}
    for part in text.split(","):
        name, equals, folder = part.strip().partition("=")
        if equals:
            build = find_build(name, Path(folder))
            require_interface(name, build, interface)
            peers[name] = build
            continue
        for peer in plan.parse_names(name, known, "peer"):
            require_peer(peer)
            peers[peer] = None
    return peers


def _announce(console: Console, cells: list[Cell], systems: list[str], where: Placement, effort: Effort) -> None:
    seconds = sum(plan.estimate(cell, len(systems) + (cell.compared is not None), effort) for cell in cells)
    cores = (
        f"{where.usable} of {len(where.cores)} cores" if where.usable < len(where.cores) else f"{where.usable} cores"
    )
    bound = "not bound: ranks share cores" if where.crowded else f"bound to cores {where.binding}"
    console.print(f"{where.ranks} ranks, {bound} ({cores} usable); {', '.join(systems)}", markup=False)
    figure = "means" if where.crowded else "medians"
    console.print(
        f"{len(cells)} cells, {figure} of at least {effort.rounds} rounds of {1000 * effort.block_seconds:g} ms for "
        f"each system; about {_duration(seconds)}, more if the machine is disturbed",
        markup=False,
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _open(path: Path) -> IO[str]:
    try:
        return path.open("w")
    except OSError as failure:
        raise InvalidArgumentError(f"{path} cannot be written: {failure.strerror}") from failure


def _place() -> str:
    """Where the folder of sockets is made: the usual place, or /tmp if names of sockets would be too long there."""
    usual = tempfile.gettempdir()
    longest = len(os.fsencode(usual)) + len(f"/{PREFIX}12345678/openmpi.socket")
    return usual if longest < SOCKET_NAME else "/tmp"


def _measure(
    session: Session,
    cells: list[Cell],
    printer: report.TablePrinter,
    console: Console,
    sink: IO[str] | None,
    here: Processor,
) -> list[Row]:
    """Measures all cells; writes each as soon as it is there."""

    def keep(measured: Measured) -> None:
        if sink is not None:
            sink.write(json.dumps(report.record(measured, session.facts(here))) + "\n")
            sink.flush()

    progress = _progress()
    for name, failure in session.start().items():
        console.print(f"{name} {failure}", style="bold red", markup=False)
    dtypes = dict.fromkeys(cell.dtype for cell in cells)
    limits = []
    for dtype in dtypes:
        sizes = dict.fromkeys(cell.bytes for cell in cells if cell.dtype == dtype and cell.bytes)
        asked = [("cache_line", 64)] if dtype == next(iter(dtypes)) and session.has_line else []
        asked += [(op, size) for op in ("memcpy", "reduce") for size in sizes]
        for op, size in asked:
            progress(f"limits: {op} {plan.size_text(size)}")
            limits.append(session.machine_limit(op, dtype, size))
            keep(limits[-1])
    progress("")
    printer.limits(limits, session.facts(here))
    rows = []
    begin = time.monotonic()
    for number, cell in enumerate(cells):
        left = f", {_duration((time.monotonic() - begin) / number * (len(cells) - number))} left" if number else ""
        progress(f"[{number + 1}/{len(cells)}] {cell.title} {plan.size_text(cell.bytes)}{left}")
        row = session.measure(cell)
        progress("")
        rows.append(row)
        printer.row(row)
        for measured in [row.limit, *row.systems]:
            keep(measured)
    return rows


def _progress() -> Callable[[str], None]:
    """A line that is overwritten; nothing where nobody watches."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(text: str) -> None:
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()

    return show


def _verdict(console: Console, rows: list[Row], printer: report.TablePrinter, session: Session) -> int:
    wrong = sum(not measured.verified for row in rows for measured in [row.limit, *row.systems])
    failed = sum(measured.failure is not None for row in rows for measured in row.systems)
    ours = sum(measured.failure is not None for row in rows for measured in row.systems if measured.system == "unisono")
    rounds = sum(row.rounds for row in rows)
    disturbed = rounds - sum(row.quiet for row in rows)
    noisy = sum(row.noisy for row in rows)
    console.print()
    text = (
        f"{disturbed} of {rounds} rounds were disturbed (the limit above {DISTURBED:g} times its minimum, or a core "
        "taken by others) and left out"
    )
    if noisy:
        text += f"; {noisy} of {len(rows)} cells had too few quiet ones, so the quietest quarter was taken"
    console.print(f"{text}.", markup=False)
    if session.kernel_copies is False:
        console.print(
            "The kernel refuses copies between processes here, so the limit of ordinary memory is that of cells alone.",
            markup=False,
        )
    if printer.met or printer.missed:
        console.print(f"Targets: {printer.met} met, {printer.missed} missed.", markup=False)
    if failed:
        console.print(f"{failed} figures are missing because a system failed.", style="bold red", markup=False)
    if wrong:
        console.print(f"{wrong} figures belong to WRONG RESULTS.", style="bold red", markup=False)
    else:
        console.print("All results verified.", markup=False)
    return 1 if wrong or ours else 0
