"""Communicators that the program drops without freeing them."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import unisono

#: What shared memory has room for at once, of one rank 0 (kDirectoryEntries).
ROOM = 512


@pytest.mark.parametrize("way", ["dup", "split", "subset", "create_group"])
def test_more_are_dropped_than_can_live(way: str) -> None:
    def rank(world: unisono.Communicator) -> int:
        made: Any = None
        for i in range(ROOM + 100):
            if way == "dup":
                made = world.dup()
            elif way == "split":
                made = world.split(0, key=-world.rank)
            elif way == "subset":
                made = world.subset([1, 0])
            else:
                made = world.create_group([1, 0])
            if i % 100 == 0:
                assert made.allreduce(made.rank + i) == 2 * i + 1
        assert world.allreduce(1) == 2
        return int(made.allreduce(1))

    assert unisono.ThreadJob(2).run(rank) == [2, 2]


def test_a_call_keeps_the_communicator_that_it_is_of() -> None:
    def rank(world: unisono.Communicator) -> tuple[float, float]:
        source, result = np.full(100000, world.rank + 1.0), np.zeros(100000)
        again_source, again_result = np.full(10, world.rank + 1.0), np.zeros(10)
        request = world.dup().allreduce_async(source, result)  # nobody else has this communicator
        again = world.dup().allreduce_async(again_source, again_result, start=False)
        for _ in range(3):
            world.dup().barrier()
        request.wait()
        for _ in range(3):
            again.start()
            world.dup().barrier()
            again.wait()
        return float(result.sum()), float(again_result.sum())

    assert unisono.ThreadJob(2).run(rank) == [(300000.0, 30.0)] * 2


def test_a_call_that_nobody_waits_for_ends_nevertheless() -> None:
    def rank(world: unisono.Communicator) -> float:
        result = np.zeros(200000)
        if world.rank == 1:
            world.dup().allreduce(np.full(200000, 2.0), result)
        else:
            world.dup().allreduce_async(np.full(200000, 1.0), result)  # its request is dropped, too
        for _ in range(20):
            world.dup().barrier()
        world.barrier()
        return float(result[0])

    assert unisono.ThreadJob(2).run(rank) == [3.0, 3.0]


def test_a_window_stays_until_its_communicator_is_freed() -> None:
    class Memory(np.ndarray):
        """An array that can be watched."""

    def rank(world: unisono.Communicator) -> tuple[bool, bool]:
        memory = np.zeros(1000).view(Memory)
        watch = weakref.ref(memory)
        exposed = world.dup()
        exposed.window(memory)
        del exposed, memory
        gc.collect()
        world.barrier()
        while_exposed = watch() is not None
        world.barrier()  # the ranks are of one process, which frees what any of them has dropped
        world.dup()  # frees what was dropped
        gc.collect()
        return while_exposed, watch() is None

    assert unisono.ThreadJob(2).run(rank) == [(True, True)] * 2


def test_ranks_that_have_called_differently_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: told.append(str(report.exc_value)))

    def rank(world: unisono.Communicator) -> None:
        dropped = world.dup()
        if world.rank == 0:
            dropped.bcast(np.zeros(1))  # which its root need not wait for
        del dropped
        world.barrier()
        world.dup().free()

    unisono.ThreadJob(2).run(rank)
    assert [text for text in told if "bcast" in text and "communicator" in text], told
