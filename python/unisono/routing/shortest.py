"""Shortest ways on the fewest virtual channels on which no circle can wait.

If all links of all virtual channels stand in an order, and every message crosses them in that order, nothing waits in
a circle; and of tables without a circle such an order can be read off. So what is searched for is an order in which
every pair of nodes has a shortest way that rises. `_Search` builds one: it adds to a graph without circles one step
from a link to the next after another, those first that leave no choice. Tables then take, of all shortest ways that
rise, those over the least loaded links.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InvalidArgumentError
from .tables import MOST_CHANNELS, OWN_LINK, Step, Tables, code_of, empty
from .topology import Port, Topology

TRIES = 24  #: to do with so many virtual channels, in random orders
ENOUGH = 6  #: orders to choose from
ENOUGH_OF_MANY = 2  #: where there are more than MANY pairs
MANY = 2000
PASSES = 4  #: over all destinations, in which each chooses anew, knowing what the others have chosen
ROOTS = 16  #: that are tried for what does in any case, the most central first
PATIENCE = 20_000  #: steps of a search that takes back what it chose, in small networks

Spot = tuple[Port, int]
"""A link out of a node, and a virtual channel of it."""


def route(topology: Topology, ckr: list[list[list[int]]], channels: int | None = None) -> Tables:
    """Tables of shortest ways, on the fewest virtual channels or on a given number of them.

    Of several orders that were found the one counts whose most loaded link is the least loaded. Raises
    `InvalidArgumentError` if there are too few virtual channels.
    """
    ways = Ways(topology)
    count, orders = fewest(ways) if channels is None else _with(ways, channels)
    made = [_fill(ways, count, order, ckr) for order in orders]
    return min(made, key=lambda found: found[1])[0]


class Ways:
    """The shortest ways of a topology: by destination, the links of each node that lead nearer to it."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.far = [topology.distances(target) for target in range(topology.size)]
        ports: list[list[Port]] = [[] for _ in range(topology.size)]
        for port in sorted(topology.peers):
            ports[port.rank].append(port)
        self.peer = topology.peers
        self.exits = [
            [[p for p in ports[rank] if far[self.peer[p].rank] == far[rank] - 1] for rank in range(topology.size)]
            for far in self.far
        ]
        self.ports = sorted(topology.peers)

    def levels(self) -> Iterator[list[tuple[int, int]]]:
        """Pairs (source, destination) by their distance, from 2."""
        size = self.topology.size
        by: dict[int, list[tuple[int, int]]] = {}
        for target in range(size):
            for source in range(size):
                by.setdefault(self.far[target][source], []).append((source, target))
        for distance in sorted(by):
            if distance >= 2:
                yield by[distance]


class _Order:
    """A graph without circles of which spot comes before which, with all that follows from it."""

    def __init__(self, size: int) -> None:
        self.after = [0] * size  #: bits of those that come later
        self.before = [0] * size

    def allows(self, a: int, b: int) -> bool:
        """Whether a may come before b."""
        return a != b and not self.after[b] >> a & 1

    def follows(self, a: int, b: int) -> bool:
        """Whether b is known to come after a."""
        return bool(self.after[a] >> b & 1)

    def add(self, a: int, b: int) -> None:
        """Lets a come before b, which is allowed."""
        if self.follows(a, b):
            return
        later = self.after[b] | 1 << b
        earlier = self.before[a] | 1 << a
        for x in _bits(earlier):
            self.after[x] |= later
        for y in _bits(later):
            self.before[y] |= earlier

    def copy(self) -> _Order:
        """Another one that can go on differently."""
        other = _Order(0)
        other.after, other.before = self.after[:], self.before[:]
        return other

    def sorted(self) -> list[int]:
        """All spots in an order that agrees."""
        return sorted(range(len(self.after)), key=lambda x: (self.before[x].bit_count(), x))


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


Found = tuple[int, list[list[int]]]
"""Virtual channels, and orders of their spots: of channel * number of ports + port."""


def fewest(ways: Ways) -> Found:
    """The fewest virtual channels on which orders are found, and these."""
    forced = _forced(ways)
    if forced is not None:
        found = _searched(ways, 1, forced)
        if not found and ways.topology.size**2 <= MANY:
            deep = _Deep(ways).run(forced)
            found = [deep.sorted()] if deep else []
        if found:
            return 1, found
    bound, order = _bound(ways)
    for channels in range(2, min(bound, MOST_CHANNELS + 1)):
        found = _searched(ways, channels)
        if found:
            return channels, found
    if bound > MOST_CHANNELS:
        raise InvalidArgumentError(
            f"shortest ways were found with {bound} virtual channels only; there are {MOST_CHANNELS} "
            "(--scheme updown needs one, and may take longer ways)"
        )
    return bound, [order, *_searched(ways, bound)]


