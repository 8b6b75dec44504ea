"""`unisono bench`: Unisono, its peers and the machine's limit, measured side by side."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from rich.console import Console

from ..bench import guard, plan, plot, report, targets
from ..bench.carried import carried
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
from ..bench.machine import placement, processor
from ..bench.namespaces import chosen
from ..bench.network import FLOORS, Network, besides, known
from ..bench.plan import Cell, Effort
from ..bench.session import Row, Session
from ..bench.systems import System, SystemFailedError
from ..errors import InvalidArgumentError, UnknownAlgorithmError
from .bench_cells import announce, measure, verdict
from .names import select
from .run import TRANSPORTS
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
    parser.add_argument("--ranks", metavar="P[,P]", help="number of ranks (2), or several, one after the other")
    parser.add_argument("--op", default="all", metavar="A,B|all", help=f"operations (all): {', '.join(plan.OPS)}")
    parser.add_argument("--sizes", default="4:4M", metavar="A:B", help="bytes by powers of two, or a list (4:4M)")
    parser.add_argument(
        "--peers",
        metavar="A,B|none",
        help=f"of {', '.join(plan.PEERS)} (those that `make peers` has built), with --python "
        f"{', '.join(plan.PYTHON_PEERS)}; NAME=DIR: another checkout or build of Unisono",
    )
    parser.add_argument(
        "--transport",
        metavar="NAME",
        help=f"measure between hosts, over this network: {', '.join(TRANSPORTS)}; each rank is a host of its own",
    )
    parser.add_argument(
        "--hosts", type=int, metavar="N", help="with --transport: so many hosts, with the ranks divided among them"
    )
    parser.add_argument(
        "--round-trip",
        type=float,
        metavar="MS",
        help="with --hosts 2: over a cable on which an answer takes so many milliseconds to come back (0.05 to 1000)",
    )
    parser.add_argument(
        "--targets", action="store_true", help="with --transport: what targets are about, beside Open MPI alone"
    )
    parser.add_argument(
        "--switch",
        action="store_true",
        help="with --transport, a host for each rank: also Unisono with calls that a switch of this machine carries "
        "(`unisono switch`), without loss and with one datagram in a thousand and in a hundred lost",
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
    programs()
    interface = "python" if options.python else "c"
    _check_network(options)
    jobs = _jobs(options, interface)
    console = Console(highlight=False)
    rows: list[Row] = []
    status = 0
    with ExitStack() as stack:
        sink = stack.enter_context(_open(options.json)) if options.json else None
        for number, (ranks, pairs) in enumerate(jobs.items()):
            if number:
                console.print()
            more, failed = _job(options, interface, ranks, pairs, console, sink)
            rows += more
            status = max(status, failed)
    if options.plot:
        write(options.plot, plot.svg(rows).encode())
    return status


def _jobs(options: argparse.Namespace, interface: str) -> dict[int, list[tuple[str, int]] | None]:
    """Numbers of ranks; with each the operations and sizes, or None for those that options name."""
    jobs: dict[int, list[tuple[str, int]] | None]
    if options.targets:
        wanted = targets.wanted(targets.load(), options.transport, divided=options.hosts is not None)
        ranks = sorted(wanted) if options.ranks is None else _ranks(options.ranks)
        jobs = {number: wanted[number] for number in ranks if number in wanted}
        if not jobs:
            raise InvalidArgumentError(
                f"--targets: there are none for {options.transport} "
                f"{f'between {options.hosts} hosts' if options.hosts else 'with a host for each rank'}"
                f"{f' and {options.ranks} ranks' if options.ranks is not None else ''}"
            )
    else:
        jobs = dict.fromkeys([2] if options.ranks is None else _ranks(options.ranks))
    if options.plot and len(jobs) > 1:
        raise InvalidArgumentError("--plot draws one number of ranks; --ranks names several")
    return jobs


def _ranks(text: str) -> list[int]:
    try:
        ranks = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgumentError(f"--ranks {text} was given; it is a number, or several with commas") from None
    for number in ranks:
        if not 2 <= number <= MOST_RANKS:
            raise InvalidArgumentError(f"{number} ranks were asked for; allowed are 2 to {MOST_RANKS}")
    return list(dict.fromkeys(ranks))


def _check_network(options: argparse.Namespace) -> None:
    """Refuses options of networks that do not go together."""
    if options.transport is None:
        given = {"--hosts": options.hosts, "--targets": options.targets or None, "--round-trip": options.round_trip}
        given["--switch"] = options.switch or None
        for name, value in given.items():
            if value is not None:
                raise InvalidArgumentError(f"{name} goes with --transport, such as `--transport tcp`")
        return
    if options.round_trip is not None and (options.hosts != 2 or not 0.05 <= options.round_trip <= 1000):
        raise InvalidArgumentError("--round-trip takes 0.05 to 1000 milliseconds, and goes with --hosts 2")
    if options.switch and options.hosts is not None:
        raise InvalidArgumentError("--switch measures on the loopback, with a host for each rank; leave --hosts out")
    known(options.transport, TRANSPORTS)
    if options.targets and options.python:
        raise InvalidArgumentError("--targets are those of C; leave --python out")


def _cells(
    options: argparse.Namespace,
    interface: str,
    ranks: int,
    pairs: list[tuple[str, int]] | None,
    network: Network | None,
) -> list[Cell]:
    if pairs is not None:
        return [Cell(op, size, "fp32", "malloc", ranks, network=network) for op, size in pairs]
    ops = plan.operations(options.op, interface, network)
    _check_algorithm(options.algorithm, ops)
    return list(
        plan.cells(
            ops=ops,
            sizes=plan.parse_sizes(options.sizes),
            dtypes=plan.parse_names(options.dtype, tuple(plan.ELEMENT_BYTES), "datatype"),
            buffers=_buffers(options.buffers),
            ranks=ranks,
            algorithm=options.algorithm,
            counts=plan.parse_names(options.counts, plan.COUNTS, "kind of counts"),
            interface=interface,
            network=network,
        )
    )


def _job(
    options: argparse.Namespace,
    interface: str,
    ranks: int,
    pairs: list[tuple[str, int]] | None,
    console: Console,
    sink: IO[str] | None,
) -> tuple[list[Row], int]:
    """Measures with one number of ranks; the exit status."""
    peers = _peers(options.peers, interface, ("openmpi",) if options.targets else None)
    builds = [name for name, build in peers.items() if build is not None]
    if options.guard and not builds:
        raise InvalidArgumentError("--guard compares with another state of Unisono, given as --peers NAME=DIR")
    where = placement(ranks)
    effort = Effort.of(crowded=where.crowded, quick=options.quick, network=options.transport is not None)
    with ExitStack() as stack:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
                stack.callback(signal.signal, number, signal.signal(number, _leave))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX, dir=_place())))
        network = None
        if options.transport is not None:
            network = stack.enter_context(
                chosen(options.transport, ranks, options.hosts, folder, console, options.round_trip)
            )
        cells = _cells(options, interface, ranks, pairs, network)
        beside, unfit = besides(network, interface)
        if network is not None and options.switch:
            beside |= stack.enter_context(carried(network, folder))
        for name, why in unfit.items():
            if peers.pop(name, unfit) is None:
                console.print(f"{name} is left out: {why}", markup=False)
        announce(console, cells, ["unisono", *peers, *beside], where, effort, network)
        systems = [
            System(name, where, folder, damage=options.damage, build=build, interface=interface, network=network)
            for name, build in {"unisono": None, **peers}.items()
        ]
        systems += [System(name, where, folder, network=over) for name, over in beside.items()]
        limit = System("limit", where, folder, options=["--refuse-copies"] if options.refuse_copies else [])
        session = stack.enter_context(Session(systems, limit, effort, crowded=where.crowded))
        shown = [*peers, *(name for name in beside if name not in FLOORS), "unisono"]
        printer = report.TablePrinter(console, shown, where, targets.load(), mean=where.crowded)
        try:
            rows = measure(session, cells, printer, console, sink, processor())
        except SystemFailedError as failure:
            print(f"unisono bench: the limit cannot be measured: {failure}", file=sys.stderr)
            return [], 1
    return rows, max(verdict(console, rows, printer, session), _guarded(console, rows, builds, wanted=options.guard))


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


def _peers(text: str | None, interface: str, usual: tuple[str, ...] | None = None) -> dict[str, Build | None]:
    """The peers by name; those that are other states of Unisono with their builds. `usual`: if none are named."""
    known = plan.PYTHON_PEERS if interface == "python" else plan.PEERS
    if text is None:
        return {peer: None for peer in usual or known if peer_is_there(peer)}
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
