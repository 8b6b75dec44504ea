"""Packets in queues of few places, moved by what the tables say and nothing else: do they all come to rest?

Knows nothing of the proof. With `serial`, every kernel holds one packet, and reads no other before it has written it.
"""

from __future__ import annotations

import random
from collections import deque
from typing import NamedTuple

from unisono.routing.tables import LOCAL_CKR, OWN_LINK, Tables
from unisono.routing.topology import Port, Topology


class Packet(NamedTuple):
    source: int
    link: int
    target: int


Place = tuple[str, int, int, int, int]
"""What it is, rank, link, the link whose kernel reads, virtual channel."""


class Simulation:
    def __init__(
        self, topology: Topology, tables: Tables, *, room: int = 1, serial: bool = False, seed: int = 0
    ) -> None:
        self.topology, self.tables = topology, tables
        self.room, self.serial = room, serial
        self.random = random.Random(seed)
        self.queues: dict[Place, deque[Packet]] = {}
        self.hands: dict[tuple[str, int, int], tuple[Packet, Place | None]] = {}
        self.delivered = 0
        self.sent = 0

    # what the tables say

    def sends(self, rank: int, link: int, channel: int, packet: Packet) -> Place:
        """Where CKS puts a packet."""
        code, on = self.tables.cks[rank][link][channel][packet.target]
        if code == OWN_LINK:
            return ("wire", rank, link, link, on)
        if code == LOCAL_CKR:
            return ("s>r", rank, link, link, on)
        others = [other for other in range(self.tables.links) if other != link]
        return ("s>s", rank, link, others[code - 2], on)

    def receives(self, rank: int, link: int, channel: int, packet: Packet) -> Place | None:
        """Where CKR puts a packet; None: an endpoint takes it."""
        if packet.target != rank:
            return ("r>s", rank, link, link, channel)
        code = self.tables.ckr[rank][link][0]
        if code >= self.tables.links:
            return None
        others = [other for other in range(self.tables.links) if other != link]
        return ("r>r", rank, link, others[code - 1], 0)

    def reader(self, place: Place) -> tuple[str, int, int]:
        """The kernel that reads a queue."""
        what, rank, link, other, _ = place
        if what == "wire":
            return ("ckr", *self.topology.peers[Port(rank, link)])
        return ("cks" if what in ("r>s", "s>s") else "ckr", rank, other)

    def following(self, place: Place, packet: Packet) -> Place | None:
        what, rank, link = self.reader(place)
        if what == "ckr":
            return self.receives(rank, link, place[4], packet)
        return self.sends(rank, link, place[4], packet)

    # moves

    def has_room(self, place: Place) -> bool:
        return len(self.queues.setdefault(place, deque())) < self.room

    def put(self, place: Place | None, packet: Packet) -> None:
        if place is None:
            self.delivered += 1
        else:
            self.queues.setdefault(place, deque()).append(packet)

    def inject(self, packet: Packet) -> bool:
        """An endpoint's packet, if its CKS takes it."""
        place = self.sends(packet.source, packet.link, 0, packet)
        kernel = ("cks", packet.source, packet.link)
        if self.serial:
            if kernel in self.hands:
                return False
            self.hands[kernel] = (packet, place)
        elif self.has_room(place):
            self.put(place, packet)
        else:
            return False
        self.sent += 1
        return True

    def step(self) -> bool:
        """Moves what can move, in a random order; whether anything did."""
        moved = False
        if self.serial:
            for kernel in self.random.sample(sorted(self.hands), len(self.hands)):
                packet, place = self.hands[kernel]
                if place is None or self.has_room(place):
                    del self.hands[kernel]
                    self.put(place, packet)
                    moved = True
        for place in self.random.sample(sorted(self.queues), len(self.queues)):
            if not self.queues[place]:
                continue
            packet = self.queues[place][0]
            after = self.following(place, packet)
            kernel = self.reader(place)
            if self.serial:
                if kernel not in self.hands:
                    self.queues[place].popleft()
                    self.hands[kernel] = (packet, after)
                    moved = True
            elif after is None or self.has_room(after):
                self.queues[place].popleft()
                self.put(after, packet)
                moved = True
        return moved

    @property
    def waiting(self) -> int:
        """Packets on their way."""
        return sum(map(len, self.queues.values())) + len(self.hands)

    def run(self, packets: list[Packet], rounds: int) -> bool:
        """All endpoints send what they may, in bursts, then nobody any more; whether all arrived."""
        for number in range(rounds):
            # Bursts of a few kinds of packets fill queues better than a mixture of all.
            some = self.random.sample(packets, min(len(packets), 1 + number % 7 * 3))
            for packet in some:
                for _ in range(self.room + 1):
                    self.inject(packet)
            if not self.step() and self.waiting:
                return False
        while self.waiting:
            if not self.step():
                return False
        assert self.delivered == self.sent
        return True

    def stuck(self) -> list[Place]:
        """The circle of full queues in a simulation that does not move any more."""
        here = next(place for place, queue in sorted(self.queues.items()) if queue)
        way: list[Place] = []
        while here not in way:
            way.append(here)
            after = self.following(here, self.queues[here][0])
            assert after is not None
            assert len(self.queues[after]) == self.room
            here = after
        return way[way.index(here) :]