def _with(ways: Ways, channels: int) -> Found:
    """Orders on a given number of virtual channels."""
    bound, order = _bound(ways)
    ports = len(ways.ports)
    found = _searched(ways, channels)
    if bound <= channels:
        rest = [on * ports + x for on in range(bound, channels) for x in range(ports)]
        found.append(order + rest)
    if not found:
        count, found = fewest(ways)
        if count > channels:
            raise InvalidArgumentError(
                f"shortest ways need {count} virtual channels here, and {channels} were asked for "
                "(--scheme updown needs one, and may take longer ways)"
            )
    return channels, found


def _searched(ways: Ways, channels: int, begin: _Order | None = None) -> list[list[int]]:
    """Some orders, if some tries find any."""
    enough = ENOUGH if ways.topology.size**2 <= MANY else ENOUGH_OF_MANY
    found: list[list[int]] = []
    for number in range(TRIES):
        order = _Search(ways, channels, random.Random(number) if number else None).run(begin)
        if order is not None:
            found.append(order.sorted())
        if len(found) == enough:
            break
    return found


def _forced(ways: Ways) -> _Order | None:
    """What follows from pairs two hops apart that have one way only; None if this is a circle already."""
    order = _Order(len(ways.ports))
    number = {port: at for at, port in enumerate(ways.ports)}
    for target, exits in enumerate(ways.exits):
        for source in range(ways.topology.size):
            if ways.far[target][source] != 2 or len(exits[source]) != 1:
                continue
            first = exits[source][0]
            second = exits[ways.peer[first].rank]
            if len(second) == 1:
                a, b = number[first], number[second[0]]
                if not order.allows(a, b):
                    return None
                order.add(a, b)
    return order


def _bound(ways: Ways) -> tuple[int, list[int]]:
    """An order that does, whatever the network: up*/down* once on each virtual channel, from the best of some roots."""
    best: tuple[int, list[int]] | None = None
    central = sorted(range(ways.topology.size), key=lambda rank: (sum(ways.far[rank]), rank))
    number = {port: at for at, port in enumerate(ways.ports)}
    for root in central[:ROOTS]:
        level = ways.far[root]

        def place(port: Port, level: list[int] = level) -> tuple[bool, int, int, Port]:
            peer = ways.peer[port]
            up = (level[peer.rank], peer.rank) < (level[port.rank], port.rank)
            sign = -1 if up else 1
            return not up, sign * level[port.rank], sign * port.rank, port

        order = [number[port] for port in sorted(ways.ports, key=place)]
        channels = _channels_of(ways, order)
        if best is None or channels < best[0]:
            best = channels, [on * len(ways.ports) + x for on in range(channels) for x in order]
    assert best is not None
    return best


def _channels_of(ways: Ways, order: list[int]) -> int:
    """How many virtual channels do, if on each of them links are crossed in this order."""
    place = {ways.ports[x]: at for at, x in enumerate(order)}
    worst = 0
    for target, exits in enumerate(ways.exits):
        falls: dict[Port, int] = {}
        for rank in sorted(range(ways.topology.size), key=ways.far[target].__getitem__):
            for port in exits[rank]:
                onward = exits[ways.peer[port].rank]
                falls[port] = min((falls[q] + (place[q] < place[port]) for q in onward), default=0)
            if exits[rank]:
                worst = max(worst, min(falls[port] for port in exits[rank]))
    return worst + 1


