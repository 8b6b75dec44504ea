"""Networks for tests of routes, and what reads written tables without the package's help."""

from __future__ import annotations

import graphlib
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st
from unisono.routing.topology import Port, Topology

# The wiring of the eight boards that SMI was measured on: host, board and link of both ends, in the order in which its
# files list them.
TORUS_CABLES = (
    "602-613 603-612 702-713 703-712 601-700 611-710 701-800 711-810 "
    "802-813 803-812 902-913 903-912 801-900 811-910 600-901 610-911"
)


def smi_port(word: str) -> str:
    return f"fpga-000{word[0]}:acl{word[1]}:ch{word[2]}"


def smi_torus(programs: tuple[str, ...] = ("stencil",)) -> str:
    """The topology file of those eight boards."""
    nodes = [f"fpga-000{host}:acl{board}" for host in (6, 7, 8, 9) for board in (0, 1)]
    cables = [cable.split("-") for cable in TORUS_CABLES.split()]
    return json.dumps(
        {
            "fpgas": {node: programs[number % len(programs)] for number, node in enumerate(nodes)},
            "connections": {smi_port(a): smi_port(b) for a, b in cables},
        },
        indent=2,
    )


def random_topology(chance: random.Random, size: int, links: int, more: int) -> Topology:
    """A tree of nodes, and some cables more; several may join the same two nodes."""
    free = [list(range(links)) for _ in range(size)]
    for links_of in free:
        chance.shuffle(links_of)
    cables = []
    for rank in range(1, size):
        other = chance.choice([other for other in range(rank) if free[other]])
        cables.append((Port(other, free[other].pop()), Port(rank, free[rank].pop())))
    for _ in range(more):
        left = [rank for rank in range(size) if free[rank]]
        if len(left) < 2:
            break
        a, b = chance.sample(left, 2)
        cables.append((Port(a, free[a].pop()), Port(b, free[b].pop())))
    names = tuple(f"host-{rank:02}:board" for rank in range(size))
    return Topology(names, (None,) * size, links, tuple(cables))


@st.composite
def topologies(draw: st.DrawFn, most: int = 24, most_links: int = 8) -> Topology:
    links = draw(st.integers(1, most_links))
    size = draw(st.integers(2, most)) if links > 1 else 2
    more = draw(st.integers(0, size))
    return random_topology(random.Random(draw(st.integers(0, 1 << 20))), size, links, more)


Place = tuple[int, int, int]


class Walker:
    """Walks the tables in written files: those of SMI, or the images of nodes."""

    def __init__(self, topology: Topology, folder: Path, smi: bool) -> None:
        self.topology = topology
        self.links, self.channels = topology.links, 1
        self.cks: dict[tuple[int, int, int], bytes] = {}
        for rank in range(topology.size):
            data = (folder / f"rank{rank}.bin").read_bytes()
            size = topology.size
            assert data[:4] == b"UROU"
            assert (data[4], data[5]) == (1, topology.links)
            assert int.from_bytes(data[8:10], "little") == size
            assert int.from_bytes(data[10:12], "little") == rank
            if smi:
                for link in range(self.links):
                    self.cks[rank, link, 0] = (folder / f"cks-rank{rank}-channel{link}").read_bytes()
                continue
            self.channels = data[6]
            for link in range(self.links):
                for channel in range(self.channels):
                    at = 16 + (link * self.channels + channel) * size
                    self.cks[rank, link, channel] = data[at : at + size]

    def queues(self, source: int, link: int, target: int) -> Iterator[tuple[object, ...]]:
        """The queues that a message goes through; raises `LookupError` where it goes astray."""
        rank, channel = source, 0
        for _ in range(self.topology.size * self.links * self.channels + 1):
            entry = self.cks[rank, link, channel][target]
            code, channel = entry & 15, entry >> 4
            if channel >= self.channels:
                raise LookupError("no such channel")
            if code == 0:
                if Port(rank, link) not in self.topology.peers:
                    raise LookupError("no cable")
                yield "link", rank, link, channel
                rank, link = self.topology.peers[Port(rank, link)]
            elif code == 1:
                yield "to ckr", rank, link, channel
            elif code <= self.links:
                other = [k for k in range(self.links) if k != link][code - 2]
                yield "inner", rank, link, other, channel
                link = other
                continue
            else:
                raise LookupError("no way")
            if rank == target:
                return
            yield "back", rank, link, channel
        raise LookupError("loop")

    def hops(self, source: int, link: int, target: int) -> int:
        return sum(queue[0] == "link" for queue in self.queues(source, link, target))

    def verdict(self) -> str:
        """ "right", "astray" or "circle", from the ways of all messages."""
        before: dict[object, set[object]] = {}
        for target in range(self.topology.size):
            for source in range(self.topology.size):
                for link in range(self.links):
                    try:
                        way = list(self.queues(source, link, target))
                    except LookupError:
                        return "astray"
                    for a, b in itertools.pairwise(way):
                        before.setdefault(b, set()).add(a)
        try:
            graphlib.TopologicalSorter(before).prepare()
        except graphlib.CycleError:
            return "circle"
        return "right"
