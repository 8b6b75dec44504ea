"""Functions that are called when calls have ended: each once, in batches, and nothing waits for them that need not."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import _core

RANKS = 2
COUNT = 3000  # elements: so many that the helper thread has steps to make


def sleep_with_gil(seconds: float) -> None:
    """As a program's C code that never lets go of it."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def until(condition: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def started(comm: unisono.Communicator, count: int, **options: Any) -> tuple[list[unisono.Request], list[Any]]:
    """Calls in flight that the helper thread brings to their end, and where they leave their results."""
    results = [np.empty(COUNT) for _ in range(count)]
    requests = [comm.allreduce_async(np.full(COUNT, comm.rank + i + 1.0), results[i], **options) for i in range(count)]
    return requests, results


@pytest.mark.parametrize("beside", [False, True])
def test_two_hundred_ends_take_the_gil_few_times(beside: bool) -> None:
    """The program holds the GIL for as long as the calls take: progress goes on, and all is told at once afterwards."""
    calls = 200
    heard: list[int] = []
    seen: list[int] = []
    meet = threading.Barrier(RANKS)

    def rank(comm: unisono.Communicator) -> None:
        first = comm.recv_async(np.empty(1), 1, 7) if comm.rank == 0 else None
        # Nothing ends before what rank 1 sends, and that is sent when all functions have been left.
        requests, results = started(comm, calls, wait_for=[first] if first is not None else [])
        for number, request in enumerate(requests):
            if beside:
                request._tell(lambda number=number: heard.append(number))
            else:
                request.add_done_callback(lambda _, number=number: heard.append(number))
            request.offload()
        meet.wait(20)
        if comm.rank == 1:
            before = _core.completions()
            comm.send_async(np.zeros(1), 0, 7)
            begun = time.monotonic()
            sleep_with_gil(0.5)
            assert time.monotonic() - begun > 0.4
            # No line of Python has run in between, but of this thread.
            seen.append(sum(int(result[-1] == result[0] == 3 + 2 * i) for i, result in enumerate(results)))
            until(lambda: len(heard) == RANKS * calls)
            called, taken, waiting = (now - then for now, then in zip(_core.completions(), before, strict=True))
            assert waiting == 0
            assert called >= RANKS * calls - 10, "the thread of the program has called them"
            assert taken <= 20, f"{called} functions took the GIL {taken} times"
        until(lambda: len(heard) == RANKS * calls)
        for request in requests:
            request.wait()

    unisono.ThreadJob(RANKS, timeout=30.0, offload=True).run(rank)
    assert seen == [calls], "progress waited for the GIL"
    assert sorted(heard) == sorted(list(range(calls)) * RANKS)


def test_each_is_told_once_by_many_threads() -> None:
    """Threads start calls, wait, look, and ask for callbacks of what is in flight, what has ended, and what ends."""
    threads, calls = 4, 60
    heard: dict[tuple[int, int, int, int], int] = {}
    lock = threading.Lock()

    def heard_of(*what: int) -> None:
        with lock:
            heard[what] = heard.get(what, 0) + 1

    def rank(comm: unisono.Communicator) -> None:
        own = [comm.dup() for _ in range(threads)]
        failed: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for call in range(calls):
                    request = own[number].allreduce_async(np.full(COUNT, 1.0), np.empty(COUNT))
                    who = (comm.rank, number, call)
                    request._tell(lambda who=who: heard_of(*who, 0))
                    if call % 3 == 0:
                        request.offload()
                    request.add_done_callback(lambda _, who=who: heard_of(*who, 1))
                    if call % 2:
                        request.wait()
                    request._tell(lambda who=who: heard_of(*who, 2))
            except BaseException as error:
                failed.append(error)
                raise

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert not failed, failed
        comm.barrier()

    unisono.ThreadJob(RANKS, timeout=30.0, offload=True).run(rank)
    until(lambda: len(heard) == RANKS * threads * calls * 3)
    time.sleep(0.05)
    assert set(heard.values()) == {1}


def test_what_one_raises_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda entry: reported.append(type(entry.exc_value)))
    heard: list[int] = []

    def rank(comm: unisono.Communicator) -> None:
        requests, _ = started(comm, 30)
        for number, request in enumerate(requests):
            request._tell(lambda number=number: heard.append(number) if number % 3 else 1 // 0)
            request.offload()
        for request in requests:
            request.wait()

    unisono.ThreadJob(RANKS, timeout=30.0).run(rank)
    until(lambda: len(heard) == 20 * RANKS and len(reported) == 10 * RANKS)
    assert set(reported) == {ZeroDivisionError}


def test_one_may_wait_for_the_next() -> None:
    """Another thread takes over where one stays in a function: here each waits for what the next one is told."""
    turns = 5

    def rank(comm: unisono.Communicator) -> None:
        done = threading.Event()
        failed: list[object] = []

        def again(left: int) -> None:
            if left == 0:
                return done.set()
            told = threading.Event()
            request = comm.allreduce_async(np.full(COUNT, 1.0), np.empty(COUNT))
            request._tell(lambda: (told.set(), again(left - 1)))
            request.offload()
            if not told.wait(20):
                failed.append(left)
            return None

        # All calls of the communicator are of this chain, so that their order is the same on both ranks.
        comm.allreduce_async(np.ones(COUNT), np.empty(COUNT))._tell(lambda: again(turns))
        assert done.wait(30)
        assert not failed

    unisono.ThreadJob(RANKS, timeout=30.0, offload=True).run(rank)


def test_waits_are_refused_in_callbacks_wherever_they_run() -> None:
    def rank(comm: unisono.Communicator) -> None:
        heard: list[str] = []

        def ended(_: unisono.Request) -> None:
            try:
                comm.barrier()
            except unisono.InvalidArgumentError as error:
                heard.append(str(error))

        request = comm.allreduce_async(np.ones(COUNT), np.empty(COUNT))
        request.add_done_callback(ended)
        until(lambda: heard)  # nobody is in the library, so the helper brings it
        assert "callback" in heard[0]

    unisono.ThreadJob(RANKS, timeout=30.0, offload=True).run(rank)
