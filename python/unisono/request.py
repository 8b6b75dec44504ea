"""Calls in flight."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .errors import DeadlineError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

    from . import _core


class Request:
    """A call in flight. Its buffers stay in use until it has completed; dropping a request does not end the call.

    `result` is the array that the call writes (None where it writes none on this rank).
    """

    __slots__ = ("_core", "result")

    def __init__(self, core: _core.Request, result: npt.NDArray[Any] | None) -> None:
        self._core = core
        self.result = result

    def wait(self, timeout: float | None = None) -> npt.NDArray[Any] | None:
        """Waits for completion and returns `result`.

        The call's own deadline bounds the wait. With `timeout` (seconds), raises `DeadlineError` if the call has
        not completed by then; the call goes on, and can be waited for again. Signals are handled while waiting.
        """
        if timeout is not None and not (timeout >= 0 and math.isfinite(timeout)):
            raise InvalidArgumentError(f"timeout is {timeout}; allowed are 0 and more seconds, or None")
        if not self._core.wait(-1.0 if timeout is None else timeout):
            raise DeadlineError(f"the call has not completed within {timeout} s; it is still in flight")
        return self.result

    def test(self) -> bool:
        """Makes progress and says whether the call has completed. Raises the call's error."""
        return self._core.test()

    @property
    def received(self) -> int:
        """Elements received by a completed recv."""
        return self._core.received
