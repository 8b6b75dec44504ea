"""How calls of torch's groups become calls of a communicator."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import AllreduceOptions

from ..communicator import Communicator
from ..errors import InvalidArgumentError, UnisonoError
from ..request import Request
from ._errors import as_torch_error
from ._work import CallWork, FinishedWork

Finish = Callable[[], object]

UNSET = AllreduceOptions().timeout  #: what options say that have no timeout of their own
FINISHED = FinishedWork()
_LEAST_LIMIT = 1e-3  # seconds


class How(NamedTuple):
    """How a call is made, and what becomes of it."""

    asynchronous: bool = True  #: it runs beside the program, which gets a work to wait for
    limit: timedelta = UNSET  #: its own deadline
    outputs: Sequence[Tensor] = ()  #: what the work gives as the result
    finish: Finish | None = None  #: brings results to where they belong
    helped: bool = True  #: the helper thread makes progress on it, if it runs beside the program

    def of(self, outputs: Sequence[Tensor], finish: Finish | None = None) -> How:
        """With these results."""
        return self._replace(outputs=outputs, finish=finish)

    def beside(self) -> How:
        """Beside the program in any case."""
        return self._replace(asynchronous=True)


def how_of(opts: Any, timeout: timedelta | None = None) -> How:
    """What options of torch say; without them, a call runs beside the program."""
    if opts is None or isinstance(opts, timedelta):
        return How(True, timeout or opts or UNSET)
    return How(opts.asyncOp, opts.timeout)


def one(operation: str, tensors: Any) -> Any:
    """What a call is given: alone, or in a list of one."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise as_torch_error(InvalidArgumentError(
            f"{operation}: {len(tensors)} tensors were given; this backend takes one for a call"
        ))  # fmt: skip
    return tensors[0]


def both(first: Finish | None, second: Finish | None) -> Finish | None:
    """One after the other, where there are two."""
    if first is None or second is None:
        return first or second

    def finish() -> None:
        first()
        second()

    return finish


def together(works: Sequence[CallWork]) -> CallWork:
    """Several works as one."""
    if len(works) == 1:
        return works[0]
    return CallWork.of(works)


class Calls(dist.ProcessGroup):
    """Makes calls of a communicator, and waits for them or not."""

    def __init__(self, communicator: Communicator) -> None:
        super().__init__(communicator.rank, communicator.size)
        #: The communicator: for calls that torch does not know.
        self.communicator = communicator
        self._held: list[CallWork] | None = None  # of a batch that is open
        self._flying: deque[CallWork] = deque()  # collectives that may not have ended, in their order
        self._lock = threading.Lock()
        self._sequence = 0

    def _go(self, call: str, how: How, *arguments: Any, **options: Any) -> Any:
        """Makes a call of the communicator, and waits for it unless it is to run beside the program."""
        self._sequence += 1
        if self._flying:
            with self._lock:
                while self._flying and self._flying[0].is_completed():
                    self._flying.popleft()
        if how.limit != UNSET:
            options["timeout"] = max(how.limit.total_seconds(), _LEAST_LIMIT)
        try:
            if how.asynchronous or self._held is not None:
                request = getattr(self.communicator, call + "_async")(*arguments, **options)
                return self._started([request], how, collective=call not in ("send", "recv"))
            getattr(self.communicator, call)(*arguments, **options)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        if how.finish is not None:
            how.finish()
        return FINISHED

    def _started(self, requests: Sequence[Request], how: How, *, collective: bool = True) -> CallWork:
        work = CallWork(requests, how.outputs, how.finish)
        if collective:
            self._flying.append(work)
        if how.finish is not None:
            work.get_future()  # results come to where they belong, whether or not anybody waits
        elif how.helped:
            work.offload()
        if self._held is not None:
            self._held.append(work)
        return work

    def _start_coalescing(self, device: Any = None) -> None:
        self._held = []

    def _end_coalescing(self, device: Any = None) -> Any:
        works, self._held = self._held or [], None
        return together(works)

    def _ended(self, work: CallWork, how: How) -> Any:
        if how.asynchronous or self._held is not None:
            return work
        work.wait()
        return FINISHED
