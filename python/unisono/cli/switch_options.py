"""What the actions of `unisono switch` have in common: numbers, the secret, and how they refuse."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from .aggregation import SECRET_FILE, AggregationError, secret_in

PATIENCE = 5.0  #: seconds for an answer


def add_secret(parser: argparse.ArgumentParser) -> None:
    """--secret-file."""
    parser.add_argument("--secret-file", metavar="FILE", help=f"the switch's secret; {SECRET_FILE} says the same")


def add_deadline(parser: argparse.ArgumentParser) -> None:
    """--deadline."""
    parser.add_argument(
        "--deadline", type=seconds, default=PATIENCE, metavar="SECONDS", help=f"for it to answer ({PATIENCE:g})"
    )


def bytes_in(text: str) -> int:
    """4096, 64K, 4M, 1G."""
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].lower() in tuple("kmg") else (text, "")
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes such as 4096, 64K or 4M")
    return int(number) << {"": 0, "k": 10, "m": 20, "g": 30}[unit]


def seconds(text: str) -> float:
    """Above 0 and up to an hour."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= 3600:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0 and up to 3600")


def communicator(text: str) -> int:
    """The number of a communicator."""
    with contextlib.suppress(ValueError):
        if 0 <= int(text) < 1 << 32:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of a communicator; `unisono switch jobs` lists them")


def secret_of(options: argparse.Namespace) -> str:
    """The secret that an action needs; AggregationError without it."""
    path = options.secret_file or os.environ.get(SECRET_FILE)
    if not path:
        raise AggregationError(f"which secret does the switch have? Name its file by --secret-file or {SECRET_FILE}")
    return secret_in(path)


def refuse(what: object) -> int:
    """Says why, in a sentence; the status for it."""
    print(f"unisono switch: {what}", file=sys.stderr)
    return 2
