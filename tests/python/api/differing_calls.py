"""Jobs of threads whose ranks call differently, and what each of them ends with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import unisono
from unisono import Communicator, MismatchedCallError

Member = Callable[[Communicator], Any]

#: Far less than any deadline: what is found is found by comparing, not by waiting.
SOON = 20.0


def errors_of(size: int, member: Member, **settings: Any) -> list[BaseException | None]:
    """What each rank of a job ended with, leaving the context included."""
    errors: list[BaseException | None] = [None] * size
    threads: list[threading.Thread] = []
    job = unisono._core.ThreadJob(size)
    given = unisono.context._settings({"timeout": 60.0, **settings})  # type: ignore[typeddict-item]

    def rank_of(rank: int) -> None:
        try:
            with unisono.Context(unisono._core.thread_context(job, rank, *given)) as context:
                member(context.world)
        except BaseException as error:
            errors[rank] = error

    begin = time.monotonic()
    for rank in range(size):
        threads.append(threading.Thread(target=rank_of, args=(rank,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begin < SOON
    return errors


def texts_of(errors: list[BaseException | None]) -> list[str]:
    """The texts of the errors, which must be of the right kind; at least one rank must have one."""
    raised = [error for error in errors if error is not None]
    assert any(isinstance(error, MismatchedCallError) for error in raised), errors
    # A rank that has not begun another call yet finds the communicator revoked, for the same reason.
    assert all(isinstance(error, MismatchedCallError | unisono.RevokedError) for error in raised), raised
    return [str(error) for error in raised]
