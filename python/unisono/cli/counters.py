"""What engines have counted: the table, and how the launcher gets at the counters of a job that has ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
from collections.abc import Mapping, Sequence

from ..errors import UnisonoError
from ..machine.jobs import counters, numbers_of_ranks

WIDTH = 80

Counted = dict[int, dict[str, int | None]]  #: by rank and name


def counter_table(ranks: Sequence[Mapping[str, int | None]], *, zeros: bool = False) -> str:
    """A column for each rank, as many beside one another as fit into 80 characters.

    Counters that are 0 everywhere are left out unless `zeros`. A rank without any stands on the native engine beside
    hardware ones, which counts nothing of what these do. None: out of sight.
    """
    known = next(filter(None, ranks), {})
    names = [name for name in known if zeros or any(rank.get(name) for rank in ranks)]
    left = max(map(len, names), default=0)
    columns = [
        [f"rank {number}", *(_text(rank[name]) if rank else "native" for name in names)]
        for number, rank in enumerate(ranks)
    ]
    tables: list[str] = []
    while columns:
        widths: list[int] = []
        for column in columns:
            widths.append(max(map(len, column)))
            if len(widths) > 1 and left + sum(widths) + 2 * len(widths) > WIDTH:
                widths.pop()
                break
        shown, columns = columns[: len(widths)], columns[len(widths) :]
        lines = [
            "  ".join(
                [name.ljust(left), *(column[row].rjust(width) for column, width in zip(shown, widths, strict=True))]
            )
            for row, name in enumerate(["", *names])
        ]
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)


def _text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


class JobMemory:
    """The memory of the jobs that the ranks form. Rank 0 hands it over when a job begins, so that what has been
    counted can be read when all ranks have ended, in whatever way.
    """

    def __init__(self) -> None:
        self._name = f"unisono-counters-{os.getpid()}-{secrets.token_hex(8)}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.bind(b"\0" + self._name.encode())
        self._listener.listen()
        self._descriptors: list[int] = []

    @property
    def environment(self) -> dict[str, str]:
        """What the ranks must know."""
        return {"UNISONO_OBSERVER": self._name}

    def fileno(self) -> int:
        """Readable when there is something to take."""
        return self._listener.fileno()

    def take(self) -> None:
        """Takes what has been handed over."""
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    (_, uid, _) = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                    connection.settimeout(1.0)
                    _, descriptors, _, _ = socket.recv_fds(connection, 4096, 1)
                    for descriptor in descriptors:
                        if uid == os.geteuid():
                            self._descriptors.append(descriptor)
                        else:
                            os.close(descriptor)

    def by_rank(self) -> Counted:
        """What the ranks have counted, in all their jobs, by their numbers in these. Closes everything.

        Raises `UnisonoError`.
        """
        self.take()
        self._listener.close()
        try:
            return _sums(counters(os.getpid()), numbers_of_ranks(os.getpid())) if self._descriptors else {}
        finally:
            while self._descriptors:
                os.close(self._descriptors.pop())

    def table(self) -> str:
        """The same as a table, or why there is none."""
        try:
            return table_of(self.by_rank())
        except UnisonoError as failure:
            return f"no counters: {failure}\n"


def table_of(counted: Counted, size: int = 0) -> str:
    """Of ranks 0 to `size`-1, or of those that there are. Those of which nothing was told have "-"."""
    if not counted:
        return "no counters: the ranks have formed no job (they count from unisono.init() on)\n"
    names = list(next(iter(counted.values())))
    return counter_table([counted.get(rank) or dict.fromkeys(names) for rank in range(max(size, max(counted) + 1))])


def add(counted: Counted, rank: int, values: Mapping[str, int | None]) -> None:
    """Adds what a rank has counted in one job."""
    sums = counted.setdefault(rank, {})
    for name, value in values.items():
        before = sums.get(name)
        sums[name] = before if value is None else (before or 0) + value


def _sums(jobs: list[dict[str, list[int | None]]], numbers: list[list[int]]) -> Counted:
    """By rank, over all jobs."""
    result: Counted = {}
    for job, ranks in zip(jobs, numbers, strict=True):
        for place, rank in enumerate(ranks):
            add(result, rank, {name: values[place] for name, values in job.items()})
    return result
