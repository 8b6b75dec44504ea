"""A job of `unisono run` from start to end: signals, deadlines, and what is said of it."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from ..errors import PARTITIONED_STATUS
from ..machine.launches import Launch, LaunchedHost, publish
from .cables import Cables
from .cluster import Cluster
from .counters import Counted, JobMemory, add, table_of
from .environment import clear_job, environment_for_hosts, fill_in, hosts_environment, job_environment
from .gathering import Gathering, StoppedEarlyError
from .hosts import Host, await_ends
from .log import VARIABLE, Log
from .output import Output, Stream
from .pipes import Feed, Pump
from .processes import FORWARDED, Processes, child_setup, make_room
from .ranks import GRACE, Rank, Site
from .streams import label_width, streams_of
from .way import HostError, Plan

TIMED_OUT = 124  # exit status, as of timeout(1)
READER_GONE = 128 + signal.SIGPIPE
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
DESCRIPTORS = 3  # for each rank: its two streams, and its process
DESCRIPTORS_OF_HOSTS = 4  # for each rank there: both ends of the pipes that its streams go through
DESCRIPTORS_BESIDES = 32
LONGEST_WAIT = 3600.0  # seconds; the system knows no wait of years
LOOK = 0.1  # seconds between looks at what nothing tells


class LauncherError(Exception):
    """The job cannot be started, and why."""

    def __init__(self, what: str, status: int = 2) -> None:
        super().__init__(what)
        self.status = status


def _gone(rank: Rank) -> bool:
    """Whether the ranks that are left can go on without it: it has made no mistake that they may have made, too."""
    return rank.status < 0 or rank.status == PARTITIONED_STATUS


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
        cables: Cables | None = None,
        counters: bool = False,
        plan: Plan | None = None,
    ) -> None:
        """`plan`: the job runs on its hosts, and `command` is not used."""
        self._command = command
        self._plan = plan
        self._log = Log()
        self._environment = environment or {}
        self._cluster = cluster
        self._cables = cables
        self._size = size
        self._prefix = prefix
        self._timeout = timeout
        self._keep_going = keep_going
        self._sites: list[Site] = []
        self._hosts: list[Host] = []  #: those of the sites that are hosts
        self._published: int | None = None  #: descriptor of what tools may know of a job of several hosts
        self._told_of: set[str] = set()  #: hosts that are known to be lost
        self._streams: list[Stream] = []
        self._input: Pump | None = None  #: standard input on its way to rank 0
        self._selector = selectors.DefaultSelector()
        self._output = Output(self._told, self._lost)
        self._memory = JobMemory() if counters and plan is None else None  #: of a plan, each host has its own
        self._wake: int | None = None  #: a pipe to the loop, for signals and for the threads of the output
        self._fault: OSError | None = None  #: why standard output takes nothing more
        self._ended_by_fault = False
        self._abandoned = False  #: nobody waits for the output any more
        self._first_failure: Rank | None = None
        self._kill_at: float | None = None
        self._killed = 0
        self._received: signal.Signals | None = None
        self._timed_out = False
        self._deadline: float | None = None

    @property
    def _ranks(self) -> list[Rank]:
        return [rank for site in self._sites for rank in site.ranks]

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
            self._deadline = None if self._timeout is None else time.monotonic() + self._timeout
            try:
                if self._log.fault is not None:
                    self._say("warn", self._log.fault)
                try:
                    self._start()
                    self._output.start()
                except OSError as failure:
                    if failure.errno != errno.EMFILE:
                        raise
                    raise LauncherError(
                        f"the launcher of {self._size} ranks needs some {self._files()} open files, and "
                        f"{resource.getrlimit(resource.RLIMIT_NOFILE)[1]} are allowed; raise the limit (ulimit -n)"
                    ) from failure
                self._loop()
                self._settle()
            except HostError as failure:
                raise LauncherError(str(failure), failure.status) from failure
            except StoppedEarlyError:
                pass
            finally:
                self._sweep()
                if self._cluster is not None:
                    # A user who has ended the job does not wait for a wave file.
                    self._cluster.finish(*([GRACE] if self._received is not None or self._timed_out else []))
                if self._cables is not None:
                    self._cables.finish()
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
        if self._plan is None:
            self._start_here()
        else:
            self._start_hosts(self._plan)
        for rank in sorted(self._ranks, key=lambda rank: rank.number):
            where = f" on host {rank.host}" if rank.host else ""
            self._say("debug", f"debug: rank {rank.number} is process {rank.pid}{where}")
            self._forward(rank)

    def _files(self) -> int:
        """How many files a job of this size has open here."""
        each = DESCRIPTORS if self._plan is None else DESCRIPTORS_OF_HOSTS
        hosts = 0 if self._plan is None else len(self._plan.hosts)
        return each * self._size + 3 * hosts + DESCRIPTORS_BESIDES

    def _job_environment(self) -> dict[str, str]:
        """What is the same for all ranks of this job, and for no other."""
        environment = job_environment(self._size, meet_here=self._plan is None or len(self._plan.hosts) == 1)
        if self._log.fault is not None:
            environment[VARIABLE] = self._log.level  # the ranks need not say it again
        if os.isatty(1) and "COLUMNS" not in os.environ:
            environment["COLUMNS"] = str(shutil.get_terminal_size().columns - label_width(self._size, self._prefix))
        return environment

    def _start_here(self) -> None:
        here = Processes(self._selector, self._rank_ended, self._report_of, self._files())
        self._sites.append(here)
        environment = dict(os.environ)
        clear_job(environment)
        environment |= self._environment
        if self._cluster is not None:
            self._cluster.start(here.in_child)
            environment |= self._cluster.environment
            self._output.add(Stream(self._cluster.output, 2, b"[cluster] "))
        if self._cables is not None:
            self._cables.start()
            environment |= self._cables.environment
        if self._memory is not None:
            environment |= self._memory.environment
        environment |= self._job_environment()
        fill_in(environment)
        terminal = sys.stdin is not None and sys.stdin.isatty()
        for number in range(self._size):
            stdin: int | None = subprocess.DEVNULL
            if number == 0:
                # Ranks have process groups of their own, and only the foreground group may read a terminal.
                stdin = subprocess.PIPE if terminal else None
            own = environment
            descriptors: tuple[int, ...] = () if self._cables is None else self._cables.descriptors
            if self._cluster is not None:
                descriptors = (self._cluster.descriptor(number),)
                own = environment | {"UNISONO_DEVICE_FD": str(descriptors[0])}
            here.start(number, self._command, own, stdin=stdin, descriptors=descriptors)
            if self._cluster is not None:
                self._cluster.taken(number)
        sink = here.stdin_of(here.ranks[0])
        if sink is not None:
            feed = Feed(self._selector, sink, self._input_room)
            self._read_input(lambda data: feed.put(data) if data else feed.close())

    def _start_hosts(self, plan: Plan) -> None:
        """All agents answer, and have looked at what they are to start, before any rank starts."""
        environment = environment_for_hosts() | self._environment | self._job_environment()
        if len(plan.hosts) > 1:
            environment |= hosts_environment(plan.hosts)
        in_child = child_setup(make_room(self._files()))
        for which in plan.hosts:
            host = Host(plan, which, environment, self._selector, self._rank_ended, self._report_of, self._input_room)
            self._hosts.append(host)
            self._sites.append(host)
            host.open(in_child)
        gathering = Gathering(self._hosts, self._turn, self._is_stopped)
        join = gathering.make_ready()
        if join is not None:
            self._say("debug", f"debug: the ranks meet at {join}")
        gathering.start(join)
        self._publish(plan)
        self._read_input(next(host for host in self._hosts if 0 in host.numbers).put_input)

    def _publish(self, plan: Plan) -> None:
        """Tells `unisono ps` and the like which hosts the job has; they can do without."""
        hosts = [LaunchedHost(host.name, host.numbers, [rank.pid for rank in host.ranks]) for host in self._hosts]
        words = shlex.join([plan.command.name, *plan.command.arguments])
        with contextlib.suppress(OSError):
            self._published = publish(Launch(os.getpid(), words, plan.way.template, plan.way.python, hosts))

    def _is_stopped(self) -> bool:
        """Whether the job is over before it has begun."""
        self._timed_out = self._deadline is not None and time.monotonic() >= self._deadline
        return self._timed_out or self._received is not None

    def _turn(self, until: float | None) -> None:
        """Does what has come, or waits for it, until then or the deadline."""
        limits = [limit for limit in (until, self._deadline) if limit is not None]
        wait = min(max(0.0, min(limits) - time.monotonic()), LONGEST_WAIT) if limits else None
        for key, _ in self._selector.select(wait):
            action: Callable[[], None] = key.data
            action()

    def _read_input(self, send: Callable[[bytes], None]) -> None:
        """Standard input goes to rank 0."""

        def read(descriptor: int, most: int) -> bytes:
            if os.isatty(descriptor) and os.tcgetpgrp(descriptor) != os.getpgrp():
                return b""
            return os.read(descriptor, most)

        self._input = Pump(self._selector, 0, send, read=read)
        self._input.resume()

    def _input_room(self, room: int) -> None:
        if self._input is not None:
            self._input.allow(room)

    def _forward(self, rank: Rank) -> None:
        """Has the rank's output passed on."""
        for stream in streams_of(rank, self._size, prefix=self._prefix):
            self._streams.append(stream)
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
        if self._fault is not None and self._kill_at is None and not self._over():
            # As a signal would end who writes into a pipe that nobody reads.
            self._ended_by_fault = True
            self._end()

    def _await_output(self) -> None:
        """Until all that the ranks have written is where it belongs. A signal ends the wait; if it was one that has
        ended the job, nobody who does not read is waited for either.
        """
        limit = None if self._received is None else time.monotonic() + GRACE
        while not self._output.ended() and not self._abandoned and (limit is None or time.monotonic() < limit):
            self._turn(time.monotonic() + LOOK)

    def _settle(self) -> None:
        """Until hosts have sent what their ranks had written. A signal ends the wait, as that of `_await_output`."""
        limit = None if self._received is None else time.monotonic() + GRACE
        while not all(site.settled() for site in self._sites):
            if self._abandoned or (limit is not None and time.monotonic() >= limit):
                return
            self._turn(time.monotonic() + LOOK)

    def _loop(self) -> None:
        while not self._over():
            self._turn(self._kill_at)
            now = time.monotonic()
            if self._deadline is not None and now >= self._deadline and not self._over():
                self._deadline = None
                self._timed_out = True
                self._tell()
                self._end()
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                if self._killed:
                    for host in self._hosts:
                        if not all(rank.ended for rank in host.ranks):
                            host.give_up()
                    continue
                self._killed = sum(not rank.ended for rank in self._ranks)
                self._signal(signal.SIGKILL)
                self._kill_at = now + GRACE if self._hosts else None
        self._deadline = None  # what is left is output, which may take its time

    def _over(self) -> bool:
        return all(rank.ended for rank in self._ranks)

    def _rank_ended(self, rank: Rank) -> None:
        if rank.lost and not self._streams:
            return  # it has not started
        self._tell_of_hosts()
        self._say("debug", f"debug: rank {rank.number} {rank.how()}")
        if _gone(rank) and self._keep_going and not all(other.ended and _gone(other) for other in self._ranks):
            why = ": the network is cut, and its part of the job has ended" if rank.status == PARTITIONED_STATUS else ""
            self._say("warn", f"rank {rank.number} {rank.how()}{why}; the others go on")
            return
        if rank.status != 0 and self._first_failure is None and self._received is None and not self._timed_out:
            self._first_failure = rank
            if not self._over():
                self._end()
        elif rank.status != 0 and self._first_failure is None:
            self._first_failure = rank

    def _tell(self) -> None:
        """Says on standard error what the ranks are doing."""
        for site in self._sites:
            site.ask_report()

    def _tell_of_hosts(self) -> None:
        """Names the hosts that have been lost."""
        for host in self._hosts:
            if host.fault is not None and host.name not in self._told_of:
                self._told_of.add(host.name)
                self._say("error", str(host.fault))

    def _report_of(self, host: str, text: str) -> None:
        if text:
            ranks = f"the ranks of host {host}" if host else "the ranks"
            self._say("error", f"what {ranks} are doing:\n{text.rstrip()}")

    def _end(self) -> None:
        """Asks all ranks to end, and sets the time when they will be made to."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        self._kill_at = self._kill_at or time.monotonic() + GRACE

    def _signal(self, number: signal.Signals) -> None:
        for site in self._sites:
            site.signal(number)

    def _signals(self, wake: int) -> None:
        ended = False
        over = bool(self._streams) and self._over()
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
            for site in self._sites:
                site.reap()

    def _sweep(self) -> None:
        """Nothing of the job is left when the launcher returns, whatever happened."""
        if self._input is not None:
            self._input.stop()
        for site in self._sites:
            site.sweep()
        await_ends(self._hosts)
        if self._published is not None:
            os.close(self._published)
            self._published = None

    def _counted_table(self) -> str:
        """What the ranks of all hosts have counted."""
        counted: Counted = {}
        for host in self._hosts:
            for rank, values in host.counted.items():
                add(counted, rank, values)
        return table_of(counted, self._size)

    def _report(self) -> int:
        if self._cables is not None:
            self._output.say(self._cables.told)
        if self._cluster is not None and self._cluster.counted:
            self._output.say(self._cluster.counted)
        if self._memory is not None:
            self._output.say(self._memory.table())
        if self._plan is not None and self._plan.counters:
            self._output.say(self._counted_table())
        if self._cluster is not None and self._cluster.fault is not None:
            self._say("error", self._cluster.fault)
        self._tell_of_hosts()
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
        if failed is None and self._received is not None and not self._streams:
            self._say("warn", f"{self._received.name} came before the ranks had started")
            return 128 + self._received
        if failed is None:
            # Of a host that is lost when its ranks have ended, output may be missing.
            late = any(host.fault is not None and not any(rank.lost for rank in host.ranks) for host in self._hosts)
            return 1 if late or (self._cluster is not None and self._cluster.fault is not None) else 0
        if self._received is not None:
            self._say("warn", f"{self._received.name} was passed on to all ranks{killed}")
        else:
            rest = f"; the others were ended{killed}" if self._size > 1 else ""
            self._say("error", f"rank {failed.number} of {self._size} {failed.how()}{rest}")
        return failed.status if failed.status > 0 else 128 - failed.status
