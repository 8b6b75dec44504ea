"""A job of `unisono run` from start to end: processes, signals, deadlines."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import secrets
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..machine.jobs import group_report
from .cluster import Cluster
from .counters import JobMemory
from .log import VARIABLE, Log
from .output import Output, Stream, label

GRACE = 5.0  # seconds between SIGTERM and SIGKILL
TIMED_OUT = 124  # exit status, as of timeout(1)
READER_GONE = 128 + signal.SIGPIPE
COLOURS = (36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PR_SET_PDEATHSIG = 1
DESCRIPTORS = 3  # for each rank: its two streams, and its process
DESCRIPTORS_BESIDES = 32


class LauncherError(Exception):
    """The job cannot be started, and why."""


@dataclass
class Rank:
    """One rank's process."""

    number: int
    process: subprocess.Popen[bytes]
    pidfd: int | None  #: None where sandboxes or limits refuse it
    ended: bool = False
    status: int = 0  #: exit status, or minus the number of the signal


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
        counters: bool = False,
    ) -> None:
        self._command = command
        self._log = Log()
        self._environment = environment or {}
        self._cluster = cluster
        self._size = size
        self._prefix = prefix
        self._timeout = timeout
        self._keep_going = keep_going
        self._ranks: list[Rank] = []
        self._selector = selectors.DefaultSelector()
        self._output = Output(self._told, self._lost)
        self._memory = JobMemory() if counters else None
        self._wake: int | None = None  #: a pipe to the loop, for signals and for the threads of the output
        self._fault: OSError | None = None  #: why standard output takes nothing more
        self._ended_by_fault = False
        self._abandoned = False  #: nobody waits for the output any more
        self._first_failure: Rank | None = None
        self._kill_at: float | None = None
        self._killed = 0
        self._received: signal.Signals | None = None
        self._timed_out = False

    def run(self) -> int:
        """Runs the job and returns its exit status."""
        begin = time.monotonic()
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = wake_write
        before = signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        # A pidfd tells which rank ended first. SIGCHLD does for ranks without.
        handled = (*FORWARDED, signal.SIGTSTP, signal.SIGCHLD)
        handlers = {number: signal.signal(number, lambda *_: None) for number in handled}
        try:
            self._selector.register(wake_read, selectors.EVENT_READ, lambda: self._signals(wake_read))
            if self._memory is not None:
                self._selector.register(self._memory, selectors.EVENT_READ, self._memory.take)
            deadline = None if self._timeout is None else time.monotonic() + self._timeout
            try:
                if self._log.fault is not None:
                    self._say("warn", self._log.fault)
                try:
                    self._start()
                    self._output.start()
                except OSError as failure:
                    if failure.errno != errno.EMFILE:
                        raise
                    needed = DESCRIPTORS * self._size + DESCRIPTORS_BESIDES
                    raise LauncherError(
                        f"the launcher of {self._size} ranks needs some {needed} open files, and "
                        f"{resource.getrlimit(resource.RLIMIT_NOFILE)[1]} are allowed; raise the limit (ulimit -n)"
                    ) from failure
                self._loop(deadline)
            finally:
                self._sweep()
                if self._cluster is not None:
                    # A user who has ended the job does not wait for a wave file.
                    self._cluster.finish(*([GRACE] if self._received is not None or self._timed_out else []))
                self._output.close()
            self._await_output()
            status = self._report()
            self._say("info", f"info: the job ended after {time.monotonic() - begin:.1f} s with status {status}")
            return status
        finally:
            self._selector.close()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            self._wake = None
            os.close(wake_read)
            os.close(wake_write)

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
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

        limits = self._make_room()
        environment = os.environ | self._environment
        if self._cluster is not None:
            self._cluster.start(in_child)
            environment |= self._cluster.environment
            self._output.add(Stream(self._cluster.output, 2, b"[cluster] "))
        if self._memory is not None:
            environment |= self._memory.environment
        environment |= {
            "UNISONO_SIZE": str(self._size),
            "UNISONO_RENDEZVOUS": f"unisono-{launcher}-{secrets.token_hex(8)}",
            "UNISONO_SECRET": secrets.token_hex(32),
        }
        if self._log.fault is not None:
            environment[VARIABLE] = self._log.level  # the ranks need not say it again
        # What a rank has written is in the pipe, and not in a buffer that is lost when the rank is ended: Python's, and
        # C's when the library is initialised.
        environment.setdefault("PYTHONUNBUFFERED", "1")
        environment.setdefault("UNISONO_STDOUT", "lines")
        if os.isatty(1):
            environment.setdefault("COLUMNS", str(shutil.get_terminal_size().columns - len(self._label(0, None))))
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
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=in_child,
                process_group=0,
            )
            if self._cluster is not None:
                self._cluster.taken(number)
            rank = Rank(number, process, _pidfd(process.pid))
            self._ranks.append(rank)
            self._say("debug", f"debug: rank {number} is process {process.pid}")
            if rank.pidfd is not None:
                self._selector.register(rank.pidfd, selectors.EVENT_READ, lambda rank=rank: self._ended(rank))
            self._forward(rank)
        if terminal and self._ranks[0].process.stdin is not None:
            self._selector.register(0, selectors.EVENT_READ, self._input)

    def _make_room(self) -> tuple[int, int]:
        """As many open files as a large job takes, if they may be had; returns the limits as they were, which are the
        ranks'.
        """
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = DESCRIPTORS * self._size + DESCRIPTORS_BESIDES
        soft, hard = limits
        if soft != resource.RLIM_INFINITY and soft < needed:
            allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        return limits

    def _label(self, rank: int, colour: int | None) -> bytes:
        return label(f"{rank:>{len(str(self._size - 1))}}", colour) if self._prefix else b""

    def _forward(self, rank: Rank) -> None:
        """Has the rank's output passed on."""
        mode = os.fstat(0).st_mode
        prompts = rank.number == 0 and (os.isatty(0) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        for target, source in ((1, rank.process.stdout), (2, rank.process.stderr)):
            assert source is not None
            coloured = os.isatty(target) and "NO_COLOR" not in os.environ
            colour = COLOURS[rank.number % len(COLOURS)] if coloured else None
            stream = Stream(source, target, self._label(rank.number, colour), colour, rank.number, rank.process.pid)
            stream.raw = self._size == 1 and not self._prefix
            stream.prompts = prompts
            stream.tracebacks = target == 2 and self._size > 1
            self._output.add(stream)

    def _say(self, level: str, text: str) -> None:
        """Writes to standard error, behind what the ranks have written, if UNISONO_LOG asks for such sentences."""
        if self._log.has(level):
            self._output.say(f"unisono run: {text}\n")

    def _told(self) -> None:
        """Wakes the loop; from the threads of the output."""
        if self._wake is not None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake, b"\0")  # no signal has this number

    def _lost(self, target: int, failure: OSError) -> None:
        """A stream of ours takes nothing more; from the threads of the output."""
        if target == 1:
            self._fault = failure
            self._told()

    def _look_at_output(self) -> None:
        """Ends the job if nobody takes its output."""
        if self._fault is not None and self._kill_at is None and not all(rank.ended for rank in self._ranks):
            # As a signal would end who writes into a pipe that nobody reads.
            self._ended_by_fault = True
            self._end()

    def _await_output(self) -> None:
        """Until all that the ranks have written is where it belongs. A signal ends the wait; if it was one that has
        ended the job, nobody who does not read is waited for either.
        """
        limit = None if self._received is None else time.monotonic() + GRACE
        while not self._output.ended() and not self._abandoned and (limit is None or time.monotonic() < limit):
            for key, _ in self._selector.select(0.1):
                action: Callable[[], None] = key.data
                action()

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
        while not all(rank.ended for rank in self._ranks):
            limits = [limit for limit in (deadline, self._kill_at) if limit is not None]
            wait = max(0.0, min(limits) - time.monotonic()) if limits else None
            for key, _ in self._selector.select(wait):
                action: Callable[[], None] = key.data
                action()
            now = time.monotonic()
            if deadline is not None and now >= deadline and not all(rank.ended for rank in self._ranks):
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
        self._say("debug", f"debug: rank {rank.number} {_how(rank.status)}")
        if rank.status < 0 and self._keep_going and not all(other.ended and other.status < 0 for other in self._ranks):
            self._say("warn", f"rank {rank.number} {_how(rank.status)}; the others go on")
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
            self._say("error", f"what the ranks are doing:\n{text.rstrip()}")

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
        over = bool(self._ranks) and all(rank.ended for rank in self._ranks)
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
            elif over and (number in ENDING or number == signal.SIGINT):
                self._abandoned = True
            elif number in FORWARDED:
                again = number == signal.SIGINT and self._received == signal.SIGINT
                if number == signal.SIGQUIT:
                    self._tell()
                self._signal(number)
                if number in ENDING or number == signal.SIGINT:
                    self._received = number
                if number in ENDING or again:
                    self._kill_at = self._kill_at or time.monotonic() + GRACE
        self._look_at_output()
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

    def _report(self) -> int:
        if self._cluster is not None and self._cluster.counted:
            self._output.say(self._cluster.counted)
        if self._memory is not None:
            self._output.say(self._memory.table())
        if self._cluster is not None and self._cluster.fault is not None:
            self._say("error", self._cluster.fault)
        failed = self._first_failure
        if self._fault is not None and self._fault.errno != errno.EPIPE:
            self._say("error", f"standard output cannot be written: {self._fault.strerror}")
            if self._ended_by_fault:
                return 1
        elif self._fault is not None and (self._ended_by_fault or failed is None):
            return READER_GONE
        killed = f"; {self._killed} had to be killed {GRACE:g} s later" if self._killed else ""
        if self._timed_out:
            self._say("error", f"the job has not ended within {self._timeout:g} s; all ranks were ended{killed}")
            return TIMED_OUT
        if failed is None:
            return 0 if self._cluster is None or self._cluster.fault is None else 1
        if self._received is not None:
            self._say("warn", f"{self._received.name} was passed on to all ranks{killed}")
        else:
            rest = f"; the others were ended{killed}" if self._size > 1 else ""
            self._say("error", f"rank {failed.number} of {self._size} {_how(failed.status)}{rest}")
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
