"""Ranks that do not come, die, or give up: the others are told, soon and by name."""

import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
import unisono
import unisono.torch


def fails(kind: type[Exception], call: Callable[[], object]) -> tuple[str, float]:
    begun = time.monotonic()
    try:
        call()
    except kind as error:
        assert isinstance(error, RuntimeError)
        return str(error), time.monotonic() - begun
    raise AssertionError(f"no {kind.__name__}")


def late() -> None:
    """Rank 1 does not come to a call in time."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    if rank != 1:
        words, seconds = fails(unisono.DeadlineError, lambda: dist.all_reduce(torch.ones(3), group=group))
        assert "rank 1" in words, words
        assert "Timed out" in words, words
        assert 0.9 < seconds < 5, seconds
        work = dist.barrier(group=dist.new_group(ranks=[rank], use_local_synchronization=True), async_op=True)
        work.wait()
    else:
        time.sleep(2)


def awaited() -> None:
    """A work's own limit; the call goes on, and ends."""
    tensor = torch.ones(4)
    if rank == 1:
        time.sleep(1.5)
    work = dist.all_reduce(tensor, async_op=True)
    if rank == 0:
        words, seconds = fails(unisono.DeadlineError, lambda: work.wait(timedelta(milliseconds=300)))
        assert seconds < 1.4, seconds
        assert "still in flight" in words, words
    work.wait()
    assert tensor.tolist() == [size] * 4


def future() -> None:
    """A future is given the error of its call."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    if rank == 0:
        made = dist.all_reduce(torch.ones(3), group=group, async_op=True).get_future()
        words, _ = fails(RuntimeError, made.wait)
        assert "rank 1" in words, words
    else:
        time.sleep(1.5)


def monitored() -> None:
    """The barrier that says who has not come."""
    if rank in (1, 2):
        time.sleep(2.5)
        return
    wait_all = sys.argv[2] == "all"
    words, seconds = fails(unisono.DeadlineError, lambda: unisono.torch.monitored_barrier(
        timeout=timedelta(seconds=1), wait_all_ranks=wait_all
    ))  # fmt: skip
    assert ("rank 1, 2 has not come" if wait_all else "rank 1 has not come") in words, words
    assert seconds < 2.4, seconds


def killed() -> None:
    """Rank 1 dies. The others hear of it in a call, and in a future, within a second."""
    dist.barrier()
    if rank == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        words, seconds = fails(unisono.UnisonoError, lambda: dist.all_reduce(torch.ones(3)))
    else:
        work = dist.all_reduce(torch.ones(3), async_op=True)
        words, seconds = fails(RuntimeError, work.get_future().wait)
    assert "rank 1" in words, words
    assert 0.4 < seconds < 1.5, seconds
    print("told", flush=True)


def aborted() -> None:
    """One rank gives up the group."""
    dist.barrier()
    if rank == 1:
        time.sleep(0.5)
        dist.group.WORLD.abort()
    else:
        words, seconds = fails(unisono.RevokedError, lambda: dist.all_reduce(torch.ones(3)))
        assert "aborted" in words, words
        assert seconds < 1.5, seconds


dist.init_process_group("unisono", timeout=timedelta(seconds=20))
rank, size = dist.get_rank(), dist.get_world_size()
{each.__name__: each for each in (late, awaited, future, monitored, killed, aborted)}[sys.argv[1]]()
if sys.argv[1] not in ("killed",):
    dist.destroy_process_group()
print("right", flush=True)