@dataclass
class _Search:
    """Adds pair after pair, by distance, each with the step that restricts the others least."""

    ways: Ways
    channels: int
    chance: random.Random | None  #: None: the first try, without it

    def run(self, begin: _Order | None = None) -> _Order | None:
        """A graph in which every pair has a way; None if none was found."""
        ways, ports = self.ways, self.ways.ports
        self.number = {port: at for at, port in enumerate(ports)}
        self.order = begin.copy() if begin else _Order(len(ports) * self.channels)
        size = ways.topology.size
        self.open: list[list[set[int]]] = [[set() for _ in range(size)] for _ in range(size)]
        for port in ports:
            peer = ways.peer[port]
            if peer.rank != port.rank:
                for on in range(self.channels):
                    self.open[peer.rank][port.rank].add(on * len(ports) + self.number[port])
        for level in ways.levels():
            pairs = [(len(self._steps(*pair)), self.chance.random() if self.chance else 0.0, *pair) for pair in level]
            for _, _, source, target in sorted(pairs):
                if not self._add(source, target):
                    return None
        return self.order

    def _steps(self, source: int, target: int) -> list[tuple[int, int]]:
        """The first steps of ways for a pair: two spots, of which the second leads on already."""
        ports, found = len(self.ways.ports), []
        for port in self.ways.exits[target][source]:
            onward = self.open[target][self.ways.peer[port].rank]
            for on in range(self.channels):
                a = on * ports + self.number[port]
                found += [(a, b) for b in sorted(onward) if self.order.allows(a, b)]
        return found

    def _add(self, source: int, target: int) -> bool:
        steps = self._steps(source, target)
        if not steps:
            return self._dig(source, target)
        a, b = min(steps, key=self._harm)
        self.order.add(a, b)
        self.open[target][source].add(a)
        # Other ways that need nothing new are open as well.
        self.open[target][source].update(x for x, y in steps if self.order.follows(x, y))
        return True

    def _harm(self, step: tuple[int, int]) -> tuple[int, float, float]:
        """How much a step restricts those to come, the virtual channels it takes, and chance."""
        a, b = step
        ports = len(self.ways.ports)
        new = 0 if self.order.follows(a, b) else (self.order.before[a].bit_count() + 1) * (
            self.order.after[b].bit_count() + 1
        )  # fmt: skip
        chance = self.chance.random() if self.chance else 0.0
        return int(new * (1 + chance)), a // ports + b // ports, chance

    def _dig(self, source: int, target: int) -> bool:
        """A way whose further steps are new, too."""
        ports = len(self.ways.ports)
        for port in self.ways.exits[target][source]:
            for on in range(self.channels):
                way = self._follow(on * ports + self.number[port], target)
                if way is not None:
                    for a, b in itertools.pairwise(way):
                        self.order.add(a, b)
                    for spot in way:
                        self.open[target][self.ways.ports[spot % ports].rank].add(spot)
                    return True
        return False

    def _follow(self, spot: int, target: int) -> list[int] | None:
        """Spots from one to a destination, each allowed after the one before."""
        ports = len(self.ways.ports)
        here = self.ways.peer[self.ways.ports[spot % ports]].rank
        if here == target or spot in self.open[target][self.ways.ports[spot % ports].rank]:
            return [spot]
        for port in self.ways.exits[target][here]:
            for on in range(self.channels):
                following = on * ports + self.number[port]
                if self.order.allows(spot, following):
                    way = self._follow(following, target)
                    if way is not None and self._fits([spot, *way]):
                        return [spot, *way]
        return None

    def _fits(self, way: list[int]) -> bool:
        """Whether the steps of a way are allowed together, which each of them is alone."""
        trial = self.order.copy()
        for a, b in itertools.pairwise(way):
            if not trial.allows(a, b):
                return False
            trial.add(a, b)
        return True


class _Deep:
    """The same on one virtual channel, and takes back what leads nowhere: finds an order if there is one, or gives up.

    It is enough to choose one link for each node and destination. Where a message may go on by several links in a
    given order, the one that comes latest suits every message that suits any of them.
    """

    def __init__(self, ways: Ways) -> None:
        self.ways = ways
        self.number = {port: at for at, port in enumerate(ways.ports)}
        self.pairs = [pair for level in ways.levels() for pair in level]
        self.left = PATIENCE

    def run(self, begin: _Order) -> _Order | None:
        """A graph in which every pair has a way; None if there is none, or patience is at its end."""
        chosen = {
            (source, target): exits[source]
            for target, exits in enumerate(self.ways.exits)
            for source in range(self.ways.topology.size)
            if self.ways.far[target][source] == 1
        }
        if not self.pairs:
            return begin
        stack = [self._choices(0, begin, chosen)]
        while stack and self.left > 0:
            self.left -= 1
            choice = next(stack[-1], None)
            if choice is None:
                stack.pop()
                continue
            port, order = choice
            chosen[self.pairs[len(stack) - 1]] = [port]
            if len(stack) == len(self.pairs):
                return order
            stack.append(self._choices(len(stack), order, chosen))
        return None

    def _choices(
        self, at: int, order: _Order, chosen: dict[tuple[int, int], list[Port]]
    ) -> Iterator[tuple[Port, _Order]]:
        """The links that a pair may begin with, and what then is known."""
        source, target = self.pairs[at]
        for port in self.ways.exits[target][source]:
            for onward in chosen[self.ways.peer[port].rank, target]:
                a, b = self.number[port], self.number[onward]
                if order.follows(a, b):
                    yield port, order
                elif order.allows(a, b):
                    trial = order.copy()
                    trial.add(a, b)
                    yield port, trial


