"""What programs of SMI attach to a node's kernels: which CKS and CKR serves which logical port."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidArgumentError
from .topology import Topology, _Pairs, read_json, read_text

CKS_DATA, CKS_CONTROL, CKR_DATA, CKR_CONTROL = WAYS = ("cks_data", "cks_control", "ckr_data", "ckr_control")
KINDS = ("data", "control")  #: of messages that come to a port, in the order of CKR's tables
MOST_CODES = 128  #: of an entry of CKR: a signed byte, too
MOST_PORTS = 128  #: a message's header has a signed byte for them

_USES = {
    "push": (CKS_DATA, CKR_CONTROL),
    "pop": (CKR_DATA, CKS_CONTROL),
    "broadcast": WAYS,
    "reduce": WAYS,
    "scatter": WAYS,
    "gather": WAYS,
    # What SMI has not (`unisono kernel generate`).
    **dict.fromkeys(("allreduce", "allgather", "alltoall", "barrier"), WAYS),
}


class Endpoint(NamedTuple):
    """Where messages of one kind leave for a logical port."""

    link: int  #: whose CKR it is
    number: int  #: among the endpoints of this CKR


@dataclass(frozen=True)
class Program:
    """The operations of a program, and so its ports."""

    name: str
    operations: tuple[tuple[str, int], ...]  #: type and logical port
    rendezvous: bool = True  #: whether push waits for the receiver's room, and so has a control channel
    most_ranks: int | None = None  #: for which its kernels are built

    @property
    def ports(self) -> int:
        """Logical ports, from 0 to the highest that is used."""
        return max((port for _, port in self.operations), default=0) + 1

    def served(self, side: str, links: int) -> list[list[tuple[int, str]]]:
        """For each CKS or CKR ("cks", "ckr") the port and way of each endpoint, in the order of its numbers.

        Endpoints are dealt to the kernels in turn: first those of data, by port, then those of control.
        """
        endpoints = [
            (port, way)
            for way in WAYS
            if way.startswith(side)
            for kind, port in sorted(self.operations, key=lambda operation: operation[1])
            if way in self._uses(kind)
        ]
        return [endpoints[link::links] for link in range(links)]

    def endpoints(self, links: int) -> dict[tuple[int, str], Endpoint]:
        """By port and kind ("data", "control") who takes what comes."""
        return {
            (port, way.removeprefix("ckr_")): Endpoint(link, number)
            for link, entries in enumerate(self.served("ckr", links))
            for number, (port, way) in enumerate(entries)
        }

    def ckr_tables(self, links: int) -> list[list[int]]:
        """Each CKR's table: data and control of every port in turn; 0: nobody takes this."""
        endpoints = self.endpoints(links)
        most = max((end.number + 1 for end in endpoints.values()), default=0)
        if links + most > MOST_CODES:
            raise InvalidArgumentError(
                f"a CKR would have {most} endpoints; with {links} links it may have {MOST_CODES - links}"
            )
        tables = []
        for link in range(links):
            table = []
            for port in range(self.ports):
                for kind in KINDS:
                    found = endpoints.get((port, kind))
                    if found is None:
                        table.append(0)
                    elif found.link == link:
                        table.append(links + found.number)
                    else:
                        table.append(1 + found.link - (found.link > link))
            tables.append(table)
        return tables

    def _uses(self, kind: str) -> tuple[str, ...]:
        uses = _USES[kind]
        if not self.rendezvous and kind in ("push", "pop"):
            return uses[:1]
        return uses


def any_program(ports: int) -> Program:
    """A program of which only the number of ports is known: each takes and gives data and control."""
    if not 1 <= ports <= MOST_PORTS:
        raise InvalidArgumentError(f"{ports} ports were asked for; there may be 1 to {MOST_PORTS}")
    return Program("", tuple(("broadcast", port) for port in range(ports)))


def load_program(path: Path, rendezvous: bool = True) -> Program:
    """Reads the description that SMI's generator writes of a program."""
    data = read_json(read_text(path), str(path))
    members: dict[str, Any] = dict(data) if isinstance(data, _Pairs) else {}
    listed = members.get("operations")
    if not isinstance(listed, list):
        raise InvalidArgumentError(f'{path} describes no program: it has no list of "operations"')
    operations = []
    taken: set[tuple[int, str]] = set()
    for entry in listed:
        facts = dict(entry) if isinstance(entry, _Pairs) else {}
        kind, port = facts.get("type"), facts.get("port")
        if kind not in _USES:
            raise InvalidArgumentError(f"{path}: {kind!r} is no operation; there are {', '.join(_USES)}")
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < MOST_PORTS:
            raise InvalidArgumentError(f"{path}: {port!r} is no port of a {kind}; ports are 0 to {MOST_PORTS - 1}")
        for way in _USES[kind]:
            if (port, way) in taken:
                raise InvalidArgumentError(f"{path}: two operations of port {port} use {way}")
            taken.add((port, way))
        operations.append((kind, port))
    most = members.get("max_ranks")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool)):
        raise InvalidArgumentError(f'{path}: "max_ranks" is {most!r}, no number')
    return Program(path.stem, tuple(operations), rendezvous, most)


def of_nodes(topology: Topology, programs: Iterable[Program], ports: int) -> tuple[Program, ...]:
    """The program of every rank: those given, or where none is given one with so many ports."""
    known = {program.name: program for program in programs}
    if not known:
        return (any_program(ports),) * topology.size
    found = []
    for node, name in zip(topology.names, topology.programs, strict=True):
        if name is None and len(known) == 1:
            found.append(next(iter(known.values())))
            continue
        program = known.get((name or "").removesuffix(".json"))
        if program is None:
            what = f"the program {name} of {node}" if name else f"a program for {node}"
            raise InvalidArgumentError(f"{what} is not among those given: {', '.join(known)}")
        found.append(program)
    for program in found:
        check_ranks(program, topology.size)
    return tuple(found)


def check_ranks(program: Program, size: int) -> None:
    """Refuses a program whose kernels are built for fewer ranks."""
    if program.most_ranks is not None and program.most_ranks < size:
        raise InvalidArgumentError(
            f"the program {program.name} is built for {program.most_ranks} ranks; the topology has {size}"
        )
