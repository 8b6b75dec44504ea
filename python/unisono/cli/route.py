"""`unisono route`: routing tables for networks whose nodes forward messages themselves, and the proof of them."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ..errors import InvalidArgumentError
from ..routing import own_files, programs, report, schemes, smi_files, topology
from ..routing.proof import Finding, examine
from ..routing.tables import MOST_CHANNELS, Tables
from ..routing.topology import Topology
from .show import write


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "route",
        help="routing tables for cabled nodes, proven free of deadlock",
        description="Makes the tables by which nodes forward messages over their cables, for SMI's kernels and in "
        "Unisono's own format, and proves that no messages can wait for each other in a circle. Status 1 if they can, "
        "or if a rank is not reached.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="T.json", help="topology file, as SMI has them")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder for the tables")
    parser.add_argument("--scheme", choices=schemes.SCHEMES, default="shortest", help="how ways are chosen (shortest)")
    parser.add_argument(
        "--channels", type=int, metavar="N", help="so many virtual channels, where more than the fewest are there"
    )
    parser.add_argument(
        "--program",
        type=Path,
        action="append",
        default=[],
        metavar="P.json",
        help="SMI's description of a program, for the tables of ports; for a generated topology the name of one",
    )
    parser.add_argument("--ports", type=int, default=1, metavar="N", help="logical ports, where no --program is given")
    parser.add_argument(
        "--eager", action="store_true", help="programs were built without rendezvous (SMI's P2P_RENDEZVOUS=OFF)"
    )
    parser.add_argument("--links", type=int, metavar="N", help="links of a node, 1 to 8 (4, or 8 where there is a ch4)")
    parser.add_argument("--ranks", type=int, metavar="N", help="only the first N ranks and the cables between them")
    parser.add_argument(
        "--without", action="append", default=[], metavar="A:ch0-B:ch1", help="without this cable, named by its ports"
    )
    parser.add_argument("--leave-out", action="append", default=[], metavar="NODE", help="without this node")
    parser.add_argument("--check", type=Path, metavar="DIR", help="check the tables of this folder, and make none")
    parser.add_argument("--topology", type=Path, metavar="T.json", help="the topology file, beside --check")
    parser.add_argument(
        "--kernels",
        choices=("queued", "serial"),
        default="queued",
        help="what a full queue holds up: only what goes into it, or the whole kernel that writes it (queued)",
    )
    shapes = parser.add_mutually_exclusive_group()
    shapes.add_argument("--torus", type=_sides, metavar="AxB", help="write a topology file: a torus")
    shapes.add_argument("--bus", type=int, metavar="N", help="write a topology file: nodes in a row")
    shapes.add_argument("--ring", type=int, metavar="N", help="write a topology file: a row that is closed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found out as JSON")
    parser.set_defaults(execute=execute)


def _sides(text: str) -> list[int]:
    if re.fullmatch(r"\d{1,3}(x\d{1,3})*", text):
        return [int(side) for side in text.split("x")]
    raise argparse.ArgumentTypeError(f"{text!r} are no sides of a torus such as 2x4")


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    console = Console(highlight=False, soft_wrap=True)
    if options.torus is not None or options.bus is not None or options.ring is not None:
        return _generate(options)
    if options.file is not None and options.topology is not None:
        raise InvalidArgumentError(f"two topologies were given, {options.file} and {options.topology}")
    path = options.file or options.topology
    if path is None:
        raise InvalidArgumentError("no topology was given; name its file, or make one with --torus, --bus or --ring")
    network = _network(path, options)
    if options.check is not None:
        if options.output is not None:
            raise InvalidArgumentError("--check makes no tables; leave out -o")
        return _check(console, options, network)
    return _make(console, options, network)


def _network(path: Path, options: argparse.Namespace) -> Topology:
    """The topology of a file, without what the command line takes away."""
    network = topology.load(path, options.links)
    network = topology.without_cables(network, options.without)
    if options.leave_out:
        network = topology.without_nodes(network, options.leave_out)
    if options.ranks is not None:
        network = topology.first_ranks(network, options.ranks)
    topology.check_connected(network)
    return network


def _generate(options: argparse.Namespace) -> int:
    if options.file is not None or options.check is not None:
        raise InvalidArgumentError("a topology is either generated or read from a file")
    if options.torus is not None:
        network = topology.torus(options.torus)
    else:
        network = topology.bus(options.ring or options.bus or 0, closed=options.ring is not None)
    names = [path.name for path in options.program] or ["program"]
    of_ranks = tuple(names[rank % len(names)] for rank in range(network.size))
    text = topology.to_text(Topology(network.names, of_ranks, network.links, network.cables))
    if options.output is None:
        print(text, end="")
    else:
        write(options.output, text.encode())
    return 0


def _make(console: Console, options: argparse.Namespace, network: Topology) -> int:
    if options.channels is not None and not 1 <= options.channels <= MOST_CHANNELS:
        raise InvalidArgumentError(f"{options.channels} channels were asked for; there are 1 to {MOST_CHANNELS}")
    loaded = [programs.load_program(path, not options.eager) for path in options.program]
    of_ranks = programs.of_nodes(network, loaded, options.ports)
    tables = schemes.make(network, of_ranks, options.scheme, options.channels)
    finding = examine(network, tables)
    files = own_files.encode(network, tables, of_ranks)
    for_smi = tables.channels == 1 and not finding.faults
    if for_smi:
        files |= smi_files.encode(network, tables)
    if options.output is not None:
        _write_all(options.output, files)
    _say_network(console, network, tables.scheme)
    ok = _say(console, options, network, tables, finding)
    if for_smi:
        _say_serial(console, options, network, finding)
    if options.output is not None:
        console.print(f"{options.output}: {own_files.NAME}, rank*.bin, rank*.hex", markup=False, end="")
        console.print("; for SMI cks-*, ckr-*, hostfile" if for_smi else "")
    if not for_smi:
        console.print(
            f"Nothing for SMI: its tables have no virtual channels, and these need {tables.channels}. "
            "--scheme updown makes some.",
            style="yellow",
        )
    _write_json(options, network, tables, finding, ok, sorted(files) if options.output is not None else [])
    return 0 if ok else 1


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    """Writes files, and removes those of an earlier network that would pass for tables of this one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [path for path in folder.iterdir() if path.name not in files]
        old = [path for path in there if smi_files.NAME.fullmatch(path.name)]
        if old:
            old += [path for path in there if path.name == smi_files.HOSTS]
        for path in old + [path for path in there if own_files.IMAGE.fullmatch(path.name)]:
            path.unlink()
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as failure:
        raise InvalidArgumentError(f"{folder} cannot be written: {failure.strerror}") from failure


