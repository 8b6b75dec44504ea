"""What the ranks of a job write, on its way to where the launcher's own output goes: whole lines, and none is lost."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import selectors
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from .tracebacks import MOST, START, grouped, heading, spans

PIECE = 1 << 16  # bytes that are read at once from one rank, so that none starves the others
LONGEST = 1 << 18  # bytes of a line that are kept until its end comes; a longer one goes out in pieces
PATIENCE = 1.0  # seconds that lines of others wait for the end of one that stands there unfinished
STALL = 0.5  # seconds of a write after which nobody seems to read, which is not the fault of who writes the line
PROMPT = 0.2  # seconds after which what rank 0 has begun to write, and somebody may have to answer, is shown
SILENT = 0.3  # seconds without a further line after which a traceback is complete
TOGETHER = 0.5  # seconds that a complete one waits for equal ones of other ranks
DRAIN = 10.0  # seconds for output that is still in the pipes when all ranks have ended
QUIET = 1.0  # seconds without output after which none is expected then


@dataclass
class Stream:
    """One output stream of one process."""

    source: IO[bytes]
    target: int  #: file descriptor
    label: bytes = b""  #: before each line
    colour: int | None = None  #: of the label
    rank: int = -1  #: -1: not a rank's
    pid: int = 0
    raw: bool = False  #: passed on as it comes: there is nobody whose lines could mix with it
    prompts: bool = False  #: somebody may wait for an unfinished line, to answer it
    tracebacks: bool = False  #: are held back until those of other ranks are there
    rest: bytearray = field(default_factory=bytearray)  #: read, and not passed on
    begun: float = 0.0  #: since when the line at its end is unfinished
    heard: float = 0.0
    inside: bool = False  #: a part of the line that goes on in `rest` has been passed on
    ended: bool = False
    paused: bool = False  #: not read, since `rest` is long
    block: bytearray | None = None  #: a traceback
    complete: float | None = None  #: since when it is


class Place(threading.Thread):
    """A file, pipe or terminal that streams of several processes lead to. A thread of its own serves it, so that a
    reader who does not read holds up nothing else. Memory is bounded: `LONGEST` and a piece for each stream.
    """

    def __init__(self, key: object, on_end: Callable[[], None], on_fault: Callable[[int, OSError], None]) -> None:
        super().__init__(name=f"output {key}", daemon=True)
        self._on_end = on_end
        self._on_fault = on_fault
        self._broken: set[int] = set()
        self._streams: list[Stream] = []
        self._waiting: list[Stream] = []  #: have lines to pass on, but another one's stands there unfinished
        self._waiting_since = 0.0
        self._stalled = False  #: since then; once, this does not count
        self._inside: Stream | None = None  #: whose line stands there unfinished
        self._at_begin = True
        self._last: int | None = None  #: what was written to last
        self._selector = selectors.DefaultSelector()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()
        self._said: list[tuple[int, bytes]] = []
        self._closing: float | None = None
        self._over = False

    def add(self, stream: Stream) -> None:
        """Takes one more, before `start`."""
        self._streams.append(stream)
        self._selector.register(stream.source, selectors.EVENT_READ, stream)

    def say(self, target: int, text: str) -> None:
        """Passes on what the launcher has to say, from any thread."""
        data = text.encode(errors="backslashreplace")
        with self._lock:
            if not self._over and self.is_alive():
                self._said.append((target, data))
                os.eventfd_write(self._wake, 1)
                return
        self._speak(target, data)

    def close(self) -> None:
        """There will be no more writers, but for what stands in the pipes."""
        with self._lock:
            if self._closing is None and not self._over:
                self._closing = time.monotonic()
                os.eventfd_write(self._wake, 1)

    # ---------------------------------------------------------------------------------------- its thread

    def run(self) -> None:
        """Until closed, and all has been passed on."""
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        quiet_since = time.monotonic()
        try:
            while True:
                events = self._selector.select(self._next(time.monotonic()))
                now = time.monotonic()
                self._hear()
                for key, _ in events:
                    if key.data is not None:
                        quiet_since = now
                        self._read(key.data, now)
                self._tend(now)
                if self._closing is not None and (not self._open() or now > self._closing + DRAIN):
                    break
                if self._closing is not None and not self._waiting and now > max(quiet_since, self._closing) + QUIET:
                    break
            self._finish()
        finally:
            self._hear()
            with self._lock:
                self._over = True
                self._selector.close()
                os.close(self._wake)
            for target, data in self._said:
                self._speak(target, data)
            self._on_end()

    def _open(self) -> bool:
        return any(not stream.ended for stream in self._streams)

    def _next(self, now: float) -> float | None:
        """How long to sleep if nothing comes."""
        times = [] if self._closing is None else [self._closing + DRAIN, now + QUIET]
        if self._waiting:
            times.append(self._waiting_since + PATIENCE)
        for stream in self._streams:
            prompt = stream.prompts and stream.rest and not stream.inside and stream.block is None
            if prompt and self._inside is None:
                times.append(stream.begun + PROMPT)
            if stream.block is not None:
                times.append(stream.heard + SILENT if stream.complete is None else stream.complete + TOGETHER)
        return max(0.0, min(times) - now) if times else None

    def _hear(self) -> None:
        """What the launcher has to say."""
        with self._lock:
            said, self._said = self._said, []
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wake)
        for target, data in said:
            self._speak(target, data)

    def _speak(self, target: int, data: bytes) -> None:
        self._break_line()
        self._write(target, data)

    def _read(self, stream: Stream, now: float) -> None:
        data = os.read(stream.source.fileno(), PIECE)
        if not data:
            stream.ended = True
            if not stream.paused:
                self._selector.unregister(stream.source)
            stream.source.close()
        if not stream.rest or b"\n" in data:
            stream.begun = now
        stream.heard = now
        stream.rest += data
        self._advance(stream, now)
        if not stream.ended and len(stream.rest) > LONGEST:
            stream.paused = True
            self._selector.unregister(stream.source)

    def _advance(self, stream: Stream, now: float) -> None:
        """Passes on what can be."""
        if stream.raw:
            self._write(stream.target, bytes(stream.rest))
            stream.rest.clear()
            return
        if stream.tracebacks and not self._take_traceback(stream, now):
            return
        end = len(stream.rest) if self._is_due(stream, now) else stream.rest.rfind(b"\n") + 1
        if end == 0:
            return
        owner = self._inside
        if owner is not None and owner is not stream and not owner.ended:
            if stream not in self._waiting:
                if not self._waiting:
                    self._waiting_since = now
                    self._stalled = False
                self._waiting.append(stream)
            return
        self._put(stream, end)

    def _is_due(self, stream: Stream, now: float) -> bool:
        """Whether what it has must not wait for the end of its line."""
        unfinished = len(stream.rest) - stream.rest.rfind(b"\n") - 1
        if stream.ended or stream.inside or unfinished > LONGEST:
            return True
        return stream.prompts and self._inside is None and now >= stream.begun + PROMPT

    def _put(self, stream: Stream, end: int) -> None:
        """Passes on the first `end` bytes."""
        if self._inside is not stream:
            self._break_line()
        data = bytes(stream.rest[:end])
        del stream.rest[:end]
        finished = data.endswith(b"\n")
        if not finished and stream.ended and stream.label:
            data += b"\n"
            finished = True
        if stream.label:
            begin = b"" if stream.inside else stream.label
            data = begin + data[:-1].replace(b"\n", b"\n" + stream.label) + data[-1:]
        stream.inside = not finished
        self._inside = None if finished else stream
        self._write(stream.target, data)

    def _break_line(self) -> None:
        """Who writes next begins a line."""
        if self._inside is not None:
            self._write(self._inside.target, b"\n")
            self._inside.inside = False
            self._inside = None
        elif not self._at_begin:
            self._at_begin = True
            if self._last is not None:
                self._write(self._last, b"\n")

    def _tend(self, now: float) -> None:
        """Does what time, or the end of a line, has made possible."""
        for stream in self._streams:
            if stream.rest and stream.prompts and not stream.inside:
                self._advance(stream, now)
            if stream.block is not None and stream.complete is None and now >= stream.heard + SILENT:
                stream.complete = now
        held = [stream.complete for stream in self._streams if stream.block is not None and stream.complete is not None]
        others = any(not stream.ended and stream.tracebacks and stream.complete is None for stream in self._streams)
        if held and (not others or now >= min(held) + TOGETHER):
            self._show_tracebacks(now)
        if self._waiting and self._inside is not None and now >= self._waiting_since + PATIENCE:
            self._break_line()
        self._serve(now)
        for stream in self._streams:
            if stream.paused and not stream.ended and len(stream.rest) <= LONGEST:
                stream.paused = False
                self._selector.register(stream.source, selectors.EVENT_READ, stream)

    def _serve(self, now: float) -> None:
        """Those that have waited, as far as nobody's line stands there unfinished."""
        while self._waiting and (self._inside is None or self._inside.ended):
            self._advance(self._waiting.pop(0), now)
            self._waiting_since = now

    def _take_traceback(self, stream: Stream, now: float) -> bool:
        """Moves a traceback out of the stream's lines. Whether there are lines left to pass on."""
        if stream.complete is not None:
            return False  # what comes behind it waits
        end = len(stream.rest) if stream.ended else stream.rest.rfind(b"\n") + 1
        if stream.block is None:
            found = None if stream.inside else START.search(stream.rest, 0, end)
            if found is None:
                return True
            if found.start() > 0:
                # What stands before goes first.
                ahead = Stream(stream.source, stream.target, stream.label, stream.rank, ended=True)
                ahead.rest += stream.rest[: found.start()]
                del stream.rest[: found.start()]
                end -= found.start()
                self._advance(ahead, now)
            stream.block = bytearray()
        stream.block += stream.rest[:end]
        del stream.rest[:end]
        if stream.ended or len(stream.block) > MOST:
            stream.complete = now
        return False

    def _show_tracebacks(self, now: float) -> None:
        """Those that are held, equal ones once."""
        self._break_line()
        self._serve(now)
        held = [stream for stream in self._streams if stream.block is not None]
        blocks = [(stream.rank, stream.pid, bytes(stream.block or b"")) for stream in held]
        for group in grouped(blocks):
            of_author = next(stream for stream in held if stream.rank == group.author)
            shown = Stream(of_author.source, of_author.target, ended=True)
            if of_author.label:
                shown.label = label(spans(group.ranks), of_author.colour)
            if not shown.label or len(group.ranks) > 1:
                self._break_line()
                self._write(shown.target, encoded(heading(group) + "\n"))
            shown.rest += group.text if group.text.endswith(b"\n") else group.text + b"\n"
            self._put(shown, len(shown.rest))
        for stream in held:
            stream.block = stream.complete = None
            self._advance(stream, now)

    def _finish(self) -> None:
        """Passes on what was held back."""
        now = time.monotonic()
        for stream in self._streams:
            stream.ended = True
            if stream.block is not None:
                stream.complete = now
        self._tend(now)
        for stream in self._streams:
            if stream.rest or stream.block is not None:
                self._advance(stream, now)
        self._tend(now)

    def _write(self, target: int, data: bytes) -> None:
        """Writes all of it. A target that fails takes nothing more, and the ranks are not held up."""
        if target in self._broken or not data:
            return
        begin = time.monotonic()
        view = memoryview(data)
        try:
            while view:
                try:
                    view = view[os.write(target, view) :]
                except BlockingIOError:  # somebody has made it so
                    select.select([], [target], [])
        except OSError as failure:
            self._broken.add(target)
            self._on_fault(target, failure)
            return
        self._at_begin = data.endswith(b"\n")
        self._last = target
        elapsed = time.monotonic() - begin
        if elapsed > STALL and not self._stalled:
            self._stalled = True
            self._waiting_since += elapsed
        if self._closing is not None:
            self._closing += elapsed


