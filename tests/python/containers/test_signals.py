"""Signals that come while ranks are in the library: what goes on, what ends, and what the library leaves alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import unisono

def alarm_after(seconds, handler, number=signal.SIGUSR1):
    signal.signal(number, handler)
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def error_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except BaseException as error:
        return type(error).__name__
    return "nothing"
"""


def said(run: Run, tmp_path: Path, ranks: int, text: str, *arguments: str) -> list[str]:
    """What the ranks of a job say, sorted."""
    script = tmp_path / "job.py"
    script.write_text(HEAD + text)
    done = run([], "run", "-n", ranks, "--timeout", 60, sys.executable, script, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(done.stdout.splitlines())


def test_the_library_leaves_signals_and_children_alone(run: Run, tmp_path: Path) -> None:
    text = """
def threads():
    return set(os.listdir("/proc/self/task"))
def dispositions(thread="self"):
    path = "/proc/self/status" if thread == "self" else f"/proc/self/task/{thread}/status"
    return dict(line.split() for line in open(path) if line.startswith("Sig") and not line.startswith("SigQ"))
before, known = dispositions(), threads()
with unisono.init(offload=True) as context:
    world = context.world
    request = world.allreduce_async(np.ones(10000))
    request.wait()
    assert dispositions() == before
    assert dispositions(os.getpid()) == before
    made = threads() - known
    assert len(made) == 1, made  # the offload thread, to which no signal goes that can be blocked
    blocked = int(dispositions(made.pop())["SigBlk:"], 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
        assert blocked >> (number - 1) & 1, number
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        say("no children")
"""
    assert said(run, tmp_path, 2, text) == ["no children"] * 2


@pytest.mark.parametrize("lanes", ["lanes", "messages"])
def test_calls_are_not_disturbed_by_signals(run: Run, tmp_path: Path, lanes: str) -> None:
    """EINTR is nobody's business: a signal every two milliseconds, from before the job is formed."""
    text = """
count = 0
def handler(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, handler)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
if os.environ["UNISONO_RANK"] == "1":
    time.sleep(0.3)  # the others wait for this one in init
with unisono.init(lanes=sys.argv[1] == "lanes") as context:
    world = context.world
    for step in range(40):
        if step % world.size == world.rank:
            time.sleep(0.01)  # so that the others sleep
        total = world.allreduce(np.full(1 + 1000 * (step % 3), world.rank + step))
        assert (total == 3 + 3 * step).all()
        arrived = world.recv_async(np.empty(20000), (world.rank + 1) % world.size)
        world.send(np.full(20000, float(step)), (world.rank - 1) % world.size)
        assert (arrived.wait() == step).all()
    half = world.split(world.rank % 2)
    half.barrier()
signal.setitimer(signal.ITIMER_REAL, 0)
assert count > 50, count
say("good")
"""
    assert said(run, tmp_path, 3, text, lanes) == ["good"] * 3


def test_a_handler_that_returns_ends_nothing(run: Run, tmp_path: Path) -> None:
    text = """
with unisono.init(timeout=30) as context:
    world = context.world
    world.barrier()
    if world.rank == 0:
        handled = []
        alarm_after(0.3, lambda *_: handled.append(time.monotonic()))
        late = world.bcast(np.zeros(1), root=1)[0]
        assert handled and handled[0] < late, "the handler ran when the call had ended"
    else:
        time.sleep(2)
        world.bcast(np.array([time.monotonic()]), root=1)
    say("good")
"""
    assert said(run, tmp_path, 2, text) == ["good"] * 2


@pytest.mark.parametrize(
    "call", ["allreduce", "recv", "agree", "split", "dup", "subset", "create_group", "graph", "window"]
)
def test_a_handler_that_raises_ends_a_blocking_call(run: Run, tmp_path: Path, call: str) -> None:
    """And the communicator, or a receive would go on and take the next message away."""
    text = """
call = sys.argv[1]
with unisono.init(timeout=30) as context:
    world, other = context.world, context.world.dup()
    world.barrier()
    if world.rank == 0:
        def stop(*_):
            raise SystemExit(7)
        alarm_after(0.3, stop)
        waits = {"allreduce": lambda: world.allreduce(np.ones(3)), "recv": lambda: world.recv(np.ones(3), 1),
                 "agree": lambda: world.agree(1), "split": lambda: world.split(0), "dup": world.dup,
                 "subset": lambda: world.subset([0, 1]), "create_group": lambda: world.create_group([0, 1]),
                 "graph": lambda: world.graph([1], [1]), "window": lambda: world.window(np.ones(3))}[call]
        begin = time.monotonic()
        ended = error_of(waits)
        assert time.monotonic() - begin < 20
        if call == "agree":
            world.revoke("an agreement was interrupted")
        say(0, ended, error_of(world.recv, np.ones(3), 1, timeout=15))
    else:
        time.sleep(2)
        say(1, error_of(world.recv, np.ones(3), 0, timeout=15))
    assert other.allreduce(np.ones(1))[0] == 2  # other communicators go on
"""
    assert said(run, tmp_path, 2, text, call) == ["0 SystemExit RevokedError", "1 RevokedError"]


def test_a_handler_that_raises_leaves_a_request_in_flight(run: Run, tmp_path: Path) -> None:
    text = """
with unisono.init(timeout=30) as context:
    world = context.world
    world.barrier()
    if world.rank == 0:
        request = world.allreduce_async(np.ones(3))
        alarm_after(0.3, signal.default_int_handler, signal.SIGINT)
        say(0, error_of(request.wait), request.wait())
    else:
        time.sleep(2)
        say(1, world.allreduce(np.ones(3)))
"""
    assert said(run, tmp_path, 2, text) == ["0 KeyboardInterrupt [2. 2. 2.]", "1 [2. 2. 2.]"]


def test_calls_of_other_threads_go_on(run: Run, tmp_path: Path) -> None:
    """Python runs handlers in the main thread only."""
    text = """
with unisono.init(timeout=30) as context:
    world = context.world
    world.barrier()
    if world.rank == 0:
        results = []
        worker = threading.Thread(target=lambda: results.append(world.allreduce(np.ones(3))))
        worker.start()
        alarm_after(0.3, signal.default_int_handler, signal.SIGINT)
        interrupted = error_of(time.sleep, 20)
        worker.join()
        say(0, interrupted, *results)
    else:
        time.sleep(2)
        say(1, world.allreduce(np.ones(3)))
"""
    assert said(run, tmp_path, 2, text) == ["0 KeyboardInterrupt [2. 2. 2.]", "1 [2. 2. 2.]"]


def test_time_that_a_rank_is_stopped_counts(run: Run, tmp_path: Path) -> None:
    """A stopped rank is alive: nobody is told of a death, and its own deadline goes on meanwhile."""
    text = """
with unisono.init(timeout=30) as context:
    world, other = context.world, context.world.dup()
    world.barrier()
    if world.rank == 0:
        victim = os.getpid()
        if os.fork() == 0:
            time.sleep(0.3)
            os.kill(victim, signal.SIGSTOP)
            time.sleep(3)
            os.kill(victim, signal.SIGCONT)
            os._exit(0)
        begin = time.monotonic()
        name = error_of(world.recv, np.ones(3), 1, timeout=2)
        say(0, name, 2.5 < time.monotonic() - begin < 20)
        os.wait()
        other.barrier()
    else:
        say(1, error_of(other.barrier))
"""
    assert said(run, tmp_path, 2, text) == ["0 DeadlineError True", "1 nothing"]
