"""Calls in flight."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from . import _core
from ._messages import ANY_SOURCE, ANY_TAG, Status
from ._spec import Collective
from ._texts import shown
from .errors import CapacityError, DeadlineError, InvalidArgumentError, UnisonoError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._buffers import Buffers

POLL = 0.001  #: seconds between two looks at a call that is awaited where no thread can be had


CallName = tuple[str, int, int, int, int]  # operation, communicator, collective, root or peer, tag


def _words(of: CallName) -> str:
    """What a call is called in errors."""
    operation, communicator, collective, peer, tag = of
    text = f"{operation} (communicator {communicator}"
    if collective in (Collective.SEND, Collective.RECV, Collective.PUT, Collective.GET):
        text += ", any source" if peer == ANY_SOURCE else f", peer {peer}"
    if collective in (Collective.SEND, Collective.RECV):
        text += ", any tag" if tag == ANY_TAG else f", tag {tag}"
    return text + ")"


class Request:
    """A call in flight, or one that was prepared (`start=False`) and is started with `start`.

    Its buffers stay in use until it has completed; dropping a request does not end the call. `result` is the array that
    the call writes (None where it writes none on this rank). In asyncio, `await request` waits and gives `result`.
    A destination that is not contiguous is filled by what finds that the call has ended: `wait`, `test`, `await`, a
    callback, `wait_all` and its like. Then, too, `result` becomes a scalar of NumPy, where the call was for one number.
    """

    __slots__ = ("_buffers", "_core", "_lock", "_of", "result")

    def __init__(
        self, core: _core.Request, result: npt.NDArray[Any] | None, buffers: Buffers | None, of: CallName
    ) -> None:
        self._core = core
        self._of = of
        self.result = result
        # Destinations that were packed. The first wait, test or callback that sees the end unpacks them.
        self._buffers = buffers
        self._lock = None if buffers is None else threading.Lock()

    @property
    def _unpacks(self) -> bool:
        """Whether the destination is still to be unpacked."""
        buffers = self._buffers
        return buffers is not None and buffers.unpacks

    def _finish(self) -> None:
        """Unpacks what was packed. The call has succeeded."""
        if self._lock is None:
            return
        with self._lock:
            if self._buffers is not None:
                self.result = self._buffers.finish()
                self._buffers = None

    def _look(self) -> None:
        """As `_finish`, if the call has succeeded."""
        if self._buffers is not None:
            with contextlib.suppress(UnisonoError):
                self.test()

    def start(self) -> None:
        """Starts a call that was made with `start=False`; again and again, whenever it has completed."""
        self._core.start()

    def wait(self, timeout: float | None = None) -> npt.NDArray[Any] | None:
        """Waits for completion and returns `result`.

        The call's own deadline bounds the wait. With `timeout` (seconds), raises `DeadlineError` if the call has
        not completed by then; the call goes on, and can be waited for again. Signals are handled while waiting.
        """
        if not self._core.wait(-1.0 if timeout is None else _limit(timeout)):
            raise DeadlineError(
                f"{_words(self._of)}: the call has not completed within {timeout} s; it is still in flight"
            )
        if self._lock is not None:
            self._finish()
        return self.result

    def test(self) -> bool:
        """Makes progress and says whether the call has completed. Raises the call's error."""
        done = self._core.test()
        if done:
            self._finish()
        return done

    def add_done_callback(self, function: Callable[[Request], object]) -> None:
        """Calls `function(request)` once when the call has completed or failed; at once if it has already.

        It runs on the thread of the program that makes the progress; where the helper thread does, on one that is there
        for callbacks. It may start calls, test requests and add callbacks; what would wait for other ranks raises
        `InvalidArgumentError` there. `request.wait()` gives the result, or raises. What `function` raises is reported
        by `sys.unraisablehook`.
        """
        if not callable(function):
            raise InvalidArgumentError(
                f"add_done_callback: function is {shown(function)}; pass a function of the request"
            )

        def completed() -> None:
            self._look()
            function(self)

        self._core.on_complete(completed)

    def _tell(self, function: Callable[[], object]) -> None:
        """Calls `function()` once when the call has completed or failed, always on a thread that is there for this.

        It may wait for other ranks: progress, and other functions, do not wait for it.
        """
        self._core.on_complete(function, beside=True)

    def offload(self) -> None:
        """Has the process's helper thread make progress until the call has completed, whether or not anybody waits.

        Raises CapacityError where the system refuses a thread; the call goes on as without it.
        """
        self._core.offload()

    def __await__(self) -> Generator[Any, None, npt.NDArray[Any] | None]:
        """Waits in asyncio: other tasks run meanwhile, and the process's helper thread makes progress.

        Cancelling the task does not end the call, which has its buffers until it has completed.
        """
        return self._completion().__await__()

    async def _completion(self) -> npt.NDArray[Any] | None:
        loop = asyncio.get_running_loop()
        completed = asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(completed.set)

        self._core.on_complete(tell)
        try:
            try:
                self._core.offload()
            except CapacityError:  # no thread can be had here, so this task makes the progress
                while not self.test():
                    await asyncio.sleep(POLL)
            await completed.wait()
        except asyncio.CancelledError as error:
            error.add_note(
                "the call of the awaited request is still in flight, and uses its buffers until it has ended"
            )
            raise
        return self.wait()

    @property
    def received(self) -> int:
        """Elements received by a completed recv."""
        return self._core.received

    @property
    def status(self) -> Status:
        """Source, tag and length of what a completed recv has got."""
        return Status()._fill(self._core.status())

    @property
    def source(self) -> int:
        """The rank of which a completed recv has got a message."""
        return self._core.status()[0]

    @property
    def tag(self) -> int:
        """The tag of that message."""
        return self._core.status()[1]


