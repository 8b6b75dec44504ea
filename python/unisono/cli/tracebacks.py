"""Python's tracebacks on the ranks' standard error: equal ones are shown once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: How one begins. The second is that of a group of exceptions, the third that of a syntax error.
START = re.compile(
    rb'^(Traceback \(most recent call last\):|  \+ Exception Group Traceback| +File ".*", line \d+$)', re.M
)
MOST = 1 << 16  # bytes; what is longer is not compared


@dataclass
class Group:
    """Ranks that have written the same."""

    author: int  #: the rank that has written the text
    text: bytes
    key: bytes  #: without the rank's own number and process
    ranks: list[int] = field(default_factory=list)
    exact: bool = True  #: equal in these, too


def general(text: bytes, rank: int, pid: int) -> bytes:
    """The text without the numbers that a rank says of itself."""
    return re.sub(rb"\b([Rr]ank %d|pid %d)\b" % (rank, pid), lambda found: found[1].split()[0].lower() + b" *", text)


def is_cut(text: bytes) -> bool:
    """Whether its rank was ended before it came to the line that names the exception."""
    last = text.rstrip(b"\n").rpartition(b"\n")[2]
    return last.startswith((b" ", b"Traceback (most recent"))


def grouped(blocks: list[tuple[int, int, bytes]]) -> list[Group]:
    """Those that are alike, in the order in which they came. A block is rank, process and text.

    One that was cut off is like another that begins so.
    """
    groups: list[Group] = []
    for rank, pid, text in sorted(blocks, key=lambda block: is_cut(block[2])):
        key, cut = general(text, rank, pid), is_cut(text)
        for group in groups:
            if text == group.text or key == group.key or (cut and group.key.startswith(key)):
                group.exact &= text == group.text or cut
                break
        else:
            groups.append(group := Group(rank, text, key))
        group.ranks.append(rank)
    for group in groups:
        group.ranks.sort()
    return groups


def named(ranks: list[int]) -> str:
    """`rank 2`, `ranks 0–3`, `ranks 0, 2–3`."""
    return ("rank " if len(ranks) == 1 else "ranks ") + spans(ranks, ", ")


def spans(ranks: list[int], between: str = ",") -> str:
    """`0–3` and the like, of ranks in ascending order."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and parts[-1][-1] == rank - 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return between.join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)


def heading(group: Group) -> str:
    """The line above a group's text."""
    return named(group.ranks) + (":" if group.exact else f" (the words of rank {group.author}):")
