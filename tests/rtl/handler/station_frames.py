"""Frames of handlers in both formats, with checksums by the plain algorithm of RFC 1071 (handler_station.md)."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, replace

from headers import MAGIC, VERSION, Header, MessageType, crc32c, sealed

ENGINE, UDP = 0, 1
MOST_PACKET = 8192


@dataclass(frozen=True)
class Facts:
    """What a frame says of its packet."""

    slot: int = 0
    job: int = 1
    message: int = 0
    source: int = 0
    ranks: int = 1
    packet: int = 0
    packets: int = 1
    tag: int = 0
    address: int = 0  # of the network, to which it goes
    back: int = 0  # and from which it comes: UDP
    end: bool = False

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Its message."""
        return self.slot, self.job, self.source, self.message


def checksum(data: bytes) -> int:
    """RFC 1071, a pair of bytes at a time: 0 for what has its right checksum within it."""
    total = 0
    for at in range(0, len(data), 2):
        total += data[at] << 8 | (data[at + 1] if at + 1 < len(data) else 0)
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def udp_checksum(ip: bytes, udp: bytes) -> int:
    """Of a UDP datagram behind its IPv4 header, with the pseudo header."""
    return checksum(ip[12:20] + bytes([0, 17]) + struct.pack(">H", len(udp)) + udp)


def engine_frame(facts: Facts, payload: bytes) -> bytes:
    """With the engine's header."""
    header = Header(
        magic=MAGIC,
        version=VERSION,
        type=MessageType.CONTROL if facts.end else MessageType.EAGER,
        first=True,
        last=True,
        stream=True,
        port=facts.slot,
        communicator=facts.job,
        sequence=facts.message,
        source=facts.source,
        token_slot=facts.ranks,
        session_sequence=facts.packet,
        signature=facts.packets,
        tag=facts.tag,
        destination=facts.address,
        segment_bytes=len(payload),
        message_bytes=len(payload),
    )
    return sealed(header) + payload


def udp_frame(facts: Facts, payload: bytes, noise: random.Random | None = None) -> bytes:
    """With Ethernet, IPv4, UDP and Unisono's 22 bytes. What the station keeps as it is comes from `noise`."""
    few = noise or random.Random(1)
    ours = struct.pack("<HBBHHHH", 0x4855, 1 | facts.end << 4, facts.slot, facts.job, facts.message, facts.source,
                       facts.ranks)  # fmt: skip
    ours += facts.packet.to_bytes(3, "little") + facts.packets.to_bytes(3, "little") + struct.pack("<I", facts.tag)
    udp = struct.pack(">HHHH", few.getrandbits(16), few.getrandbits(16), 8 + len(ours) + len(payload), 0)
    ip = struct.pack(">BBHHHBBH", 0x45, few.getrandbits(8), 20 + 8 + len(ours) + len(payload), few.getrandbits(16),
                     0x4000, 64, 17, 0)  # fmt: skip
    ip += struct.pack(">HHHH", 0x0A00, facts.back, 0x0A00, facts.address)
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    whole = udp + ours + payload
    udp = udp[:6] + struct.pack(">H", udp_checksum(ip, whole) or 0xFFFF)
    ethernet = few.randbytes(12) + b"\x08\x00"
    return ethernet + ip + udp + ours + payload


def frame_of(form: int, facts: Facts, payload: bytes, noise: random.Random | None = None) -> bytes:
    """A sound frame."""
    return engine_frame(facts, payload) if form == ENGINE else udp_frame(facts, payload, noise)


def read_engine(frame: bytes) -> tuple[Facts, bytes] | None:
    """Facts and payload of a frame, or nothing if it is not sound."""
    if len(frame) < 64 or crc32c(frame[:60]) != int.from_bytes(frame[60:64], "little"):
        return None
    h = Header.decode(frame[:64])
    if h.magic != MAGIC or h.version != VERSION or h.type not in (MessageType.EAGER, MessageType.CONTROL):
        return None
    if not (h.first and h.last and h.stream) or h.point_to_point or h.trailer or h.aggregate or h.offset:
        return None
    if h.segment_bytes != len(frame) - 64 or h.message_bytes != h.segment_bytes or h.segment_bytes > MOST_PACKET:
        return None
    return Facts(h.port, h.communicator, h.sequence, h.source, h.token_slot, h.session_sequence, h.signature, h.tag,
                 h.destination, end=h.type == MessageType.CONTROL), frame[64:]  # fmt: skip


def read_udp(frame: bytes) -> tuple[Facts, bytes] | None:
    """The same."""
    if len(frame) < 64 or frame[12:15] != b"\x08\x00\x45" or frame[23] != 17:
        return None
    ip, udp = frame[14:34], frame[34:]
    length, udp_length = struct.unpack(">H", ip[2:4])[0], struct.unpack(">H", udp[4:6])[0]
    if struct.unpack(">H", ip[6:8])[0] & 0x3FFF or length != len(frame) - 14 or udp_length != length - 20:
        return None
    if length > MOST_PACKET + 50 or checksum(ip) or (udp[6:8] != b"\0\0" and udp_checksum(ip, udp)):
        return None
    magic, kind, slot, job, message, source, ranks = struct.unpack("<HBBHHHH", frame[42:54])
    if magic != 0x4855 or kind & 15 != 1 or kind >> 4 > 1:
        return None
    packet, packets = (int.from_bytes(frame[at : at + 3], "little") for at in (54, 57))
    back, address = struct.unpack(">xxHxxH", frame[26:34])
    return Facts(slot, job, message, source, ranks, packet, packets, struct.unpack("<I", frame[60:64])[0], address,
                 back, bool(kind >> 4)), frame[64:]  # fmt: skip


def read(form: int, frame: bytes) -> tuple[Facts, bytes] | None:
    """Facts and payload of what may be a frame, its checksums among what must be right."""
    return read_engine(frame) if form == ENGINE else read_udp(frame)


def taken(form: int, frame: bytes, machines: int) -> tuple[Facts, bytes] | None:
    """The same of what comes in, as the station must judge it."""
    found = read(form, frame)
    if found is None or found[0].end or found[0].slot >= machines:
        return None
    facts = found[0]
    return found if facts.ranks and facts.packet < facts.packets else None


def kept(form: int, frame: bytes) -> bytes:
    """What the station must leave as it is in a message's headers: all that is not new."""
    if form == ENGINE:
        h = Header.decode(frame[:64])
        return replace(h, type=MessageType.EAGER, session_sequence=0, signature=0, destination=0, segment_bytes=0,
                       message_bytes=0, checksum=0).encode()  # fmt: skip
    head = bytearray(frame[:64])
    for at, length in ((16, 2), (24, 2), (32, 2), (38, 4), (44, 1), (54, 6)):
        head[at : at + length] = bytes(length)
    return bytes(head)
