"""What is wrong in sources of kernels, by line: before they are compiled for anything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .hardware import refused
from .interface import Channel, Finding
from .parsing import Source
from .walk import Thread, Walked, walk


def check(sources: Sequence[Source]) -> list[Finding]:
    """Everything that is found in the sources of one program, by file and line."""
    walked = [walk(source) for source in sources]
    found = [finding for each in walked for finding in each.findings + _ports(each)]
    found += _across(walked)
    for source, each in zip(sources, walked, strict=True):
        bodies = list(each.kernels)
        if source.dialect or not any(thread.host for thread in each.threads):
            # Nothing in it is the host's.
            bodies += list(source.functions())
        found += refused(bodies)
    order = {source.path: at for at, source in enumerate(sources)}
    unique = dict.fromkeys(found)
    return sorted(unique, key=lambda finding: (order.get(finding.place.file, -1), finding.place))


def _ports(walked: Walked) -> list[Finding]:
    found = []
    for channel in walked.channels:
        if channel.port is None:
            text = f" `{channel.port_text}`" if channel.port_text else ""
            sentence = (
                f"the port{text} of this {channel.kind} channel is known only when the program runs; hardware is "
            )
            found.append(Finding(channel.place, sentence + "built for ports that are constants"))
        elif not 0 <= channel.port <= 65535:
            found.append(Finding(channel.place, f"{channel.port} is no port: there are 0 to 65535"))
        elif channel.again:
            sentence = f"port {channel.port} is used twice: this {channel.kind} channel is opened again while the one "
            found.append(Finding(channel.place, sentence + "before is open"))
    for at, second in enumerate(walked.channels):
        for first in walked.channels[:at]:
            if _share(first, second) and _at_once(walked.threads, first, second):
                found.append(_twice(walked.threads[first.thread].name, first, second))
                break
    return found


def _across(walked: Sequence[Walked]) -> list[Finding]:
    """Between the sources of one program, all whose kernels run at once."""
    found = []
    for one, other in itertools.combinations(walked, 2):
        for second in other.channels:
            for first in one.channels:
                if _share(first, second):
                    found.append(_twice(one.threads[first.thread].name, first, second))
                    break
    return found


def _share(first: Channel, second: Channel) -> bool:
    return first.port is not None and first.port == second.port and bool(first.directions & second.directions)


def _twice(kernel: str, first: Channel, second: Channel) -> Finding:
    sentence = (
        f"port {second.port} is used twice: this {second.kind} channel and the {first.kind} channel of {first.place}"
    )
    return Finding(second.place, f"{sentence} (kernel {kernel}) may be open at once")


def _at_once(threads: Sequence[Thread], first: Channel, second: Channel) -> bool:
    """Whether two channels may be open at the same time."""
    if _exclusive(first.branches, second.branches):
        return False
    if first.thread == second.thread:
        return _overlap((first.opened, first.used), (second.opened, second.used))
    left, right = _ancestors(threads, first), _ancestors(threads, second)
    common = next((thread for thread in left if thread in right), None)
    if common is None:
        return True
    return _overlap(left[common], right[common])


def _ancestors(threads: Sequence[Thread], channel: Channel) -> dict[int, tuple[int, int]]:
    """For the kernel that opens a channel, and those that launched it, from when to when it may be open there."""
    found = {channel.thread: (channel.opened, channel.used)}
    thread = threads[channel.thread]
    while thread.parent >= 0:
        found[thread.parent] = (thread.start, thread.end)
        thread = threads[thread.parent]
    return found


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _exclusive(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    ways = dict(one)
    return any(ways.get(choice, way) != way for choice, way in other)


def as_line(finding: Finding) -> str:
    """A finding as compilers print it."""
    return f"{finding.place}: {finding.sentence}"
