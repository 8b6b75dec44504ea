"""Walks tables, and looks for circles of queues of which each waits for the next one.

Dally and Seitz: if no circle stands in the graph of which queue may wait for which, no traffic can block for ever. The
queues are the links, one for each direction and virtual channel, and the inner FIFOs of every node. Endpoints take
what comes to them.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .tables import LOCAL_CKR, OWN_LINK, Tables, other_of
from .topology import Port, Topology

Kind = Literal["link", "cks>cks", "cks>ckr", "ckr>cks", "ckr>ckr", "cks", "ckr"]


class Queue(NamedTuple):
    """A queue; or, of kernels that hold one message at a time, the kernel ("cks", "ckr")."""

    kind: Kind
    rank: int
    link: int
    other: int = 0  #: the link whose kernel reads, of "cks>cks" and "ckr>ckr"
    channel: int = 0

    def text(self, topology: Topology, channels: int = 1) -> str:
        """The queue in words."""
        behind = f", channel {self.channel}" if channels > 1 and self.kind not in ("ckr>ckr", "cks", "ckr") else ""
        port = Port(self.rank, self.link)
        if self.kind == "link":
            peer = topology.peers[port]
            return f"link {topology.label(port)} to {topology.label(peer)} (rank {self.rank} to {peer.rank}){behind}"
        node = f"{topology.names[self.rank]} (rank {self.rank})"
        if self.kind in ("cks", "ckr"):
            return f"{node}: the message that {self.kind.upper()}_{self.link} holds"
        source, target = self.kind.upper().split(">")
        reader = self.other if self.kind in ("cks>cks", "ckr>ckr") else self.link
        return f"{node}: FIFO {source}_{self.link} to {target}_{reader}{behind}"


class Message(NamedTuple):
    """An example of what is on a way: from where to where."""

    source: int
    link: int  #: whose CKS it begins at
    target: int


Edges = dict[Queue, dict[Queue, Message]]
MOST_FAULTS = 20


class Wait(NamedTuple):
    """A step of a circle: a queue, and a message in it that waits for the next one."""

    queue: Queue
    message: Message


@dataclass
class Finding:
    """What was found out about tables."""

    faults: list[str] = field(default_factory=list)  #: what is wrong with single entries and ways
    circle: list[Wait] = field(default_factory=list)
    kernel_circle: list[Wait] = field(default_factory=list)  #: if every kernel holds one message at a time
    links: int = 0  #: that messages use, each direction and virtual channel
    inner: int = 0  #: FIFOs within nodes that messages use
    channels: int = 0  #: virtual channels that messages use
    hops: dict[tuple[int, int, int], int] = field(default_factory=dict)  #: by source, its link, and destination
    loads: dict[Port, float] = field(default_factory=dict)  #: pairs of ranks whose messages cross a link
    waits: Edges = field(default_factory=dict, repr=False)  #: which queue may wait for which, by an example

    @property
    def right(self) -> bool:
        """Whether all is reached, and nothing can wait in a circle."""
        return not self.faults and not self.circle


@dataclass
class _Walk:
    """Follows messages, and notes which queue waits for which."""

    topology: Topology
    tables: Tables
    finding: Finding
    edges: Edges = field(default_factory=dict)  #: which queue waits for which
    held: Edges = field(default_factory=dict)  #: likewise, if each kernel holds one message at a time
    arrived: dict[Queue, Message] = field(default_factory=dict)  #: queues from which messages come to their CKR

    def go(self, message: Message, known: dict[tuple[int, int, int], int | None]) -> int | None:
        """Follows a message from an endpoint; the number of its hops, None where it does not arrive.

        `known` are the hops left from each CKS and virtual channel, of messages to the same rank.
        """
        here = (message.source, message.link, 0)
        last: Queue | None = None
        trail: list[tuple[int, int, int]] = []
        on_trail: set[tuple[int, int, int]] = set()
        crossed: list[bool] = []
        hops: int | None = None
        while True:
            if here in on_trail:
                self._fault(message, "goes in a loop", trail[trail.index(here) :])
                break
            seen = here in known
            if seen:
                hops = known[here]
            trail.append(here)
            on_trail.add(here)
            step = self.step(message, here)
            if isinstance(step, str):
                if not seen:
                    self._fault(message, step, [here])
                break
            queues, following, over = step
            for queue in queues:
                self._note(last, queue, message, here)
                last = queue
            if seen:  # from here on all has been noted; what was new is how this queue is reached
                if following is not None:
                    crossed.append(over)
                break
            crossed.append(over)
            if following is None:
                hops = int(over)
                known[here] = hops
                break
            here = following
        return self._settle(trail, crossed, hops, known)

    @staticmethod
    def _settle(
        trail: list[tuple[int, int, int]],
        crossed: list[bool],
        hops: int | None,
        known: dict[tuple[int, int, int], int | None],
    ) -> int | None:
        """Writes down the hops left from every place of a trail whose last place is settled."""
        known.setdefault(trail[-1], hops)
        for place, over in zip(reversed(trail[:-1]), reversed(crossed[: len(trail) - 1]), strict=True):
            hops = None if hops is None else hops + over
            known[place] = hops
        return known[trail[0]]

    def step(
        self, message: Message, here: tuple[int, int, int]
    ) -> tuple[list[Queue], tuple[int, int, int] | None, bool] | str:
        """Queues that follow a CKS, the next CKS (None: the message arrives), and whether a cable is crossed."""
        rank, link, channel = here
        code, on = self.tables.cks[rank][link][channel][message.target]
        if on >= self.tables.channels:
            return f"virtual channel {on} is beyond the last, {self.tables.channels - 1}"
        if code == OWN_LINK:
            peer = self.topology.peers.get(Port(rank, link))
            if peer is None:
                return "is sent out of a link without a cable"
            queues = [Queue("link", rank, link, channel=on)]
            if peer.rank == message.target:
                return queues, None, True
            queues.append(Queue("ckr>cks", peer.rank, peer.link, channel=on))
            return queues, (peer.rank, peer.link, on), True
        if code == LOCAL_CKR:
            queues = [Queue("cks>ckr", rank, link, channel=on)]
            if rank == message.target:
                return queues, None, False
            queues.append(Queue("ckr>cks", rank, link, channel=on))
            return queues, (rank, link, on), False
        if not 0 <= code <= self.tables.links:
            return f"has no way there: the entry is {code}"
        other = other_of(link, code)
        return [Queue("cks>cks", rank, link, other, on)], (rank, other, on), False

    def _note(self, last: Queue | None, queue: Queue, message: Message, here: tuple[int, int, int]) -> None:
        self.edges.setdefault(queue, {})
        if last is not None:
            self.edges[last].setdefault(queue, message)
        crossing = queue.kind == "ckr>cks"
        kernel = Queue("ckr", queue.rank, queue.link) if crossing else Queue("cks", here[0], here[1])
        self._hold(last, kernel, queue, message)

    def _hold(self, last: Queue | None, kernel: Queue, queue: Queue, message: Message) -> None:
        if message.source == message.target:
            return  # nobody does this, and it would be the only circle of some
        if last is not None:
            self.held.setdefault(last, {}).setdefault(kernel, message)
        self.held.setdefault(kernel, {}).setdefault(queue, message)
        self.held.setdefault(queue, {})

    def deliver(self) -> None:
        """Notes the ways from each node's CKRs to its endpoints."""
        arriving: dict[tuple[int, int], list[tuple[Queue, Message]]] = {}
        for queue, message in self.arrived.items():
            place = self.topology.peers[Port(queue.rank, queue.link)] if queue.kind == "link" else queue
            arriving.setdefault((place.rank, place.link), []).append((queue, message))
        for (rank, link), queues in sorted(arriving.items()):
            tables = self.tables.ckr[rank]
            for index in range(min(map(len, tables))):
                here = link
                way: list[tuple[int, Queue]] = []
                while 0 < (code := tables[here][index]) < self.tables.links and len(way) < self.tables.links:
                    following = code - 1 + (code - 1 >= here)
                    way.append((here, Queue("ckr>ckr", rank, here, following)))
                    here = following
                for queue, message in queues:
                    last = queue
                    for reader, inner in way:
                        self.edges.setdefault(inner, {})
                        self.edges[last].setdefault(inner, message)
                        self._hold(last, Queue("ckr", rank, reader), inner, message)
                        last = inner

    def _fault(self, message: Message, what: str, places: Sequence[tuple[int, int, int]]) -> None:
        if len(self.finding.faults) >= MOST_FAULTS:
            return
        names = " -> ".join(
            f"{self.topology.names[rank]} CKS_{link}" + (f" channel {on}" if self.tables.channels > 1 else "")
            for rank, link, on in dict.fromkeys(places)
        )
        self.finding.faults.append(
            f"a message from rank {message.source}, CKS_{message.link}, to rank {message.target} {what}: at {names}"
        )