class SmiKernels(Simulation):
    """SMI's kernels cycle by cycle: they look at their inputs in SMI's order, and take up to `reads` packets in a row.

    Every flow of packets begins in an endpoint of its own, which always has more.
    """

    def __init__(
        self, topology: Topology, tables: Tables, flows: list[Packet], *, room: int = 16, reads: int = 8
    ) -> None:
        super().__init__(topology, tables, room=room, serial=True)
        self.reads = reads
        others = [[other for other in range(tables.links) if other != link] for link in range(tables.links)]
        self.inputs: dict[tuple[str, int, int], list[Place | Packet]] = {}
        for rank in range(topology.size):
            for link in range(tables.links):
                cks: list[Place | Packet] = [("s>s", rank, other, link, 0) for other in others[link]]
                cks.append(("r>s", rank, link, link, 0))
                cks += [flow for flow in flows if flow[:2] == (rank, link)]
                peer = topology.peers.get(Port(rank, link))
                ckr: list[Place | Packet] = [] if peer is None else [("wire", *peer, peer.link, 0)]
                ckr += [("r>r", rank, other, link, 0) for other in others[link]]
                ckr.append(("s>r", rank, link, link, 0))
                self.inputs["cks", rank, link], self.inputs["ckr", rank, link] = cks, ckr
        self.turns = dict.fromkeys(self.inputs, (0, 0))

    def cycle(self) -> bool:
        """Every kernel takes at most one packet, and writes what it holds if there is room; whether any did."""
        moved = False
        for kernel, inputs in self.inputs.items():
            at, count = self.turns[kernel]
            if kernel not in self.hands:
                taken = self.take(inputs[at])
                if taken is not None:
                    code, rank, link = kernel
                    after = self.sends(rank, link, 0, taken) if code == "cks" else self.receives(rank, link, 0, taken)
                    self.hands[kernel] = (taken, after)
                    count += 1
                    moved = True
                if taken is None or count == self.reads:
                    at, count = (at + 1) % len(inputs), 0
                self.turns[kernel] = at, count
            if kernel in self.hands:
                packet, after = self.hands[kernel]
                if after is None or self.has_room(after):
                    del self.hands[kernel]
                    self.put(after, packet)
                    moved = True
        return moved

    def take(self, source: Place | Packet) -> Packet | None:
        if isinstance(source, Packet):
            self.sent += 1
            return source
        queue = self.queues.get(source)
        return queue.popleft() if queue else None

    def lives(self, cycles: int) -> bool:
        """Whether packets arrive to the end: in no hundred cycles none."""
        for _ in range(cycles // 100):
            before = self.delivered
            for _ in range(100):
                self.cycle()
            if self.delivered == before:
                return False
        return True
