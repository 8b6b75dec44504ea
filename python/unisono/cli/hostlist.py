"""Which hosts a job runs on, and which ranks each of them has: --hosts and --hostfile."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

MOST_RANKS = 2048  # of a job
MOST_ON_A_HOST = 1024
LONGEST_NAME = 255  # of UNISONO_HOST, too


class HostListError(Exception):
    """The list of hosts cannot be used, and why."""


@dataclass
class HostRanks:
    """A host, and its ranks."""

    name: str
    ranks: list[int] = field(default_factory=list)


def read_list(text: str) -> list[HostRanks]:
    """Of "a:4,b:4". A host that stands there twice has both blocks of ranks."""
    return _assigned([_entry(part.strip(), "--hosts") for part in text.split(",")], "--hosts")


def read_file(path: str) -> list[HostRanks]:
    """Of a file with "host:slots" or "host slots=4" in each line. # begins a comment."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is no text"
        raise HostListError(f"--hostfile: {path} cannot be read: {reason}") from failure
    entries = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if len(words) == 2 and words[1].startswith("slots="):
            words = [f"{words[0]}:{words[1].removeprefix('slots=')}"]
        if len(words) > 1:
            raise HostListError(
                f"--hostfile: line {number} of {path} is {line.strip()!r}; write host:slots or host slots=4"
            )
        entries += [_entry(word, f"--hostfile: line {number} of {path}") for word in words]
    if not entries:
        raise HostListError(f"--hostfile: {path} names no host")
    return _assigned(entries, "--hostfile")


def _entry(text: str, where: str) -> tuple[str, int]:
    """Name and number of ranks. [ ] stand around an IPv6 address."""
    if text.startswith("["):
        name, bracket, rest = text[1:].partition("]")
        colon, count = rest[:1], rest[1:]
        right = bool(bracket) and colon in ("", ":")
    else:
        name, colon, count = text.partition(":")
        right = ":" not in count
    # A name that begins with - would be an option of ssh.
    right = right and 0 < len(name) <= LONGEST_NAME and not name.startswith("-")
    if not right or not all("!" <= character <= "~" for character in name):
        raise HostListError(f"{where}: {text!r} names no host; write host:ranks, such as node1:4")
    if not colon:
        return name, 1
    if not (count.isascii() and count.isdigit() and len(count) < 10 and int(count) > 0):
        raise HostListError(f"{where}: {text!r} asks for {count!r} ranks; write a number above 0, such as {name}:4")
    return name, int(count)


def _assigned(entries: list[tuple[str, int]], where: str) -> list[HostRanks]:
    """Block by block, in the order of the list."""
    total = sum(count for _, count in entries)
    if total > MOST_RANKS:
        raise HostListError(f"{where}: {total} ranks were asked for; allowed are 1 to {MOST_RANKS}")
    hosts: dict[str, HostRanks] = {}
    next_rank = 0
    for name, count in entries:
        hosts.setdefault(name, HostRanks(name)).ranks.extend(range(next_rank, next_rank + count))
        next_rank += count
    for host in hosts.values():
        if len(host.ranks) > MOST_ON_A_HOST:
            raise HostListError(
                f"{where}: {len(host.ranks)} ranks on {host.name} were asked for; allowed are 1 to {MOST_ON_A_HOST}"
            )
    return list(hosts.values())