class Output:
    """Standard output and standard error of a job."""

    def __init__(self, on_end: Callable[[], None], on_fault: Callable[[int, OSError], None]) -> None:
        self._on_end = on_end
        self._on_fault = on_fault
        self._places: dict[object, Place] = {}
        self._targets: dict[int, Place] = {}

    def place(self, target: int) -> Place:
        """Where a descriptor leads; two that lead to one terminal, file or pipe share it."""
        if target not in self._targets:
            status = os.fstat(target)
            key = (status.st_dev, status.st_ino)
            if key not in self._places:
                self._places[key] = Place(key, self._on_end, self._on_fault)
            self._targets[target] = self._places[key]
        return self._targets[target]

    def add(self, stream: Stream) -> None:
        """Takes a stream, before `start`."""
        self.place(stream.target).add(stream)

    def start(self) -> None:
        """Begins to pass on."""
        for place in self._places.values():
            place.start()

    def say(self, text: str) -> None:
        """Writes to standard error."""
        self.place(2).say(2, text)

    def close(self) -> None:
        """All ranks have ended."""
        for place in self._places.values():
            place.close()

    def ended(self) -> bool:
        """Whether all has been passed on."""
        return not any(place.is_alive() for place in self._places.values())


def fill_standard_streams() -> None:
    """Opens /dev/null where a standard stream is closed (`>&-`): no other file gets its number, and nothing fails."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError as failure:
            if failure.errno != errno.EBADF:
                raise
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def label(ranks: str, colour: int | None) -> bytes:
    """What `--prefix` puts before each line."""
    text = f"[{ranks}] "
    return encoded(text if colour is None else f"\033[{colour}m{text}\033[0m")


def encoded(text: str) -> bytes:
    """For standard error, whose encoding may have no dash."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace("–", "-").encode(encoding, errors="replace")
