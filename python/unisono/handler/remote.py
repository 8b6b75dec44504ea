"""Handlers in a switch that serves: loaded, run on packets, and asked how they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from .. import _core
from ..errors import UnisonoError
from .compiler import HandlerError
from .packets import HandlerStopped, Result, check_message, checked_packets

SECRET = "UNISONO_AGGREGATE_SECRET"
SECRET_FILE = "UNISONO_AGGREGATE_SECRET_FILE"
PATIENCE = 5.0  #: seconds for an answer

_GOES_ON, _DROPPED, _STOPPED = range(3)


class Loadable(Protocol):
    """What can be loaded: a `Handler`."""

    binary: bytes
    name: str


class RemoteHandlers:
    """The handlers of a switch, over one connection. One thread at a time may use it.

    What is loaded stays when the connection ends, unless `load` says otherwise. A handler's memory is in the switch:
    all connections that run it fill the same.
    """

    def __init__(self, where: str, secret: str, deadline: float = PATIENCE) -> None:
        self.where = where
        self.deadline = deadline
        self._secret = secret
        self._core: _core.SwitchHandlers | None = None
        try:
            self._core = _core.SwitchHandlers(where, secret, deadline)
        except UnisonoError as error:
            raise HandlerError(str(error)) from None

    def load(self, handler: Loadable | str | os.PathLike[str], name: str | None = None, *, anew: bool = False,
             stays: bool = True) -> str:  # fmt: skip
        """Loads a handler: the path of its binary or source, or what `compile` has made. Gives the name by which it is
        run, the file's name without its ending unless another is given. If the same binary has the name already, it
        goes on with its memory as it is; another one is refused. `anew` puts it in the place of either, with memory as
        at the beginning. With `stays=False` it goes when this connection ends.
        """
        from . import opened  # which imports this module

        made: Loadable = opened(handler) if isinstance(handler, (str, os.PathLike)) else handler
        called = name if name is not None else Path(made.name).stem
        self._ask(lambda core: core.load(called, made.binary, stays, anew, self.deadline))
        return called

    def unload(self, name: str) -> None:
        """Takes a handler and its memory out of the switch."""
        self._ask(lambda core: core.unload(name, self.deadline))

    def run(self, name: str, packets: Iterable[bytes], *, source: int = 0, ranks: int = 1, tag: int = 0,
            budget: int = 0) -> Result:  # fmt: skip
        """Runs a handler of the switch on the packets of one message, as `Handler.run` does here: the same outputs,
        the same errors. `budget` is for less instructions than the switch allows. Messages of others may come between
        two packets. Ends by the connection's deadline, which is for the whole message.
        """
        check_message(source, ranks, tag, budget, 0)
        held = checked_packets(packets)
        state, sentence, executed, outputs = self._ask(
            lambda core: core.run(name, held, source, ranks, tag, budget, self.deadline)
        )
        if state == _STOPPED:
            raise HandlerStopped(sentence)
        if state not in (_GOES_ON, _DROPPED):
            raise HandlerError(f"the switch at {self.where}: {sentence}")
        return Result(outputs, state == _DROPPED, executed)

    def stat(self, name: str = "") -> dict[str, Any]:
        """What the switch says of its handlers, or of those with a name."""
        try:
            answer = _core.switch_ask(self.where, self._secret, "stat", name.encode(), self.deadline)
        except UnisonoError as error:
            raise HandlerError(str(error)) from None
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """Ends the connection. May be called again."""
        self._core = None

    def __enter__(self) -> RemoteHandlers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def _ask(self, question: Any) -> Any:
        if self._core is None:
            raise HandlerError(f"the connection to the switch at {self.where} is closed; make another by handler.at")
        try:
            return question(self._core)
        except UnisonoError as error:
            raise HandlerError(str(error)) from None


def secret_for(secret_file: str | os.PathLike[str] | None) -> str:
    """The secret of a file, or else of the environment, where `unisono run --aggregate` puts it for ranks."""
    if secret_file is None and os.environ.get(SECRET):
        return os.environ[SECRET]
    path = secret_file or os.environ.get(SECRET_FILE)
    if not path:
        raise HandlerError(f"which secret does the switch have? Name its file by secret_file or {SECRET_FILE}")
    try:
        return _core.switch_secret(os.fspath(path))
    except UnisonoError as error:
        raise HandlerError(str(error)) from None
