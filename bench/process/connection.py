"""The connection to the command, as in bench/connection.c: one line comes, one line is answered."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
from dataclasses import dataclass
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ends this process when the one that started it ends, even when that is killed."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def pin(cores: str, rank: int) -> None:
    """Rank i runs on the i-th core of the list; "-" means wherever there is room."""
    if cores != "-":
        os.sched_setaffinity(0, {int(cores.split(",")[rank])})


@dataclass
class Block:
    """One command to measure."""

    op: str
    dtype: str
    count: int
    buffers: str
    changing: bool
    algorithm: str | None
    warmup: int
    calls: int
    batch: int
    seed: int


class Connection:
    """To the command's socket."""

    def __init__(self, options: argparse.Namespace, rank: int, size: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(options.socket)
        self._lines = self._socket.makefile("r")
        self.reply(f"hello {options.system} {rank} {size} {os.getpid()}")

    def next_block(self) -> Block | None:
        """The next block; None at the end. Ends the process if there is nobody any more."""
        line = self._lines.readline()
        if not line:
            os._exit(1)
        if line.strip() == "end":
            return None
        word, op, dtype, count, buffers, counts, algorithm, *numbers = line.split()
        if word != "block" or len(numbers) != 4:
            self.fail(f"this command is not understood: {line}")
        warmup, calls, batch, seed = map(int, numbers)
        named = None if algorithm == "-" else algorithm
        return Block(op, dtype, int(count), buffers, counts == "changing", named, warmup, calls, batch, seed)

    def reply(self, text: str) -> None:
        """Sends a line."""
        self._socket.sendall((" ".join(text.split("\n")) + "\n").encode())

    def fail(self, text: str) -> NoReturn:
        """Says what went wrong and ends the process."""
        self.reply(f"failed {text}")
        os._exit(1)
