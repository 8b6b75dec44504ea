"""Handlers in a switch: compile them from C, look at them, and run them on packets of your own (docs/handlers.md).

```python
from unisono import handler

made = handler.compile("histogram.c")
result = made.run([packet, packet])
print(result.outputs, result.memory)
```
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import _core
from ..errors import UnisonoError
from ._isa import MOST_PAYLOAD_BYTES, Element, Function, Info, Stop
from .compiler import HandlerError, compile_handler, include_dir

__all__ = [
    "BUDGET",
    "MOST_PAYLOAD_BYTES",
    "Handler",
    "HandlerError",
    "HandlerStopped",
    "Result",
    "compile",
    "include_dir",
    "load",
]

#: Instructions that a function may execute each time it runs, unless something else is asked for.
BUDGET = 1 << 20

_WHY = {
    Stop.BUDGET: "it has executed {executed} instructions, which is its budget",
    Stop.LOOP_BOUND: "the loop has gone round more often than its bound",
    Stop.MEMORY: "it reaches beyond its memory",
    Stop.PAYLOAD: "it reads beyond the payload's {length} bytes",
    Stop.OUTPUT: "it writes more than the output stream has room for",
    Stop.DIVIDE: "it divides by 0",
}


class HandlerStopped(HandlerError):  # noqa: N818  (what has happened to it)
    """A handler was stopped, or failed by its own word: says where and why."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a message has led to."""

    outputs: list[bytes]  #: packets that the handler has written, in their order
    dropped: bool  #: it wanted to see no more of the message
    executed: int  #: instructions, of all functions together


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
        long.
        """
        held = [bytes(packet) for packet in packets]
        for number, packet in enumerate(held):
            if len(packet) > MOST_PAYLOAD_BYTES:
                raise ValueError(f"packet {number} has {len(packet)} bytes; allowed are {MOST_PAYLOAD_BYTES}")
        todo = [(Function.HEADER, 0, b""), *((Function.PAYLOAD, n, p) for n, p in enumerate(held)),
                (Function.COMPLETION, max(0, len(held) - 1), b"")]  # fmt: skip
        outputs: list[bytes] = []
        total = 0
        for function, number, payload in todo:
            info = [0] * len(Info)
            info[Info.LENGTH], info[Info.PACKET], info[Info.PACKETS] = len(payload), number, len(held)
            info[Info.SOURCE], info[Info.RANKS], info[Info.TAG] = source, ranks, tag
            stop, verdict, word, executed, output = self._core.run(function, info, payload, budget)
            total += executed
            if stop:
                why = _WHY[Stop(stop)].format(executed=executed, length=len(payload))
                raise HandlerStopped(
                    f"{self._where(word)}: {function.name.lower()} is stopped at packet {number}: {why}"
                )
            if verdict > 1:
                raise HandlerStopped(
                    f"{self._where(word)}: {function.name.lower()} fails at packet {number} with {verdict}"
                )
            if output:
                outputs.append(output)
            if verdict == 1:
                return Result(outputs, True, total)
        return Result(outputs, False, total)

    def _where(self, word: int) -> str:
        line = self._core.lines[word]
        return f"{self._core.source}:{line}" if line else self._core.source


def load(path: str | os.PathLike[str]) -> Handler:
    """The handler of a binary, `.uh`; HandlerError if the file is none."""
    try:
        return Handler(Path(path).read_bytes(), os.fspath(path))
    except OSError as error:
        raise HandlerError(f"{os.fspath(path)}: {error.strerror}") from None


def compile(source: str | os.PathLike[str], macros: Sequence[str] = ()) -> Handler:
    """The handler of a source in C; HandlerError, `file:line: reason`, if it is none."""
    return Handler(compile_handler(source, tuple(macros)), os.fspath(source))
