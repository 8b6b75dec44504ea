"""What torch is given for a call: a Work, which is asked whether the call has ended, and waited for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch.distributed import Work

from ..errors import CapacityError, UnisonoError
from ..request import Request
from ._errors import as_torch_error

Finish = Callable[[], object]

_NO_LIMIT = timedelta(0)  # what torch says for none


class FinishedWork(Work):
    """Of calls that have ended, in success, before they return."""

    def __init__(self, tensors: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self._tensors = list(tensors)

    def wait(self, timeout: timedelta = _NO_LIMIT) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> list[Tensor]:
        return self._tensors

    def get_future(self) -> torch.futures.Future[Any]:
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self._tensors)
        return future


class CallWork(Work):
    """Of calls in flight: one, or several that torch takes for one.

    `tensors` are what torch's users get as the result. `finish` is called once, when all calls have ended in success:
    it brings results to tensors that are not contiguous. Any thread may ask and wait.
    """

    def __init__(self, requests: Sequence[Request], tensors: Sequence[Tensor], finish: Finish | None = None) -> None:
        super().__init__()
        #: The calls.
        self.requests = requests
        self._tensors = list(tensors)
        self._finish = finish
        self._lock = threading.Lock()
        self._future: torch.futures.Future[Any] | None = None

    @staticmethod
    def of(works: Sequence[CallWork]) -> CallWork:
        """Several works as one."""

        def finish() -> None:
            for work in works:
                work._bring()

        return CallWork(
            [request for work in works for request in work.requests],
            [tensor for work in works for tensor in work._tensors],
            finish,
        )

    def offload(self) -> None:
        """Has the process's helper thread make progress, whether or not anybody waits."""
        for request in self.requests:
            with contextlib.suppress(CapacityError):  # no thread can be had: progress is made in calls and waits
                request.offload()

    def wait(self, timeout: timedelta = _NO_LIMIT) -> bool:
        """Waits until the call has ended. Raises its error, and DeadlineError if it has not ended within `timeout`."""
        seconds = timeout.total_seconds()
        try:
            for request in self.requests:
                request.wait(seconds if seconds > 0 else None)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        self._bring()
        if self._future is not None:
            with contextlib.suppress(RuntimeError):  # what a wait has not found is nobody's error here
                self._future.wait()  # which is being told: who has waited finds it complete
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        """Whether the call has ended, in success or not. Makes progress."""
        for request in self.requests:
            try:
                if not request.test():
                    return False
            except UnisonoError:
                continue
        if self._error() is None:
            self._bring()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error() is None

    def exception(self) -> UnisonoError | None:
        """The error of a call that has failed."""
        return self._error() if self.is_completed() else None

    def result(self) -> list[Tensor]:
        """The tensors that the call writes."""
        return self._tensors

    def get_future(self) -> torch.futures.Future[Any]:
        """A future of `result`, completed by a thread beside the program; at once if all calls have ended.

        Its callbacks may wait for other calls.
        """
        with self._lock:
            if self._future is not None:
                return self._future
            completed: torch.futures.Future[None] = torch.futures.Future()
            # What fails in a callback is an error for torch's own code as well, DistributedDataParallel for one. What
            # Future.set_exception leaves is one for Python's callers alone: others take it for the result.
            future = self._future = completed.then(self._outcome)
        if self.is_completed():
            completed.set_result(None)
            return future
        missing = len(self.requests)
        self.offload()

        def ended() -> None:
            nonlocal missing
            with self._lock:
                missing -= 1
                last = missing == 0
            if last:
                completed.set_result(None)

        for request in list(self.requests):
            request._tell(ended)
        return future

    def _source_rank(self) -> int:
        """The rank that a message has come from; of receives that have ended."""
        return self.requests[0].source

    def source_rank(self) -> int:
        return self._source_rank()

    def _outcome(self, _: object) -> list[Tensor]:
        """The result of calls that have ended. Raises their error."""
        error = self._error()
        if error is not None:
            raise error
        self._bring()
        return self._tensors

    def _error(self) -> UnisonoError | None:
        """Of calls that have ended."""
        for request in self.requests:
            try:
                request.test()
            except UnisonoError as error:
                return as_torch_error(error)
        return None

    def _bring(self) -> None:
        """Once, whoever sees the end first. The others wait until it is done: only then is nothing left to bring."""
        if self._finish is None:
            return
        with self._lock:
            if self._finish is not None:
                self._finish()
                self._finish = None