def examine(topology: Topology, tables: Tables) -> Finding:
    """Walks all ways, and looks for circles."""
    finding = Finding()
    walk = _Walk(topology, tables, finding)
    for target in range(topology.size):
        known: dict[tuple[int, int, int], int | None] = {}
        # Who sends to itself comes last: what is held up by others' messages must not be noted as by these.
        for source in sorted(range(topology.size), key=lambda rank: (rank == target, rank)):
            for link in range(topology.links):
                hops = walk.go(Message(source, link, target), known)
                if hops is not None:
                    finding.hops[source, link, target] = hops
    _load(topology, tables, finding, walk)
    finding.faults += _port_faults(topology, tables)[: MOST_FAULTS - len(finding.faults)]
    walk.deliver()
    used = [queue for queue in walk.edges if queue.kind == "link"]
    finding.links = len(used)
    finding.inner = len(walk.edges) - len(used)
    finding.channels = 1 + max((queue.channel for queue in walk.edges), default=0)
    finding.waits = walk.edges
    finding.circle = circle_of(walk.edges)
    finding.kernel_circle = circle_of(walk.held)
    return finding


def _load(topology: Topology, tables: Tables, finding: Finding, walk: _Walk) -> None:
    """How many pairs of ranks use each link; each CKS of a source counts as its part of a pair."""
    loads: Counter[Port] = Counter()
    for target in range(topology.size):
        amounts: Counter[tuple[int, int, int]] = Counter()
        for source, link, to in ((s, k, target) for s in range(topology.size) for k in range(topology.links)):
            if (source, link, to) in finding.hops:
                amounts[source, link, 0] += 1
        for place in _towards(topology, tables, target, amounts):
            rank, link, channel = place
            code, on = tables.cks[rank][link][channel][target]
            queues = walk.step(Message(rank, link, target), place)
            if isinstance(queues, str):
                continue
            _, following, over = queues
            if over:
                loads[Port(rank, link)] += amounts[place]
            if following is not None:
                amounts[following] += amounts[place]
            elif code in (OWN_LINK, LOCAL_CKR):
                last = Queue("link" if over else "cks>ckr", rank, link, channel=on)
                walk.arrived.setdefault(last, Message(rank, link, target))
    finding.loads = {port: loads[port] / topology.links for port in sorted(topology.peers)}


