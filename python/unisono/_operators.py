"""Operators in C: loaded by all ranks of a communicator, and by the switches that carry its calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _core
from ._arrays import Array
from ._buffers import Buffers
from ._calls import Calls
from ._spec import Collective, Func
from .errors import InvalidOpError, MismatchedCallError, UnisonoError
from .operator import Operator

if TYPE_CHECKING:
    from .handler import Handler

#: Bytes of elements that calls fold on their way; others are brought together first.
NATIVE = frozenset((1, 2, 4, 8, 16))
#: Bytes of an operator's name in its process.
_LONGEST_NAME = 64
#: Numbers that the operators of a communicator have in its switches.
_AT_SWITCHES = [*range(Func.USER0, Func.ORDERED7 + 1)]


class _Held(NamedTuple):
    """An operator of this process, and how many use it: all threads that are ranks share it."""

    core: _core.OperatorInC
    func: Func
    users: int


class _Said(NamedTuple):
    """What a rank is to load. Names may differ, for paths do; rank 0's is the one."""

    name: str
    hash: str
    element_bytes: int
    commutative: bool


_held: dict[str, _Held] = {}  #: by name
_lock = threading.Lock()


class LoadedOperator(Operator):
    """A reduction operator in C, as `Communicator.load_operator` gives it: for `op=` of reductions.

    Its elements have `element_bytes` bytes. Arrays of any dtype of that size are folded by it, also structured ones.
    """

    def __init__(self, made: Handler, name: str, commutative: bool, core: _core.OperatorInC) -> None:
        self.hash = made.hash  #: SHA-256 of its binary
        self.binary = made.binary
        self.name = name
        self.commutative = commutative
        #: What folds by it: the switches, or the ranks and why.
        self.carrier = ""
        self._func = None
        with _lock:
            held = _held.get(name) or _Held(core, Func(core.create(name, commutative)), 0)
            _held[name] = held._replace(users=held.users + 1)
        self._core, self._func = held.core, held.func
        self.element_bytes = self._core.element_bytes

    def free(self) -> None:
        """Gives the operator back; its number is free when all who have loaded it have said so. No call may be using
        it, or be started with it later.
        """
        with _lock:
            if self._func is None:
                return
            self._func = None
            held = _held.pop(self.name)
            if held.users > 1:
                _held[self.name] = held._replace(users=held.users - 1)
            else:
                _core.free_op(held.func)

    def fold(self, parts: list[Array]) -> Array:
        """Bytes of elements, folded from the first part on."""
        result = np.array(parts[0], copy=True)
        for part in parts[1:]:
            if why := self._core.fold(result, np.ascontiguousarray(part), result):
                raise InvalidOpError(f"op {self.name!r} failed: {why}")
        return result

    def __repr__(self) -> str:
        return f"unisono.LoadedOperator({self.name!r}, {self.element_bytes} bytes, commutative={self.commutative})"


