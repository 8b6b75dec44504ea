"""What is said of tables: figures for people and for programs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from .proof import Finding, Wait
from .tables import Tables
from .topology import Port, Topology


@dataclass(frozen=True)
class Summary:
    """Figures of tables."""

    least: int  #: hops of the shortest way between two ranks
    mean: float
    most: int
    shortest: bool  #: whether no way is longer than it must be
    busiest: Port | None
    load: float  #: pairs of ranks whose messages cross the busiest link


def summary(topology: Topology, finding: Finding) -> Summary:
    """Figures of what was found out."""
    hops = [n for (source, _, target), n in finding.hops.items() if source != target]
    far = [topology.distances(target) for target in range(topology.size)]
    shortest = all(n == far[target][source] for (source, _, target), n in finding.hops.items())
    busiest = max(finding.loads, key=lambda port: (finding.loads[port], -port.rank, -port.link), default=None)
    if not hops:
        return Summary(0, 0.0, 0, shortest, busiest, 0.0)
    load = finding.loads[busiest] if busiest else 0.0
    return Summary(min(hops), statistics.mean(hops), max(hops), shortest, busiest, load)


def ranks_of(topology: Topology, circle: list[Wait]) -> str:
    """The links of a circle as the ranks that they lead through; empty if it stays within a node."""
    links = [wait.queue for wait in circle if wait.queue.kind == "link"]
    if not links:
        return ""
    last = topology.peers[Port(links[-1].rank, links[-1].link)].rank
    return " -> ".join([*(str(queue.rank) for queue in links), str(last)])


def circle_lines(topology: Topology, circle: list[Wait], channels: int) -> list[str]:
    """A circle hop by hop: each queue, and the message in it that waits for the next one."""
    texts = [wait.queue.text(topology, channels) for wait in circle]
    width = max(map(len, texts), default=0)
    return [
        f"{number:3}  {text:{width}}  message {wait.message.source} -> {wait.message.target}"
        for number, (text, wait) in enumerate(zip(texts, circle, strict=True), 1)
    ]


def as_data(topology: Topology, tables: Tables, finding: Finding, ok: bool, files: list[str]) -> dict[str, Any]:
    """All of it for programs."""
    figures = summary(topology, finding)
    busiest = None
    if figures.busiest is not None:
        peer = topology.peers[figures.busiest]
        busiest = {"link": topology.label(figures.busiest), "to": topology.label(peer), "pairs": figures.load}
    return {
        "ok": ok,
        "scheme": tables.scheme,
        "ranks": topology.size,
        "nodes": list(topology.names),
        "cables": len(topology.cables),
        "links_per_node": tables.links,
        "virtual_channels": finding.channels,
        "hops": {"min": figures.least, "mean": figures.mean, "max": figures.most},
        "all_shortest": figures.shortest,
        "most_loaded": busiest,
        "links_proven": finding.links,
        "inner_queues_proven": finding.inner,
        "faults": finding.faults,
        "circle": _circle(topology, finding.circle, tables.channels),
        "circle_of_serial_kernels": _circle(topology, finding.kernel_circle, tables.channels),
        "files": files,
    }


def _circle(topology: Topology, circle: list[Wait], channels: int) -> list[dict[str, Any]]:
    return [
        {
            "queue": wait.queue.text(topology, channels),
            "kind": wait.queue.kind,
            "rank": wait.queue.rank,
            "link": wait.queue.link,
            "channel": wait.queue.channel,
            "message": {"from": wait.message.source, "to": wait.message.target},
        }
        for wait in circle
    ]
