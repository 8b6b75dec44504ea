"""What Rx must say of a packet: the rules in their order, and tables of communicators."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headers import MAGIC, VERSION, MessageType, random_header, reseal

DATA_TYPES = (MessageType.EAGER, MessageType.WRITE, MessageType.AGGREGATE)
FAULTS = ["none", "short", "magic", "version", "checksum", "reserved", "communicator", "member", "length", "transport"]
FAULT = {name: number for number, name in enumerate(FAULTS)}
HEADER = random_header(random.Random(1), 0)
KNOWN_TYPES = {int(kind) for kind in MessageType}
KNOWN_DTYPES = {int(dtype) for dtype in type(HEADER.dtype)}


@dataclass(frozen=True)
class Communicator:
    """One row of the table, as the model has it."""

    number: int
    epoch: int
    size: int
    rank: int
    segment_bytes: int
    sessions: tuple[int | None, ...]

    def entry(self, rng: random.Random) -> int:
        """A communicator_entry_t; fields that Rx has no business with are noise."""
        value = self.number
        for part, width in (
            (self.epoch, 16),
            (rng.getrandbits(32), 32),
            (self.segment_bytes, 32),
            (rng.getrandbits(32), 32),
            (self.size, 7),
            (rng.getrandbits(7), 7),
            (self.rank, 6),
        ):
            value = value << width | part
        return value


def random_table(rng: random.Random) -> list[Communicator]:
    """Sixteen communicators of different sizes; some numbers occur with two epochs."""
    table: list[Communicator] = []
    for index in range(16):
        size = rng.choice((1, 2, 5, 8, 33, 64))
        number = table[-1].number if index % 4 == 3 else rng.getrandbits(32)
        sessions = tuple(rng.choice((rng.getrandbits(15), rng.getrandbits(15), None)) for _ in range(size - 1))
        limit = (8192, 256)[index] if index < 2 else rng.choice((256, 512, 1000, 4096, 8192))
        table.append(
            Communicator(number, index * 4099 & 0xFFFF, size, rng.randrange(size), limit, (*sessions, 7 + index))
        )
    return table


@dataclass(frozen=True)
class Arrival:
    """What the transport delivers."""

    session: int
    data: bytes
    error: bool = False
    actual: bytes | None = None
    """The packet, if it is not what the meta word says."""


def judge(table: list[Communicator], arrival: Arrival) -> tuple[int, int, int]:
    """Fault, index of the communicator, source: the rules in their order, from the bytes alone."""
    data = arrival.data
    if len(data) < 64:
        return FAULT["short"], 0, 0
    if arrival.error:
        return FAULT["transport"], 0, 0
    raw = int.from_bytes(data[:64], "little")

    def field(at: int, width: int) -> int:
        return raw >> at & (1 << width) - 1

    if field(0, 16) != MAGIC:
        return FAULT["magic"], 0, 0
    if field(16, 4) != VERSION:
        return FAULT["version"], 0, 0
    kind = field(20, 4)
    if kind not in KNOWN_TYPES or field(24, 8) not in KNOWN_DTYPES or field(38, 10) or field(36, 1):
        return FAULT["reserved"], 0, 0
    if reseal(data[:64]) != data[:64]:
        return FAULT["checksum"], 0, 0
    segment, offset, message = field(256, 32), field(384, 48), field(320, 48)
    if segment != len(data) - 64:
        return FAULT["short"], 0, 0
    if segment > 8192:
        return FAULT["length"], 0, 0
    if kind in {int(k) for k in DATA_TYPES}:
        end = offset + segment
        if end > message or (field(32, 1) and offset) or (field(33, 1) and end != message):
            return FAULT["length"], 0, 0
    found = [i for i, row in enumerate(table) if (row.number, row.epoch) == (field(64, 32), field(96, 16))]
    if not found:
        return FAULT["communicator"], 0, 0
    index, row = found[0], table[found[0]]
    if segment > row.segment_bytes:
        return FAULT["length"], 0, 0
    source = field(128, 32)
    if source >= row.size or field(160, 32) != row.rank or row.sessions[source] != arrival.session & 0x7FFF:
        return FAULT["member"], 0, 0
    return FAULT["none"], index, source