def _towards(
    topology: Topology, tables: Tables, target: int, begin: Counter[tuple[int, int, int]]
) -> Iterator[tuple[int, int, int]]:
    """The places of all ways to a rank, each after those from which messages come to it."""
    walk = _Walk(topology, tables, Finding())

    def following(place: tuple[int, int, int]) -> tuple[int, int, int] | None:
        step = walk.step(Message(place[0], place[1], target), place)
        return None if isinstance(step, str) else step[1]

    before: Counter[tuple[int, int, int]] = Counter()
    seen = set()
    for start in begin:
        place: tuple[int, int, int] | None = start
        while place is not None and place not in seen:
            seen.add(place)
            place = following(place)
            if place is not None:
                before[place] += 1
    waiting = deque(place for place in begin if not before[place])
    while waiting:
        place = waiting.popleft()
        yield place
        after = following(place)
        if after is not None:
            before[after] -= 1
            if not before[after]:
                waiting.append(after)


def _port_faults(topology: Topology, tables: Tables) -> list[str]:
    """What is wrong with tables of CKR: every port is to lead to one endpoint, from wherever its messages come."""
    faults = []
    links = tables.links
    for rank, ckr in enumerate(tables.ckr):
        node = f"{topology.names[rank]} (rank {rank})"
        if len({len(table) for table in ckr}) > 1:
            faults.append(f"{node}: its CKR have tables of different lengths")
            continue
        owners: dict[tuple[int, int], str] = {}
        for index in range(len(ckr[0]) if ckr else 0):
            port = f"{('data', 'control')[index % 2]} of port {index // 2}"
            column = [table[index] for table in ckr]
            if not any(column):
                continue
            ends = []
            for start in range(links):
                here = start
                for _ in range(links):
                    if not 0 < column[here] < links:
                        break
                    here = column[here] - 1 + (column[here] - 1 >= here)
                else:
                    faults.append(f"{node}: {port} goes in a loop from CKR_{start}")
                    break
                if column[here] == 0:
                    faults.append(f"{node}: {port} does not arrive: CKR_{here} has no entry for it")
                    break
                ends.append((here, column[here] - links))
            else:
                if len(set(ends)) > 1:
                    places = " and ".join(f"endpoint {number} of CKR_{link}" for link, number in sorted(set(ends))[:2])
                    faults.append(f"{node}: {port} leads to {places}")
                elif ends[0] in owners:
                    faults.append(f"{node}: {port} and {owners[ends[0]]} lead to the same endpoint of CKR_{ends[0][0]}")
                owners[ends[0]] = port
        for link in range(links):
            numbers = sorted(number for at, number in owners if at == link)
            if numbers != list(range(len(numbers))):
                faults.append(
                    f"{node}: the endpoints of CKR_{link} are {', '.join(map(str, numbers))}; "
                    f"they are to be 0 to {len(numbers) - 1}"
                )
    return faults


