"""Ranks that this process starts itself, and sees to their end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

from ..machine.jobs import group_report
from .ranks import OnEnd, OnReport, Rank, Site

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
PR_SET_PDEATHSIG = 1


class Processes(Site):
    """The ranks that are children of this process. Whatever ends it ends them."""

    def __init__(self, selector: selectors.BaseSelector, on_end: OnEnd, on_report: OnReport, files: int) -> None:
        """`files`: how many open files the starting process needs."""
        super().__init__()
        self._selector = selector
        self._on_end = on_end
        self._on_report = on_report
        self._children: dict[int, subprocess.Popen[bytes]] = {}  #: by rank
        self._pidfds: dict[int, int] = {}  #: by rank; missing where sandboxes or limits refuse them
        self.in_child = child_setup(make_room(files))

    def start(
        self,
        number: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdin: int | None = subprocess.DEVNULL,
        descriptors: Sequence[int] = (),
    ) -> Rank:
        """Starts one rank."""
        process = subprocess.Popen(
            command,
            env={**environment, "UNISONO_RANK": str(number)},
            pass_fds=descriptors,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=self.in_child,
            process_group=0,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        rank = Rank(number, process.stdout, process.stderr, process.pid)
        self.ranks.append(rank)
        self._children[number] = process
        with contextlib.suppress(OSError):
            pidfd = self._pidfds[number] = os.pidfd_open(process.pid)
            self._selector.register(pidfd, selectors.EVENT_READ, lambda: self._ended(rank))
        return rank

    def stdin_of(self, rank: Rank) -> int | None:
        """The descriptor that leads to its standard input, which is the caller's from then on."""
        sink = self._children[rank.number].stdin
        if sink is None:
            return None
        copy = os.dup(sink.fileno())
        sink.close()
        return copy

    def all_tell_their_end(self) -> bool:
        """Whether the selector wakes for each end; otherwise `reap` has to be called now and then."""
        return all(rank.ended or rank.number in self._pidfds for rank in self.ranks)

    def signal(self, number: signal.Signals) -> None:
        """As `Site` says."""
        for rank in self.ranks:
            if not rank.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(rank.pid, number)

    def ask_report(self) -> None:
        """As `Site` says."""
        self._on_report("", group_report({rank.pid for rank in self.ranks if not rank.ended}))

    def settled(self) -> bool:
        """As `Site` says: it is in the pipes."""
        return True

    def reap(self) -> None:
        """As `Site` says, for those without pidfd."""
        for rank in self.ranks:
            if rank.number in self._pidfds or rank.ended:
                continue
            # WNOWAIT leaves it a zombie, so that its number still names its group.
            if os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._ended(rank)

    def _ended(self, rank: Rank) -> None:
        """A rank's process has ended: what it has left behind in its group ends too."""
        pidfd = self._pidfds.get(rank.number)
        if pidfd is not None:
            self._selector.unregister(pidfd)
            os.close(pidfd)
        self._end_group(rank)
        self._on_end(rank)

    def _end_group(self, rank: Rank) -> None:
        # Not reaped yet, so the group's number cannot have been given to others.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(rank.pid, signal.SIGKILL)
        rank.status = self._children[rank.number].wait()
        rank.ended = True

    def sweep(self) -> None:
        """As `Site` says."""
        for rank in self.ranks:
            if not rank.ended:
                self._end_group(rank)


def make_room(files: int) -> tuple[int, int]:
    """Raises the limit of open files, as far as that is allowed. Returns the limits as they were, which are the
    ranks'.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = limits
    if soft != resource.RLIM_INFINITY and soft < files:
        allowed = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
    return limits


def child_setup(limits: tuple[int, int]) -> Callable[[], None]:
    """What a child does between fork and exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def in_child() -> None:
        # Whatever ends the parent ends the child. If it has ended already, no signal will come.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for number in (*FORWARDED, signal.SIGTSTP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    return in_child
