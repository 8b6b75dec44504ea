"""Jobs whose calls go on until a test lets them end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hosts.support import SECONDS, start

from .programs import STREAM
from .support import Switch

#: How long ranks wait for a switch of which they hear nothing, in tests that wait for it.
HASTY = {"UNISONO_AGGREGATE_TIMEOUT_S": "1"}
ENOUGH = 100_000


class Stream:
    """A job that makes calls all the time."""

    def __init__(self, process: subprocess.Popen[str], stop: Path, size: int) -> None:
        self.process = process
        self.stop = stop
        self._size = size
        assert process.stdout is not None
        for _ in range(size):
            line = process.stdout.readline()
            if line != "begun\n":
                process.kill()
                raise AssertionError(line + "".join(process.communicate(timeout=SECONDS)))

    def end(self) -> tuple[list[dict[str, Any]], str]:
        """Lets it end. What the ranks say, by rank, and standard error; all have ended right."""
        self.stop.touch()
        output, errors = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, errors
        said = sorted(map(json.loads, output.splitlines()), key=lambda one: one["rank"])
        assert [one["rank"] for one in said] == list(range(self._size)), errors
        assert len({one["calls"] for one in said}) == 1
        return said, errors


@contextmanager
def stream(
    folder: Path,
    size: int,
    switches: list[Switch],
    *words: object,
    pause: float = 0.0,
    name: str = "stream",
    **more: str,
) -> Iterator[Stream]:
    """A job on hosts, with the options `words`."""
    program, stop = folder / f"{name}.py", folder / f"{name}.stop"
    program.write_text(STREAM)
    named = ",".join(one.address for one in switches)
    process = start(
        *words, "--timeout", SECONDS - 10, "--aggregate", named, "--aggregate-secret-file", switches[0].secret,
        program, stop, ENOUGH, pause, **more,
    )  # fmt: skip
    try:
        yield Stream(process, stop, size)
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def frames(one: Switch) -> int:
    """Datagrams of members that a switch has taken."""
    return int(one.ask("status")["counters"]["frames_in"])
