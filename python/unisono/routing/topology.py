"""Which links of which nodes are cabled to each other: read from SMI's topology files, generated, cut."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidArgumentError

MOST_LINKS = 8  #: of a node
SMI_LINKS = 4  #: that each node of SMI has
MOST_RANKS = 128  #: a message's header has a signed byte for them


class Port(NamedTuple):
    """An end of a cable."""

    rank: int
    link: int


@dataclass(frozen=True)
class Topology:
    """Nodes, by rank, and cables. Ranks are numbered as SMI does: by the order of the nodes' names."""

    names: tuple[str, ...]  #: "host:board"
    programs: tuple[str | None, ...]  #: what runs on each node, if the file says it
    links: int  #: of every node; a link need not have a cable
    cables: tuple[tuple[Port, Port], ...]  #: in the order of the file
    peers: dict[Port, Port] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        both = {a: b for cable in self.cables for a, b in (cable, cable[::-1])}
        object.__setattr__(self, "peers", both)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.names)

    def label(self, port: Port) -> str:
        """A port as files name it."""
        return f"{self.names[port.rank]}:ch{port.link}"

    def distances(self, target: int) -> list[int]:
        """Cables from each node to one of them; -1 where no way leads there."""
        found = [-1] * self.size
        found[target] = 0
        waiting = deque([target])
        while waiting:
            rank = waiting.popleft()
            for link in range(self.links):
                peer = self.peers.get(Port(rank, link))
                if peer is not None and found[peer.rank] < 0:
                    found[peer.rank] = found[rank] + 1
                    waiting.append(peer.rank)
        return found


class _Pairs(list[tuple[str, Any]]):
    """An object of a JSON file, of which no key is lost."""


@dataclass
class _Source:
    """A file's text, and what stands in which line of it."""

    name: str
    lines: dict[str, list[int]] = field(default_factory=dict)

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = {}
        for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"', text):
            self.lines.setdefault(found[0][1:-1], []).append(text.count("\n", 0, found.start()) + 1)

    def at(self, word: str, number: int = 0) -> str:
        """Where a string stands: the file, and the line if the string has one."""
        lines = self.lines.get(word, [])
        return f"{self.name}, line {lines[min(number, len(lines) - 1)]}" if lines else self.name

    def refuse(self, sentence: str, word: str = "", number: int = 0) -> InvalidArgumentError:
        """The error of something in the file."""
        return InvalidArgumentError(f"{self.at(word, number) if word else self.name}: {sentence}")


def load(path: Path, links: int | None = None) -> Topology:
    """Reads a topology file of SMI."""
    return parse(read_text(path), str(path), links)


