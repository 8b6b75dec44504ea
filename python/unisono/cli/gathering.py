"""How the hosts of a job come together: no rank starts before all agents have looked at what they are to start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from .addresses import join_value
from .hosts import Host
from .way import HostError

ANSWER = 60.0  # seconds within which all agents answer


class StoppedEarlyError(Exception):
    """A signal or the deadline came before the ranks had started."""


class Gathering:
    """The way from hosts to ranks that run."""

    def __init__(self, hosts: Sequence[Host], turn: Callable[[float], None], is_stopped: Callable[[], bool]) -> None:
        """`turn` lets the hosts hear, until a point in time at most; `is_stopped` says whether to give up."""
        self._hosts = hosts
        self._turn = turn
        self._is_stopped = is_stopped

    def make_ready(self) -> str | None:
        """Agents have answered, and can start their ranks. Where these meet, if they are on several hosts.

        Raises `HostError`, `StoppedEarlyError`.
        """
        self._await(lambda host: host.ready)
        if len(self._hosts) == 1:
            return None
        first = next(host for host in self._hosts if 0 in host.numbers)
        # Hosts that are only names are all here, where every firewall lets the loopback pass.
        return join_value(["127.0.0.1"] if first.is_name else first.addresses, first.port)

    def start(self, join: str | None) -> None:
        """All ranks run, or have run. Raises `HostError`, `StoppedEarlyError`."""
        for host in self._hosts:
            host.begin(join)
        self._await(lambda host: host.started)

    def _await(self, has_come: Callable[[Host], bool]) -> None:
        until = time.monotonic() + ANSWER
        while True:
            for host in self._hosts:
                host.greet()
            fault = next((host.fault for host in self._hosts if host.fault is not None), None)
            if fault is not None:
                raise fault
            missing = [host.name for host in self._hosts if not has_come(host)]
            if not missing:
                return
            if self._is_stopped():
                raise StoppedEarlyError
            if time.monotonic() >= until:
                names = f"host{'s' * (len(missing) > 1)} {', '.join(missing)}"
                raise HostError(f"{names}: no agent has answered within {ANSWER:g} s")
            self._turn(until)
