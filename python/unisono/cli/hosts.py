"""The hosts of a job: each has an agent, which `unisono run` starts there, and which starts the ranks."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from ..version import __version__
from .channel import (
    MOST_OF_AGENT,
    PROTOCOL,
    Channel,
    Decoder,
    Message,
    ProtocolError,
    shown,
    text_of,
    whole_number,
)
from .counters import Counted, add
from .hostlist import HostRanks
from .pipes import Credit, Feed
from .ranks import GRACE, OnEnd, OnReport, Rank, Site
from .way import HostError, Plan

KEPT = 1 << 12  # bytes of what an agent's way wrote last on standard error
LAST_WORDS = 1.0  # seconds for the end of a process that has closed its output
MOST_PIDS = 1 << 31
MOST_COUNTERS = 256
COUNTER = re.compile(r"[a-z0-9_]{1,64}")
LARGEST_COUNT = (1 << 64) - 1


def _counts(message: Message) -> dict[str, int | None]:
    """What a rank has counted, by name. Raises `ProtocolError`."""
    values = message.get("values")
    if not isinstance(values, dict) or len(values) > MOST_COUNTERS:
        raise ProtocolError("no counters in a message of kind 'counters'")
    for name, value in values.items():
        if not COUNTER.fullmatch(name):
            raise ProtocolError(f"a counter {shown(name.encode(errors='replace'))}")
        if value is not None:
            whole_number({"kind": "counters", name: value}, name, LARGEST_COUNT)
    return values


class Host(Site):
    """One host: its agent's process, and its ranks as far as the launcher is told of them."""

    def __init__(
        self,
        plan: Plan,
        which: HostRanks,
        environment: dict[str, str],
        selector: selectors.BaseSelector,
        on_end: OnEnd,
        on_report: OnReport,
        on_input_room: Callable[[int], None],
    ) -> None:
        """`environment`: what the ranks have beside their host's own."""
        super().__init__()
        self._environment = environment
        self.name = which.name
        self.is_name = plan.way.names_hosts()  #: and stands for this machine
        self._plan = plan
        self.numbers = which.ranks
        self._selector = selector
        self._on_end = on_end
        self._on_report = on_report
        self._on_input_room = on_input_room
        self._feeds: dict[tuple[int, int], tuple[Feed, Credit]] = {}  #: by rank and stream
        self._by_number: dict[int, Rank] = {}
        self._decoder = Decoder(MOST_OF_AGENT, greeted=False)
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._errors = b""  #: the last of what the agent's way wrote
        self.fault: HostError | None = None  #: why it takes no part, or no part any more
        self.greeted = False
        self.addresses: list[str] = []  #: of rank 0's host
        self.port = 0
        self.ready = False
        self.started = False
        self.counted: Counted = {}  #: what ranks have counted there
        self._done = False

    # ---------------------------------------------------------------------------------------- start

    def open(self, in_child: Callable[[], None]) -> None:
        """Starts the agent. Raises `HostError`."""
        command = self._plan.way.command(self.name)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=in_child,
                process_group=0,
            )
        except OSError as failure:
            if failure.errno == errno.EMFILE:
                raise  # it is not the host's fault
            raise HostError(f"host {self.name}: {command[0]} cannot be run: {failure.strerror}", 126) from failure
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        source, sink = os.dup(self._process.stdout.fileno()), os.dup(self._process.stdin.fileno())
        self._process.stdout.close()
        self._process.stdin.close()
        self._channel = Channel(self._selector, source, sink, self._decoder, self._hear, self._gone)
        os.set_blocking(self._process.stderr.fileno(), False)
        self._selector.register(self._process.stderr, selectors.EVENT_READ, self._read_errors)
        for number in self.numbers:
            ends = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
            stdout, stderr = (os.fdopen(end[0], "rb", buffering=0) for end in ends)
            rank = Rank(number, stdout, stderr, host=self.name)
            self.ranks.append(rank)
            self._by_number[number] = rank
            for stream, end in zip((1, 2), ends, strict=True):
                credit = Credit(
                    lambda room, number=number, stream=stream: self._send(  # type: ignore[misc]
                        "room", rank=number, stream=stream, room=room
                    )
                )
                self._feeds[number, stream] = (Feed(self._selector, end[1], credit.written), credit)

    def greet(self) -> None:
        """Looks at who answers, if somebody has, and hands over the job. Nothing is sent to who is no agent."""
        if self.greeted or self._decoder.greeting is None or self.fault is not None:
            return
        self.greeted = True
        protocol, version = self._decoder.greeting
        if (protocol, version) != (PROTOCOL, __version__):
            self._fail(
                f"has Unisono {version} (protocol {protocol}), and this is {__version__} (protocol {PROTOCOL}); use "
                "one version on all hosts (--python names the interpreter there)"
            )
            return
        own = {"UNISONO_HOST": self.name} if self.is_name else {}
        command = self._plan.command
        self._send(
            "job",
            ranks=self.numbers,
            name=command.name,
            arguments=command.arguments,
            is_module=command.is_module,
            folder=self._plan.folder,
            environment=self._environment | own,
            meet=0 in self.numbers and len(self._plan.hosts) > 1,
            counters=self._plan.counters,
        )

    def begin(self, join: str | None) -> None:
        """Has the ranks started."""
        self._send("start", join=join)

    # ---------------------------------------------------------------------------------------- what the agent says

    def _hear(self, message: Message, payload: bytes) -> None:
        kind = message["kind"]
        most = self._plan.size - 1
        if kind == "output":
            self._take_output(whole_number(message, "rank", most), whole_number(message, "stream", 2, 1), payload)
        elif kind == "ended":
            rank = self._rank(message)
            if not rank.ended:
                rank.status = whole_number(message, "status", 255, -64)
                rank.ended = True
                self._on_end(rank)
        elif kind == "counters":
            self._take_counters(whole_number(message, "rank", most), _counts(message))
        elif kind == "input-room":
            self._on_input_room(whole_number(message, "room", 1 << 16))
        elif kind == "report":
            self._on_report(self.name, text_of(message, "text"))
        elif kind == "refused":
            self._fail(text_of(message, "text"), whole_number(message, "status", 255))
        elif kind == "ready" and not self.ready:
            self._note_ready(message)
        elif kind == "started" and not self.started:
            pids = message.get("pids")
            if not isinstance(pids, list) or len(pids) != len(self.ranks):
                raise ProtocolError("another number of processes than ranks")
            for rank, pid in zip(self.ranks, pids, strict=True):
                rank.pid = whole_number({"kind": kind, "pid": pid}, "pid", MOST_PIDS, 1)
            self.started = True
        elif kind == "done":
            if not all(rank.ended for rank in self.ranks):
                raise ProtocolError("that all is done, while ranks run")
            self._finish()
        else:
            raise ProtocolError(f"a message of kind {shown(kind.encode(errors='replace'))}")

    def _rank(self, message: Message) -> Rank:
        rank = self._by_number.get(whole_number(message, "rank", self._plan.size - 1))
        if rank is None:
            raise ProtocolError(f"something of rank {message['rank']}, which another host has")
        return rank

    def _take_counters(self, number: int, values: dict[str, int | None]) -> None:
        """Of a rank that has met the others on that host, also if another launcher has started it."""
        add(self.counted, number, values)
        if len(self.counted[number]) > MOST_COUNTERS:
            raise ProtocolError(f"more counters of rank {number} than there are")

    def _take_output(self, number: int, stream: int, data: bytes) -> None:
        if (number, stream) not in self._feeds:
            raise ProtocolError(f"something of rank {number}, which another host has")
        feed, credit = self._feeds[number, stream]
        if not data:
            feed.close()
            return
        if not credit.take(len(data)):
            raise ProtocolError(f"more of rank {number}'s output than it was asked for")
        feed.put(data)

    def _note_ready(self, message: Message) -> None:
        if "port" in message:
            self.port = whole_number(message, "port", 65535, 1)
            addresses = message.get("addresses")
            if not isinstance(addresses, list) or not 0 < len(addresses) <= 64:
                raise ProtocolError("no addresses")
            self.addresses = [text_of({"kind": "ready", "address": one}, "address") for one in addresses]
        self.ready = True

    def _read_errors(self) -> None:
        """What the agent's way says of itself: the last of it is of use when it fails."""
        assert self._process is not None
        assert self._process.stderr is not None
        data = b""
        with contextlib.suppress(BlockingIOError, ValueError):
            data = os.read(self._process.stderr.fileno(), KEPT)
            if not data:
                self._selector.unregister(self._process.stderr)
                self._process.stderr.close()
        self._errors = (self._errors + data)[-KEPT:]

    # ---------------------------------------------------------------------------------------- its end

    def _gone(self, misunderstood: str) -> None:
        """The agent says nothing more, or what is not understood."""
        assert self._process is not None
        if self._done:
            return
        if misunderstood:
            self._fail(f"its agent said {misunderstood}")
            return
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(LAST_WORDS)
        for _ in range(64):  # what still stands in the pipe
            before = self._errors
            self._read_errors()
            if self._errors == before:
                break
        self._fail(self._last_words(status))

    def _last_words(self, status: int | None) -> str:
        """Why there is no agent, or none any more."""
        program = self._plan.way.command(self.name)[0]
        how = "closed its output"
        if status is not None and status >= 0:
            how = f"ended with status {status}"
        elif status is not None:
            how = f"was ended by signal {-status}"
            with contextlib.suppress(ValueError):
                how = f"was ended by {signal.Signals(-status).name}"
        lines = [line.strip() for line in self._errors.decode(errors="replace").splitlines() if line.strip()]
        said = f": {lines[-1]}" if lines else ""
        if self.greeted:
            return f"{'its agent' if program == self._plan.way.python else program} {how}{said}"
        if not lines and self._decoder.first:
            said = f"; it wrote {shown(self._decoder.first)}"
        hint = ""
        if status in (126, 127) or "No module named" in said:
            hint = " (--python names an interpreter that has Unisono there)"
        return f"no agent answers; {program} {how}{said}{hint}"

    def _fail(self, why: str, status: int = 2) -> None:
        """The host takes no further part."""
        # It may be the other side's words: one line, and nothing that a terminal would obey.
        said = "".join(character if character.isprintable() else " " for character in why)
        self.fault = self.fault or HostError(f"host {self.name}: {said}", status)
        self._finish()
        for rank in self.ranks:
            if not rank.ended:
                rank.ended = rank.lost = True
                rank.status = -signal.SIGKILL
                self._on_end(rank)

    def _finish(self) -> None:
        """Nothing more is expected of the agent."""
        self._done = True
        for feed, _ in self._feeds.values():
            feed.close()
        if self._channel is not None:
            self._channel.close()

    # ---------------------------------------------------------------------------------------- as the launcher asks

    def _send(self, kind: str, payload: bytes | None = None, **fields: object) -> None:
        if self._channel is not None and not self._done:
            self._channel.send(kind, payload, **fields)

    def put_input(self, data: bytes) -> None:
        """Standard input for rank 0; no bytes at its end."""
        self._send("input", data)

    def signal(self, number: signal.Signals) -> None:
        """As `Site` says."""
        self._send("signal", name=number.name)

    def ask_report(self) -> None:
        """As `Site` says."""
        self._send("report")

    def settled(self) -> bool:
        """As `Site` says: the agent has said so, and the last of it is in the pipes."""
        return self._done and all(feed.closed for feed, _ in self._feeds.values())

    def reap(self) -> None:
        """As `Site` says: the agent does."""

    def give_up(self) -> None:
        """The agent has not ended its ranks in time."""
        self._fail("its agent does not answer")

    def sweep(self) -> None:
        """As `Site` says. An agent whose launcher says nothing more ends its ranks."""
        if self._channel is not None:
            self._channel.close()
        for feed, _ in self._feeds.values():
            feed.abandon()

    def wait(self, until: float) -> None:
        """For the agent's end, or brings it about."""
        if self._process is None:
            return
        if not self.greeted:
            self._process.kill()  # nobody is there who has something to end
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None and not self._process.stderr.closed:
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._process.stderr)
            self._process.stderr.close()
        self._done = True


def await_ends(hosts: Sequence[Host]) -> None:
    """Of agents that have been left alone."""
    until = time.monotonic() + GRACE
    for host in hosts:
        host.wait(until)
