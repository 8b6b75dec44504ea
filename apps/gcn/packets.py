"""Packets between nodes and the handlers in `handlers/`, whose first lines say what stands in them.

A packet has at most SEGMENT bytes, and leads to at most MOST_OUTPUT bytes of results.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from graphs import Floats, Ints
from model import MOST_OUTPUT, SEGMENT

Packet = tuple[int, bytes]  #: tag, payload
Words = np.dtype("<u4")
END = np.uint32(1 << 31)


def right_rows(rows: Floats, place: int) -> list[Packet]:
    """Output stationary: rows of the right-hand matrix, the first of which stands at `place`."""
    each = (SEGMENT - 4) // (4 * rows.shape[1])
    return [(0, np.uint32(place + at).tobytes() + rows[at : at + each].tobytes()) for at in range(0, len(rows), each)]


def output_indexes(rows: Ints, places: Ints, columns: int, layout: str) -> list[Packet]:
    """Output stationary: entries sorted by row, with the place of the right-hand row of each."""
    if len(rows) == 0:
        return []
    ends = np.flatnonzero(np.append(rows[1:] != rows[:-1], True)) + 1
    return _flagged(places, ends, columns) if layout == "columns" else _counted(places, ends, columns)


def _flagged(places: Ints, ends: Ints, columns: int) -> list[Packet]:
    words = places.astype(Words)
    words[ends - 1] |= END
    packets: list[Packet] = []
    begin, results = 0, MOST_OUTPUT // (4 * columns)
    while begin < len(words):
        row = int(np.searchsorted(ends, begin, "right"))
        most = int(ends[row + results - 1]) if row + results <= len(ends) else len(words)
        end = min(begin + SEGMENT // 4, most)
        packets.append((1, words[begin:end].tobytes()))
        begin = end
    return packets


def _counted(places: Ints, ends: Ints, columns: int) -> list[Packet]:
    words, results = places.astype(Words), MOST_OUTPUT // (4 * columns)
    packet = _Open(1)
    begin = 0
    for end in ends.tolist():
        while begin < end:
            if packet.room < 2 or packet.parts == results:
                packet.close()
            take = min(end - begin, packet.room - 1)
            packet.add(np.array([take | int(END) * (begin + take == end)], Words), words[begin : begin + take])
            begin += take
    return packet.closed()


def weight_rows(rows: Floats, firsts: Ints, places: Ints) -> list[Packet]:
    """Weight stationary: each right-hand row with the places of the outputs that it is added to,
    places[firsts[k]:firsts[k + 1]].
    """
    words, values = places.astype(Words), rows.view(Words)
    packet = _Open(0)
    for value, begin, end in zip(values, firsts[:-1].tolist(), firsts[1:].tolist(), strict=True):
        at = begin
        while at < end:
            if packet.room < 2 + len(value):
                packet.close()
            take = min(end - at, packet.room - 1 - len(value))
            packet.add(np.array([take], Words), value, words[at : at + take])
            at += take
    return packet.closed()


def asked(place: int, rows: int, columns: int) -> list[Packet]:
    """Weight stationary: asks for outputs."""
    each = MOST_OUTPUT // (4 * columns)
    return [(1, np.array([place + at, min(each, rows - at)], Words).tobytes()) for at in range(0, rows, each)]


class _Open:
    """A packet that is being filled, and those that are full."""

    def __init__(self, tag: Literal[0, 1]) -> None:
        self.tag, self.done, self.words = tag, list[Packet](), list[bytes]()
        self.room, self.parts = SEGMENT // 4, 0  # words that it has room for; rows in it

    def add(self, *words: np.ndarray) -> None:
        self.words += [part.tobytes() for part in words]
        self.room -= sum(len(part) for part in words)
        self.parts += 1

    def close(self) -> None:
        if self.words:
            self.done.append((self.tag, b"".join(self.words)))
        self.words, self.room, self.parts = [], SEGMENT // 4, 0

    def closed(self) -> list[Packet]:
        self.close()
        return self.done


def size(packets: list[Packet]) -> int:
    """Bytes of payload."""
    return sum(len(payload) for _, payload in packets)
