"""Headers for tests of Tx and Rx: the repository's codec, a CRC-32C of its own, and the C++ core as an oracle."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import records
from verilated import BUILD, ROOT, locked

if TYPE_CHECKING:
    from unisono import _spec as spec
else:
    spec = records.load()

Header = spec.Header
MessageType = spec.MessageType
Datatype = spec.Datatype

MAGIC, VERSION = int(spec.MAGIC), int(spec.WIRE_VERSION)


def crc32c(data: bytes) -> int:
    """Bit by bit from the definition: reflected polynomial 0x82F63B78, preset and inverted."""
    value = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            feedback = (value ^ byte >> bit) & 1
            value = value >> 1 ^ (0x82F63B78 if feedback else 0)
    return value ^ 0xFFFFFFFF


def sealed(header: Header) -> bytes:
    """The header's bytes with the right checksum."""
    raw = header.encode()[:60]
    return raw + crc32c(raw).to_bytes(4, "little")


def reseal(raw: bytes) -> bytes:
    """Any 60 bytes with a checksum that fits them."""
    return raw[:60] + crc32c(raw[:60]).to_bytes(4, "little") + raw[64:]


def random_header(rng: random.Random, segment_bytes: int, **fixed: Any) -> Header:
    """A header that is sound: all fields random as far as that allows."""
    kind = rng.choice(list(MessageType))
    offset = rng.getrandbits(rng.choice((0, 8, 20, 40)))
    first, last = bool(rng.getrandbits(1)), bool(rng.getrandbits(1))
    message = offset + segment_bytes + (0 if last else rng.getrandbits(rng.choice((0, 10, 40))))
    header = records.noisy_header(
        rng,
        magic=MAGIC,
        version=VERSION,
        type=kind,
        first=first,
        last=last,
        trailer=False,
        credits=rng.choice((0, 1, rng.getrandbits(16))),
        source=rng.getrandbits(6),
        destination=rng.getrandbits(6),
        segment_bytes=segment_bytes,
        message_bytes=message,
        offset=offset,
        checksum=0,
    )
    header = replace(header, **fixed)
    if header.type in (MessageType.EAGER, MessageType.WRITE, MessageType.AGGREGATE) and header.first:
        header = replace(header, offset=0, message_bytes=header.message_bytes - header.offset)
    return header


def oracle(mode: str, headers: Sequence[bytes]) -> list[str]:
    """What the C++ core says to each header (see header_oracle.cpp)."""
    folder = BUILD / "header_oracle"
    program = folder / "header_oracle"
    source = Path(__file__).with_name("header_oracle.cpp")
    with locked(folder):
        inputs = [
            source,
            ROOT / "core" / "header.hpp",
            ROOT / "core" / "crc32c.hpp",
            *(ROOT / "core/generated").glob("*"),
        ]
        if not program.exists() or program.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            command = ["g++", "-std=c++20", "-O1", f"-I{ROOT}", str(source), "-o", str(program)]
            subprocess.run(command, check=True, timeout=300)
    text = "".join(header[:64].hex() + "\n" for header in headers)
    result = subprocess.run([str(program), mode], input=text, capture_output=True, text=True, check=True, timeout=120)
    lines = result.stdout.split()
    assert len(lines) == len(headers)
    return lines


def core_seals(headers: Sequence[bytes]) -> list[bytes]:
    """The headers as the C++ core seals them."""
    return [bytes.fromhex(line) for line in oracle("seal", headers)]


def core_refuses(headers: Sequence[bytes]) -> list[bool]:
    """Whether the C++ core's check_header finds a fault."""
    return [line != "0" for line in oracle("check", headers)]
