"""The ranks of a job, wherever they run, as the launcher sees them."""

from __future__ import annotations

import contextlib
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

GRACE = 5.0  # seconds between SIGTERM and SIGKILL


@dataclass
class Rank:
    """One rank."""

    number: int
    stdout: IO[bytes]
    stderr: IO[bytes]
    pid: int = 0  #: on its host
    host: str = ""  #: empty: this machine
    ended: bool = False
    status: int = 0  #: exit status, or minus the number of the signal
    lost: bool = False  #: it went with its host's agent

    def how(self) -> str:
        """How it ended."""
        if self.lost:
            return f"was lost with host {self.host}"
        if self.status >= 0:
            return f"exited with status {self.status}"
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"was ended by signal {-self.status}"


OnEnd = Callable[[Rank], None]
OnReport = Callable[[str, str], None]  #: host, text


class Site(ABC):
    """Ranks that one process has started: this one, or the agent of a host."""

    def __init__(self) -> None:
        self.ranks: list[Rank] = []

    @abstractmethod
    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process groups of all ranks that have not ended."""

    @abstractmethod
    def ask_report(self) -> None:
        """Has the site tell, through its `OnReport`, what its ranks are doing."""

    @abstractmethod
    def settled(self) -> bool:
        """Whether all that the ranks have written is on this machine. Asked when they have ended."""

    @abstractmethod
    def reap(self) -> None:
        """Takes note of ranks that have ended, after SIGCHLD."""

    @abstractmethod
    def sweep(self) -> None:
        """Ends whatever is left."""
