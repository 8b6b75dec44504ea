"""Reduction operators of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._arrays import Array, dtype_for
from ._spec import Datatype, Func
from ._texts import shown, text_of
from .errors import InvalidArgumentError, operator_raised

_LONGEST = 160  # bytes of what an exception says that travel to the other ranks


class Operator:
    """A reduction operator: a function of two NumPy arrays that gives the array of results, element by element.

    >>> import numpy as np
    >>> import unisono
    >>> hypot = unisono.Operator("hypot", np.hypot)
    >>> # world.allreduce(values, op=hypot)

    It must be associative and give the same bits for the same operands on every rank. It runs inside calls, on any
    thread that makes progress, and must not call Unisono. If it does not commute (`commutative=False`), ranks are
    folded in order. Ranks agree on an operator by its name, which is unique in a process; a process has at most eight
    operators that commute and eight that do not. If the function raises, the call fails with InvalidOpError, of which
    the exception is the cause (`__cause__`); the other ranks get RevokedError, which says whose function raised what.
    """

    #: Bytes of the elements that it is for; 0: it takes all datatypes.
    element_bytes = 0

    def __init__(self, name: str, function: Callable[[Array, Array], Any], *, commutative: bool = True) -> None:
        if not callable(function):
            raise InvalidArgumentError(f"Operator: function is {shown(function)}; pass a function of two arrays")

        def apply(a: memoryview, b: memoryview, out: memoryview, datatype: int) -> str | None:
            dtype = dtype_for(Datatype(datatype))
            shape = (len(out) // dtype.itemsize,)
            try:
                # Copies, for an exception keeps what its function had, and the memory lives no longer than this call.
                result = np.asarray(function(np.frombuffer(a, dtype).copy(), np.frombuffer(b, dtype).copy()))
                if result.shape != shape or not np.can_cast(result.dtype, dtype, "same_kind"):
                    raise ValueError(
                        f"op {name!r} gave {result.dtype} of shape {result.shape} for two arrays of {dtype}, "
                        f"shape {shape}"
                    )
                np.frombuffer(out, dtype)[...] = result
            except BaseException as raised:
                return _failure(raised)
            return None

        self.name = name
        self.commutative = commutative
        made = _core.create_op(text_of("Operator", "name", name), apply, commutative)
        self._func: Func | None = Func(made)

    @property
    def func(self) -> Func:
        """Its number in this process."""
        if self._func is None:
            raise InvalidArgumentError(f"op {self.name!r} was freed")
        return self._func

    def free(self) -> None:
        """Gives the name and the number back. No call may be using the operator, or be started with it later."""
        if self._func is not None:
            _core.free_op(self._func)
            self._func = None

    def __repr__(self) -> str:
        return f"unisono.Operator({self.name!r}, commutative={self.commutative})"


def _failure(raised: BaseException) -> str:
    """Says what a function raised, and keeps that for the error of the call."""
    words = " ".join(f"{type(raised).__name__}: {raised}".removesuffix(": ").split())
    words = words.encode(errors="replace")[:_LONGEST].decode(errors="ignore")
    operator_raised(words, raised.with_traceback(raised.__traceback__ and raised.__traceback__.tb_next))
    return words
