"""Programs of the user (docs/program-files.md)."""

from __future__ import annotations

import os

from . import _core


class Program:
    """One program for each rank, to be run by `Communicator.run_program`. Made by `load` and `parse`."""

    __slots__ = ("_core",)

    def __init__(self, core: _core.Program) -> None:
        self._core = core

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Reads a program file. Raises `MalformedProgramError`, which says where."""
        return cls(_core.load_program(os.fspath(path)))

    @classmethod
    def parse(cls, text: str | bytes) -> Program:
        """Reads the text of a program file."""
        return cls(_core.parse_program(text.encode() if isinstance(text, str) else text))

    @property
    def size(self) -> int:
        """Ranks that the program is for."""
        return self._core.size
