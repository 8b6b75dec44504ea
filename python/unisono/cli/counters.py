"""What engines have counted: the table, and how the launcher gets at the counters of a job that has ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
from collections.abc import Mapping, Sequence

from ..errors import UnisonoError
from ..machine.jobs import counters

WIDTH = 80


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

    def table(self) -> str:
        """What the ranks have counted, in all their jobs. Closes everything."""
        self.take()
        self._listener.close()
        try:
            if not self._descriptors:
                return "no counters: the ranks have formed no job (they count from unisono.init() on)\n"
            return counter_table(_sums(counters(os.getpid())))
        except UnisonoError as failure:
            return f"no counters: {failure}\n"
        finally:
            while self._descriptors:
                os.close(self._descriptors.pop())


def _sums(jobs: list[dict[str, list[int | None]]]) -> list[dict[str, int | None]]:
    """By rank, over all jobs."""
    ranks = max(len(next(iter(job.values()), [])) for job in jobs)
    result: list[dict[str, int | None]] = [{} for _ in range(ranks)]
    for job in jobs:
        for name, values in job.items():
            for rank, value in enumerate(values):
                before = result[rank].get(name)
                result[rank][name] = before if value is None else (before or 0) + value
    return result