def circle_of(edges: Edges) -> list[Wait]:
    """A shortest circle, of equal ones that of the lowest ranks; empty if there is none."""
    core = _in_circles(edges)
    links = sorted(queue for queue in core if queue.kind == "link")
    best: list[Queue] = []
    # Nearly every circle crosses a link, and there are few of these.
    for starts in (links, sorted(core.difference(links))):
        for start in starts:
            way = _round(edges, core, start, len(best) or len(core))
            if way and (not best or _size(way) < _size(best)):
                best = way
        if best:
            break
    return [Wait(queue, edges[queue][best[(at + 1) % len(best)]]) for at, queue in enumerate(best)]


def _size(way: list[Queue]) -> tuple[int, int, list[int]]:
    """By what circles are compared: queues, ranks, and in which order it goes through these from the lowest on."""
    ranks = [queue.rank for queue in way if queue.kind == "link"]
    first = ranks.index(min(ranks)) if ranks else 0
    return len(way), sum(queue.rank for queue in way), ranks[first:] + ranks[:first]


def _round(edges: Edges, core: set[Queue], start: Queue, most: int) -> list[Queue]:
    """A shortest circle through one queue, of not more than so many."""
    came: dict[Queue, Queue] = {}
    waiting = [(0, start.rank, start, start)]
    while waiting:
        steps, ranks, here, before = heapq.heappop(waiting)
        if here in came or steps > most:
            continue
        if steps:
            came[here] = before
        if here == start and steps:
            way: list[Queue] = []
            while not way or here != start:
                here = came[here]
                way.append(here)
            return way[::-1]
        for there in edges[here]:
            if there in core:
                heapq.heappush(waiting, (steps + 1, ranks + there.rank, there, here))
    return []


def _in_circles(edges: Edges) -> set[Queue]:
    """Queues that are left when those that wait for nothing, or for which nothing waits, are taken away."""
    left = set(edges)
    for forward in (True, False):
        counts = dict.fromkeys(left, 0)
        into: dict[Queue, list[Queue]] = {queue: [] for queue in left}
        for here in left:
            for there in edges[here]:
                if there in left:
                    a, b = (here, there) if forward else (there, here)
                    counts[b] += 1
                    into[a].append(b)
        ready = deque(queue for queue in left if not counts[queue])
        while ready:
            queue = ready.popleft()
            left.discard(queue)
            for there in into[queue]:
                counts[there] -= 1
                if not counts[there]:
                    ready.append(there)
    return left
