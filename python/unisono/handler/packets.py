"""Packets of a message, and what a handler makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ._isa import MOST_PAYLOAD_BYTES, Info
from .compiler import HandlerError

MOST_BUDGET = (1 << 64) - 1


class HandlerStopped(HandlerError):  # noqa: N818  (what has happened to it)
    """A handler was stopped, or failed by its own word: says where and why."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a message has led to."""

    outputs: list[bytes]  #: packets that the handler has written, in their order
    dropped: bool  #: it wanted to see no more of the message
    executed: int  #: instructions, of all functions together


def checked_packets(packets: Iterable[bytes]) -> list[bytes]:
    """The packets as bytes; TypeError for what is none, ValueError for one that is too long."""
    if isinstance(packets, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"packets is {type(packets).__name__}; give a list of packets, each of them bytes")
    held = []
    for number, packet in enumerate(packets):
        try:  # bytes(3) would be three zeros
            held.append(bytes(memoryview(packet)))
        except TypeError:
            raise TypeError(f"packet {number} is {type(packet).__name__}; packets are bytes") from None
    for number, packet in enumerate(held):
        if len(packet) > MOST_PAYLOAD_BYTES:
            raise ValueError(f"packet {number} has {len(packet)} bytes; allowed are {MOST_PAYLOAD_BYTES}")
    return held


def check_message(source: int, ranks: int, tag: int, budget: int, least_budget: int) -> None:
    """ValueError for what no handler could be told of a message, or be given."""
    for name, value, least, most in (
        ("source", source, 0, Info.SOURCE.most),
        ("ranks", ranks, 1, Info.RANKS.most),
        ("tag", tag, 0, Info.TAG.most),
        ("budget", budget, least_budget, MOST_BUDGET),
    ):
        if not least <= value <= most:
            raise ValueError(f"{name} is {value}; allowed are {least} to {most}")
