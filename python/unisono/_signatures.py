"""Signatures for readers: what `**options: Unpack[Options]` stands for is shown by name in `help()`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


class _NotGiven:
    """Default of an option in a signature; what happens then is told where the options are explained."""

    def __repr__(self) -> str:
        return "..."


NOT_GIVEN = _NotGiven()


def options_by_name(documented: T) -> T:
    """Decorator of a function or of a class whose keyword arguments are a TypedDict's: shows each of them.

    Only what readers and editors see changes; the call stays as it is. `start` is an option of `_async` forms, and is
    not shown for others. The docstring's last line says where the options are explained.
    """
    functions = vars(documented).values() if isinstance(documented, type) else (documented,)
    for function in functions:
        if inspect.isfunction(function):
            _show(function)
    return documented


def _show(function: Any) -> None:
    signature = inspect.signature(function)
    *parameters, last = signature.parameters.values() or (None,)
    unpacked = None if last is None else re.fullmatch(r"Unpack\[(\w+)\]", str(last.annotation))
    if last is None or unpacked is None:
        return
    described = inspect.unwrap(function).__globals__[unpacked[1]]
    for name, annotation in described.__annotations__.items():
        if name != "start" or function.__name__.endswith("_async"):
            shown = getattr(annotation, "__forward_arg__", annotation)
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=NOT_GIVEN, annotation=shown)
            )
    function.__signature__ = signature.replace(parameters=parameters)
    if function.__doc__:  # there are none with python -OO
        where = f"{last.name.capitalize()}: see `unisono.{described.__name__}`."
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{where}"
