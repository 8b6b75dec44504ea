"""Several threads of a rank in the library at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import unisono
from unisono import Communicator, ThreadJob

P = 3
THREADS = 4


def in_threads(function: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What `function(number)` returns in each of several threads; raises what one of them raises."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            results[number] = function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_a_communicator_for_each_thread() -> None:
    """Their collectives need no common order."""

    def member(comm: Communicator) -> None:
        own = [comm.dup() for _ in range(THREADS)]

        def work(number: int) -> None:
            for step in range(30):
                time.sleep(0.0005 * ((number + comm.rank + step) % 3))  # another order on each rank
                total = own[number].allreduce(np.full(1 + 700 * (step % 2), float(number * step + comm.rank)))
                assert (total == P * number * step + 3).all()

        in_threads(work)

    ThreadJob(P, timeout=60).run(member)


def test_messages_of_threads_that_share_a_communicator() -> None:
    """A tag for each thread; the messages of a tag keep their order."""

    def member(comm: Communicator) -> None:
        right, left = (comm.rank + 1) % P, (comm.rank - 1) % P

        def work(number: int) -> None:
            for step in range(30):
                request = comm.recv_async(np.empty(1 + 3000 * (step % 2)), left, tag=number)
                comm.send(np.full(1 + 3000 * (step % 2), 1000.0 * number + step), right, tag=number)
                arrived = request.wait()
                assert arrived is not None
                assert (arrived == 1000.0 * number + step).all()

        in_threads(work)

    ThreadJob(P, timeout=60).run(member)


def test_several_threads_wait_for_one_request() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            request = comm.recv_async(np.empty(5), 1)
            for result in in_threads(lambda _: request.wait(30)):
                np.testing.assert_array_equal(result, np.arange(5.0))
        elif comm.rank == 1:
            time.sleep(0.2)
            comm.send(np.arange(5.0), 0)

    ThreadJob(P, timeout=60).run(member)


def test_python_goes_on_while_a_thread_waits() -> None:
    """In a blocking call and in a wait: neither holds the GIL."""

    def member(comm: Communicator) -> float:
        if comm.rank == 0:
            time.sleep(0.5)
            comm.send(np.zeros(1), 1)
            comm.barrier()
            return 0
        if comm.rank == 1:
            comm.recv(np.zeros(1), 0)
            comm.barrier()
            return 0
        steps = 0
        barrier = threading.Thread(target=comm.barrier)
        barrier.start()
        while barrier.is_alive():
            steps += 1
            time.sleep(0.005)
        return steps

    assert ThreadJob(P, timeout=60).run(member)[2] > 10


def test_the_thread_that_joined_may_end() -> None:
    context = in_threads(lambda _: unisono.init(), 1)[0]
    np.testing.assert_array_equal(context.world.allreduce(np.arange(3)), [0, 1, 2])
    in_threads(lambda _: context.close(), 1)


def test_one_thread_ends_the_waits_of_others() -> None:
    def member(comm: Communicator) -> list[str]:
        part = comm.dup()
        freed = comm.dup()

        def work(number: int) -> str:
            try:
                if number == 0:
                    part.recv(np.zeros(1), comm.rank)
                elif number == 1:
                    freed.recv(np.zeros(1), comm.rank)
                else:
                    time.sleep(0.3)
                    part.revoke("enough") if number == 2 and comm.rank == 1 else None
                    freed.free() if number == 3 else None
            except unisono.UnisonoError as error:
                return type(error).__name__
            return "ended"

        names = in_threads(work)
        comm.barrier()
        return names

    for names in ThreadJob(P, timeout=60).run(member):
        assert names == ["RevokedError", "FreedCommunicatorError", "ended", "ended"]


def test_a_group_is_of_its_thread() -> None:
    """Calls of another thread are submitted at once."""

    def member(comm: Communicator) -> None:
        with comm.group():
            grouped = comm.allreduce_async(np.ones(3))
            alone = in_threads(lambda _: comm.allreduce(np.ones(3)), 1)[0]
            np.testing.assert_array_equal(alone, [P] * 3)
        np.testing.assert_array_equal(grouped.wait(), [P] * 3)

    ThreadJob(P, timeout=60).run(member)
