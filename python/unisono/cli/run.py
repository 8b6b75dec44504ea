"""`unisono run`: starts a program on every rank of a job on this machine, and sees to its end."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import secrets
import select
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from ..machine.jobs import group_report
from .cluster import Cluster, ClusterError, ClusterOptions

MOST_RANKS = 1024
GRACE = 5.0  # seconds between SIGTERM and SIGKILL
DRAIN = 10.0  # seconds for output that is still in the pipes when all ranks have ended
QUIET = 1.0  # seconds without output after which none is expected
TIMED_OUT = 124  # exit status, as of timeout(1)
COLOURS = (36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PR_SET_PDEATHSIG = 1
PLATFORMS = ("native", "functional", "rtl")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a program on several ranks of this machine",
        usage="unisono run -n RANKS [--platform PLATFORM] [--prefix] [--timeout SECONDS] [--] PROGRAM [ARGUMENT ...]",
        description="Starts PROGRAM once for every rank. A program whose name ends in .py runs in this Python. When a "
        "rank fails the others are ended, and the exit status is that of the first rank that failed (128 + signal if a "
        "signal ended it). Standard input goes to rank 0. A job that is ended by --timeout or SIGQUIT (Ctrl-\\) first "
        "says what each rank is doing.",
    )
    parser.add_argument("-n", dest="ranks", type=_ranks, required=True, metavar="RANKS", help="number of ranks")
    parser.add_argument("--prefix", "--tag", action="store_true", help="write the rank in front of each line of output")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="a rank that a signal ends does not end the others, which may shrink their communicator and go on; the "
        "exit status is then theirs",
    )
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="end the job after so long (status 124)")
    parser.add_argument(
        "--platform",
        choices=PLATFORMS,
        help="what carries out the calls: this library's own engine (native, the default), the registers of a device "
        "with the native engine behind them (functional), or nodes of a simulated cluster (rtl); UNISONO_PLATFORM says "
        "the same",
    )
    cluster = parser.add_argument_group("simulated cluster (--platform rtl)")
    cluster.add_argument("--network", metavar="FILE", help="configuration of the cluster and its network")
    cluster.add_argument("--seed", type=_seed, metavar="NUMBER", help="of everything random in the simulation")
    cluster.add_argument(
        "--platform-model", choices=("partitioned", "unified"), help="how host and device share memory in the model"
    )
    cluster.add_argument("--wave", metavar="FILE", help="write the signals of rank 0's engine to a file")
    cluster.add_argument(
        "--trace", metavar="FILE", help="write a timeline of the moves of all engines (JSON, for Perfetto)"
    )
    cluster.add_argument("--counters", action="store_true", help="print the engines' counters at the end")
    cluster.add_argument(
        "--native",
        type=_rank_list,
        metavar="RANK,...",
        help="ranks whose engine is the native one, in C++, instead of a simulated one; all are on one network",
    )
    cluster.add_argument(
        "--native-delay",
        type=_cycles,
        metavar="CYCLES",
        help="time that passes before a message of such a rank leaves (default 0: the native engine takes no time)",
    )
    parser.add_argument("program", help="the program, found as a shell finds it")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(execute=execute)


def _ranks(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 1 <= int(text) <= MOST_RANKS:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} ranks were asked for; allowed are 1 to {MOST_RANKS}")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")


def _seed(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= int(text) < 1 << 64:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 2^64-1")


def _rank_list(text: str) -> tuple[int, ...]:
    try:
        ranks = tuple(int(part) for part in text.split(","))
    except ValueError:
        ranks = (-1,)
    if min(ranks) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks with commas between them, such as 1,3")
    if len(set(ranks)) != len(ranks):
        raise argparse.ArgumentTypeError(f"{text!r} names a rank twice")
    return ranks


def _cycles(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= int(text) < 1 << 32:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number of cycles from 0 to 2^32-1")


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    platform = options.platform or os.environ.get("UNISONO_PLATFORM") or PLATFORMS[0]
    if platform not in PLATFORMS:
        return _refuse(f"UNISONO_PLATFORM is {platform!r}; known are {', '.join(PLATFORMS)}", 2)
    wishes = ClusterOptions(
        options.network,
        options.seed,
        options.platform_model,
        options.wave,
        options.trace,
        options.counters,
        options.native,
        options.native_delay,
    )
    if platform != "rtl" and wishes.given():
        return _refuse(f"{' and '.join(wishes.given())} goes with --platform rtl; the platform is {platform}", 2)
    command = [options.program, *options.arguments]
    if options.program.endswith(".py"):
        if not os.path.isfile(options.program):
            return _refuse(f"there is no file {options.program}", 127)
        command = [sys.executable, *command]
    elif shutil.which(options.program) is None:
        if os.path.isfile(options.program):
            return _refuse(f"{options.program} is not executable", 126)
        return _refuse(f"there is no program {options.program}", 127)
    try:
        cluster = Cluster(options.ranks, wishes) if platform == "rtl" else None
        return Launcher(
            command,
            options.ranks,
            prefix=options.prefix,
            timeout=options.timeout,
            keep_going=options.keep_going,
            environment={"UNISONO_PLATFORM": platform},
            cluster=cluster,
        ).run()
    except ClusterError as failure:
        return _refuse(str(failure), 127)
    except OSError as failure:
        if failure.filename != command[0]:
            raise
        return _refuse(f"{options.program} cannot be run: {failure.strerror}", 126)


def _refuse(what: str, status: int) -> int:
    print(f"unisono run: {what}", file=sys.stderr)
    return status


@dataclass
class Rank:
    """One rank's process."""

    number: int
    process: subprocess.Popen[bytes]
    pidfd: int | None  #: None where sandboxes or limits refuse it
    ended: bool = False
    status: int = 0  #: exit status, or minus the number of the signal