def read_text(path: Path) -> str:
    """The text of a file that the command line names."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as failure:
        raise InvalidArgumentError(f"{path} cannot be read: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise InvalidArgumentError(f"{path} is no text in UTF-8: byte {failure.start} cannot be read") from failure


def read_json(text: str, name: str) -> Any:
    """JSON whose objects are lists of pairs; what is malformed is refused with its line."""
    try:
        return json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as failure:
        raise InvalidArgumentError(f"{name}, line {failure.lineno}: this is no JSON: {failure.msg}") from failure
    except RecursionError as failure:
        raise InvalidArgumentError(f"{name}: this is no topology: its lists stand within one another") from failure


def parse(text: str, name: str, links: int | None = None) -> Topology:
    """The topology that a text describes; `name` is what errors call it."""
    source = _Source(name, text)
    data = read_json(text, name)
    if not isinstance(data, _Pairs):
        raise source.refuse('a topology is an object with "fpgas" and "connections"')
    programs = _section(source, data, "fpgas")
    connections = _section(source, data, "connections")
    if connections is None:
        raise source.refuse('there are no "connections"')
    listed = _programs(source, programs) if programs is not None else None
    cables = _cables(source, connections)
    cabled = dict.fromkeys(node for cable in cables for node, _ in cable)
    if listed is not None:
        for node in cabled:
            if node not in listed:
                word = next(word for pair in connections for word in pair if word.startswith(node + ":"))
                raise source.refuse(f'{node} has a cable, but "fpgas" does not list it', word)
    names = sorted(cabled if listed is None else listed)
    if not names:
        raise source.refuse("there are no nodes")
    highest = max((link for cable in cables for _, link in cable), default=0)
    if links is None:
        links = SMI_LINKS if highest < SMI_LINKS else MOST_LINKS
    if not 1 <= links <= MOST_LINKS:
        raise InvalidArgumentError(f"{links} links a node were asked for; a node has 1 to {MOST_LINKS}")
    if highest >= links:
        word = next(w for pair in connections for w in pair if _port(source, w)[1] == highest)
        raise source.refuse(f"{word} is beyond the last link; a node has {links}, ch0 to ch{links - 1}", word)
    rank = {node: number for number, node in enumerate(names)}
    ends = tuple((Port(rank[a], c), Port(rank[b], d)) for (a, c), (b, d) in cables)
    return Topology(tuple(names), tuple((listed or {}).get(node) for node in names), links, ends)


def _section(source: _Source, data: _Pairs, key: str) -> _Pairs | None:
    found = [value for name, value in data if name == key]
    if len(found) > 1:
        raise source.refuse(f'"{key}" stands there twice', key, 1)
    if found and not isinstance(found[0], _Pairs):
        raise source.refuse(f'"{key}" is no object', key)
    return found[0] if found else None


def _programs(source: _Source, pairs: _Pairs) -> dict[str, str]:
    listed: dict[str, str] = {}
    for node, program in pairs:
        if node.count(":") != 1:
            raise source.refuse(f'"{node}" names no node; a node is host:board, as fpga-0001:acl0', node)
        if node in listed:
            raise source.refuse(f'{node} is listed twice under "fpgas"', node, 1)
        if not isinstance(program, str):
            raise source.refuse(f"the program of {node} is no name", node)
        listed[node] = program
    return listed


def _port(source: _Source, word: Any) -> tuple[str, int]:
    """Node and link of a port. As SMI does, takes any name that ends with the link's number."""
    found = re.fullmatch(r"([^:]*:[^:]*):[^:]*?(\d+)", word, re.ASCII) if isinstance(word, str) else None
    if found is None:
        raise source.refuse(f'"{word}" names no port; a port is host:board:link, as fpga-0001:acl0:ch0', str(word))
    if len(found[2]) > 3 or int(found[2]) >= MOST_LINKS:
        raise source.refuse(
            f"{word} is beyond the last link; a node has at most {MOST_LINKS}, ch0 to ch{MOST_LINKS - 1}", word
        )
    return found[1], int(found[2])


def _cables(source: _Source, pairs: _Pairs) -> list[tuple[tuple[str, int], tuple[str, int]]]:
    taken: dict[tuple[str, int], str] = {}
    cables = []
    uses: dict[str, int] = {}
    for words in pairs:
        ends: list[tuple[str, int]] = []
        for word in words:
            port = _port(source, word)
            number = uses.get(word, 0)
            uses[word] = number + 1
            if ends and ends[0] == port:
                raise source.refuse(f"{word} is cabled to itself", word, number)
            if port in taken:
                before = source.at(taken[port]).rpartition(" ")[2]
                where = f"; its cable stands in line {before}" if before.isdigit() else ""
                raise source.refuse(f"{word} is used twice{where}", word, number)
            ends.append(port)
        taken |= dict(zip(ends, words, strict=True))
        cables.append((ends[0], ends[1]))
    return cables


def without_cables(topology: Topology, words: Iterable[str]) -> Topology:
    """The topology with some cables cut, each named A:ch0-B:ch1."""
    cables = list(topology.cables)
    for word in words:
        names = {frozenset(map(topology.label, cable)): cable for cable in cables}
        parts = word.split("-")
        cuts = [("-".join(parts[:at]), "-".join(parts[at:])) for at in range(1, len(parts))]
        found = next((names[key] for key in map(frozenset, cuts) if key in names), None)
        if found is None:
            others = {topology.label(a): topology.label(b) for x, y in cables for a, b in ((x, y), (y, x))}
            near = next((a for a, b in cuts if a in others and b in others), None)
            if near is not None:
                raise InvalidArgumentError(f"there is no cable {word}: the one of {near} leads to {others[near]}")
            raise InvalidArgumentError(
                f"there is no cable {word}; a cable is named by both its ports, as "
                + (f"{'-'.join(map(topology.label, cables[0]))}" if cables else "fpga-1:acl0:ch0-fpga-2:acl0:ch1")
            )
        cables.remove(found)
    return Topology(topology.names, topology.programs, topology.links, tuple(cables))


def without_nodes(topology: Topology, names: Iterable[str]) -> Topology:
    """The topology without some nodes and their cables; ranks are numbered anew."""
    gone = set()
    for name in names:
        if name not in topology.names:
            raise InvalidArgumentError(f"there is no node {name} to leave out; nodes are {', '.join(topology.names)}")
        gone.add(topology.names.index(name))
    return _only(topology, [rank for rank in range(topology.size) if rank not in gone])


