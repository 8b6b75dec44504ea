"""Tables as SMI's kernels read them: a file of one byte an entry for each CKS and CKR, and the file of hosts."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import InvalidArgumentError
from .tables import Step, Tables
from .topology import MOST_LINKS, Topology

NAME = re.compile(r"(cks|ckr)-rank(\d+)-channel(\d+)")
HOSTS = "hostfile"


def encode(topology: Topology, tables: Tables) -> dict[str, bytes]:
    """All files by name. Refuses tables that use several virtual channels: the format has none."""
    if tables.channels != 1:
        raise InvalidArgumentError(
            f"SMI's tables have no virtual channels; these need {tables.channels} (--scheme updown needs one)"
        )
    files = {}
    for rank in range(tables.size):
        for link in range(tables.links):
            entries = [step.code for step in tables.cks[rank][link][0]]
            missing = next((to for to, code in enumerate(entries) if not 0 <= code <= tables.links), None)
            if missing is not None:
                raise InvalidArgumentError(f"CKS_{link} of {topology.names[rank]} has no way to rank {missing}")
            files[f"cks-rank{rank}-channel{link}"] = bytes(entries)
            files[f"ckr-rank{rank}-channel{link}"] = bytes(tables.ckr[rank][link])
    files[HOSTS] = hosts_text(topology).encode()
    return files


def hosts_text(topology: Topology) -> str:
    """The hosts by rank, a line each, as an MPI launcher takes them."""
    lines = []
    for rank, name in enumerate(topology.names):
        host, board = name.split(":")
        lines.append(f"{host}  # {board}, rank{rank}\n")
    return "".join(lines)


def decode(topology: Topology, folder: Path) -> Tables:
    """Reads the tables of a folder, whoever wrote them. Refuses those of another number of ranks."""
    found = {path.name: path for path in folder.iterdir() if NAME.fullmatch(path.name)}
    places = {(m[1], int(m[2]), int(m[3])) for m in map(NAME.fullmatch, found) if m}
    links = 1 + max(link for _, _, link in places)
    if links > MOST_LINKS:
        raise InvalidArgumentError(f"{folder} has tables of channel {links - 1}; a node has at most {MOST_LINKS} links")
    ranks = 1 + max(rank for _, rank, _ in places)
    if ranks != topology.size:
        raise InvalidArgumentError(f"{folder} has tables of {ranks} ranks; the topology has {topology.size}")
    highest = max((port.link for port in topology.peers), default=0)
    if links <= highest:
        raise InvalidArgumentError(
            f"{folder} has tables of {links} links a node; the topology has cables up to ch{highest}"
        )
    cks, ckr = [], []
    for rank in range(ranks):
        sent, received = [], []
        for link in range(links):
            name = f"cks-rank{rank}-channel{link}"
            data = _read(folder, name)
            if len(data) != ranks:
                raise InvalidArgumentError(f"{folder / name} has {len(data)} entries; the topology has {ranks} ranks")
            sent.append([[Step(code) for code in data]])
            received.append(list(_read(folder, f"ckr-rank{rank}-channel{link}")))
            if len(received[-1]) % 2 or not received[-1]:
                raise InvalidArgumentError(
                    f"{folder / f'ckr-rank{rank}-channel{link}'} has {len(received[-1])} entries; "
                    "there are two for each port, data and control"
                )
        cks.append(sent)
        ckr.append(received)
    _check_hosts(topology, folder / HOSTS)
    return Tables("foreign", 1, cks, ckr)


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as failure:
        raise InvalidArgumentError(f"{folder / name} cannot be read: {failure.strerror}") from failure


def _check_hosts(topology: Topology, path: Path) -> None:
    """Compares the file of hosts, if there is one: tables of other ranks than the topology's are of no use."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    expected = hosts_text(topology).splitlines()
    for number, (line, right) in enumerate(zip(lines, expected, strict=False), 1):
        if line.split() != right.split():
            raise InvalidArgumentError(
                f"{path}, line {number}: rank {number - 1} is {line.strip()!r} here, "
                f"and {topology.names[number - 1]} in the topology"
            )
    if len(lines) != len(expected):
        raise InvalidArgumentError(f"{path} has {len(lines)} ranks; the topology has {len(expected)}")