def _fill(ways: Ways, channels: int, order: list[int], ckr: list[list[list[int]]]) -> tuple[Tables, list[float]]:
    """Tables whose ways rise in an order of spots, over the least loaded links; and the loads, greatest first."""
    topology = ways.topology
    tables = empty(topology, "shortest", channels, ckr)
    place: dict[Spot, int] = {(ways.ports[x % len(ways.ports)], x // len(ways.ports)): at for at, x in enumerate(order)}
    loads = dict.fromkeys(ways.ports, 0.0)
    parts: list[dict[Port, float]] = [{} for _ in range(topology.size)]
    onward = [_onward(ways, target, channels, place) for target in range(topology.size)]
    for _ in range(PASSES):
        for target in range(topology.size):
            for port, amount in parts[target].items():
                loads[port] -= amount
            entries, parts[target] = _fill_target(ways, tables, target, onward[target], loads)
            for (rank, link, on), step in entries.items():
                tables.cks[rank][link][on][target] = step
    return tables, sorted((round(load, 6) for load in loads.values()), reverse=True)


def _onward(ways: Ways, target: int, channels: int, place: dict[Spot, int]) -> dict[Spot, list[Spot]]:
    """Spots from which a way rises to a destination, each with those by which it goes on."""
    exits, far = ways.exits[target], ways.far[target]
    onward: dict[Spot, list[Spot]] = {}
    for rank in sorted(range(ways.topology.size), key=far.__getitem__):
        for port in exits[rank]:
            there = ways.peer[port].rank
            for on in range(channels):
                spots = [
                    spot
                    for spot in ((q, c) for q in exits[there] for c in range(channels))
                    if spot in onward and place[port, on] < place[spot]
                ]
                if there == target or spots:
                    onward[port, on] = spots
    return onward


def _fill_target(
    ways: Ways, tables: Tables, target: int, onward: dict[Spot, list[Spot]], loads: dict[Port, float]
) -> tuple[dict[tuple[int, int, int], Step], dict[Port, float]]:
    """The entries for one destination, by rank, link and channel, and what they add to each link's load.

    It begins at the farthest node, so that it is known what comes to each.
    """
    links = tables.links
    entries: dict[tuple[int, int, int], Step] = {}
    added: dict[Port, float] = {}
    coming: dict[tuple[int, int, int], tuple[float, list[Spot]]] = {}
    for rank in sorted(range(ways.topology.size), key=lambda r: (-ways.far[target][r], r)):
        if rank == target:
            continue
        spots = [(port, on) for port in ways.exits[target][rank] for on in range(tables.channels)]
        spots = [spot for spot in spots if spot in onward]
        asked: list[tuple[int, int, float, list[Spot]]] = []
        for link in range(links):
            own = [spot for spot in spots if spot[0].link == link]
            for on in range(tables.channels):
                amount, allowed = coming.get((rank, link, on), (0.0, spots))
                begins = on == 0
                if own:
                    # Nothing comes by this link to go back; what begins here takes it, on the lowest channel it may.
                    allowed = [spot for spot in own if spot[1] == on] or (own[:1] if begins else [])
                elif not begins and not amount:
                    allowed = []
                if allowed:
                    asked.append((link, on, amount + begins / links, allowed))
        # Who has the least choice goes first.
        for link, on, amount, allowed in sorted(asked, key=lambda entry: (len(entry[3]), -entry[2], entry[:2])):
            port, channel = min(allowed, key=lambda spot: (loads[spot[0]], spot[1], spot[0]))
            loads[port] += amount
            added[port] = added.get(port, 0.0) + amount
            entries[rank, link, on] = Step(OWN_LINK if port.link == link else code_of(link, port.link), channel)
            peer = ways.peer[port]
            if peer.rank != target:
                key = (peer.rank, peer.link, channel)
                coming[key] = coming.get(key, (0.0, []))[0] + amount, onward[port, channel]
    return entries, added
