"""What the tests of POEs share: registers, the MAC's side, and an engine that asks before it sends."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, ClassVar

from bus import ChannelSink, ChannelSource, Packet, Pause, StreamSink, StreamSource, Word, never
from cocotb.triggers import RisingEdge

CONTROL = 1 << 15
"""The bit of a session's number that makes it the control session of the same peer."""

REG_COUNTERS = 0x8000
REG_SESSION_LIMIT = 0x8100
REG_SHAPE = 0x8101
COUNTERS = (
    *("tx_segments", "tx_bytes", "tx_unknown", "tx_oversize", "tx_length", "tx_unreserved", "tx_refused"),
    *("rx_segments", "rx_bytes", "rx_unknown", "rx_length", "rx_damaged", "rx_full", "not_opened"),
)


class MacSink(StreamSink):
    """Takes frames; a packet's `user` is its stated length, with bit 16 for control."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "bytes", "control", "dest")

    def _accept(self, lane: int, word: Word) -> None:
        data, keep, last, length, control, dest = word
        super()._accept(lane, (data, keep, last, length | control << 16, dest))


class MacSource(ChannelSource):
    """Sends frames from other nodes."""

    FIELDS: ClassVar[tuple[str, ...]] = ("data", "keep", "last", "bytes", "control", "source", "error")

    def __init__(self, dut: Any, prefix: str, *, pause: Pause = never) -> None:
        super().__init__(dut, prefix, self.FIELDS, pause=pause)
        self.data_bytes = self.fields[0].width // 8

    def send(
        self, data: bytes, source: int, *, control: bool = False, stated: int | None = None, error: bool = False
    ) -> None:
        """Queues a frame whose stated length may be wrong; before the last word, `error` is noise."""
        length = len(data) if stated is None else stated
        for value, keep, last in Packet(data).words(self.data_bytes, self.rng):
            wrong = int(error) if last else self.rng.getrandbits(1)
            self.put((value, keep, last, length, int(control), source, wrong))


class Registers:
    """The register port of unisono_poe_frame."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        dut.reg_valid_i.value = 0

    async def _access(self, write: int, address: int, value: int) -> int:
        self.dut.reg_valid_i.value = 1
        self.dut.reg_write_i.value = write
        self.dut.reg_addr_i.value = address
        self.dut.reg_wdata_i.value = value
        while True:
            await RisingEdge(self.dut.clk_i)
            if int(self.dut.reg_ready_o.value):
                break
        result = int(self.dut.reg_rdata_o.value)
        self.dut.reg_valid_i.value = 0
        return result

    async def read(self, address: int) -> int:
        """One register."""
        return await self._access(0, address, 0)

    async def write(self, address: int, value: int) -> None:
        """One register."""
        await self._access(1, address, value)

    async def open(self, session: int, node: int) -> None:
        """Lets a session, and its control session, lead to a node."""
        await self.write(session, 1 << 31 | node)

    async def close(self, session: int) -> None:
        """Ends a session."""
        await self.write(session, 0)

    async def counters(self) -> dict[str, int]:
        """All counters by name."""
        return {name: await self.read(REG_COUNTERS + number) for number, name in enumerate(COUNTERS)}


@dataclass
class Segment:
    """What the engine sends, or receives."""

    session: int
    data: bytes


class Sender:
    """An engine that asks for space, again and again if need be, and sends what is granted."""

    def __init__(self, dut: Any, *, pause: Pause = never, grant_pause: Pause = never) -> None:
        self.query = ChannelSource(dut, "query", ("session", "bytes"), pause=pause)
        self.grant = ChannelSink(dut, "grant", ("granted",), pause=grant_pause)
        self.meta = ChannelSource(dut, "tx_meta", ("session", "bytes"), pause=pause)
        self.words = StreamSource(dut, "tx", pause=pause)
        self.refused = 0

    async def ask(self, session: int, length: int) -> bool:
        """One query."""
        self.query.put((session, length))
        return bool((await self.grant.get())[0])

    def commit(self, session: int, data: bytes, stated: int | None = None) -> None:
        """Sends without asking."""
        self.meta.put((session, len(data) if stated is None else stated))
        self.words.send(Packet(data))

    async def send(self, segment: Segment) -> None:
        """Asks until there is space, then sends."""
        while not await self.ask(segment.session, len(segment.data)):
            self.refused += 1
        self.commit(segment.session, segment.data)


class Receiver:
    """Takes segments: metas and words, put together in order."""

    def __init__(self, dut: Any, *, pause: Pause = never, meta_pause: Pause = never) -> None:
        self.meta = ChannelSink(dut, "rx_meta", ("session", "bytes", "error"), pause=meta_pause)
        self.words = StreamSink(dut, "rx", pause=pause)

    async def receive(self) -> Segment:
        """The next segment; its length must be what its meta says."""
        session, length, error = await self.meta.get()
        assert not error
        packet = await self.words.receive()
        assert len(packet.data) == length, f"{len(packet.data)} bytes, stated {length}"
        return Segment(session, packet.data)


def length_near_words(rng: random.Random, most: int, data_bytes: int) -> int:
    """A length of 1 to `most` bytes, often at or next to a multiple of a word, often the most."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randint(1, most)
    if kind == 1:
        return rng.choice((1, most, max(1, most - 1)))
    words = rng.randint(1, most // data_bytes)
    return min(most, max(1, words * data_bytes + rng.choice((-1, 0, 0, 1))))
