"""How long the segments of a message are, by the constants of the engine in C++ (core/message_segment.hpp)."""

from __future__ import annotations

import re
from pathlib import Path

HEADER = Path(__file__).parents[2] / "core" / "message_segment.hpp"


def steps() -> list[tuple[int, int]]:
    """Messages of up to so many bytes have segments of so many."""
    found = re.findall(r"k\w+Segments = \{(\d+), (\d+)\}", HEADER.read_text().replace("\n", " "))
    assert len(found) == 2, found
    return [(int(message), int(segment)) for message, segment in found]


def segment_of(bytes_: int, eager: int, agreed: int, whole: bool = False) -> int:
    """The longest segment of a message; `whole`: as agreed, whatever its length."""
    if whole or bytes_ <= eager:
        return agreed
    return next((min(agreed, segment) for message, segment in steps() if bytes_ <= message), agreed)
