"""What users have given, in sentences of errors; and texts that the library takes."""

from __future__ import annotations

from typing import Any, Final

from .errors import InvalidArgumentError

_MOST: Final = 120  # characters of a value that are shown
_END: Final = 20  # of them, those at its end


def cut(text: str) -> str:
    """A text that can be written anywhere, its middle left out where it is long."""
    text = text.encode(errors="backslashreplace").decode()
    if len(text) <= _MOST:
        return text
    return f"{text[: _MOST - _END]}… ({len(text)} characters) …{text[-_END:]}"


def shown(value: Any) -> str:
    """A value as Python writes it, cut. Never raises."""
    try:
        return cut(repr(value))
    except Exception as failure:  # a value's own, or an integer of too many digits
        return f"<{type(value).__name__} that cannot be shown: {type(failure).__name__}>"


def text_of(operation: str, name: str, given: Any, needed: str = "pass a text") -> str:
    """A text that the library can take: of characters that UTF-8 has, and without NUL, which would end it."""
    if not isinstance(given, str):
        raise InvalidArgumentError(f"{operation}: {name} is {shown(given)}; {needed.removesuffix(',')}")
    if "\0" in given:
        raise InvalidArgumentError(f"{operation}: {name} is {shown(given)}; {needed} without NUL (\\x00)")
    try:
        given.encode()
    except UnicodeEncodeError as failure:
        raise InvalidArgumentError(
            f"{operation}: {name} is {shown(given)}; its character {failure.start} is a lone surrogate, which UTF-8 "
            f"has not; {needed} without"
        ) from None
    return given