def _check(console: Console, options: argparse.Namespace, network: Topology) -> int:
    folder: Path = options.check
    if not folder.is_dir():
        raise InvalidArgumentError(f"there is no folder {folder}")
    read: list[tuple[str, Tables]] = []
    if any(smi_files.NAME.fullmatch(path.name) for path in folder.iterdir()):
        read.append(("SMI's tables", smi_files.decode(network, folder)))
    if (folder / own_files.NAME).is_file():
        read.append((own_files.NAME, own_files.decode(network, folder)))
    if not read:
        raise InvalidArgumentError(f"{folder} has no tables: neither cks-rank0-channel0 nor {own_files.NAME}")
    loaded = [programs.load_program(path, not options.eager) for path in options.program]
    status = 0
    for what, tables in read:
        finding = examine(network, tables)
        if loaded:
            finding.faults += _ports_differ(network, tables, programs.of_nodes(network, loaded, 1))
        _say_network(console, network, f"{what} in {folder}")
        ok = _say(console, options, network, tables, finding)
        if tables.channels == 1:
            _say_serial(console, options, network, finding)
        # Of several tables JSON tells of the wrong ones.
        if ok <= (status == 0):
            _write_json(options, network, tables, finding, ok, [])
        if not ok:
            status = 1
    return status


def _ports_differ(network: Topology, tables: Tables, of_ranks: Sequence[programs.Program]) -> list[str]:
    """Where tables of CKR are not those of the programs."""
    faults = []
    for rank, program in enumerate(of_ranks):
        right = program.ckr_tables(tables.links)
        for link in range(tables.links):
            if tables.ckr[rank][link] != right[link]:
                faults.append(
                    f"{network.names[rank]} (rank {rank}): the table of CKR_{link} is not that of {program.name}"
                )
    return faults


def _say_network(console: Console, network: Topology, what: str) -> None:
    count = len(network.cables)
    console.print(
        f"{network.size} rank{'s' * (network.size != 1)}, {count} cable{'s' * (count != 1)}; {what}",
        style="bold",
        markup=False,
    )


def _say(console: Console, options: argparse.Namespace, network: Topology, tables: Tables, finding: Finding) -> bool:
    """Figures and verdict; whether all is well."""
    figures = report.summary(network, finding)
    console.print(
        f"  hops between two ranks  min {figures.least}  mean {figures.mean:.3f}  max {figures.most}"
        f"{', all shortest' if figures.shortest and not finding.faults else ''}"
    )
    console.print(f"  virtual channels used   {finding.channels}")
    if figures.busiest is not None:
        pairs = network.size * (network.size - 1)
        peer = network.peers[figures.busiest]
        console.print(
            f"  most loaded link        {network.label(figures.busiest)} to {network.label(peer)}: "
            f"{figures.load:.4g} of {pairs} pairs of ranks",
            markup=False,
        )
    for fault in finding.faults:
        console.print("✗ ", style="bold red", end="")
        console.print(fault, markup=False)
    circle = finding.circle or (finding.kernel_circle if options.kernels == "serial" else [])
    if circle:
        ranks = report.ranks_of(network, circle)
        console.print("✗ ", style="bold red", end="")
        console.print(
            "a circle: each of these may wait for the next one, and the last for the first"
            + (f"; links {ranks}" if ranks else ""),
            markup=False,
        )
        for line in report.circle_lines(network, circle, tables.channels):
            console.print(line, markup=False)
    elif not finding.faults:
        console.print("✓ ", style="green", end="")
        console.print(f"no circle: proven over {finding.links} links and {finding.inner} inner queues")
    return not circle and not finding.faults


def _say_serial(console: Console, options: argparse.Namespace, network: Topology, finding: Finding) -> None:
    """What the proof does not cover: kernels that hold one message at a time, as SMI's do."""
    if options.kernels == "serial" or not finding.kernel_circle or finding.circle:
        return
    where = next(wait.queue for wait in finding.kernel_circle)
    console.print(
        "Note: proven where a full queue holds up only what goes into it. A kernel of SMI is held up altogether; then "
        f"a circle is left, through {network.names[where.rank]} (--kernels serial prints it).",
        style="dim",
        markup=False,
    )


def _write_json(
    options: argparse.Namespace, network: Topology, tables: Tables, finding: Finding, ok: bool, files: list[str]
) -> None:
    if options.json is not None:
        data = report.as_data(network, tables, finding, ok, files)
        write(options.json, (json.dumps(data, indent=2) + "\n").encode())
