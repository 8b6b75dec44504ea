"""What launcher and agents say to one another.

A message is a line of JSON, an object with a `kind`. Where it has `bytes`, so many follow the line. An agent begins
with a line of its own, since shells and their profiles may have printed something before it.
"""

from __future__ import annotations

import json
import os
import re
import selectors
from collections.abc import Callable, Iterator
from typing import Any

from .pipes import WINDOW, Feed

PROTOCOL = 1
GREETING = re.compile(rb"^unisono-agent (\d{1,9}) ([!-~]{1,64})$")
MOST_BEFORE = 1 << 16  # bytes that may come before the greeting
MOST_OF_AGENT = 1 << 18  # characters of a line that an agent writes
MOST_OF_LAUNCHER = 1 << 24  # of one that the launcher writes: it has the command and the environment
MOST_WAITING = 1 << 24  # bytes that are kept for somebody who does not read
PIECE = 1 << 16

Message = dict[str, Any]


class ProtocolError(Exception):
    """Somebody says what is not understood."""


def greeting(version: str) -> bytes:
    """The agent's first line. Something may stand there that does not end its own."""
    return f"\nunisono-agent {PROTOCOL} {version}\n".encode()


def shown(line: bytes) -> str:
    """A line of somebody's, for a message to people."""
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= 100 else text[:100] + "…")


def whole_number(message: Message, name: str, most: int, least: int = 0) -> int:
    """A field of a message. Raises `ProtocolError`."""
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ProtocolError(f"{name} is {shown(repr(value).encode())} in a message of kind {message['kind']!r}")
    return value


def text_of(message: Message, name: str) -> str:
    """A field of a message. Raises `ProtocolError`."""
    value = message.get(name)
    if not isinstance(value, str):
        raise ProtocolError(f"{name} is no text in a message of kind {message['kind']!r}")
    return value


class Decoder:
    """Takes messages apart. Memory is bounded by a line's length."""

    def __init__(self, most: int, *, greeted: bool = True) -> None:
        """`greeted`: messages come at once, and no greeting before them."""
        self._most = most
        self._rest = bytearray()
        self._searched = 0
        self._message: Message | None = None  #: whose bytes have not all come
        self._wanted = 0
        self._skipped = 0
        self.first = b""  #: the first line before the greeting that says something
        self.greeting: tuple[int, str] | None = (PROTOCOL, "") if greeted else None  #: protocol and version

    def feed(self, data: bytes) -> Iterator[tuple[Message, bytes]]:
        """What has come whole. Raises `ProtocolError`."""
        self._rest += data
        while True:
            if self._message is not None:
                if len(self._rest) < self._wanted:
                    return
                payload = bytes(self._rest[: self._wanted])
                del self._rest[: self._wanted]
                message, self._message = self._message, None
                yield message, payload
                continue
            line = self._line()
            if line is None:
                return
            if self.greeting is None:
                self._look_for_greeting(line)
                continue
            message = self._parsed(line)
            if "bytes" in message:
                self._wanted = whole_number(message, "bytes", WINDOW)
                self._message = message
            else:
                yield message, b""

    def _line(self) -> bytes | None:
        most = self._most if self.greeting is not None else MOST_BEFORE
        end = self._rest.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._rest)
        if (end if end >= 0 else len(self._rest)) > most:
            raise ProtocolError(f"a line that begins {shown(bytes(self._rest[:200]))}, and is too long")
        if end < 0:
            return None
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._searched = 0
        return line

    def _look_for_greeting(self, line: bytes) -> None:
        found = GREETING.match(line)
        if found is not None:
            self.greeting = (int(found[1]), found[2].decode())
            return
        if not self.first and line.strip():
            self.first = line
        self._skipped += len(line) + 1
        if self._skipped > MOST_BEFORE:
            raise ProtocolError(f"{shown(self.first)} and more instead of an agent's greeting")

    def _parsed(self, line: bytes) -> Message:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
            raise ProtocolError(shown(line))
        return message


class Channel:
    """Sends and takes messages, without waiting."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        source: int,
        sink: int,
        decoder: Decoder,
        on_message: Callable[[Message, bytes], None],
        on_end: Callable[[str], None],
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        """Owns both descriptors. `on_end` hears what was not understood, or nothing if the other side has ended."""
        self._selector = selector
        self._source = source
        self._decoder = decoder
        self._on_message = on_message
        self._on_end = on_end
        self._on_room = on_room
        self._out = Feed(selector, sink, lambda _: self._on_room())
        self._open = True
        os.set_blocking(source, False)
        selector.register(source, selectors.EVENT_READ, self._ready)

    @property
    def waiting(self) -> int:
        """Bytes that the other side has not taken."""
        return self._out.waiting

    def send(self, kind: str, payload: bytes | None = None, **fields: object) -> None:
        """Sends a message."""
        if payload is not None:
            fields["bytes"] = len(payload)
        self._out.put(json.dumps({"kind": kind} | fields).encode() + b"\n" + (payload or b""))
        if self._open and self._out.waiting > MOST_WAITING:
            self._fail("nothing: it does not read what is sent to it")

    def send_raw(self, data: bytes) -> None:
        """Sends what is no message."""
        self._out.put(data)

    def finish(self) -> None:
        """Sends nothing more; the other side sees the end."""
        self._out.close()

    def close(self) -> None:
        """Closes everything at once."""
        self._out.abandon()
        if self._open:
            self._open = False
            self._selector.unregister(self._source)
            os.close(self._source)

    def _ready(self) -> None:
        if not self._open:  # an event of before
            return
        try:
            data = os.read(self._source, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._fail("")
            return
        try:
            for message, payload in self._decoder.feed(data):
                self._on_message(message, payload)
                if not self._open:
                    return
        except ProtocolError as failure:
            self._fail(str(failure))

    def _fail(self, what: str) -> None:
        self.close()
        self._on_end(what)
