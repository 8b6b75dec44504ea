"""Packets of a message, and what a handler makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ._isa import MOST_PAYLOAD_BYTES
from .compiler import HandlerError


class HandlerStopped(HandlerError):  # noqa: N818  (what has happened to it)
    """A handler was stopped, or failed by its own word: says where and why."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a message has led to."""

    outputs: list[bytes]  #: packets that the handler has written, in their order
    dropped: bool  #: it wanted to see no more of the message
    executed: int  #: instructions, of all functions together


def checked_packets(packets: Iterable[bytes]) -> list[bytes]:
    """The packets as bytes; ValueError for one that is too long."""
    held = [bytes(packet) for packet in packets]
    for number, packet in enumerate(held):
        if len(packet) > MOST_PAYLOAD_BYTES:
            raise ValueError(f"packet {number} has {len(packet)} bytes; allowed are {MOST_PAYLOAD_BYTES}")
    return held
