"""Handlers in a switch: compile them from C, look at them, and run them on packets of your own (docs/handlers.md).

```python
from unisono import handler

made = handler.compile("histogram.c")
result = made.run([packet, packet])
print(result.outputs)

with handler.at("rack1:7000", secret_file="secret") as switch:
    name = switch.load(made)
    print(switch.run(name, [packet, packet]).outputs)
```
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .. import _core
from ..errors import UnisonoError
from ._isa import MOST_PAYLOAD_BYTES, Element, Function, Info
from .compiler import HandlerError, compile_handler, include_dir
from .packets import HandlerStopped, Result, check_message, checked_packets
from .remote import PATIENCE, RemoteHandlers, secret_for

__all__ = [
    "BUDGET",
    "MOST_PAYLOAD_BYTES",
    "Handler",
    "HandlerError",
    "HandlerStopped",
    "RemoteHandlers",
    "Result",
    "at",
    "compile",
    "include_dir",
    "load",
    "opened",
]

#: Instructions that a function may execute each time it runs, unless something else is asked for.
BUDGET = 1 << 20


class Handler:
    """A binary, with the memory that messages leave to the next ones. One thread at a time may use it."""

    def __init__(self, binary: bytes, name: str = "handler") -> None:
        self.binary = binary
        self.name = name
        try:
            self._core = _core.Handler(binary)
        except UnisonoError as error:
            raise HandlerError(f"{name}: {error}") from None

    @property
    def hash(self) -> str:
        """SHA-256 of the binary, in hexadecimal: by it switches and ranks tell handlers apart."""
        return hashlib.sha256(self.binary).hexdigest()

    @property
    def functions(self) -> list[str]:
        """Names of the functions that it has."""
        return [f.name.lower() for f in Function if self._core.entries[f] != 0xFFFFFFFF]

    @property
    def elements(self) -> list[str]:
        """Names of the elements that its instructions need."""
        return [e.name.lower() for e in Element if self._core.elements >> e & 1]

    @property
    def text(self) -> str:
        """Its instructions, a line each, with the lines of the source."""
        return self._core.text()

    @property
    def memory(self) -> bytes:
        """A copy of its memory."""
        return self._core.memory()

    @property
    def words(self) -> int:
        """Number of instructions."""
        return self._core.words

    def most_executed(self, function: str) -> int:
        """Instructions that a function executes at most, each time it runs."""
        return self._core.most_executed(Function[function.upper()])

    def reset(self) -> None:
        """Makes the memory what it was at the beginning."""
        self._core.reset()

    def run(self, packets: Iterable[bytes], *, source: int = 0, ranks: int = 1, tag: int = 0,
            budget: int = BUDGET) -> Result:  # fmt: skip
        """Runs the handler on the packets of one message. Raises HandlerStopped, `file:line: reason`, if one of its
        functions is stopped or gives a verdict other than US_GO_ON and US_DROP; ValueError for a packet that is too
        long, or numbers that are too large; TypeError for what is no list of packets.
        """
        check_message(source, ranks, tag, budget, 1)
        held = checked_packets(packets)
        todo = [(Function.HEADER, 0, b""), *((Function.PAYLOAD, n, p) for n, p in enumerate(held)),
                (Function.COMPLETION, max(0, len(held) - 1), b"")]  # fmt: skip
        outputs: list[bytes] = []
        total = 0
        for function, number, payload in todo:
            info = [0] * len(Info)
            info[Info.LENGTH], info[Info.PACKET], info[Info.PACKETS] = len(payload), number, len(held)
            info[Info.SOURCE], info[Info.RANKS], info[Info.TAG] = source, ranks, tag
            failure, verdict, executed, output = self._core.run(function, info, payload, budget)
            total += executed
            if failure:
                raise HandlerStopped(failure)
            if output:
                outputs.append(output)
            if verdict == 1:
                return Result(outputs, True, total)
        return Result(outputs, False, total)


def load(path: str | os.PathLike[str]) -> Handler:
    """The handler of a binary, `.uh`; HandlerError if the file is none."""
    try:
        return Handler(Path(path).read_bytes(), os.fspath(path))
    except OSError as error:
        raise HandlerError(f"{os.fspath(path)}: {error.strerror}") from None


def compile(source: str | os.PathLike[str], macros: Sequence[str] = ()) -> Handler:
    """The handler of a source in C; HandlerError, `file:line: reason`, if it is none."""
    return Handler(compile_handler(source, tuple(macros)), os.fspath(source))


def opened(path: str | os.PathLike[str], macros: Sequence[str] = ()) -> Handler:
    """The handler of a source, `.c`, or else of a binary."""
    return compile(path, macros) if os.fspath(path).endswith(".c") else load(path)


def at(where: str, *, secret_file: str | os.PathLike[str] | None = None, deadline: float = PATIENCE) -> RemoteHandlers:
    """The handlers of the switch at HOST:PORT. Who asks must know its secret: a file, or else what the environment
    says (UNISONO_AGGREGATE_SECRET_FILE; ranks of `unisono run --aggregate` have it). `deadline` is for each answer, in
    seconds. HandlerError if there is no such switch.
    """
    return RemoteHandlers(where, secret_for(secret_file), deadline)
