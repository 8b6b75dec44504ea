"""Hosts of one machine that share nothing but its cores: namespaces of network and names, with cables between them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from .network import CABLES, Network, divide, prefix_of_names

LINK = "veth0"
SECONDS = 20.0
#: What stands for ssh: `start HOST COMMAND...` runs a shell's line on a host, which has a name of its own.
REMOTE = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$*"
"""


class NamespacesError(Exception):
    """There can be no hosts here, and why."""


@contextlib.contextmanager
def hosts(transport: str, ranks: int, number: int, folder: Path) -> Iterator[Network]:
    """Makes hosts, and removes them. Two have a cable between them, more of them a switch."""
    layout = divide(ranks, number, prefix_of_names())
    names = [name for name, _ in layout]
    switch = [f"{prefix_of_names()}s"] if number > 2 else []
    made: list[str] = []
    remote = folder / "start"
    remote.write_text(REMOTE)
    remote.chmod(0o755)
    try:
        for name in [*names, *switch]:
            _ip("netns", "add", name)
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        for words in _cables(names, switch):
            _ip(*words)
        done = subprocess.run([str(remote), names[0], "true"], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise NamespacesError(f"a program cannot be started in a namespace: {done.stderr.strip()}")
        yield Network(transport, layout, CABLES, remote=str(remote))
    except subprocess.TimeoutExpired as failure:
        raise NamespacesError(f"{failure.cmd} does not come to an end") from failure
    finally:
        for name in made:
            with contextlib.suppress(NamespacesError, subprocess.TimeoutExpired):
                _ip("netns", "del", name)


@contextlib.contextmanager
def chosen(transport: str, ranks: int, number: int | None, folder: Path, console: Console) -> Iterator[Network]:
    """Hosts as they were asked for: with a number of them namespaces, or names where these are not allowed."""
    layout = divide(ranks, number)
    if number is None:
        yield Network(transport, layout)
        return
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(hosts(transport, ranks, number, folder))
        except NamespacesError as failure:
            console.print(f"There can be no network namespaces here ({failure}): hosts are only names.", markup=False)
            network = Network(transport, layout)
        yield network


def _cables(names: list[str], switch: list[str]) -> Iterator[list[str]]:
    if switch:
        yield ["-n", switch[0], "link", "add", "switch", "type", "bridge"]
        yield ["-n", switch[0], "link", "set", "switch", "up"]
        for number, name in enumerate(names):
            port = f"port{number}"
            yield ["link", "add", LINK, "netns", name, "type", "veth", "peer", "name", port, "netns", switch[0]]
            yield ["-n", switch[0], "link", "set", port, "master", "switch"]
            yield ["-n", switch[0], "link", "set", port, "up"]
    else:
        yield ["link", "add", LINK, "netns", names[0], "type", "veth", "peer", "name", LINK, "netns", names[1]]
    for number, name in enumerate(names, 1):
        yield ["-n", name, "addr", "add", f"10.79.0.{number}/24", "dev", LINK]
        yield ["-n", name, "link", "set", LINK, "up"]


def _ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=SECONDS, env=os.environ)
    except FileNotFoundError:
        raise NamespacesError("there is no program ip (iproute2)") from None
    if done.returncode != 0:
        raise NamespacesError(f"ip {' '.join(words)}: {done.stderr.strip() or 'it failed'}")
