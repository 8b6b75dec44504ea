"""Why a source cannot be a handler."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818  (it is no error of the compiler's)
    """What handlers cannot have: the source's line where it is known (0: it is not), or the variable that it is."""

    def __init__(self, reason: str, line: int = 0, variable: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.variable = variable
