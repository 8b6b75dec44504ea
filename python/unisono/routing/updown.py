"""Up*/down*: up towards a root, then down, and never up again. One virtual channel is enough in any network."""

from __future__ import annotations

from .tables import OWN_LINK, Step, Tables, code_of, empty
from .topology import Port, Topology

FAR = 1 << 30


def route(topology: Topology, ckr: list[list[list[int]]]) -> Tables:
    """Tables with the root from which the ways are shortest in all; of equal ways the least loaded links are taken."""
    best = min(range(topology.size), key=lambda root: (_total(topology, root), root))
    tables = empty(topology, "updown", 1, ckr)
    levels = topology.distances(best)
    loads = dict.fromkeys(topology.peers, 0.0)
    for target in range(topology.size):
        exits = _exits(topology, levels, target)
        left, _ = _left(topology, levels, target)
        amounts = [[0.0] * topology.links for _ in range(topology.size)]
        # A link is chosen for all that comes: who is far chooses first, so that loads are known.
        for rank in sorted(range(topology.size), key=lambda r: (-left[r], r)):
            if rank == target:
                continue
            ways = exits[rank]
            for link in range(topology.links):
                own = Port(rank, link)
                out = own if own in ways else min(ways, key=lambda port: (loads[port], port))
                amount = amounts[rank][link] + 1 / topology.links
                loads[out] += amount
                peer = topology.peers[out]
                amounts[peer.rank][peer.link] += amount
                tables.cks[rank][link][0][target] = Step(OWN_LINK if out == own else code_of(link, out.link))
    return tables


def _is_up(topology: Topology, levels: list[int], port: Port) -> bool:
    """Whether a link leads towards the root: to a lower level, or on one level to a lower rank."""
    peer = topology.peers[port]
    return (levels[peer.rank], peer.rank) < (levels[port.rank], port.rank)


def _left(topology: Topology, levels: list[int], target: int) -> tuple[list[int], list[bool]]:
    """Hops from each node, and whether they all go down. Who can go down does, so nobody goes up after down."""
    order = sorted(range(topology.size), key=lambda rank: (levels[rank], rank))
    left = [FAR] * topology.size
    left[target] = 0
    for rank in reversed(order):
        for link in range(topology.links):
            peer = topology.peers.get(Port(rank, link))
            if peer is not None and not _is_up(topology, levels, Port(rank, link)):
                left[rank] = min(left[rank], 1 + left[peer.rank])
    down = [hops < FAR for hops in left]
    for rank in order:
        if not down[rank]:
            for link in range(topology.links):
                peer = topology.peers.get(Port(rank, link))
                if peer is not None and _is_up(topology, levels, Port(rank, link)):
                    left[rank] = min(left[rank], 1 + left[peer.rank])
    return left, down


def _exits(topology: Topology, levels: list[int], target: int) -> list[list[Port]]:
    """Of each node the links that lead on, in as few hops as up*/down* has."""
    left, down = _left(topology, levels, target)
    exits: list[list[Port]] = [[] for _ in range(topology.size)]
    for port, peer in sorted(topology.peers.items()):
        if port.rank == peer.rank or left[port.rank] != 1 + left[peer.rank]:
            continue
        up = _is_up(topology, levels, port)
        if up != down[port.rank] and (up or down[peer.rank]):
            exits[port.rank].append(port)
    return exits


def _total(topology: Topology, root: int) -> int:
    levels = topology.distances(root)
    return sum(sum(_left(topology, levels, target)[0]) for target in range(topology.size))
