"""Switches of this machine, for measuring calls that they carry."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..errors import InvalidArgumentError
from .network import CARRIED, Network

SECONDS = 20.0
UP_TO = "64M"  #: what is measured is carried, whatever is advised


@contextlib.contextmanager
def carried(network: Network, folder: Path) -> Iterator[dict[str, Network]]:
    """The same hosts with their calls carried: a switch for each of `CARRIED`, which are ended with the context."""
    secret = folder / "switches.secret"
    secret.write_text(secrets.token_hex(32) + "\n")
    secret.chmod(0o600)
    with contextlib.ExitStack() as stack:
        networks = {}
        for name, impairment in CARRIED.items():
            address = stack.enter_context(_switch(secret, impairment))
            networks[name] = replace(network, impairment=impairment, switch=address, secret=str(secret))
        yield networks


@contextlib.contextmanager
def _switch(secret: Path, impairment: str) -> Iterator[str]:
    """A process that aggregates; its address."""
    words = [sys.executable, "-m", "unisono", "switch", "start", "--listen", "127.0.0.1:0", "--up-to", UP_TO]
    environment = os.environ | {"UNISONO_UDP_IMPAIR": impairment}
    with subprocess.Popen(
        [*words, "--secret-file", str(secret)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], SECONDS)
            line = process.stdout.readline() if ready else ""
            if not line:
                process.kill()
                raise InvalidArgumentError(f"--switch: no switch could be started: {process.stderr.read().strip()}")
            yield line.split()[1]
        finally:
            process.kill()
