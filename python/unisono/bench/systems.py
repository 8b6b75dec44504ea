"""The systems that are measured: how each is started, and how it is told what to do.

All are started once and stay alive together. Every process of a system waits in read() on its own connection until
its turn comes, so a system that is not being measured uses no core.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .launch import Build, command, environment, programs
from .machine import Placement
from .network import CARRIED, FLOORS, LOSSY, PLAIN, Network
from .plan import BETWEEN_TWO

START_SECONDS = 60.0
END_SECONDS = 3.0
PR_SET_PDEATHSIG = 1


class SystemFailedError(Exception):
    """A system did not do what it was told. The text says what happened."""


@dataclass(frozen=True)
class Outcome:
    """A block as all ranks saw it."""

    seconds: float  #: of all calls, on the slowest rank
    stolen: float  #: of them, how long a rank waited for a core that others had; on the rank that waited longest
    median: float  #: of single calls, on rank 0; 0 if they were not looked at
    p99: float
    verified: bool
    algorithm: str | None


@dataclass
class _Member:
    """A process of a system."""

    rank: int
    connection: socket.socket
    pid: int
    pidfd: int
    received: bytearray = field(default_factory=bytearray)


class System:
    """One system: its launcher and the connections to its ranks. `name` is unisono, a peer, or limit.

    With a build it is another state of Unisono, under a name of its own. `options` are for its processes. Without a
    network the ranks share memory.
    """

    def __init__(
        self,
        name: str,
        placement: Placement,
        folder: Path,
        *,
        damage: bool = False,
        build: Build | None = None,
        interface: str = "c",
        options: Sequence[str] = (),
        network: Network | None = None,
    ) -> None:
        self.name = name
        self._network = network
        self._build = build
        self._interface = interface
        self._options = [*options, *(["--damage"] if damage else [])]
        self._placement = placement
        self._members: list[_Member] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / f"{name}.log"
        self._path = folder / f"{name}.socket"

    @property
    def is_unisono(self) -> bool:
        """Whether it is Unisono, in this state or in another."""
        return self.name in ("unisono", PLAIN, LOSSY, *CARRIED) or self._build is not None

    def offers(self, op: str) -> bool:
        """Whether the operation can be measured."""
        return self.name not in FLOORS or op in FLOORS[self.name]

    @property
    def size(self) -> int:
        """Processes: the ranks, or for the limit those that have a core."""
        placement = self._placement
        return min(placement.ranks, placement.usable) if self.name == "limit" else placement.ranks

    @property
    def pids(self) -> list[int]:
        """Its processes, by rank."""
        return [member.pid for member in self._members]

    def start(self) -> None:
        """Starts the system unless it runs."""
        if self._process is not None:
            return
        placement = self._placement
        binding = placement.limit_binding if self.name == "limit" else placement.binding
        programs()  # refused in words, if they are not there
        more = ["--socket", str(self._path), "--system", self.name]
        more += ["--cores", binding, "--ranks", str(placement.ranks), *self._options]
        line = command(self.name, placement, more, interface=self._interface, build=self._build, network=self._network)
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, self._log.open("wb") as log:
            listener.bind(str(self._path))
            listener.listen(self.size)
            listener.settimeout(0.1)
            self._process = subprocess.Popen(
                line,
                env=environment(self.name, self._path.parent, self._build, self._network),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
            try:
                self._accept(listener)
                self._check_build()
            except BaseException:
                self.kill()
                raise
        self._members.sort(key=lambda member: member.rank)

    def _accept(self, listener: socket.socket) -> None:
        deadline = time.monotonic() + START_SECONDS
        while len(self._members) < self.size:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                assert self._process is not None
                if self._process.poll() is not None:
                    raise SystemFailedError(f"did not start: {self._said()}") from None
                if time.monotonic() > deadline:
                    come = len(self._members)
                    raise SystemFailedError(f"only {come} of {self.size} ranks came in {START_SECONDS:g} s") from None
                continue
            connection.setblocking(False)
            member = _Member(-1, connection, -1, -1)
            words = self._lines([member], deadline)[0].split()
            if len(words) != 5 or words[0] != "hello":
                raise SystemFailedError(f"a rank introduced itself with {' '.join(words)!r}")
            member.rank = int(words[2])
            member.pid = int(words[4])
            member.pidfd = os.pidfd_open(member.pid)
            self._members.append(member)

    def _check_build(self) -> None:
        """A measurement of another state of Unisono must not run this one by mistake."""
        folder = self._build.serves(self._interface) if self._build is not None else None
        for member in self._members if folder is not None else ():
            if f"{folder}/" not in Path(f"/proc/{member.pid}/maps").read_text():
                raise SystemFailedError(f"rank {member.rank} does not run what is in {folder}")

    def _said(self) -> str:
        """The end of what the system wrote."""
        lines = self._log.read_text(errors="replace").split("\n")
        text = " / ".join(line.strip() for line in lines if line.strip(" -"))
        return text[-600:] or "it said nothing"

    def _lines(self, members: list[_Member], deadline: float) -> list[str]:
        """The next line of each of these."""
        with selectors.DefaultSelector() as selector:
            for member in members:
                if b"\n" not in member.received:
                    selector.register(member.connection, selectors.EVENT_READ, member)
            while selector.get_map():
                events = selector.select(max(0.0, deadline - time.monotonic()))
                if not events:
                    waiting = sorted(key.data.rank for key in selector.get_map().values())
                    raise SystemFailedError(f"no answer in time from rank {', '.join(map(str, waiting))}")
                for key, _ in events:
                    member = key.data
                    data = member.connection.recv(65536)
                    if not data:
                        raise SystemFailedError(f"rank {member.rank} ended: {self._said()}")
                    member.received += data
                    if member.received.startswith(b"failed ") and b"\n" in data:
                        text = member.received.partition(b"\n")[0].decode(errors="replace")
                        raise SystemFailedError(text.removeprefix("failed "))
                    if b"\n" in data:
                        selector.unregister(member.connection)
        lines = []
        for member in members:
            line, _, rest = member.received.partition(b"\n")
            member.received = bytearray(rest)
            lines.append(line.decode(errors="replace"))
        return lines

    def block(
        self,
        *,
        op: str,
        dtype: str,
        count: int,
        buffers: str,
        counts: str,
        algorithm: str | None,
        warmup: int,
        calls: int,
        batch: int,
        seed: int,
        seconds: float,
    ) -> Outcome:
        """Runs one block and returns what came of it. The others sleep meanwhile."""
        self.start()
        line = f"block {op} {dtype} {count} {buffers} {counts} {algorithm or '-'}"
        line = f"{line} {warmup} {calls} {batch} {seed}\n"
        deadline = time.monotonic() + seconds
        try:
            for member in self._members:
                member.connection.sendall(line.encode())
            answers = self._lines(self._members, deadline)
        except (SystemFailedError, OSError) as failure:
            self.kill()
            raise SystemFailedError(str(failure)) from failure
        replies = []
        for answer in answers:
            word, *rest = answer.split()
            if word != "done" or len(rest) != 6:
                self.kill()
                raise SystemFailedError(f"a rank answered {answer!r}")
            replies.append(rest)
        return Outcome(
            seconds=max(float(reply[0]) for reply in replies[: 2 if op in BETWEEN_TWO else None]),
            stolen=max(float(reply[1]) for reply in replies),
            median=float(replies[0][2]),
            p99=float(replies[0][3]),
            verified=all(reply[4] == "1" for reply in replies),
            algorithm=None if replies[0][5] == "-" else replies[0][5],
        )

    def stop(self) -> None:
        """Ends the system in good order, or else by force."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            for member in self._members:
                member.connection.sendall(b"end\n")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Leaves nothing of it."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            # A launcher that may end its ranks itself removes their files too.
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for member in self._members:
            # Ranks may stand in other groups than their launcher; a pidfd cannot mean another process.
            if member.pidfd >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(member.pidfd, signal.SIGKILL)
                os.close(member.pidfd)
            member.connection.close()
        self._members = []


def _die_with_parent() -> None:
    # A launcher that is asked to end removes its files; its ranks die with it in any case.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
