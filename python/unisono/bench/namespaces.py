"""Hosts of one machine that share nothing but its cores: namespaces of network and names, with cables between them."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from ..errors import InvalidArgumentError
from .launch import programs
from .network import CABLES, LONG_CABLE, Network, divide, prefix_of_names

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
def hosts(
    transport: str, ranks: int, number: int, folder: Path, round_trip_ms: float | None = None
) -> Iterator[Network]:
    """Makes hosts, and removes them. Two have a cable between them, more of them a switch.

    The cable of two may be long: `round_trip_ms` until something that was sent has been answered.
    """
    layout = divide(ranks, number, prefix_of_names())
    names = [name for name, _ in layout]
    switch = [f"{prefix_of_names()}s"] if number > 2 else []
    made: list[str] = []
    remote = folder / "start"
    remote.write_text(REMOTE)
    remote.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, made)
        for name in [*names, *switch]:
            _ip("netns", "add", name)
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        if round_trip_ms is None:
            for words in _cables(names, switch):
                _ip(*words)
        else:
            stack.enter_context(_long_cable(names, round_trip_ms))
        for words in _addresses(names):
            _ip(*words)
        done = subprocess.run([str(remote), names[0], "true"], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise NamespacesError(f"a program cannot be started in a namespace: {done.stderr.strip()}")
        link = CABLES if round_trip_ms is None else LONG_CABLE
        yield Network(transport, layout, link, round_trip_ms or 0.0, remote=str(remote))


def _remove(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(NamespacesError):
            _ip("netns", "del", name)


@contextlib.contextmanager
def chosen(
    transport: str, ranks: int, number: int | None, folder: Path, console: Console, round_trip_ms: float | None = None
) -> Iterator[Network]:
    """Hosts as they were asked for: with a number of them namespaces, or names where these are not allowed.

    A long cable cannot be had without namespaces: then InvalidArgumentError.
    """
    layout = divide(ranks, number)
    if number is None:
        yield Network(transport, layout)
        return
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(hosts(transport, ranks, number, folder, round_trip_ms))
        except NamespacesError as failure:
            if round_trip_ms is not None:
                raise InvalidArgumentError(f"--round-trip needs network namespaces: {failure}") from None
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


def _addresses(names: list[str]) -> Iterator[list[str]]:
    for number, name in enumerate(names, 1):
        yield ["-n", name, "addr", "add", f"10.79.0.{number}/24", "dev", LINK]
        yield ["-n", name, "link", "set", LINK, "up"]


@contextlib.contextmanager
def _long_cable(names: list[str], round_trip_ms: float) -> Iterator[None]:
    """Lays it: devices of which a process carries every packet to the other one."""
    one_way = str(round(round_trip_ms * 500))
    command = [str(programs() / "bench_cable"), LINK, *names, one_way]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as cable:
        assert cable.stdin is not None
        assert cable.stdout is not None
        assert cable.stderr is not None
        try:
            select.select([cable.stdout], [], [], SECONDS)
            os.set_blocking(cable.stdout.fileno(), False)
            if (cable.stdout.read() or b"").strip() != b"ready":
                cable.kill()  # or its words might never end
                raise NamespacesError(f"there can be no long cable: {cable.stderr.read().decode().strip()}")
            yield
        finally:
            cable.kill()


def _ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=SECONDS, env=os.environ)
    except FileNotFoundError:
        raise NamespacesError("there is no program ip (iproute2)") from None
    except subprocess.TimeoutExpired as failure:
        raise NamespacesError(f"{failure.cmd} does not come to an end") from failure
    if done.returncode != 0:
        raise NamespacesError(f"ip {' '.join(words)}: {done.stderr.strip() or 'it failed'}")
