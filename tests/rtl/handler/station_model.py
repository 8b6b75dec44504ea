"""What a station must send: messages, machines in a row, ends, by the interpreter, a packet at a time."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field

from station_frames import MOST_PACKET, Facts
from unisono import handler
from unisono.handler._isa import Function, Info

DROPPED, FAILED, STOPPED, ROOM, NONE, ORDER, LATE = 1, 2, 16, 32, 33, 34, 35


@dataclass
class Status:
    """The payload of an end. `text` is the interpreter's, which has the line."""

    reason: int = 0
    slot: int = 0
    function: int = 0
    verdict: int = 0
    packet: int = 0
    text: str = ""


@dataclass
class Message:
    """One that is under way."""

    facts: Facts
    head: bytes  # of its first frame
    due: int = 1
    over: bool = False
    written: Counter[int] = field(default_factory=Counter)  # by each machine
    status: dict[int, Status] = field(default_factory=dict)
    frames: list[bytes] = field(default_factory=list)  # payloads that leave
    ended: tuple[int, Status] | None = None  # packets, how


class Row:
    """The station. Give it sound frames in the order in which they came whole."""

    def __init__(self, machines: int) -> None:
        self.handlers: list[handler.Handler | None] = [None] * machines
        self.goes_on = [False] * machines
        self.messages: dict[tuple[int, int, int, int], Message] = {}
        self.finished: list[Message] = []
        self.copies = self.strays = 0
        self.budget = 1 << 16
        self.places = 1 << 16

    def lines(self, slot: int) -> list[int]:
        """The line of each word of a slot's handler."""
        made = self.handlers[slot]
        assert made is not None
        words = int.from_bytes(made.binary[20:24], "little")
        return [x[0] for x in struct.iter_unpack("<I", made.binary[40 + 8 * words : 40 + 12 * words])]

    def frame(self, facts: Facts, payload: bytes, head: bytes) -> None:
        """A packet that has come."""
        message = self.messages.get(facts.key)
        if message is None:
            if facts.packet:
                self.strays += 1
                return
            message = Message(facts, head)
            if self.handlers[facts.slot] is None:
                self.close(message, facts.slot, 0, Status(NONE, facts.slot))
                return
            if sum(key[0] == facts.slot for key in self.messages) >= self.places:
                self.close(message, facts.slot, 0, Status(ROOM, facts.slot))
                return
            self.messages[facts.key] = message
        elif message.over:
            self.strays += 1
            return
        elif facts.packets == message.facts.packets and facts.packet < message.due:
            self.copies += 1
            return
        elif facts.packets != message.facts.packets or facts.packet > message.due:
            message.over = True
            self.close(message, facts.slot, 0, Status(ORDER, facts.slot, packet=message.due))
            return
        message.due = facts.packet + 1
        message.over = message.due == facts.packets
        self.packet(message, facts.slot, facts.packet, facts.packets, payload)

    def late(self, key: tuple[int, int, int, int]) -> None:
        """The next packet did not come."""
        message = self.messages[key]
        message.over = True
        self.close(message, key[0], 0, Status(LATE, key[0], packet=message.due))

    def packet(self, message: Message, slot: int, number: int, packets: int, payload: bytes) -> None:
        """A machine gets one."""
        last = number + 1 == packets
        self.functions(message, slot, number, packets, payload,
                       [*([Function.HEADER] if not number else []), Function.PAYLOAD,
                        *([Function.COMPLETION] if last else [])])  # fmt: skip
        if last:
            self.end(message, slot)

    def functions(self, message: Message, slot: int, number: int, packets: int, payload: bytes,
                  which: list[Function]) -> None:  # fmt: skip
        """Runs them until one fails."""
        made = self.handlers[slot]
        assert made is not None
        for function in which:
            if slot in message.status:
                return
            info = [0] * len(Info)
            info[Info.LENGTH], info[Info.PACKET], info[Info.PACKETS] = len(payload), number, packets
            info[Info.SOURCE], info[Info.RANKS], info[Info.TAG] = (
                message.facts.source,
                message.facts.ranks,
                message.facts.tag,
            )
            if function != Function.PAYLOAD:
                info[Info.LENGTH] = 0
            given = payload if function == Function.PAYLOAD else b""
            failure, verdict, _, output = made._core.run(function, info, given, self.budget)
            parts = [output[at : at + MOST_PACKET] for at in range(0, len(output), MOST_PACKET)]
            for part in parts[:-1] if failure else parts:
                self.give(message, slot, part)
            if failure or verdict:
                reason = STOPPED if "is stopped" in failure else FAILED if failure else DROPPED
                message.status[slot] = Status(reason, slot, int(function), verdict, number, failure)

    def give(self, message: Message, slot: int, payload: bytes) -> None:
        """What a machine has written."""
        number = message.written[slot]
        message.written[slot] += 1
        if self.goes_on[slot]:
            self.packet(message, slot + 1, number, 0, payload)
        else:
            message.frames.append(payload)

    def close(self, message: Message, slot: int, count: int, status: Status) -> None:
        """A machine gets what closes a message, behind `count` packets."""
        if status.reason:
            message.status.setdefault(slot, status)
        elif count and slot not in message.status:
            self.functions(message, slot, count - 1, count, b"", [Function.COMPLETION])
        self.end(message, slot)

    def end(self, message: Message, slot: int) -> None:
        """A machine is done with a message."""
        status = message.status.get(slot, Status())
        if self.goes_on[slot]:
            self.close(message, slot + 1, message.written[slot], status)
            return
        message.ended = message.written[slot], status
        self.messages.pop(message.facts.key, None)
        # What comes for it until its place is free is a stray, as what comes later is.
        self.finished.append(message)
