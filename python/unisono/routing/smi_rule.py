"""What SMI's route generator does: the shortest ways of each CKS, whatever circles they form together.

Cables cost 100, steps between the links of a node 1, and each CKS looks at the shortest ways from itself to all links
of the destination's node. Of those it takes the one of the fewest steps; of equal ones the first that Dijkstra's search
meets when it visits cables in the order of the file. To give the tables that users of SMI have, this follows that
order, too.
"""

from __future__ import annotations

import heapq

from .tables import LOCAL_CKR, NO_WAY, OWN_LINK, Step, Tables, code_of, empty
from .topology import Port, Topology

CABLE = 100
INNER = 1


def route(topology: Topology, ckr: list[list[list[int]]]) -> Tables:
    """The tables of SMI's rule."""
    tables = empty(topology, "smi", 1, ckr)
    near = _neighbours(topology)
    for rank in range(topology.size):
        for link in range(topology.links):
            start = Port(rank, link)
            first = _first_steps(near, start, topology.size)
            for to in range(topology.size):
                step = first[to]
                if to == rank:
                    code = LOCAL_CKR
                elif step is None:
                    code = NO_WAY
                else:
                    code = code_of(link, step.link) if step.rank == rank else OWN_LINK
                tables.cks[rank][link][0][to] = Step(code)
    return tables


def _neighbours(topology: Topology) -> dict[Port, dict[Port, int]]:
    """Each link's neighbours and what it costs to go there, in the order in which the search visits them."""
    near: dict[Port, dict[Port, int]] = {}
    seen: dict[int, None] = {}

    def join(a: Port, b: Port, cost: int) -> None:
        near.setdefault(a, {})[b] = cost
        near.setdefault(b, {})[a] = cost

    for a, b in topology.cables:
        for port in (a, b):
            seen.setdefault(port.rank)
        join(a, b, CABLE)
        join(b, a, CABLE)
    for rank in [*seen, *(rank for rank in range(topology.size) if rank not in seen)]:
        for link in range(topology.links):
            for other in range(topology.links):
                if link != other:
                    join(Port(rank, link), Port(rank, other), INNER)
    return near


def _first_steps(near: dict[Port, dict[Port, int]], start: Port, size: int) -> list[Port | None]:
    """For each rank the first step of the chosen way from one link."""
    cost = {start: 0}
    ways: dict[Port, tuple[Port | None, int]] = {start: (None, 0)}  # first step and number of steps
    done = set()
    waiting = [(0, 0, start)]
    number = 1
    while waiting:
        spent, _, here = heapq.heappop(waiting)
        if here in done:
            continue
        done.add(here)
        first, steps = ways[here]
        for there, price in near.get(here, {}).items():
            if there not in done and (there not in cost or spent + price < cost[there]):
                cost[there] = spent + price
                ways[there] = (first or there, steps + 1)
                heapq.heappush(waiting, (spent + price, number, there))
                number += 1
    chosen: list[Port | None] = [None] * size
    least = [len(near) + 1] * size
    for port, (first, steps) in ways.items():
        if steps < least[port.rank]:
            least[port.rank] = steps
            chosen[port.rank] = first
    return chosen