def _limit(timeout: Any) -> float:
    """A limit as the library has it."""
    if timeout is None:
        return -1.0
    try:
        seconds = math.nan if isinstance(timeout, str | bytes) else float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not (seconds >= 0 and math.isfinite(seconds)):
        raise InvalidArgumentError(f"timeout is {shown(timeout)}; allowed are 0 and more seconds, or None")
    return seconds


def _listed(function: str, requests: Any) -> list[Request | None]:
    """Requests as a list of their own."""
    try:
        each = iter(requests)
    except TypeError:
        raise InvalidArgumentError(
            f"{function}: requests is a {type(requests).__name__}; pass a list of unisono.Request"
        ) from None
    return list(each)


def _several(function: str, given: list[Request | None]) -> tuple[list[int], list[_core.Request]]:
    """The positions of the requests that are not None, and these."""
    for position, request in enumerate(given):
        if request is not None and not isinstance(request, Request):
            raise InvalidArgumentError(
                f"{function}: entry {position} is a {type(request).__name__}; pass unisono.Request, or None"
            )
    return (
        [position for position, request in enumerate(given) if request is not None],
        [request._core for request in given if request is not None],
    )


def _look_at(*requests: Request | None) -> None:
    """Unpacks the destinations of requests that have ended."""
    for request in requests:
        if request is not None:
            request._look()


def wait_any(requests: Iterable[Request | None], timeout: float | None = None) -> int | None:
    """Waits until one of the requests has completed or failed, and returns its position.

    Progress is made on all. Entries that are None are passed over, so that what is done with can be set to None; if all
    are, the answer is None. Raises `DeadlineError` if none has ended within `timeout` seconds. Whether the call
    succeeded is for `requests[position].wait()` to say.
    """
    given = _listed("wait_any", requests)
    positions, cores = _several("wait_any", given)
    if not cores:
        return None
    found = _core.wait_any(cores, _limit(timeout))
    if found is None:
        raise DeadlineError(f"none of {len(cores)} calls has completed within {timeout} s; they are still in flight")
    position = positions[found]
    _look_at(given[position])
    return position


def wait_some(requests: Iterable[Request | None], timeout: float | None = None) -> list[int]:
    """As `wait_any`, but returns the positions of all that have ended, at least one; [] if all entries are None."""
    given = _listed("wait_some", requests)
    positions, cores = _several("wait_some", given)
    if not cores:
        return []
    found = _core.wait_some(cores, _limit(timeout))
    if not found:
        raise DeadlineError(f"none of {len(cores)} calls has completed within {timeout} s; they are still in flight")
    ended = [positions[position] for position in found]
    _look_at(*(given[position] for position in ended))
    return ended


def wait_all(requests: Iterable[Request | None], timeout: float | None = None) -> list[npt.NDArray[Any] | None]:
    """Waits until all of the requests have ended, and returns their results, None for None.

    Raises the error of the first that failed, but not before all have ended. Raises `DeadlineError` if they have not
    within `timeout` seconds.
    """
    given = _listed("wait_all", requests)
    _, cores = _several("wait_all", given)
    if not _core.wait_all(cores, _limit(timeout)):
        raise DeadlineError(f"not all of {len(cores)} calls have completed within {timeout} s")
    _look_at(*given)  # before one that has failed raises
    return [None if request is None else request.wait() for request in given]


def test_any(requests: Iterable[Request | None]) -> int | None:
    """As `wait_any`, without waiting: None if none has ended."""
    given = _listed("test_any", requests)
    positions, cores = _several("test_any", given)
    found = _core.wait_any(cores, 0.0)
    if found is None:
        return None
    _look_at(given[positions[found]])
    return positions[found]


def test_all(requests: Iterable[Request | None]) -> bool:
    """Makes progress, and says whether all of the requests have ended, in success or failure."""
    given = _listed("test_all", requests)
    if not _core.wait_all(_several("test_all", given)[1], 0.0):
        return False
    _look_at(*given)
    return True


# Pytest takes what is called test_* for tests where it is imported by name.
test_any.__test__ = False  # type: ignore[attr-defined]
test_all.__test__ = False  # type: ignore[attr-defined]
