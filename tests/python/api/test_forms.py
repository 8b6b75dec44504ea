"""Forms of calls: several requests at once, callbacks, await, persistent calls, groups, the offload thread."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import unisono

RANKS = 3
Array = npt.NDArray[Any]


def values(rank: int, count: int, salt: int = 0) -> Array:
    return np.arange(count) * 10 + rank + 1 + 1000 * salt


def total(count: int, salt: int = 0) -> Array:
    return np.sum([values(rank, count, salt) for rank in range(RANKS)], axis=0)


def on_ranks(function: Any, size: int = RANKS, **settings: Any) -> list[Any]:
    return unisono.ThreadJob(size, timeout=30.0, **settings).run(function)


def test_wait_any_tells_which() -> None:
    def rank(comm: unisono.Communicator) -> None:
        if comm.rank == 1:
            for tag in (2, 0, 1):
                comm.send(values(1, 3, tag), 0, tag)
                assert comm.recv(np.empty(1, np.int64), 0, 10)[0] == tag
            return
        received = [np.empty(3, np.int64) for _ in range(3)]
        requests: list[unisono.Request | None] = [comm.recv_async(received[tag], 1, tag) for tag in range(3)]
        order = []
        while (found := unisono.wait_any(requests, timeout=20)) is not None:
            request = requests[found]
            assert request is not None
            np.testing.assert_array_equal(request.wait(), values(1, 3, found))
            requests[found] = None
            order.append(found)
            comm.send(np.array([found]), 1, 10)
        assert order == [2, 0, 1]
        assert unisono.test_any(requests) is None

    on_ranks(rank, 2)


def test_wait_some_and_all() -> None:
    def rank(comm: unisono.Communicator) -> None:
        requests = [comm.allreduce_async(values(comm.rank, 5, salt)) for salt in range(6)]
        seen: set[int] = set()
        left: list[unisono.Request | None] = list(requests)
        while ended := unisono.wait_some(left):
            seen.update(ended)
            for position in ended:
                left[position] = None
        assert seen == set(range(6))
        for salt, result in enumerate(unisono.wait_all([*requests, None])):
            if salt < 6:
                np.testing.assert_array_equal(result, total(5, salt))
            else:
                assert result is None
        assert unisono.test_all(requests)

    on_ranks(rank)


def test_waits_end_in_time_and_refuse_other_things() -> None:
    def rank(comm: unisono.Communicator) -> None:
        request = comm.recv_async(np.empty(1), 1 - comm.rank)
        for wait in (unisono.wait_any, unisono.wait_some, unisono.wait_all):
            begin = time.monotonic()
            with pytest.raises(unisono.DeadlineError, match=r"in flight|not all"):
                wait([request], timeout=0.12)
            assert time.monotonic() - begin > 0.11
            with pytest.raises(unisono.InvalidArgumentError, match="entry 1 is a int"):
                wait([request, 3], timeout=1)  # type: ignore[list-item]
            with pytest.raises(unisono.InvalidArgumentError, match="timeout is -2"):
                wait([request], timeout=-2)
        assert unisono.test_any([request]) is None
        assert not unisono.test_all([request])
        comm.barrier()
        comm.send(np.ones(1), 1 - comm.rank)
        request.wait()

    on_ranks(rank, 2)


def test_one_failure_hides_no_other_result() -> None:
    def rank(comm: unisono.Communicator) -> None:
        if comm.rank == 1:
            comm.send(values(1, 4), 0, 1)
            comm.send(values(1, 4, 2), 0, 2)
            comm.barrier()
            return
        bad = comm.recv_async(np.empty(2, np.int64), 1, 1)
        good = comm.recv_async(np.empty(4, np.int64), 1, 2)
        with pytest.raises(unisono.TruncatedError):
            unisono.wait_all([bad, good])
        np.testing.assert_array_equal(good.wait(), values(1, 4, 2))
        assert unisono.wait_some([bad, good]) == [0, 1]
        assert unisono.wait_any([good, bad]) == 0
        with pytest.raises(unisono.TruncatedError):
            bad.wait()
        comm.barrier()

    on_ranks(rank, 2)


def test_callbacks() -> None:
    def rank(comm: unisono.Communicator) -> None:
        heard: list[Any] = []
        own = comm.split(0)
        assert own is not None
        request = comm.allreduce_async(values(comm.rank, 4))

        def first(done: unisono.Request) -> None:
            heard.append(done.wait())
            with pytest.raises(unisono.InvalidArgumentError, match="callback"):
                comm.barrier()
            own.allreduce_async(values(comm.rank, 2, 5)).add_done_callback(lambda done: heard.append(done.wait()))

        request.add_done_callback(first)
        while len(heard) < 2:
            comm.copy(np.arange(3))  # makes progress
        np.testing.assert_array_equal(heard[0], total(4))
        np.testing.assert_array_equal(heard[1], total(2, 5))
        with pytest.raises(unisono.InvalidArgumentError, match="add_done_callback: function is None"):
            request.add_done_callback(None)  # type: ignore[arg-type]
        request.add_done_callback(heard.append)
        assert heard[2] is request, "at once, for the call has completed"
        comm.barrier()

    on_ranks(rank)


def test_what_a_callback_raises_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def rank(comm: unisono.Communicator) -> None:
        request = comm.copy_async(np.arange(3))
        request.add_done_callback(lambda _: 1 // 0)
        request.wait()

    on_ranks(rank, 1)
    assert [type(entry.exc_value) for entry in reported] == [ZeroDivisionError]


def test_await_lets_other_tasks_run_and_uses_no_time() -> None:
    def rank(comm: unisono.Communicator) -> None:
        async def ticks() -> int:
            count = 0
            while True:
                await asyncio.sleep(0.01)
                count += 1
                if finished.is_set():
                    return count

        async def work() -> None:
            if comm.rank == 0:
                received = await comm.recv_async(np.empty(3, np.int64), 1)
                np.testing.assert_array_equal(received, values(1, 3))
            else:
                await asyncio.sleep(0.3)
                await comm.send_async(values(1, 3), 0)
            finished.set()

        async def both() -> int:
            ticker = asyncio.create_task(ticks())
            await work()
            return await ticker

        finished = asyncio.Event()
        used = time.thread_time()
        assert asyncio.run(both()) >= 5
        assert time.thread_time() - used < 0.25

    on_ranks(rank, 2)


def test_await_many_and_failures() -> None:
    def rank(comm: unisono.Communicator) -> None:
        async def work() -> None:
            results = await asyncio.gather(
                *(_result(comm.allreduce_async(values(comm.rank, 6, salt))) for salt in range(10))
            )
            for salt, result in enumerate(results):
                np.testing.assert_array_equal(result, total(6, salt))
            if comm.rank == 0:
                await comm.barrier_async()  # now the others have their results too
                comm.revoke("no more")
            failed = False
            while not failed:
                try:
                    await comm.barrier_async()
                except unisono.RevokedError:
                    failed = True

        asyncio.run(work())

    async def _result(request: unisono.Request) -> Any:
        return await request

    on_ranks(rank)


def test_cancelled_await_leaves_the_call_in_flight() -> None:
    def rank(comm: unisono.Communicator) -> None:
        request = comm.recv_async(np.empty(3, np.int64), 1 - comm.rank)

        async def work() -> None:
            async def wait() -> None:
                await request

            task = asyncio.create_task(wait())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert "still in flight" in "".join(getattr(caught.value, "__notes__", []))

        asyncio.run(work())
        assert not request.test()
        comm.barrier()
        comm.send(values(comm.rank, 3), 1 - comm.rank)
        np.testing.assert_array_equal(request.wait(), values(1 - comm.rank, 3))

    on_ranks(rank, 2)


def test_persistent_calls() -> None:
    def rank(comm: unisono.Communicator) -> None:
        mine, result = np.zeros(5, np.int64), np.zeros(5, np.int64)
        request = comm.allreduce_async(mine, result, start=False)
        words = rf"allreduce \(communicator 0, rank {comm.rank}\): the call was prepared and has not been started"
        with pytest.raises(unisono.InvalidArgumentError, match=words):
            request.wait()
        for salt in range(5):
            mine[:] = values(comm.rank, 5, salt)
            request.start()
            assert request.wait() is result
            np.testing.assert_array_equal(result, total(5, salt))
        with pytest.raises(unisono.InvalidArgumentError, match="_async form"):
            comm.allreduce(mine, result, start=False)
        with pytest.raises(unisono.InvalidArgumentError, match="start is 1"):
            comm.allreduce_async(mine, result, start=1)  # type: ignore[typeddict-item]
        receiving = comm.recv_async(result, comm.rank, 9, start=False)
        receiving.start()
        with pytest.raises(unisono.InvalidArgumentError, match="in flight"):
            receiving.start()
        comm.send(values(comm.rank, 5, 9), comm.rank, 9)
        receiving.wait()
        np.testing.assert_array_equal(result, values(comm.rank, 5, 9))

    on_ranks(rank)


def test_groups() -> None:
    def rank(comm: unisono.Communicator) -> None:
        with comm.group():
            requests = [comm.allreduce_async(values(comm.rank, 1 + 7 * salt, salt)) for salt in range(9)]
            comm.allreduce_async(values(comm.rank, 2))  # dropped, and made all the same
            broadcast = comm.bcast_async(values(comm.rank, 4), 1)
            with pytest.raises(unisono.InvalidArgumentError, match="end of its group"):
                requests[0].wait()
            with pytest.raises(unisono.InvalidArgumentError, match="blocks"):
                comm.barrier()
        for salt, result in enumerate(unisono.wait_all(requests)):
            np.testing.assert_array_equal(result, total(1 + 7 * salt, salt))
        np.testing.assert_array_equal(broadcast.wait(), values(1, 4))
        with contextlib.suppress(ZeroDivisionError), comm.group():
            late = comm.allreduce_async(values(comm.rank, 3))
            raise ZeroDivisionError
        np.testing.assert_array_equal(late.wait(), total(3))
        comm.barrier()

    on_ranks(rank)


def test_offload_makes_progress_while_python_does_something_else() -> None:
    def rank(comm: unisono.Communicator) -> None:
        big = np.full(1 << 20, comm.rank + 1, np.float32)
        result = np.empty_like(big)
        request = comm.allreduce_async(big, result)
        done = threading.Event()
        request.add_done_callback(lambda _: done.set())
        assert done.wait(20), "nobody has called Unisono since"
        assert result[0] == result[-1] == sum(range(1, RANKS + 1))

    on_ranks(rank, offload=True)


def test_offload_is_refused_as_anything_but_a_truth_value() -> None:
    with pytest.raises(unisono.InvalidArgumentError, match="offload is 2"):
        unisono.ThreadJob(1, offload=2)  # type: ignore[arg-type]


def test_communicators_of_other_ranks() -> None:
    def rank(comm: unisono.Communicator) -> None:
        own = comm.rank

        def members(other: unisono.Communicator) -> list[int]:
            return [int(rank) for rank in other.allgather(np.array([own])).ravel()]

        assert members(comm.dup()) == [0, 1, 2]
        some = comm.subset([2, 0])
        assert (some is None) == (own == 1)
        if some is not None:
            assert members(some) == [2, 0]
            assert members(comm.create_group([0, 2], 5, timeout=10)) == [0, 2]
        with pytest.raises(unisono.InvalidArgumentError, match="entry 1 of the list"):
            comm.subset([0, 3])
        with pytest.raises(unisono.InvalidArgumentError, match="-1 is in the list"):
            comm.subset([-1])
        with pytest.raises(TypeError, match="settings are group_size"):
            comm.dup(size=3)  # type: ignore[call-arg]
        with pytest.raises(unisono.InvalidArgumentError, match="lanes is 1"):
            comm.dup(lanes=1)  # type: ignore[arg-type]
        slow = comm.dup(lanes=own != 1, eager_limit=128)
        np.testing.assert_array_equal(slow.allreduce(values(own, 1000)), total(1000))
        quick = comm.split(0, timeout=0.1 if own == 0 else None)
        assert quick is not None
        with pytest.raises((unisono.DeadlineError, unisono.RevokedError)):
            quick.recv(np.empty(1), (own + 1) % 3)
        comm.barrier()

    on_ranks(rank)
