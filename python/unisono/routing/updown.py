"""Up*/down*: up towards a root, then down, and never up again. One virtual channel is enough in any network."""

from __future__ import annotations

from .tables import OWN_LINK, Step, Tables, code_of, empty
from .topology import Port, Topology

FAR = 1 << 30


def route(topology: Topology, ckr: list[list[list[int]]]) -> Tables:
    """Tables with the root from which the ways are shortest in all; of equal ways the least loaded links are taken."""
    best = min((_Levels(topology, root) for root in range(topology.size)), key=_Levels.total)
    tables = empty(topology, "updown", 1, ckr)
    loads = dict.fromkeys(topology.peers, 0.0)
    for target in range(topology.size):
        left, exits = best.exits(target)
        amounts = [[0.0] * topology.links for _ in range(topology.size)]
        # Who is farthest chooses first: so what comes to each is known.
        for rank in sorted(range(topology.size), key=lambda r: (-left[r], r)):
            if rank == target:
                continue
            for link in range(topology.links):
                own = Port(rank, link)
                out = own if own in exits[rank] else min(exits[rank], key=lambda port: (loads[port], port))
                amount = amounts[rank][link] + 1 / topology.links
                loads[out] += amount
                peer = topology.peers[out]
                amounts[peer.rank][peer.link] += amount
                tables.cks[rank][link][0][target] = Step(OWN_LINK if out == own else code_of(link, out.link))
    return tables


class _Levels:
    """The distances from a root, and which links lead up: to a lower level, or on one level to a lower rank."""

    def __init__(self, topology: Topology, root: int) -> None:
        self.size = topology.size
        level = topology.distances(root)
        self.order = sorted(range(self.size), key=lambda rank: (level[rank], rank))
        self.up: list[list[tuple[Port, int]]] = [[] for _ in range(self.size)]
        self.down: list[list[tuple[Port, int]]] = [[] for _ in range(self.size)]
        for port, peer in sorted(topology.peers.items()):
            if port.rank != peer.rank:
                is_up = (level[peer.rank], peer.rank) < (level[port.rank], port.rank)
                (self.up if is_up else self.down)[port.rank].append((port, peer.rank))

    def left(self, target: int) -> tuple[list[int], list[bool]]:
        """Hops from each node, and whether all go down. Who can go down does, so nobody goes up after down."""
        left = [FAR] * self.size
        left[target] = 0
        for rank in reversed(self.order):
            for _, there in self.down[rank]:
                left[rank] = min(left[rank], 1 + left[there])
        falls = [hops < FAR for hops in left]
        for rank in self.order:
            if not falls[rank]:
                left[rank] = min(1 + left[there] for _, there in self.up[rank])
        return left, falls

    def exits(self, target: int) -> tuple[list[int], list[list[Port]]]:
        """Hops from each node, and the links that lead on in so few."""
        left, falls = self.left(target)
        exits = []
        for rank in range(self.size):
            onward = [entry for entry in self.down[rank] if falls[entry[1]]] if falls[rank] else self.up[rank]
            exits.append([port for port, there in onward if left[there] == left[rank] - 1])
        return left, exits

    def total(self) -> int:
        """Hops of all ways together."""
        return sum(sum(self.left(target)[0]) for target in range(self.size))
