"""How what a rank writes is shown: its label, and what it shares with other ranks."""

from __future__ import annotations

import os
import stat

from .output import Stream, label
from .ranks import Rank

COLOURS = (36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91)


def label_width(size: int, prefix: bool) -> int:
    """Columns that `--prefix` takes from each line."""
    return len(_label(0, size, None)) if prefix else 0


def streams_of(rank: Rank, size: int, *, prefix: bool) -> list[Stream]:
    """Both streams of a rank, for `Output`."""
    mode = os.fstat(0).st_mode
    prompts = rank.number == 0 and (os.isatty(0) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
    streams = []
    for target, source in ((1, rank.stdout), (2, rank.stderr)):
        coloured = os.isatty(target) and "NO_COLOR" not in os.environ
        colour = COLOURS[rank.number % len(COLOURS)] if coloured else None
        before = _label(rank.number, size, colour) if prefix else b""
        stream = Stream(source, target, before, colour, rank.number, rank.pid)
        stream.raw = size == 1 and not prefix
        stream.prompts = prompts
        stream.tracebacks = target == 2 and size > 1
        streams.append(stream)
    return streams


def _label(rank: int, size: int, colour: int | None) -> bytes:
    return label(f"{rank:>{len(str(size - 1))}}", colour)
