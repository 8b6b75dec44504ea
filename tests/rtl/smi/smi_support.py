"""Packets and images of routes, put together without the help of what is tested."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

SEND, SYNCH, LAST = 0, 3, 7
PLACES, ASKS, DIFFER = 0, 1, 2


@dataclass
class Packet:
    """A packet; `payload` counts from byte 0."""

    src: int
    dst: int
    port: int
    op: int = SEND
    count: int = 0
    payload: bytes = b""

    def word(self, size: int) -> int:
        """As the modules carry it."""
        if size == 32:
            head = bytes([self.src, self.dst, self.port, self.count << 3 | self.op])
        else:
            head = struct.pack("<HHHH", self.src, self.dst, self.port, self.count << 3 | self.op)
        body = self.payload.ljust(size - len(head), b"\0")
        return int.from_bytes(body + head, "little")


@dataclass
class Opening:
    """What an end of a channel says that it was opened with."""

    count: int = 0
    size: int = 0
    credits: int = 0
    strict: int = 0
    window: int = 0

    def bits(self) -> int:
        """As opening_t, of a channel."""
        flags = self.credits << 1 | self.strict
        return (flags << 2 | self.size) << 78 | self.count << 32 | self.window


@dataclass
class Control:
    """The payload of a control packet of a channel."""

    elements: int = 0
    packets: int = 0
    first: int = 0
    kind: int = PLACES
    opening: Opening | None = None
    message: int = 0

    def payload(self) -> bytes:
        """From byte 0."""
        value = (self.opening.bits() if self.opening else 0) << 72
        value |= self.message << 68 | self.kind << 66 | self.first << 64 | self.packets << 32 | self.elements
        return value.to_bytes(24, "little")


def packet_of(word: int, size: int) -> Packet:
    """A packet from its word; the payload is all that a packet carries."""
    data = word.to_bytes(size, "little")
    if size == 32:
        src, dst, port, last = data[28:]
        return Packet(src, dst, port, last & 7, last >> 3, data[:28])
    src, dst, port, last = struct.unpack("<HHHH", data[-8:])
    return Packet(src, dst, port, last & 7, last >> 3, data[:-8])


def image(rank: int, cks: list[list[list[int]]], ckr: list[list[int]]) -> list[int]:
    """Words of an image: tables of CKS by link, virtual channel and rank; tables of CKR by link, two for each port."""
    head = struct.pack("<4sBBBBHHHH", b"UROU", 1, len(cks), len(cks[0]), 0, len(cks[0][0]), rank, len(ckr[0]) // 2, 0)
    data = head + b"".join(bytes(table) for link in cks for table in link) + b"".join(map(bytes, ckr))
    data += bytes(-len(data) % 4)
    data += zlib.crc32(data).to_bytes(4, "little")
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def all_on_one_link(size: int, rank: int, links: int, channels: int, ports: int) -> list[int]:
    """An image of a node whose link 0 leads to all others, and whose endpoints are dealt as `unisono route` does."""
    cks = [
        [[1 if to == rank else 0 if link == 0 else 2 for to in range(size)] for _ in range(channels)]
        for link in range(links)
    ]
    ckr = []
    for link in range(links):
        table = [0] * (2 * ports)
        for end in range(2 * ports):
            kind, port = divmod(end, ports)
            at = end % links
            code = links + end // links if at == link else 1 + at - (at > link)
            table[2 * port + kind] = code
        ckr.append(table)
    return image(rank, cks, ckr)


def wide_words(header: Packet, payload: bytes, size: int) -> list[int]:
    """The words of a packet of several, with last on top: the header in the last 8 bytes of the first one."""
    head = struct.pack("<HHHH", header.src, header.dst, header.port, header.count << 3 | header.op)
    first, rest = payload[: size - 8], payload[size - 8 :]
    pieces = [first.ljust(size - 8, b"\0") + head]
    pieces += [rest[at : at + size].ljust(size, b"\0") for at in range(0, len(rest), size)]
    last = len(pieces) - 1
    return [int.from_bytes(piece, "little") | int(number == last) << 8 * size for number, piece in enumerate(pieces)]


ENDS = 1 << 12
"""In a packet's count: the frame ends with it."""


def packets_of_frame(src: int, dst: int, control: bool, data: bytes, size: int, words: int) -> list[list[int]]:
    """The packets that a frame is cut into, each the list of its words."""
    body = size * words - 8
    pieces = [data[at : at + body] for at in range(0, len(data), body)]
    packets = []
    for number, piece in enumerate(pieces):
        ends = number == len(pieces) - 1
        op = SYNCH if control else LAST if ends else SEND
        packets.append(wide_words(Packet(src, dst, 0, op, len(piece) | (ENDS if ends else 0)), piece, size))
    return packets
