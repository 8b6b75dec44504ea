"""What all command lines have in common: how values are read, and wrong ones told."""

from __future__ import annotations

import argparse
from typing import Any, Final, NoReturn

from .asking import plain

_LARGEST: Final = {int: (1 << 32) - 1}  # of numbers that are read as they stand
_ANY: Final = (1 << 63) - 1  # of those that an option reads by a function of its own


def words(text: str) -> str:
    """What the library is to read: text in UTF-8, which bytes of a command line need not be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!a} is no text in UTF-8") from None
    return text


class Parser(argparse.ArgumentParser):
    """As argparse's, and so are those of its commands."""

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # Before Python 3.13, `--file=--` gave the option no value at all, but an empty list.
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        value = super()._get_value(action, arg_string)
        if isinstance(value, int) and not isinstance(value, bool):
            largest = _LARGEST.get(action.type, _ANY)  # type: ignore[call-overload]
            if abs(value) > largest:
                raise argparse.ArgumentError(action, f"{_short(arg_string)} is too large; allowed is up to {largest}")
        return value

    def error(self, message: str) -> NoReturn:
        """Ends the command with what is wrong, in words that a terminal only shows."""
        super().error(plain(_short(message, 2000)))


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
