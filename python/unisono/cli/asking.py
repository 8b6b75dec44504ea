"""Asks the hosts of a job, all at once, and waits for none of them longer than its deadline."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidArgumentError
from ..machine.launches import Launch, LaunchedHost
from .answer import MARK
from .way import HostError, Way

DEADLINE = 5.0  # seconds that a host has
SKIPPED = 1 << 16  # bytes of what a shell prints before the answer
LARGEST = 1 << 26
KEPT = 1 << 12


@dataclass
class Answer:
    """What a host has said, or why it has not."""

    host: LaunchedHost
    fault: str = ""  #: in words, without the host's name
    jobs: list[dict[str, Any]] = field(default_factory=list)


class _Asked:
    """A host that has been asked."""

    def __init__(self, way: Way, host: LaunchedHost, question: bytes, selector: selectors.BaseSelector) -> None:
        self.answer = Answer(host)
        self.done = False
        self._selector = selector
        self._question = question
        self._said = b""
        self._errors = b""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._command = way.command(host.name, "unisono.cli.answer")
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
            )  # fmt: skip
        except HostError as failure:
            self._end(str(failure))
            return
        except OSError as failure:
            self._end(f"{self._command[0]} cannot be run: {failure.strerror}")
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(stream.fileno(), False)
        selector.register(self._process.stdin, selectors.EVENT_WRITE, self._write)
        selector.register(self._process.stdout, selectors.EVENT_READ, self._read)
        selector.register(self._process.stderr, selectors.EVENT_READ, self._read_errors)

    def _write(self) -> None:
        if self._process is None:
            return  # what came at the same moment has ended it
        assert self._process.stdin is not None
        try:
            self._question = self._question[os.write(self._process.stdin.fileno(), self._question) :]
        except BlockingIOError:
            return
        except OSError:
            self._question = b""  # its end says why
        if not self._question:
            # It stays open: for ssh its end would be that of what runs there.
            self._selector.unregister(self._process.stdin)

    def _read(self) -> None:
        if self._process is None:
            return  # what came at the same moment has ended it
        assert self._process.stdout is not None
        try:
            data = os.read(self._process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        self._said += data
        begin = self._said.find(MARK)
        if begin < 0:
            if not data:
                self._end(self._last_words())
            elif len(self._said) > SKIPPED + len(MARK):
                self._end("what is started there says something else than Unisono")
            return
        size, line, rest = self._said[begin + len(MARK) :].partition(b"\n")
        if line and (not size.isdigit() or int(size) > LARGEST):
            self._end("its answer cannot be understood")
        elif line and len(rest) >= int(size):
            self._take(rest[: int(size)])
        elif not data:
            self._end("its answer breaks off")

    def _take(self, text: bytes) -> None:
        try:
            told = json.loads(text)
            self.answer.jobs = list(told.get("jobs", []))
            self._end(plain(str(told.get("fault", ""))))
        except (ValueError, AttributeError, TypeError):
            self._end("its answer cannot be understood")

    def _read_errors(self) -> None:
        if self._process is None:
            return  # what came at the same moment has ended it
        assert self._process.stderr is not None
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._process.stderr.fileno(), KEPT)
            self._errors = (self._errors + data)[-KEPT:]
            if not data:
                self._selector.unregister(self._process.stderr)

    def _last_words(self) -> str:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        for _ in range(64):
            before = self._errors
            with contextlib.suppress(KeyError):
                self._read_errors()
            if self._errors == before:
                break
        lines = [line.strip() for line in self._errors.decode(errors="replace").splitlines() if line.strip()]
        said = f": {plain(lines[-1])}" if lines else ""
        return f"{self._command[0]} ended with status {self._process.returncode}{said}"

    def _end(self, fault: str) -> None:
        self.answer.fault = fault
        self.done = True
        self.leave()

    def late(self, seconds: float) -> None:
        """It has had its time."""
        if not self.done:
            self._end(f"it does not answer within {seconds:g} s")

    def leave(self) -> None:
        """Leaves nothing of it here."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(stream)
            with contextlib.suppress(OSError):
                stream.close()
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ask(launch: Launch, what: str, seconds: float = DEADLINE) -> list[Answer]:
    """What each host says, in the order of the launch. Who is late is named, and does not hold up the others."""
    if not 0 < seconds < float("inf"):
        raise InvalidArgumentError(f"the deadline is {seconds:g} s; give a number of seconds above 0")
    way = Way(launch.template, launch.python)
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        asked: list[_Asked] = []
        try:
            for host in launch.hosts:
                question = json.dumps({"what": what, "pids": host.pids}).encode() + b"\n"
                asked.append(_Asked(way, host, question, selector))
            while not all(one.done for one in asked):
                events = selector.select(max(0.0, until - time.monotonic()))
                if not events and time.monotonic() >= until:
                    break
                for key, _ in events:
                    key.data()
        finally:
            for one in asked:
                one.late(seconds)
                one.leave()
    return [one.answer for one in asked]


def plain(text: str) -> str:
    """The other side's words: nothing that a terminal would obey."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