def _write(sink: IO[bytes], data: bytes) -> None:
    """Writes all of it. An unbuffered stream (PYTHONUNBUFFERED) takes a part when a signal comes, or none if its file
    does not block.
    """
    view = memoryview(data)
    while view:
        taken = sink.write(view)
        if taken is None:
            select.select([], [sink], [])
        else:
            view = view[taken:]
    sink.flush()


@dataclass
class Stream:
    """One output stream of one rank on its way to ours, whole lines at a time."""

    source: IO[bytes]
    sink: IO[bytes]
    label: bytes
    rest: bytearray = field(default_factory=bytearray)

    def forward(self) -> bool:
        """Passes on what is there; False at the end."""
        data = os.read(self.source.fileno(), 65536)
        self.rest += data
        end = self.rest.rfind(b"\n") + 1
        lines = bytes(self.rest[:end]).splitlines(keepends=True)
        del self.rest[:end]
        if not data and self.rest:
            lines.append(bytes(self.rest) + b"\n")
        if lines:
            with contextlib.suppress(BrokenPipeError):
                _write(self.sink, b"".join(self.label + line for line in lines))
        return bool(data)


class Launcher:
    """A job from start to end. Runs in the main thread, since signals arrive there."""

    def __init__(
        self,
        command: list[str],
        size: int,
        *,
        prefix: bool = False,
        timeout: float | None = None,
        keep_going: bool = False,
        environment: dict[str, str] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._command = command
        self._environment = environment or {}
        self._cluster = cluster
        self._size = size
        self._prefix = prefix
        self._timeout = timeout
        self._keep_going = keep_going
        self._ranks: list[Rank] = []
        self._selector = selectors.DefaultSelector()
        self._streams = 0
        self._first_failure: Rank | None = None
        self._kill_at: float | None = None
        self._killed = 0
        self._received: signal.Signals | None = None
        self._timed_out = False

    def run(self) -> int:
        """Runs the job and returns its exit status."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        # A pidfd tells which rank ended first. SIGCHLD does for ranks without.
        handled = (*FORWARDED, signal.SIGTSTP, signal.SIGCHLD)
        handlers = {number: signal.signal(number, lambda *_: None) for number in handled}
        try:
            self._selector.register(wake_read, selectors.EVENT_READ, lambda: self._signals(wake_read))
            deadline = None if self._timeout is None else time.monotonic() + self._timeout
            try:
                self._start()
                self._loop(deadline)
            finally:
                self._sweep()
                if self._cluster is not None:
                    # Whoever has ended the job does not wait for a wave file.
                    self._cluster.finish(*([GRACE] if self._received is not None or self._timed_out else []))
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            os.close(wake_read)
            os.close(wake_write)
        return self._report()

    def _start(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        launcher = os.getpid()

        def in_child() -> None:
            # Whatever ends the launcher ends the ranks. If it has ended already, no signal will come.
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != launcher:
                os._exit(1)
            for number in (*FORWARDED, signal.SIGTSTP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)

        environment = os.environ | self._environment
        if self._cluster is not None:
            self._cluster.start(in_child)
            environment |= self._cluster.environment
        environment |= {
            "UNISONO_SIZE": str(self._size),
            "UNISONO_RENDEZVOUS": f"unisono-{launcher}-{secrets.token_hex(8)}",
            "UNISONO_SECRET": secrets.token_hex(32),
        }
        if self._prefix:
            environment.setdefault("PYTHONUNBUFFERED", "1")
        pipe = subprocess.PIPE if self._prefix else None
        terminal = sys.stdin is not None and sys.stdin.isatty()
        for number in range(self._size):
            stdin: int | None = subprocess.DEVNULL
            if number == 0:
                # Ranks have process groups of their own, and only the foreground group may read a terminal.
                stdin = subprocess.PIPE if terminal else None
            own = {"UNISONO_RANK": str(number)}
            if self._cluster is not None:
                own["UNISONO_DEVICE_FD"] = str(self._cluster.descriptor(number))
            process = subprocess.Popen(
                self._command,
                env=environment | own,
                pass_fds=() if self._cluster is None else (self._cluster.descriptor(number),),
                stdin=stdin,
                stdout=pipe,
                stderr=pipe,
                preexec_fn=in_child,
                process_group=0,
            )
            if self._cluster is not None:
                self._cluster.taken(number)
            rank = Rank(number, process, _pidfd(process.pid))
            self._ranks.append(rank)
            if rank.pidfd is not None:
                self._selector.register(rank.pidfd, selectors.EVENT_READ, lambda rank=rank: self._ended(rank))
            if self._prefix:
                self._forward(rank, process.stdout, sys.stdout.buffer)
                self._forward(rank, process.stderr, sys.stderr.buffer)
        if terminal and self._ranks[0].process.stdin is not None:
            self._selector.register(0, selectors.EVENT_READ, self._input)

    def _forward(self, rank: Rank, source: IO[bytes] | None, sink: IO[bytes]) -> None:
        assert source is not None
        width = len(str(self._size - 1))
        label = f"[{rank.number:>{width}}] "
        if sink.isatty() and "NO_COLOR" not in os.environ:
            label = f"\033[{COLOURS[rank.number % len(COLOURS)]}m{label}\033[0m"
        stream = Stream(source, sink, label.encode())
        self._streams += 1

        def forward() -> None:
            if not stream.forward():
                self._selector.unregister(source)
                source.close()
                self._streams -= 1

        self._selector.register(source, selectors.EVENT_READ, forward)

    def _input(self) -> None:
        """The terminal's input goes to rank 0."""
        sink = self._ranks[0].process.stdin
        data = os.read(0, 65536) if os.tcgetpgrp(0) == os.getpgrp() else b""
        try:
            if sink is not None and data:
                sink.write(data)
                sink.flush()
                return
        except BrokenPipeError:
            pass
        self._selector.unregister(0)
        if sink is not None:
            with contextlib.suppress(BrokenPipeError):
                sink.close()

    def _loop(self, deadline: float | None) -> None:
        drain_until: float | None = None
        while True:
            limits = [limit for limit in (deadline, self._kill_at) if limit is not None]
            finished = all(rank.ended for rank in self._ranks)
            if finished:
                # What the ranks have written may still be in the pipes; descendants may hold them open for ever.
                drain_until = drain_until or time.monotonic() + DRAIN
                if self._streams == 0 or time.monotonic() >= drain_until:
                    return
                limits = [time.monotonic() + QUIET]
            wait = max(0.0, min(limits) - time.monotonic()) if limits else None
            events = self._selector.select(wait)
            if finished and not events:
                return
            for key, _ in events:
                action: Callable[[], None] = key.data
                action()
            now = time.monotonic()
            if deadline is not None and now >= deadline and not finished:
                deadline = None
                self._timed_out = True
                self._tell()
                self._end()
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                self._killed = sum(not rank.ended for rank in self._ranks)
                self._signal(signal.SIGKILL)

    def _reap(self) -> None:
        """Takes note of the ranks without pidfd that have ended since the last look."""
        for rank in self._ranks:
            if rank.pidfd is not None or rank.ended:
                continue
            # WNOWAIT leaves it a zombie, so that its number still names its group.
            if os.waitid(os.P_PID, rank.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._ended(rank)

    def _ended(self, rank: Rank) -> None:
        """A rank's process has ended: what it has left behind in its group ends too."""
        if rank.pidfd is not None:
            self._selector.unregister(rank.pidfd)
            os.close(rank.pidfd)
        # Not reaped yet, so the group's number cannot have been given to others.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(rank.process.pid, signal.SIGKILL)
        rank.status = rank.process.wait()
        rank.ended = True
        if rank.status < 0 and self._keep_going and not all(other.ended and other.status < 0 for other in self._ranks):
            print(f"unisono run: rank {rank.number} {_how(rank.status)}; the others go on", file=sys.stderr, flush=True)
            return
        if rank.status != 0 and self._first_failure is None and self._received is None and not self._timed_out:
            self._first_failure = rank
            if not all(other.ended for other in self._ranks):
                self._end()
        elif rank.status != 0 and self._first_failure is None:
            self._first_failure = rank

    def _tell(self) -> None:
        """Says on standard error what the ranks are doing."""
        text = group_report({rank.process.pid for rank in self._ranks if not rank.ended})
        if text:
            print(f"unisono run: what the ranks are doing:\n{text}", end="", file=sys.stderr, flush=True)

    def _end(self) -> None:
        """Asks all ranks to end, and sets the time when they will be made to."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        self._kill_at = self._kill_at or time.monotonic() + GRACE

    def _signal(self, number: signal.Signals) -> None:
        for rank in self._ranks:
            if not rank.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(rank.process.pid, number)

    def _signals(self, wake: int) -> None:
        ended = False
        for byte in os.read(wake, 512):
            try:
                number = signal.Signals(byte)
            except ValueError:
                continue
            if number == signal.SIGCHLD:
                ended = True
            elif number == signal.SIGTSTP:
                self._signal(number)
                os.kill(os.getpid(), signal.SIGSTOP)
                self._signal(signal.SIGCONT)
            elif number in FORWARDED:
                again = number == signal.SIGINT and self._received == signal.SIGINT
                if number == signal.SIGQUIT:
                    self._tell()
                self._signal(number)
                if number in ENDING or number == signal.SIGINT:
                    self._received = number
                if number in ENDING or again:
                    self._kill_at = self._kill_at or time.monotonic() + GRACE
        # After the signals that came with it: a rank that one of them ended has not failed by itself.
        if ended:
            self._reap()

    def _sweep(self) -> None:
        """Nothing of the job is left when the launcher returns, whatever happened."""
        for rank in self._ranks:
            if not rank.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(rank.process.pid, signal.SIGKILL)
                rank.status = rank.process.wait()
                rank.ended = True
        self._selector.close()

    def _report(self) -> int:
        if self._cluster is not None and self._cluster.fault is not None:
            print(f"unisono run: {self._cluster.fault}", file=sys.stderr)
        failed = self._first_failure
        killed = f"; {self._killed} had to be killed {GRACE:g} s later" if self._killed else ""
        if self._timed_out:
            print(f"unisono run: the job has not ended within {self._timeout:g} s; all ranks were ended{killed}",
                  file=sys.stderr)  # fmt: skip
            return TIMED_OUT
        if failed is None:
            return 0 if self._cluster is None or self._cluster.fault is None else 1
        if self._received is not None:
            print(f"unisono run: {self._received.name} was passed on to all ranks{killed}", file=sys.stderr)
        else:
            others = self._size - 1
            rest = f"; the others were ended{killed}" if others else ""
            print(f"unisono run: rank {failed.number} of {self._size} {_how(failed.status)}{rest}", file=sys.stderr)
        return failed.status if failed.status > 0 else 128 - failed.status


def _pidfd(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.pidfd_open(pid)
    return None


def _how(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
