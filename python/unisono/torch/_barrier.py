"""A barrier that says who has not come: torch's own is tied to gloo."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import numpy as np

from ..communicator import Communicator
from ..errors import DeadlineError, PeerDeadError, UnisonoError
from ._errors import as_torch_error
from ._group import group_or_world

_FIRST_TAG = 0x6D620000  # of messages that nobody else sends; each barrier has one of its own
_TAGS = 1 << 16
_GRACE = 2.0  # seconds that ranks wait longer than rank 0, to hear from it who has not come


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Waits until all ranks of `group` (the world) have come, at most `timeout` (the group's).

    Raises DeadlineError on all that have come, naming ranks that have not: the first that rank 0 misses, or with
    `wait_all_ranks`, the same on all of them, each. As torch.distributed.monitored_barrier, with its arguments.
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
    missing: list[int] = []
    come: list[int] = []
    word = np.zeros(1, np.uint8)
    for rank in range(1, communicator.size):
        # Once somebody is missing, those are told that have come by then.
        if missing and not wait_all and communicator.iprobe(rank, tag) is None:
            continue
        try:
            communicator.recv(word, rank, tag, timeout=max(until - time.monotonic(), 0.001))
            come.append(rank)
        except (DeadlineError, PeerDeadError):
            missing.append(rank)
    answer = np.array(missing + [-1] * (communicator.size - len(missing)), np.int64)
    for rank in come:
        communicator.send(answer, rank, tag)
    return missing


def _told(communicator: Communicator, tag: int, seconds: float) -> list[int]:
    """On other ranks: who has not come, as rank 0 says; rank 0 itself, if it says nothing."""
    communicator.send(np.zeros(1, np.uint8), 0, tag)
    answer = np.empty(communicator.size, np.int64)
    try:
        communicator.recv(answer, 0, tag, timeout=seconds + _GRACE)
    except DeadlineError:
        return [0]
    return [int(rank) for rank in answer if rank >= 0]
