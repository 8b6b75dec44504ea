"""What was found about one property of the machine."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class State(enum.StrEnum):
    """How good it is."""

    OK = "ok"
    IMPROVABLE = "could be better"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One property: what there is, what it means, what to change."""

    area: str
    name: str
    state: State
    value: str  #: what there is, for people
    effect: str = ""  #: what that means for Unisono, if it is not ok
    remedy: str = ""  #: command that changes it, if there is one
    essential: bool = False  #: whether Unisono cannot run without it
    data: dict[str, Any] = field(default_factory=dict)  #: what there is, for programs


class Root:
    """Where files of the system are read; a folder instead of "/" stands for another machine."""

    def __init__(self, path: str = "") -> None:
        self.path = path.rstrip("/")

    def at(self, file: str) -> Path:
        """The place of a file, which is named as if the root were "/"."""
        return Path(self.path + file)

    def read(self, file: str) -> str | None:
        """A small file's text without the blanks around it; None if it cannot be read."""
        try:
            return self.at(file).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None

    def number(self, file: str) -> int | None:
        """A file that holds one number; None if it does not."""
        text = self.read(file)
        return int(text) if text and text.removeprefix("-").isdigit() else None

    def names(self, folder: str) -> list[str]:
        """What a folder holds; nothing if it cannot be read."""
        try:
            return sorted(entry.name for entry in self.at(folder).iterdir())
        except OSError:
            return []


def bytes_text(count: int) -> str:
    """A number of bytes for people."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if size % 1 else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"
