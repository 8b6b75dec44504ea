"""Bytes on their way through a pipe: read as far as their receiver has room, written without waiting."""

from __future__ import annotations

import contextlib
import os
import selectors
from collections.abc import Callable

WINDOW = 1 << 16  # bytes of one stream that may be under way


def _read(descriptor: int, most: int) -> bytes:
    return os.read(descriptor, most)


class Pump:
    """Reads a descriptor and hands on what comes, as long as there is room where it goes."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        descriptor: int,
        send: Callable[[bytes], None],
        *,
        read: Callable[[int, int], bytes] = _read,
    ) -> None:
        """`send` gets no bytes at the end. The descriptor stays open."""
        self._selector = selector
        self._descriptor = descriptor
        self._send = send
        self._read = read
        self._room = WINDOW
        self._watched = False
        self._held = False
        self.over = False

    @property
    def blocked(self) -> bool:
        """Whether it does not read because nobody takes what it has read."""
        return not (self.over or self._watched)

    def resume(self) -> None:
        """Reads from now on."""
        self._held = False
        if self._watched or not self._may_read():
            return
        try:
            self._selector.register(self._descriptor, selectors.EVENT_READ, self._ready)
            self._watched = True
        except PermissionError:  # a file, which always has something
            while self._may_read():
                self._ready()

    def _may_read(self) -> bool:
        return not self.over and not self._held and self._room > 0

    def hold(self) -> None:
        """Does not read until `resume`."""
        self._held = True
        self._unwatch()

    def allow(self, room: int) -> None:
        """The receiver has taken so many bytes."""
        self._room = min(WINDOW, self._room + room)
        if not self._held:
            self.resume()

    def stop(self) -> None:
        """Reads no more."""
        self.over = True
        self._unwatch()

    def _unwatch(self) -> None:
        if self._watched:
            self._selector.unregister(self._descriptor)
            self._watched = False

    def _ready(self) -> None:
        if self.over or self._room == 0:  # an event of before
            return
        try:
            data = self._read(self._descriptor, self._room)
        except BlockingIOError:
            return
        except OSError:  # a terminal that was hung up
            data = b""
        self._room -= len(data)
        if not data:
            self.stop()
        elif self._room == 0:
            self._unwatch()
        self._send(data)


class Feed:
    """Writes into a descriptor what comes for it, without waiting. Owns the descriptor."""

    def __init__(
        self, selector: selectors.BaseSelector, descriptor: int, on_written: Callable[[int], None] = lambda _: None
    ) -> None:
        """`on_written` hears how many bytes are out; of a pipe that nobody reads, it hears nothing more."""
        self._selector = selector
        self._descriptor = descriptor
        self._on_written = on_written
        self._rest = bytearray()
        self._watched = False
        self._closing = False
        self.closed = False
        os.set_blocking(descriptor, False)

    @property
    def waiting(self) -> int:
        """Bytes that are not written yet."""
        return len(self._rest)

    def put(self, data: bytes) -> None:
        """Writes it, now or later."""
        if self.closed or self._closing:
            return
        self._rest += data
        if not self._watched:
            self._write()

    def close(self) -> None:
        """Closes the descriptor when all is written."""
        self._closing = True
        if not self._rest:
            self.abandon()

    def abandon(self) -> None:
        """Closes the descriptor at once."""
        if self.closed:
            return
        self.closed = True
        self._rest.clear()
        if self._watched:
            self._selector.unregister(self._descriptor)
            self._watched = False
        os.close(self._descriptor)

    def _write(self) -> None:
        if self.closed:  # an event of before
            return
        written = 0
        try:
            while self._rest:
                with memoryview(self._rest) as view:
                    count = os.write(self._descriptor, view[:WINDOW])
                del self._rest[:count]
                written += count
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more
            self.abandon()
            return
        if self._rest and not self._watched:
            self._selector.register(self._descriptor, selectors.EVENT_WRITE, self._write)
            self._watched = True
        elif not self._rest and self._watched:
            self._selector.unregister(self._descriptor)
            self._watched = False
        if not self._rest and self._closing:
            self.abandon()
        if written:
            self._on_written(written)


class Credit:
    """What a receiver owes its sender: it says so when half of the window is free again."""

    def __init__(self, grant: Callable[[int], None]) -> None:
        self._grant = grant
        self._owed = 0
        self._under_way = 0

    def take(self, count: int) -> bool:
        """So many bytes have come. Whether they were allowed."""
        self._under_way += count
        return self._under_way <= WINDOW

    def written(self, count: int) -> None:
        """So many have gone on."""
        self._owed += count
        if self._owed >= WINDOW // 2:
            owed, self._owed = self._owed, 0
            self._under_way -= owed
            with contextlib.suppress(OSError):
                self._grant(owed)
