"""Joining a job."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, SupportsIndex, TypedDict, TypeVar, Unpack, get_args

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import Array
from ._joining import Store, join
from ._signatures import options_by_name
from ._texts import shown, text_of
from ._torch import shared_factories
from .communicator import Communicator
from .errors import InvalidArgumentError, RevokedError, UnisonoError, WrongProcessError
from .kernel import Kernel
from .stream import StreamPort

T = TypeVar("T")

_open: weakref.WeakSet[Context] = weakref.WeakSet()
_PATIENCE = 1.0  # seconds for threads to come out of the library when Python ends


#: What bits of results may depend on, as `init` takes it.
Determinism = Literal["fast", "run_stable", "size_stable", "placement_stable"]

#: What becomes of a call whose deadline has passed, as `init` takes it.
Deadlines = Literal["fail", "warn", "off"]


class ContextSettings(TypedDict, total=False):
    """Settings of a context, as keyword arguments. What is not given is the default, or stays as it is.

    - `eager_limit`: bytes of the largest eager message.
    - `segment_bytes`: bytes of the largest segment.
    - `rx_buffer_count`: receive buffers for each peer.
    - `timeout`: default deadline of a call in seconds. Of these four, 0 means not given, and communicators use the
      least of all members' values.
    - `lanes`: False on some rank means that all calls go through messages, even where ranks share memory; for tests and
      comparisons.
    - `offload`: the process's helper thread makes progress on calls in flight while the program computes
      (docs/offload.md); not given, as UNISONO_OFFLOAD says.
    - `determinism`: what bits of results may depend on (docs/determinism.md), alike on all ranks; not given, or None,
      as UNISONO_DETERMINISM says.
    - `algorithms`: those to use, as in "allreduce=ring,bcast=binomial:64K-" (docs/tuning.md), alike on all ranks; not
      given, or None, as UNISONO_ALGORITHM says.
    - `deadlines`: what becomes of calls whose deadline has passed, on this rank: they "fail" (`DeadlineError`), "warn"
      on standard error and go on, or it is "off"; not given, or None, as UNISONO_DEADLINES says. Devices know "fail".
    """

    eager_limit: int
    segment_bytes: int
    rx_buffer_count: int
    timeout: float
    lanes: bool
    offload: bool
    determinism: Determinism | None
    algorithms: str | None
    deadlines: Deadlines | None


class Settings(NamedTuple):
    """The settings of a context in force; see `ContextSettings`."""

    eager_limit: int
    segment_bytes: int
    rx_buffer_count: int
    timeout: float
    lanes: bool
    offload: bool
    determinism: Determinism
    algorithms: str
    deadlines: Deadlines


_MODES: tuple[Determinism, ...] = get_args(Determinism)
_DEADLINES: tuple[Deadlines, ...] = get_args(Deadlines)


def _settings(given: ContextSettings) -> tuple[int, int, int, float, int, int, int, str | None, int]:
    """The settings, if they can be handed on; what they may be is for the library to say."""
    if unknown := given.keys() - ContextSettings.__annotations__.keys():
        raise TypeError(
            f"{', '.join(sorted(unknown))} is no setting; settings are {', '.join(ContextSettings.__annotations__)}"
        )
    sizes = []
    for name in ("eager_limit", "segment_bytes", "rx_buffer_count"):
        value: Any = given.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
            raise InvalidArgumentError(
                f"{name} is {shown(value)}; allowed are integers from 0 (default) to {(1 << 32) - 1}"
            )
        sizes.append(value)
    seconds: Any = given.get("timeout", 0.0)
    try:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError
        timeout = float(seconds)
    except (TypeError, OverflowError):
        raise InvalidArgumentError(
            f"timeout is {shown(seconds)}; pass a number of seconds, 0 for the default"
        ) from None
    switches = []
    for name in ("lanes", "offload"):
        switch: Any = given.get(name)
        if name in given and not isinstance(switch, bool):
            raise InvalidArgumentError(f"{name} is {shown(switch)}; allowed are True and False")
        switches.append(0 if name not in given else 1 if switch else -1)
    determinism = given.get("determinism")
    if determinism is not None and determinism not in _MODES:
        raise InvalidArgumentError(f"determinism is {shown(determinism)}; allowed are {', '.join(_MODES)}, or None")
    mode = 0 if determinism is None else 1 + _MODES.index(determinism)
    algorithms: Any = given.get("algorithms")
    if algorithms is not None:
        text_of("settings", "algorithms", algorithms, "pass a text such as 'allreduce=ring', or None,")
    deadlines = given.get("deadlines")
    if deadlines is not None and deadlines not in _DEADLINES:
        raise InvalidArgumentError(f"deadlines is {shown(deadlines)}; allowed are {', '.join(_DEADLINES)}, or None")
    then = 0 if deadlines is None else 1 + _DEADLINES.index(deadlines)
    return sizes[0], sizes[1], sizes[2], timeout, switches[0], switches[1], mode, algorithms, then


@options_by_name
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
        return self._living("dump").dump(history)

    @property
    def settings(self) -> Settings:
        """What this rank would offer for the next communicator."""
        eager, segment, buffers, timeout, lanes, offload, mode, algorithms, then = self._living("settings").settings()
        return Settings(
            eager, segment, buffers, timeout, lanes, offload, _MODES[mode - 1], algorithms, _DEADLINES[then - 1]
        )

    def configure(self, **settings: Unpack[ContextSettings]) -> None:
        """Changes settings; what is not given stays. They act on communicators that are made from then on.

        Not collective, but what must be alike on all ranks must be so when they make a communicator
        (docs/housekeeping.md).
        """
        self._living("configure").configure(*_settings(settings))

    def reset(self) -> None:
        """Gives up all communicators and makes `world` anew, with the settings of now. Collective, also after errors.

        Calls in flight end with `RevokedError`. Raises `PeerDeadError` if a rank has died or left (`shrink` then makes
        a communicator of the others).
        """
        self._living("reset").reset()

    def stream(self, port: int) -> StreamPort:
        """A stream port of this rank, as a kernel sees it: where `Stream(port)` in calls comes from and goes to."""
        return StreamPort(self._living, port)

    def kernel(self, name: str) -> Kernel:
        """The kernel of this name in the library of kernels (docs/kernels.md): called, it runs on this rank."""
        return Kernel(self._living, name)

    def progress(self) -> None:
        """Makes progress on all calls in flight, and returns at once. Any thread may call it.

        Waits do so themselves; for programs that compute for long, or wait for something else.
        """
        self._living("progress").progress()

    def fileno(self) -> int:
        """A file descriptor that is readable when there may be progress to make; for event loops, armed by `arm`.

        So the context can be given to `asyncio`'s `loop.add_reader`, `selectors` and `select` as it is. The descriptor
        is the context's, and closed with it; nobody else reads or writes it. The process's helper thread writes it.
        Raises `UnsupportedError` on devices, `CapacityError` where the system has no thread or descriptor left.
        """
        return self._living("fileno").descriptor()

    def arm(self) -> bool:
        """Makes progress, and has `fileno` become readable when there may be more. Any thread may call it.

        True: something was done, here or by the helper thread since the last time; nothing is armed, so look at your
        requests and call it again before you sleep. False: the descriptor is not readable now, and becomes so when a
        message comes, a call ends in another thread, a deadline is near, or for nothing.
        """
        return self._living("arm").arm()

    def abort(self, reason: str = "") -> None:
        """Ends all calls of this rank with `RevokedError`, from any thread, without waiting for anybody.

        Calls that other threads wait for end within 100 ms, later ones at once. The members are told, and their calls
        end, too. Afterwards only `reset`, `shrink` and `close` are of use.
        """
        self._living("abort").abort(text_of("abort", "reason", reason))

    def _living(self, what: str) -> _core.Context:
        if self._core is None:
            raise WrongProcessError(f"{what}: the context was closed")
        return self._core

    def close(self) -> None:
        """Leaves the job. Does nothing the second time.

        Raises `MismatchedCallError`, having left, if the ranks are found to have made different collective calls: the
        last one to leave has seen those of all.
        """
        self._leave(compares=True)

    def _leave(self, *, compares: bool) -> None:
        core, self._core = self._core, None
        _open.discard(self)
        if core is not None:
            core.close(compares)

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A child of fork may leave the block that it did not enter, by sys.exit for instance: this is not its context.
        # A rank whose block ends in an error has made fewer calls than the others, which is no mismatch to tell of.
        well = kind is None or (isinstance(value, SystemExit) and not value.code)
        with contextlib.suppress(WrongProcessError):
            self._leave(compares=well)


@contextlib.contextmanager
def allocating(context: Context | None = None) -> Iterator[None]:
    """Inside, NumPy makes arrays in memory that the ranks of this machine share, as `Context.empty` does.

    Whatever makes an array there, `np.ones`, `a + b` or a library that uses NumPy, makes it so that large calls on it
    copy nothing through buffers in between. Arrays of less than 4 KB, and those for which there is no room, are
    ordinary. Arrays stay what they are after the block, and may outlive the context. The setting is that of the present
    thread, or of the present task of asyncio. `context` may be left out if this process has joined one job.

    If the program has imported torch, its factories (`torch.empty`, `zeros`, `ones`, `full`, `rand`, `randn`, those
    with `_like` and `new_`, `tensor`, `arange` and others) make CPU tensors there as well, with the values they would
    have otherwise. Results of operations, such as `a + b` of tensors, are ordinary. This holds for the present thread.
    """
    if context is None:
        living = list(_open)
        if len(living) != 1:
            raise InvalidArgumentError(
                f"allocating: this process has {len(living)} contexts; "
                + ("call unisono.init() first" if not living else "pass the one whose memory is to be used")
            )
        context = living[0]
    before = context._living("allocating").take_array_memory()
    try:
        with shared_factories():
            yield
    finally:
        _core.restore_array_memory(before)


def set_wait_hook(function: Callable[[], object] | None) -> None:
    """Has `function()` called in every wait of this process, by each thread that waits, at least every 10 µs; None: no.

    For a second progress engine that must be driven while a thread waits here, such as a library beside this one. One
    thread at a time is in it. It may make progress (`Context.progress`), start calls, test requests and add callbacks;
    what would wait raises `InvalidArgumentError` in it. What it raises is reported by `sys.unraisablehook`. It takes
    the GIL each time; a library in C calls unisono_set_wait_hook.
    """
    if function is not None and not callable(function):
        raise InvalidArgumentError(f"set_wait_hook: a {type(function).__name__} was given; pass a function, or None")
    _core.set_wait_hook(function)


@atexit.register
def _close_all() -> None:
    _core.set_wait_hook(None)  # it could not have the GIL any more
    for context in list(_open):
        try:
            context._leave(compares=not hasattr(sys, "last_value"))  # which is what ends this process
        except WrongProcessError:
            continue  # of the process that forked this one
        except UnisonoError as error:
            # Raised here it would be shown as ignored, and the process would end with status 0.
            traceback.print_exception(error)
            _core.fail_at_exit()
    _core.end_completions(_PATIENCE)
    # Threads whose calls were cancelled come out of the library now. Python before 3.14 ends those that come later by
    # unwinding them, which C++ answers with SIGABRT.
    patience = time.monotonic() + _PATIENCE
    while _core.threads_inside() and time.monotonic() < patience:
        time.sleep(0.001)


os.register_at_fork(after_in_child=_core.forget_threads)


@options_by_name
def init(
    store: Store | None = None, rank: int | None = None, size: int | None = None, **settings: Unpack[ContextSettings]
) -> Context:
    """Joins the job that `unisono run` or another launcher has made, or makes a job of one rank. Collective.

    - `store`: through which the ranks meet instead: a torch.distributed.Store, or what has its methods (`Store`).
      Each job of a program needs a store of its own, or a prefix (torch.distributed.PrefixStore), unless all its ranks
      make the same jobs in the same order.
    - `rank`, `size`: beside a store, this rank and how many there are; not given, RANK and WORLD_SIZE of torchrun.

    Raises `BootstrapError` saying who has not come.
    """
    if store is not None:
        return Context(join(store, rank, size, _settings(settings)))
    if rank is not None or size is not None:
        raise InvalidArgumentError("init: rank and size go with a store; else launchers say them (docs/starting.md)")
    return Context(_core.init(*_settings(settings)))


@options_by_name
class ThreadJob(Generic[T]):
    """A job whose ranks are threads of this process: for tests, and to try things out.

    On network "shm" they share memory, as ranks on one host do; on "loop" each counts as a host of its own, and there
    may be thousands (docs/large-jobs.md).
    """

    def __init__(self, size: int, network: str = "shm", **settings: Unpack[ContextSettings]) -> None:
        ranks: Any = size
        most = {"shm": 1024, "loop": 16384}.get(network)
        if most is None:
            raise InvalidArgumentError(
                f"a thread job on network {shown(network)} was asked for; allowed are 'shm' and 'loop'"
            )
        if isinstance(ranks, bool) or not isinstance(ranks, int) or not 1 <= ranks <= most:
            raise InvalidArgumentError(f"a thread job of {shown(size)} ranks was asked for; allowed are 1 to {most}")
        self.size = size
        self._network = network
        self._settings = _settings(settings)

    def run(self, function: Callable[[Communicator], T]) -> list[T]:
        """Calls `function(world)` on every rank, and returns the results by rank.

        If a rank raises, its communicator is revoked, so that the others end too, and the first rank's own error
        is raised when all have ended.
        """
        job = _core.ThreadJob(self.size, self._network)
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


__all__ = ["Context", "ContextSettings", "Settings", "ThreadJob", "allocating", "init", "set_wait_hook"]
