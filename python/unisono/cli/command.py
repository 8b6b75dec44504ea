"""What each rank of a job runs: found where the rank is to run, before it starts."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec


class CommandError(Exception):
    """There is nothing to start, and why."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(what)
        self.status = status


@dataclass(frozen=True)
class Command:
    """A program, or a module of Python's, and its arguments."""

    name: str
    arguments: list[str]
    is_module: bool = False

    def words(self) -> list[str]:
        """As a system starts it. Raises `CommandError` with the status that a shell would give."""
        if self.is_module:
            if not _is_module(self.name.partition(".")[0]):
                raise CommandError(f"there is no module {self.name}", 127)
            return [sys.executable, "-m", self.name, *self.arguments]
        if self.name.endswith(".py"):
            if not os.path.isfile(self.name):
                raise CommandError(f"there is no file {self.name}", 127)
            return [sys.executable, self.name, *self.arguments]
        if shutil.which(self.name) is None:
            if os.path.isfile(self.name):
                if os.sep not in self.name and os.access(self.name, os.X_OK):
                    raise CommandError(
                        f"there is no program {self.name} in PATH; that of this folder is ./{self.name}", 127
                    )
                raise CommandError(f"{self.name} is not executable", 126)
            raise CommandError(f"there is no program {self.name}", 127)
        return [self.name, *self.arguments]


def _is_module(name: str) -> bool:
    """Whether Python would find it, from the working directory as `python -m` does. Nothing is imported."""
    sys.path.insert(0, "")
    try:
        return find_spec(name) is not None
    except ValueError:
        return False
    finally:
        sys.path.pop(0)