def first_ranks(topology: Topology, count: int) -> Topology:
    """The topology of ranks 0 to `count` - 1."""
    if not 1 <= count <= topology.size:
        raise InvalidArgumentError(f"{count} ranks were asked for; the topology has {topology.size}")
    return _only(topology, list(range(count)))


def _only(topology: Topology, ranks: Sequence[int]) -> Topology:
    rank = {old: new for new, old in enumerate(ranks)}
    cables = tuple(
        (Port(rank[a.rank], a.link), Port(rank[b.rank], b.link))
        for a, b in topology.cables
        if a.rank in rank and b.rank in rank
    )
    if not ranks:
        raise InvalidArgumentError("no node is left")
    return Topology(
        tuple(topology.names[old] for old in ranks), tuple(topology.programs[old] for old in ranks),
        topology.links, cables,
    )  # fmt: skip


def check_connected(topology: Topology) -> None:
    """Refuses a topology in which some node does not reach another one, or that has too many."""
    if topology.size > MOST_RANKS:
        raise InvalidArgumentError(f"the topology has {topology.size} nodes; there may be {MOST_RANKS}")
    lost = [rank for rank, hops in enumerate(topology.distances(0)) if hops < 0]
    if not lost:
        return
    first, name = topology.names[0], topology.names[lost[0]]
    alone = next((r for r in (*lost, 0) if not any(port.rank == r for port in topology.peers)), None)
    if alone is not None:
        raise InvalidArgumentError(f"the topology is disconnected: {topology.names[alone]} has no cable")
    raise InvalidArgumentError(
        f"the topology is disconnected: no cables lead from {first} to {name}; "
        f"{len(lost)} of {topology.size} nodes are cut off from {first}"
    )


def bus(size: int, closed: bool = False) -> Topology:
    """Nodes in a row: link 0 of each leads to link 1 of the next one. A ring, if `closed`."""
    least = 3 if closed else 1
    if not least <= size <= MOST_RANKS:
        raise InvalidArgumentError(
            f"a {'ring' if closed else 'bus'} of {size} nodes was asked for; it has {least} to {MOST_RANKS}"
        )
    cables = [(Port(rank, 0), Port(rank + 1, 1)) for rank in range(size - 1)]
    if closed:
        cables.append((Port(size - 1, 0), Port(0, 1)))
    return Topology(tuple(f"fpga-{rank:04}:acl0" for rank in range(size)), (None,) * size, SMI_LINKS, tuple(cables))


def torus(sides: Sequence[int]) -> Topology:
    """A torus. The first side are the boards of a host, as in SMI's machine; the last one has links 0 and 1.

    Link 2k + 1 of a node leads to link 2k of the next one, and the other way about in the first of two sides: so the
    torus of 2 by 4 is cabled as SMI's.
    """
    size = math.prod(sides)
    text = "x".join(map(str, sides))
    if not 1 <= len(sides) <= MOST_LINKS // 2 or min(sides) < 1 or not 2 <= size <= MOST_RANKS:
        raise InvalidArgumentError(
            f"a torus of {text} was asked for; it has 1 to {MOST_LINKS // 2} sides and 2 to {MOST_RANKS} nodes"
        )
    places = list(itertools.product(*(range(side) for side in (*sides[1:], sides[0]))))
    rank = {place: number for number, place in enumerate(places)}
    cables = []
    for place in places:
        for side, length in enumerate((*sides[1:], sides[0])):
            if length == 1:
                continue
            following = tuple((p + 1) % length if at == side else p for at, p in enumerate(place))
            pair = 2 * (len(sides) - 2 - side) if side < len(sides) - 1 else 2 * (len(sides) - 1)
            out, into = (pair, pair + 1) if side == len(sides) - 1 and len(sides) > 1 else (pair + 1, pair)
            cables.append((Port(rank[place], out), Port(rank[following], into)))
    names = tuple(f"fpga-{number // sides[0]:04}:acl{place[-1]}" for number, place in enumerate(places))
    links = SMI_LINKS if 2 * len(sides) <= SMI_LINKS else MOST_LINKS
    order = sorted(range(size), key=lambda number: names[number])
    renamed = {old: new for new, old in enumerate(order)}
    ends = tuple((Port(renamed[a.rank], a.link), Port(renamed[b.rank], b.link)) for a, b in cables)
    return Topology(tuple(names[old] for old in order), (None,) * size, links, ends)


def to_text(topology: Topology) -> str:
    """The topology as a file that SMI reads, too."""
    data = {
        "fpgas": {name: program or "program" for name, program in zip(topology.names, topology.programs, strict=True)},
        "connections": {topology.label(a): topology.label(b) for a, b in topology.cables},
    }
    return json.dumps(data, indent=2) + "\n"