class OperatorCalls(Calls):
    """Loading operators, and reductions of elements that are brought together first."""

    #: Numbers that operators have in this communicator's switches, by name and hash. They are never given back there,
    #: so one that is loaded again has its number again. Alike on all ranks.
    _carried: dict[tuple[str, str], int] | None = None

    def load_operator(self, source: str | os.PathLike[str] | bytes | Handler, *, commutative: bool = True,
                      name: str | None = None) -> LoadedOperator:  # fmt: skip
        """Collective. Loads a reduction operator in C (docs/handlers.md): a source, a binary, the path of either, or
        what `handler.compile` has made. All ranks must have the same binary, which is compared by its hash, and say the
        same of `commutative`; what it is called is what rank 0 calls it.

        Elements of 1, 2, 4, 8 and 16 bytes are folded as calls of any operator are; where switches carry the calls of
        this communicator, they load it, too, and fold. If a switch refuses, the ranks fold: `carrier` of the result
        says who does, and why. Elements of other sizes, up to 64 bytes, are brought together and folded in the order
        of ranks, by blocking calls. Raises HandlerError for what is no operator, and MismatchedCallError if ranks
        differ, on all ranks alike.
        """
        from . import handler  # most programs need no compiler

        failure = ""
        cause: Exception | None = None
        said: _Said | None = None
        try:
            made = handler.Handler(source) if isinstance(source, bytes) else (
                source if isinstance(source, handler.Handler) else handler.opened(source))  # fmt: skip
            core = _core.OperatorInC(made.binary)
            said = _Said(_named(name or Path(made.name).stem, made.hash, commutative), made.hash, core.element_bytes,
                         bool(commutative))  # fmt: skip
        except Exception as error:  # whatever it is: the other ranks wait for what this one says
            failure, cause = _text(error), error
        all_said = self._agreed(said, failure, cause)
        for rank, theirs in enumerate(all_said):
            if theirs[1:] != all_said[0][1:]:
                raise MismatchedCallError(
                    f"load_operator: rank 0 has {_words(all_said[0])}, rank {rank} {_words(theirs)}; all ranks must "
                    f"load the same"
                )
        loaded: LoadedOperator | None = None
        try:
            try:
                loaded = LoadedOperator(made, all_said[0].name, all_said[0].commutative, core)
            except Exception as error:  # a process has few numbers, and one rank may have used more of them
                failure, cause = _text(error), error
            self._agreed(all_said[0], failure, cause)
            assert loaded is not None
            self._carry(loaded)
        except BaseException:
            if loaded is not None:
                loaded.free()
            raise
        return loaded

    def _agreed(self, said: _Said | None, failure: str, cause: Exception | None) -> list[_Said]:
        """What all ranks say; HandlerError on all of them if one has failed."""
        from . import handler

        together: list[tuple[_Said, str]] = self._all.allgather_object((said, failure))
        for rank, (_, why) in enumerate(together):
            if why:
                raise handler.HandlerError(why if rank == self.rank else f"rank {rank}: {why}") from cause
        return [theirs for theirs, _ in together]

    def _carry(self, loaded: LoadedOperator) -> None:
        """Has the switches of this communicator fold by it, if they can."""
        why = ""
        key, carried = (loaded.name, loaded.hash), self._carried or {}
        if loaded.element_bytes not in NATIVE:
            why = f"elements of {loaded.element_bytes} bytes are folded by ranks"
        elif len(carried) == len(_AT_SWITCHES) and key not in carried:
            why = f"a communicator's switches take {len(_AT_SWITCHES)} operators"
        else:
            at_switches = carried[key] if key in carried else _AT_SWITCHES[len(carried)]
            if self.rank == 0:
                try:
                    why = _core.carry_operator(self._core.handle, at_switches, loaded.binary, loaded.commutative)
                except Exception as error:  # the other ranks wait for a word
                    why = _text(error)
            why = self._all.bcast_object(why)
            if not why:
                self._carried = {**carried, key: at_switches}
                _core.operator_is_carried(self._core.handle, loaded.func, at_switches, loaded.element_bytes)
        loaded.carrier = f"its ranks: {why}" if why else self._core.state()[-1]

    def _gathered_fold(self, collective: Collective, op: LoadedOperator, buffers: Buffers, root: int,
                       timeout: float | None) -> Callable[[], None]:  # fmt: skip
        """What a reduction does of elements that no datatype is as large as: brings them together, and folds here."""
        world = self._all
        own = buffers.dst if buffers.in_place and buffers.src is None else buffers.src
        assert own is not None
        given = np.ascontiguousarray(own).reshape(-1).view(np.uint8)

        def store(result: Array) -> None:
            if buffers.dst is not None:
                buffers.dst.reshape(-1).view(np.uint8)[: result.size] = result

        def run() -> None:
            if collective == Collective.REDUCE:
                parts = np.empty(given.size * self.size, np.uint8) if self.rank == root else None
                world.gather(given, parts, root, timeout=timeout)
                if parts is not None:
                    store(op.fold(np.split(parts, self.size)))
                return
            parts = np.empty(given.size * (1 if collective == Collective.REDUCE_SCATTER else self.size), np.uint8)
            if collective == Collective.REDUCE_SCATTER:
                world.alltoall(given, parts, timeout=timeout)
            else:
                world.allgather(given, parts, timeout=timeout)
            pieces = np.split(parts, self.size)
            if collective in (Collective.SCAN, Collective.EXSCAN):
                pieces = pieces[: self.rank + (collective == Collective.SCAN)]
            if pieces:
                store(op.fold(pieces))

        return run


def _named(stem: str, digest: str, commutative: bool) -> str:
    """The name of an operator, by which ranks agree on calls: of at most 64 bytes, another for another binary, and for
    the same binary in the order of ranks.
    """
    end = f"-{digest[:12]}" + ("" if commutative else "-ordered")
    return stem.encode()[: _LONGEST_NAME - len(end)].decode(errors="ignore") + end


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, UnisonoError | OSError) else f"{type(error).__name__}: {error}"


def _words(said: _Said) -> str:
    kind = "" if said.commutative else ", which does not commute"
    return f"{said.name} ({said.hash[:16]}, elements of {said.element_bytes} bytes{kind})"


__all__ = ["NATIVE", "LoadedOperator", "OperatorCalls"]
