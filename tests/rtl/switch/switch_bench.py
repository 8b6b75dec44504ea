"""A whole switch: a communicator at its unit, and frames that pass; for tests of the switch and of its handlers."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from bus import Packet, StreamSink, StreamSource, paces
from headers import Header, MessageType
from unit_bench import UnitBench

OWN = 40


class LinkSource(StreamSource):
    """Frames; `user` says that one is on the channel for control, `dest` is its address."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "control", "address")


class LinkSink(StreamSink):
    """The same."""

    FIELDS: ClassVar[tuple[str, ...]] = LinkSource.FIELDS


class Bench(UnitBench):
    """Address p is behind port p, and a group of all ports has the address after these."""

    source_type = LinkSource
    sink_type = LinkSink
    address = OWN

    async def open(self) -> None:
        self.dut.in_bad_i.value = 0
        await super().open()
        for port in range(self.ports):
            await self.write(0x4000 | port, 1 << port)
        await self.write(0x4000 | self.ports, (1 << self.ports) - 1)
        await self.write(0x6000, OWN)
        self.wanted: list[list[deque[Packet]]] = [[deque() for _ in range(2 * self.ports)] for _ in range(self.ports)]

    def pass_on(self, lane: int, address: int, length: int, *, control: bool) -> None:
        """A frame that passes through."""
        packet = Packet(self.rng.randbytes(length), int(control), address)
        self.source.send(packet, lane)
        for port in range(self.ports):
            if port != lane and address in (port, self.ports):
                self.wanted[port][2 * lane + control].append(packet)

    def took(self, port: int, packet: Packet) -> bool:
        """Whether it is the next frame that passes from some port, by its channel."""
        for waiting in self.wanted[port]:
            if waiting and waiting[0] == packet:
                waiting.popleft()
                return True
        return False

    async def next_of_unit(self, port: int) -> Header:
        """The next frame that the unit has sent; others are compared."""
        while True:
            packet = await self.sink.receive(port, timeout_us=40)
            if not self.took(port, packet):
                header = Header.decode(packet.data[:64])
                assert header.source == len(self.members), "a frame that nobody sent"
                self.payload = packet.data[64:]
                return header

    def pass_something(self, lane: int) -> None:
        """A frame of any length to another port, or to all of them."""
        address = (lane + self.rng.randrange(1, self.ports)) % self.ports
        if self.rng.random() < 0.1:
            address = self.ports
        self.pass_on(lane, address, self.rng.randint(1, 400), control=self.rng.random() < 0.3)

    def change_paces(self) -> None:
        """Each link pauses in a way of its own from now on."""
        some = [pace for _, pace in paces(self.rng)]
        self.source.pauses = [self.rng.choice(some) for _ in range(self.ports)]
        self.sink.pauses = [self.rng.choice(some) for _ in range(self.ports)]

    async def all_get_the_sum(self, values: list[list[int]], signature: int) -> None:
        """The unit sends each member the sum of what all have given, 32 bits an element."""
        total = b"".join((sum(column) & 0xFFFFFFFF).to_bytes(4, "little") for column in zip(*values, strict=True))
        for rank, port in enumerate(self.members):
            header = await self.next_of_unit(port)
            while header.type == MessageType.CREDIT:
                header = await self.next_of_unit(port)
            assert (header.destination, header.signature) == (rank, signature)
            assert self.payload == total

    async def finish_passing(self) -> None:
        """All that passes has come, and nothing else."""
        for port in range(self.ports):
            while any(self.wanted[port]):
                assert self.took(port, await self.sink.receive(port, timeout_us=1000))
