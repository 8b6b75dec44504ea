"""How the agents of `unisono run --hosts` are started, and what they are to run."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from dataclasses import dataclass

from .command import Command
from .hostlist import HostRanks

SSH = "ssh -o BatchMode=yes -o ServerAliveInterval=10 {host}"
LOCAL = "local"  #: the agents are children of this process, on this machine


class HostError(Exception):
    """A host cannot take part, and why."""

    def __init__(self, what: str, status: int = 2) -> None:
        super().__init__(what)
        self.status = status


@dataclass(frozen=True)
class Way:
    """How agents are started."""

    template: str | None = None  #: of a command, in which {host} stands for the host; None: ssh
    python: str = sys.executable  #: there

    def command(self, host: str, module: str = "unisono.cli.agent") -> list[str]:
        """The command that starts the agent of a host, or another module there. Raises `HostError`."""
        agent = [self.python, "-m", module]
        if self.names_hosts() or (self.template is None and host in ("localhost", socket.gethostname())):
            return agent
        paths = os.environ.get("PYTHONPATH")
        if paths:
            absolute = os.pathsep.join(map(os.path.abspath, paths.split(os.pathsep)))
            agent = ["env", f"PYTHONPATH={absolute}", *agent]
        try:
            words = shlex.split(SSH if self.template is None else self.template)
        except ValueError as failure:
            raise HostError(f"--agent: {self.template!r} is no command: {failure}") from failure
        if not words:
            raise HostError("--agent: no command was given")
        # ssh hands a line to a shell there.
        remote_shell = os.path.basename(words[0]) == "ssh"
        if not any("{host}" in word for word in words):
            words.append("{host}")
        words = [word.replace("{host}", host) for word in words]
        if any("{command}" in word for word in words):
            return [word.replace("{command}", shlex.join(agent)) for word in words]
        return words + ([shlex.join(agent)] if remote_shell else agent)

    def names_hosts(self) -> bool:
        """Whether the hosts are only names, and all on this machine."""
        return self.template == LOCAL


@dataclass(frozen=True)
class Plan:
    """A job on several hosts."""

    hosts: list[HostRanks]
    way: Way
    command: Command
    folder: str  #: where the ranks run, on all hosts
    counters: bool = False  #: whether the agents tell at the end what the ranks have counted

    @property
    def size(self) -> int:
        """Number of ranks."""
        return sum(len(host.ranks) for host in self.hosts)
