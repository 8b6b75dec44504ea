"""The program that prices calls in simulated networks, and makes rules of their prices: found and asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ..errors import InvalidArgumentError

NAME = "unisono-network-price"
PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]  #: of the checkout, if the package is used from one


class NoPriceError(InvalidArgumentError):
    """The program runs, and has no prices for what it was asked."""


def find_program() -> str:
    """The program: in a build folder of the checkout, or in the package, or on PATH. Raises `InvalidArgumentError`."""
    built = sorted((ROOT / "build").glob(f"*/{NAME}"), key=lambda path: path.stat().st_mtime)
    for candidate in (*reversed(built), PACKAGE / "bin" / NAME):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which(NAME)
    if found is None:
        raise InvalidArgumentError(f"{NAME}, which simulates networks, is not built: `make` in a checkout builds it")
    return found


def said(*arguments: object, seconds: float, environment: dict[str, str] | None = None) -> str:
    """What the program says. `environment`: beside that of this process.

    Raises `NoPriceError` with its sentence if it refuses, and `InvalidArgumentError` if it cannot be asked.
    """
    program = find_program()
    try:
        done = subprocess.run(
            [program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=seconds, env=os.environ | (environment or {}),
        )  # fmt: skip
    except OSError as failure:
        raise InvalidArgumentError(f"{program} cannot be run: {failure.strerror}") from failure
    except subprocess.TimeoutExpired as failure:
        raise InvalidArgumentError(
            f"{NAME} has not ended within {seconds:g} s; ask about fewer ranks or bytes, name an --algorithm, or leave "
            "rules by price out (--prices off)"
        ) from failure
    if done.returncode != 0:
        told = (done.stderr.strip().splitlines() or [f"{program} exited with status {done.returncode}"])[0]
        raise NoPriceError(told.removeprefix(f"{NAME}: "))
    return done.stdout
