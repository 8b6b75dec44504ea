"""Joining a job."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, SupportsIndex, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import Array
from .communicator import Communicator
from .errors import InvalidArgumentError, RevokedError, WrongProcessError

T = TypeVar("T")

_open: weakref.WeakSet[Context] = weakref.WeakSet()


class Context:
    """One endpoint of a job. Use it as a context manager, or call `close`.

    Leaving cancels calls in flight. Arrays of `empty` and `zeros` remain.
    A child of fork must make a context of its own.
    """

    def __init__(self, core: _core.Context) -> None:
        self._core: _core.Context | None = core
        #: The communicator of all ranks.
        self.world = Communicator(core.world, core)
        _open.add(self)

    def empty(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64) -> Array:
        """An array in memory that the ranks of this machine share: see `Communicator.empty`."""
        return self.world.empty(shape, dtype)

    def zeros(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64) -> Array:
        """An array of zeros in memory that the ranks of this machine share: see `Communicator.zeros`."""
        return self.world.zeros(shape, dtype)

    def dump(self, *, history: bool = False) -> str:
        """What the ranks of the job are doing, and who waits for whom; with `history`, their last calls as well.

        Ranks that are stuck or stopped are told of, too. Not collective.
        """
        if self._core is None:
            raise WrongProcessError("dump: the context was closed")
        return self._core.dump(history)

    def close(self) -> None:
        """Leaves the job. Does nothing the second time."""
        core, self._core = self._core, None
        _open.discard(self)
        if core is not None:
            core.close()

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A child of fork may leave the block that it did not enter, by sys.exit for instance: this is not its context.
        with contextlib.suppress(WrongProcessError):
            self.close()


@atexit.register
def _close_all() -> None:
    for context in list(_open):
        try:
            context.close()
        except WrongProcessError:
            continue  # of the process that forked this one


#: What bits of results may depend on, as `init` takes it.
Determinism = Literal["fast", "run_stable", "size_stable", "placement_stable"]


def _settings(
    eager_limit: int,
    segment_bytes: int,
    rx_buffer_count: int,
    timeout: float,
    lanes: bool,
    offload: bool,
    determinism: Determinism | None,
) -> tuple[int, int, int, float, bool, bool, int]:
    """The settings, if they can be handed on; what they may be is for the library to say."""
    sizes: dict[str, Any] = {
        "eager_limit": eager_limit,
        "segment_bytes": segment_bytes,
        "rx_buffer_count": rx_buffer_count,
    }
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
            raise InvalidArgumentError(f"{name} is {value!r}; allowed are integers from 0 (default) to {(1 << 32) - 1}")
    seconds: Any = timeout
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgumentError(f"timeout is {timeout!r}; pass a number of seconds, 0 for the default")
    switches: dict[str, Any] = {"lanes": lanes, "offload": offload}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"{name} is {value!r}; allowed are True and False")
    modes = get_args(Determinism)
    if determinism is not None and determinism not in modes:
        raise InvalidArgumentError(f"determinism is {determinism!r}; allowed are {', '.join(modes)}, or None")
    mode = 0 if determinism is None else 1 + modes.index(determinism)
    return eager_limit, segment_bytes, rx_buffer_count, float(timeout), lanes, offload, mode


def init(
    *,
    eager_limit: int = 0,
    segment_bytes: int = 0,
    rx_buffer_count: int = 0,
    timeout: float = 0.0,
    lanes: bool = True,
    offload: bool = False,
    determinism: Determinism | None = None,
) -> Context:
    """Joins the job that `unisono run` has made, or makes a job of one rank. Collective over the job.

    Sizes are bytes, `timeout` (default deadline of a call) seconds; 0 means the default. Communicators use the
    least of all members' values. Without `lanes` on some rank, all calls go through messages, even where ranks share
    memory: for tests and comparisons. With `offload`, or UNISONO_OFFLOAD=1 in the environment, a thread of the context
    makes progress on calls in flight while the program computes (docs/offload.md). `determinism` says what bits of
    results may depend on, alike on all ranks (docs/determinism.md); None: as UNISONO_DETERMINISM in the environment
    says, or run_stable. Raises `BootstrapError` saying who has not come.
    """
    return Context(
        _core.init(*_settings(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes, offload, determinism))
    )


class ThreadJob(Generic[T]):
    """A job whose ranks are threads of this process: for tests, and to try things out."""

    def __init__(
        self,
        size: int,
        *,
        eager_limit: int = 0,
        segment_bytes: int = 0,
        rx_buffer_count: int = 0,
        timeout: float = 0.0,
        lanes: bool = True,
        offload: bool = False,
        determinism: Determinism | None = None,
    ) -> None:
        ranks: Any = size
        if isinstance(ranks, bool) or not isinstance(ranks, int) or not 1 <= ranks <= 4096:
            raise InvalidArgumentError(f"a thread job of {size!r} ranks was asked for; allowed are 1 to 4096")
        self.size = size
        self._settings = _settings(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes, offload, determinism)

    def run(self, function: Callable[[Communicator], T]) -> list[T]:
        """Calls `function(world)` on every rank, and returns the results by rank.

        If a rank raises, its communicator is revoked, so that the others end too, and the first rank's own error
        is raised when all have ended.
        """
        job = _core.ThreadJob(self.size)
        results: list[T | None] = [None] * self.size
        errors: list[BaseException | None] = [None] * self.size

        def member(rank: int) -> None:
            try:
                with Context(_core.thread_context(job, rank, *self._settings)) as context:
                    try:
                        results[rank] = function(context.world)
                    except BaseException as error:
                        context.world.revoke(f"rank {rank} raised {type(error).__name__}: {error}")
                        raise
            except BaseException as error:
                errors[rank] = error

        threads = [threading.Thread(target=member, args=(rank,), name=f"rank {rank}") for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        raised = [(rank, error) for rank, error in enumerate(errors) if error is not None]
        if raised:
            own = [entry for entry in raised if not isinstance(entry[1], RevokedError)]
            rank, error = (own or raised)[0]
            error.add_note(f"raised on rank {rank} of {self.size}")
            raise error
        return results  # type: ignore[return-value]  # no rank raised, so every entry was set


__all__ = ["Context", "ThreadJob", "init"]
