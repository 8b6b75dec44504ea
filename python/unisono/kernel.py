"""Kernels of a library, called by name (docs/kernels.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import requests_of, seconds_of
from ._arrays import dtype_for, elements_of, is_value, readable, writable
from ._spec import Collective, Datatype
from ._texts import shown, text_of
from .errors import InvalidArgumentError
from .request import Request

if TYPE_CHECKING:
    from ._core import Context as CoreContext

SCALAR, MEMORY, COMMUNICATOR, CALL = 1, 2, 3, 4  # UNISONO_KERNEL_...


def load_kernels(path: str) -> None:
    """Loads a library of kernels for this process, which has one; `unisono run --kernels` does so by itself."""
    _core.load_kernels(path)


class Kernel:
    """A kernel of the library; `Context.kernel` makes it. Called with its arguments, it runs on this rank.

    Numbers are converted to what the kernel takes, where that changes no value. Arrays must have the kernel's elements,
    and be contiguous: the kernel reads and writes them until its request has ended. A prepared call is a request that
    was made with `start=False`; the kernel starts it, as often as it wants.
    """

    __slots__ = ("_living", "_parameters", "name")

    def __init__(self, living: Callable[[str], CoreContext], name: str) -> None:
        self._living = living
        #: As the library has it.
        self.name: Final = text_of("kernel", "name", name)
        self._parameters: Final = living("kernel").kernel_parameters(name)

    def __repr__(self) -> str:
        return f"<unisono.Kernel {self.name}({', '.join(map(_words, self._parameters))})>"

    def __call__(self, *arguments: Any, wait_for: Iterable[Request] = (), timeout: float | None = None) -> Request:
        """Starts the kernel. `wait_for`: requests that must complete first; `timeout` in seconds, None: the default.

        The request is like that of a call; other calls, and kernels, may wait for it.
        """
        title = f"kernel {self.name}"
        if len(arguments) != len(self._parameters):
            raise InvalidArgumentError(
                f"{title}: {len(arguments)} arguments were given; it takes {len(self._parameters)}: "
                f"({', '.join(map(_words, self._parameters))})"
            )
        given = [
            _argument(title, position, parameter, value)
            for position, (parameter, value) in enumerate(zip(self._parameters, arguments, strict=True))
        ]
        before = requests_of(title, wait_for)
        seconds = 0.0 if timeout is None else seconds_of(title, timeout)
        core = self._living("kernel").start_kernel(self.name, given, before, seconds)
        return Request(core, None, None, (title, 0, int(Collective.NOP), 0, 0))


def _words(parameter: tuple[int, int, bool]) -> str:
    kind, datatype, writes = parameter
    if kind == COMMUNICATOR:
        return "communicator"
    if kind == CALL:
        return "prepared call"
    element = "byte" if datatype == Datatype.BYTE else dtype_for(Datatype(datatype)).name
    return element if kind == SCALAR else f"{'' if writes else 'const '}{element}*"


def _argument(title: str, position: int, parameter: tuple[int, int, bool], value: Any) -> tuple[int, int, object]:
    kind, datatype, writes = parameter
    name = f"argument {position}"
    needed = f"needed is {_words(parameter)}"
    if kind == COMMUNICATOR:
        core = getattr(value, "_core", None)
        if not isinstance(core, _core.Communicator):
            raise InvalidArgumentError(f"{title}: {name} is a {type(value).__name__}; {needed}")
        return kind, 0, core
    if kind == CALL:
        if not isinstance(value, Request):
            raise InvalidArgumentError(
                f"{title}: {name} is a {type(value).__name__}; {needed}: a request of an `_async` form with start=False"
            )
        return kind, 0, value._core
    dtype = dtype_for(Datatype(datatype))
    if kind == SCALAR:
        return kind, datatype, _scalar(title, name, value, dtype, needed)
    if is_value(value):
        raise InvalidArgumentError(f"{title}: {name} is a {type(value).__name__}; {needed}, which is an array")
    array = (writable if writes else readable)(title, name, value)
    if datatype != Datatype.BYTE and elements_of(title, name, array.dtype, computes=False)[0] != datatype:
        raise InvalidArgumentError(f"{title}: {name} has elements {array.dtype}; {needed}")
    if not array.flags.c_contiguous:
        raise InvalidArgumentError(f"{title}: {name} (strides {array.strides}) is not contiguous")
    return kind, datatype, array


def _scalar(title: str, name: str, value: Any, dtype: npt.DTypeLike, needed: str) -> bytes:
    """The bytes of a number, if it is one of that type, or becomes one without another value."""
    kind = np.dtype(dtype).kind
    allowed = {"f": (int, float, np.integer, np.floating), "b": (bool, np.bool_)}.get(kind, (int, np.integer))
    if not isinstance(value, allowed) or (kind != "b" and isinstance(value, bool | np.bool_)):
        raise InvalidArgumentError(f"{title}: {name} is {shown(value)}, a {type(value).__name__}; {needed}")
    try:
        return np.asarray(value, dtype).tobytes()
    except (OverflowError, ValueError):
        raise InvalidArgumentError(f"{title}: {name} is {value}, which is no {np.dtype(dtype).name}") from None
