"""A barrier that says who has not come: torch's own is tied to gloo."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import numpy as np

from ..communicator import Communicator
from ..errors import DeadlineError, UnisonoError
from ._errors import as_torch_error
from ._group import group_or_world

_FIRST_TAG = 0x6D620000  # of messages that nobody else sends; each barrier has one of its own
_TAGS = 1 << 16
_PAUSE = 0.0005  # seconds between two looks: a receive whose deadline passes would end the group
_GRACE = 2.0  # seconds that ranks wait longer than rank 0, to hear from it who has not come


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Waits until all ranks of `group` (the world) have come, at most `timeout` (the group's).

    Raises DeadlineError on all that have come, naming ranks that have not: the first that rank 0 misses, or with
    `wait_all_ranks`, all of them. The group can be used on. As torch.distributed.monitored_barrier, with its arguments.
    """
    own = group_or_world("monitored_barrier", group)
    communicator = own.communicator
    seconds = own.timeout.total_seconds() if timeout is None else timeout.total_seconds()
    tag = _FIRST_TAG + own.next_barrier() % _TAGS
    try:
        if communicator.rank == 0:
            missing = _gathered(communicator, tag, seconds, wait_all_ranks)
        else:
            missing = _told(communicator, tag, seconds)
    except UnisonoError as error:
        raise as_torch_error(error) from None
    if missing:
        ranks = ", ".join(str(rank) for rank in missing)
        raise as_torch_error(DeadlineError(
            f"monitored_barrier: rank {ranks} has not come within {seconds:g} s"
            + ("" if wait_all_ranks else "; wait_all_ranks=True looks for all that have not")
        ))  # fmt: skip


def _gathered(communicator: Communicator, tag: int, seconds: float, wait_all: bool) -> list[int]:
    """On rank 0: who has not come. Those that have are told."""
    until = time.monotonic() + seconds
    awaited = set(range(1, communicator.size))
    while True:
        awaited -= {rank for rank in awaited if communicator.iprobe(rank, tag) is not None}
        if not awaited or time.monotonic() >= until:
            break
        time.sleep(_PAUSE)
    missing = sorted(awaited)[: None if wait_all else 1]
    answer = np.array(missing + [-1] * (communicator.size - len(missing)), np.int64)
    word = np.empty(1, np.uint8)
    for rank in sorted(set(range(1, communicator.size)) - awaited):
        communicator.recv(word, rank, tag)  # which is here
        communicator.send(answer, rank, tag)
    return missing


def _told(communicator: Communicator, tag: int, seconds: float) -> list[int]:
    """On other ranks: who has not come, as rank 0 says; rank 0 itself, if it says nothing."""
    communicator.send(np.zeros(1, np.uint8), 0, tag)
    until = time.monotonic() + seconds + _GRACE
    while communicator.iprobe(0, tag) is None:
        if time.monotonic() >= until:
            return [0]
        time.sleep(_PAUSE)
    answer = np.empty(communicator.size, np.int64)
    communicator.recv(answer, 0, tag)
    return [int(rank) for rank in answer if rank >= 0]
