"""Other engines and event loops beside this library: the hook of waits, a descriptor to poll, the helper thread."""

from __future__ import annotations

import asyncio
import contextlib
import select
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import unisono


def helpers() -> int:
    count = 0
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            count += (thread / "comm").read_text(encoding="ascii").strip() == "unisono-helper"
    return count


def await_helpers(wanted: int) -> None:
    deadline = time.monotonic() + 10
    while helpers() != wanted and time.monotonic() < deadline:
        time.sleep(0.001)
    assert helpers() == wanted


def test_every_wait_calls_the_hook() -> None:
    called = 0
    inside_refused: list[str] = []

    def rank(world: unisono.Communicator) -> None:
        nonlocal called
        waiter = threading.get_ident()
        if world.rank == 0:

            def hook() -> None:
                nonlocal called
                if threading.get_ident() != waiter:
                    return
                called += 1
                if not inside_refused:
                    try:
                        world.barrier()
                    except unisono.InvalidArgumentError as error:
                        inside_refused.append(str(error))

            unisono.set_wait_hook(hook)
        else:
            deadline = time.monotonic() + 20
            while called < 20 and time.monotonic() < deadline:
                time.sleep(0.001)
        assert world.allreduce(np.array([world.rank + 1]))[0] == 3
        request = world.allreduce_async(np.array([world.rank + 1]), np.empty(1, int))
        assert request.wait() is not None

    try:
        unisono.ThreadJob(2).run(rank)
    finally:
        unisono.set_wait_hook(None)
    assert called >= 20
    assert "in the function of unisono_set_wait_hook; it may wait for other ranks" in inside_refused[0]


def test_what_a_hook_raises_is_reported_and_ends_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda given: reported.append(str(given.exc_value)))

    def hook() -> None:
        unisono.set_wait_hook(None)
        raise ValueError("from the hook")

    def rank(world: unisono.Communicator) -> None:
        if world.rank == 0:
            unisono.set_wait_hook(hook)
        else:
            deadline = time.monotonic() + 20
            while not reported and time.monotonic() < deadline:
                time.sleep(0.001)
        assert world.allreduce(np.array([1]))[0] == 2

    unisono.ThreadJob(2).run(rank)
    assert reported == ["from the hook"]
    with pytest.raises(unisono.InvalidArgumentError, match="set_wait_hook: a int was given"):
        unisono.set_wait_hook(3)  # type: ignore[arg-type]


@pytest.fixture
def contexts() -> list[list[unisono.Context]]:
    """Three jobs of two ranks, by rank, all in this thread's hands."""
    result: list[list[unisono.Context]] = [[], []]
    jobs = [unisono._core.ThreadJob(2) for _ in range(3)]
    settings = unisono.context._settings({"timeout": 30.0})

    def join(rank: int) -> None:
        result[rank].extend(unisono.Context(unisono._core.thread_context(job, rank, *settings)) for job in jobs)

    joining = [threading.Thread(target=join, args=(rank,)) for rank in range(2)]
    for thread in joining:
        thread.start()
    for thread in joining:
        thread.join()
    return result


def test_one_loop_of_asyncio_polls_the_descriptors_of_many_contexts(contexts: list[list[unisono.Context]]) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        own = contexts[0]
        sums = [np.zeros(70_000, int) for _ in own]
        requests = [
            context.world.allreduce_async(np.full(70_000, job + 1), sums[job]) for job, context in enumerate(own)
        ]
        ended = [asyncio.Event() for _ in own]

        def look(job: int) -> None:
            while not requests[job].test():
                if not own[job].arm():
                    return
            loop.remove_reader(own[job])
            ended[job].set()

        for job, context in enumerate(own):
            loop.add_reader(context, look, job)
            look(job)
        await asyncio.wait_for(asyncio.gather(*(event.wait() for event in ended)), 30)
        return [int(each[-1]) for each in sums]

    def other() -> None:
        time.sleep(0.02)
        for job, context in enumerate(contexts[1]):
            context.world.allreduce(np.full(70_000, 10 * (job + 1)))

    peer = threading.Thread(target=other)
    peer.start()
    assert asyncio.run(main()) == [11, 22, 33]
    peer.join()
    assert helpers() == 1, "for three contexts"
    for of_rank in contexts:
        for context in of_rank:
            context.close()
    await_helpers(0)


def test_a_descriptor_is_quiet_until_something_comes(contexts: list[list[unisono.Context]]) -> None:
    here, there = contexts[0][0], contexts[1][0]
    while here.arm():
        pass
    assert select.select([here], [], [], 0.05)[0] == []
    message = np.arange(100_000)
    sending = there.world.send_async(message, 0)
    assert select.select([here], [], [], 20)[0] == [here]
    received = np.empty_like(message)
    receiving = here.world.recv_async(received, 1)
    while not all([receiving.test(), sending.test()]):
        pass
    assert np.array_equal(received, message)
    for of_rank in contexts:
        for context in of_rank:
            context.close()
    with pytest.raises(unisono.WrongProcessError, match="fileno: the context was closed"):
        here.fileno()


def test_awaited_requests_of_many_contexts_share_the_helper_thread(contexts: list[list[unisono.Context]]) -> None:
    async def main() -> None:
        calls = [
            context.world.allreduce_async(np.array([1 + rank]), np.empty(1, int))
            for rank, of_rank in enumerate(contexts)
            for context in of_rank
        ]
        results = await asyncio.gather(*calls)
        assert [int(result[0]) for result in results] == [3] * len(calls)

    asyncio.run(main())
    assert helpers() == 1
    for of_rank in contexts:
        for context in of_rank:
            context.close()
