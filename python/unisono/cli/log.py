"""How much goes to standard error without being asked for: UNISONO_LOG, for the launcher and its ranks alike."""

from __future__ import annotations

import os

LEVELS = ("error", "warn", "info", "debug")
VARIABLE = "UNISONO_LOG"
USUAL = "warn"


class Log:
    """The level that the environment asks for."""

    def __init__(self) -> None:
        given = os.environ.get(VARIABLE) or USUAL
        #: what is wrong with the variable; None if nothing is
        self.fault = None if given in LEVELS else (
            f'warning: {VARIABLE} is "{given}"; known are error, warn (as without it), info, debug'
        )  # fmt: skip
        self.level = USUAL if self.fault else given

    def has(self, level: str) -> bool:
        """Whether sentences of this level are wanted."""
        return LEVELS.index(level) <= LEVELS.index(self.level)
