"""The agent of `unisono run` on one host: starts that host's ranks, and carries what they read, write and get told.

The launcher starts it, speaks to it over its standard input, and hears it from its standard output. When either ends,
so do the ranks.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any, NoReturn

from ..errors import UnisonoError
from ..version import __version__
from .addresses import listen, own_addresses
from .channel import MOST_OF_LAUNCHER, Channel, Decoder, Message, greeting
from .command import Command, CommandError
from .counters import JobMemory
from .environment import clear_job, fill_in
from .output import DRAIN, QUIET
from .pipes import Credit, Feed, Pump
from .processes import Processes
from .ranks import Rank

BACKLOG = 1 << 18  # bytes on the way to the launcher above which ranks are not read
LONGEST_REPORT = 1 << 16  # characters
BLINK = 0.05  # seconds between looks at ranks whose end nothing tells
FILES = 8  # open files for each rank
FILES_BESIDES = 32


class Agent:
    """The ranks of one host, from start to end."""

    def __init__(self, source: int, sink: int) -> None:
        """Owns both descriptors, which lead from and to the launcher."""
        self._selector = selectors.DefaultSelector()
        self._channel = Channel(
            self._selector, source, sink, Decoder(MOST_OF_LAUNCHER), self._hear, self._left, self._resume
        )
        self._job: Message | None = None
        self._words: list[str] = []
        self._listener: socket.socket | None = None
        self._processes: Processes | None = None
        self._memory: JobMemory | None = None  #: where the ranks here count, if that is asked for
        self._pumps: dict[tuple[int, int], Pump] = {}  #: by rank and stream
        self._input: Feed | None = None  #: to rank 0
        self._input_credit = Credit(lambda count: self._channel.send("input-room", room=count))
        self._last_heard = 0.0  #: when a rank has written something
        self._all_ended = 0.0
        self._held = False  #: no rank is read, since too much is on the way to the launcher
        self._over = False
        self._status = 0

    def run(self) -> int:
        """Until the job's end, or the launcher's."""
        self._channel.send_raw(greeting(__version__))
        try:
            while not self._over and not self._drained():
                self._turn()
                if self._processes is not None and not self._processes.all_tell_their_end():
                    self._processes.reap()
            if not self._over:
                for pump in self._pumps.values():
                    pump.stop()
                self._tell_counters()
                self._channel.send("done")
            while self._channel.waiting and not self._over:
                self._turn()
        finally:
            if self._processes is not None:
                self._processes.sweep()
            self._channel.close()
        return self._status

    def _turn(self) -> None:
        wait = None
        if self._processes is not None:
            if self._all_ended:
                wait = QUIET / 4
            elif not self._processes.all_tell_their_end():
                wait = BLINK
        for key, _ in self._selector.select(wait):
            key.data()

    def _drained(self) -> bool:
        """Whether the ranks have ended and nothing of what they wrote is left in the pipes.

        Somebody whom a rank has left behind may hold a pipe open.
        """
        if not self._all_ended:
            return False
        if all(pump.over for pump in self._pumps.values()):
            return True
        now = time.monotonic()
        if any(pump.blocked for pump in self._pumps.values()):
            self._all_ended = now  # nobody reads at the other end: it will take its time
        return now > max(self._last_heard, self._all_ended) + QUIET or now > self._all_ended + DRAIN

    def _left(self, _: str) -> None:
        """The launcher has gone, or cannot be understood. Who is there to be told?"""
        self._over = True
        self._status = 1

    # ---------------------------------------------------------------------------------------- what it is told

    def _hear(self, message: Message, payload: bytes) -> None:
        kind = message["kind"]
        if kind == "job":
            self._prepare(message)
        elif kind == "start":
            self._start(message.get("join"))
        elif kind == "room":
            pump = self._pumps.get((message["rank"], message["stream"]))
            if pump is not None:
                pump.allow(message["room"])
        elif self._processes is None:
            return
        elif kind == "signal":
            self._processes.signal(signal.Signals[message["name"]])
        elif kind == "report":
            self._processes.ask_report()
        elif kind == "input":
            self._take_input(payload)

    def _refuse(self, text: str, status: int) -> None:
        self._channel.send("refused", text=text, status=status)

    def _prepare(self, job: Message) -> None:
        """Looks whether the ranks can be started, and opens the socket at which they meet."""
        try:
            os.chdir(job["folder"])
        except OSError as failure:
            self._refuse(f"the working directory {job['folder']} cannot be entered: {failure.strerror}", 2)
            return
        os.environ["PWD"] = job["folder"]
        try:
            # The search goes along the ranks' PATH.
            clear_job(os.environ)
            os.environ.update(job["environment"])
            self._words = Command(job["name"], job["arguments"], job["is_module"]).words()
        except CommandError as failure:
            self._refuse(str(failure), failure.status)
            return
        self._job = job
        about: dict[str, Any] = {}
        if job["counters"]:
            self._memory = JobMemory()
            self._selector.register(self._memory, selectors.EVENT_READ, self._memory.take)
        if job["meet"]:
            try:
                self._listener = listen()
                about = {"port": self._listener.getsockname()[1], "addresses": own_addresses()}
            except OSError as failure:
                self._refuse(f"no socket can be had at which the ranks would meet: {failure.strerror}", 1)
                return
        self._channel.send("ready", **about)

    def _start(self, join: str | None) -> None:
        """Starts the ranks. `join`: where they meet, if they are on several hosts."""
        assert self._job is not None
        numbers: list[int] = self._job["ranks"]
        environment = dict(os.environ)
        fill_in(environment)
        if join is not None:
            environment["UNISONO_JOIN"] = join
        if self._memory is not None:
            environment |= self._memory.environment
        self._processes = Processes(self._selector, self._ended, self._report, FILES * len(numbers) + FILES_BESIDES)
        try:
            for number in numbers:
                own = environment
                descriptors: tuple[int, ...] = ()
                if number == 0 and self._listener is not None:
                    descriptors = (self._listener.fileno(),)
                    own = environment | {"UNISONO_JOIN_FD": str(self._listener.fileno())}
                stdin = subprocess.PIPE if number == 0 else subprocess.DEVNULL
                self._follow(self._processes.start(number, self._words, own, stdin=stdin, descriptors=descriptors))
        except OSError as failure:
            self._refuse(f"{self._words[0]} cannot be run: {failure.strerror}", 126)
            return
        finally:
            if self._listener is not None:
                self._listener.close()
        self._channel.send("started", pids=[rank.pid for rank in self._processes.ranks])

    def _follow(self, rank: Rank) -> None:
        """Passes on what the rank writes, and to rank 0 what the launcher reads."""
        assert self._processes is not None
        for stream, source in ((1, rank.stdout), (2, rank.stderr)):
            pump = Pump(
                self._selector,
                source.fileno(),
                lambda data, stream=stream: self._wrote(rank, stream, data),  # type: ignore[misc]
            )
            self._pumps[rank.number, stream] = pump
            pump.resume()
        sink = self._processes.stdin_of(rank)
        if sink is not None:
            self._input = Feed(self._selector, sink, self._input_credit.written)

    def _take_input(self, data: bytes) -> None:
        if self._input is None:
            return
        if data:
            self._input_credit.take(len(data))
            self._input.put(data)
        else:
            self._input.close()

    # ---------------------------------------------------------------------------------------- what it tells

    def _wrote(self, rank: Rank, stream: int, data: bytes) -> None:
        self._last_heard = time.monotonic()
        self._channel.send("output", data, rank=rank.number, stream=stream)
        if self._channel.waiting > BACKLOG:
            self._held = True
            for pump in self._pumps.values():
                pump.hold()

    def _resume(self) -> None:
        if self._held and self._channel.waiting <= BACKLOG // 2:
            self._held = False
            for pump in self._pumps.values():
                pump.resume()

    def _ended(self, rank: Rank) -> None:
        assert self._processes is not None
        self._channel.send("ended", rank=rank.number, status=rank.status)
        if all(other.ended for other in self._processes.ranks):
            self._all_ended = time.monotonic()

    def _tell_counters(self) -> None:
        """What the ranks here have counted; of a system that shows nothing of it, nothing."""
        if self._memory is None:
            return
        self._selector.unregister(self._memory)
        with contextlib.suppress(UnisonoError):
            for rank, values in self._memory.by_rank().items():
                self._channel.send("counters", rank=rank, values=values)

    def _report(self, _: str, text: str) -> None:
        self._channel.send("report", text=text[:LONGEST_REPORT])


def _stop(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def main() -> int:
    """Takes the launcher's pipes away from the standard streams, which belong to nobody then."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Agent(source, sink).run()


if __name__ == "__main__":
    sys.exit(main())
