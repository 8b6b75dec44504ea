"""Two racks of four hosts, in network namespaces: a bridge for each rack and one for what is above, and a router."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hosts.support import SECONDS

from .support import Switch, switch

LINK = "veth0"
RACKS, EACH = 2, 4
PORT = 7000
WRONG = "02:00:00:00:00:99"  # no card has this address: frames to it are lost


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=SECONDS)


@dataclass
class Racks:
    """Where everything is. Hosts count through: the first rack has 0 to 3."""

    names: list[str]
    places: dict[str, str]  #: addresses by name
    leaves: list[Switch] = field(default_factory=list)
    top: Switch | None = None

    @property
    def options(self) -> list[str]:
        """Of `unisono run`, with a rank on each host."""
        return ["--hosts", ",".join(self.names), "--agent", "ip netns exec {host}"]

    def at(self, one: Switch) -> str:
        """The namespace of a switch."""
        return next(name for name, place in self.places.items() if place == one.address.rpartition(":")[0])

    @contextmanager
    def losing(self, sender: str, receiver: str) -> Iterator[None]:
        """Meanwhile what one sends to the other, in the same rack, is lost."""
        neighbour = [self.places[receiver], "dev", LINK]
        done = ip("-n", sender, "neigh", "replace", *neighbour, "lladdr", WRONG, "nud", "permanent")
        assert done.returncode == 0, done.stderr
        try:
            yield
        finally:
            ip("-n", sender, "neigh", "del", *neighbour)


def prefix() -> str:
    return f"uns{os.getpid()}"


def _steps(name: str) -> Iterator[list[str]]:
    """The commands that make all of it. Of the names of namespaces, the last is the router's."""
    router = f"{name}r"
    yield ["netns", "add", router]
    yield ["netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1"]
    port = 0
    for net in range(RACKS + 1):
        bridge = f"bridge{net}"
        yield ["-n", router, "link", "add", bridge, "type", "bridge"]
        yield ["-n", router, "link", "set", bridge, "up"]
        yield ["-n", router, "addr", "add", f"10.8{net}.0.254/24", "dev", bridge]
        for place, member in enumerate(members(name, net), 1):
            yield ["netns", "add", member]
            end = ["type", "veth", "peer", "name", f"port{port}", "netns", router]
            yield ["link", "add", LINK, "netns", member, *end]
            yield ["-n", router, "link", "set", f"port{port}", "master", bridge]
            yield ["-n", router, "link", "set", f"port{port}", "up"]
            yield ["-n", member, "link", "set", "lo", "up"]
            yield ["-n", member, "addr", "add", f"10.8{net}.0.{place}/24", "dev", LINK]
            yield ["-n", member, "link", "set", LINK, "up"]
            yield ["-n", member, "route", "add", "default", "via", f"10.8{net}.0.254"]
            port += 1


def members(name: str, net: int) -> list[str]:
    """The namespaces of a network: its switch, and the hosts of a rack."""
    return [f"{name}s{net}", *(f"{name}h{net}{host}" for host in range(EACH if net < RACKS else 0))]


@contextmanager
def networks() -> Iterator[Racks]:
    """Skips where namespaces cannot be made."""
    name = prefix()
    everyone = [member for net in range(RACKS + 1) for member in members(name, net)]
    try:
        for step in _steps(name):
            try:
                done = ip(*step)
            except FileNotFoundError:
                pytest.skip("network namespaces cannot be made here: there is no program ip (iproute2)")
            if done.returncode != 0:
                pytest.skip(f"network namespaces cannot be made here: ip {' '.join(step)}: {done.stderr.strip()}")
        places = {
            member: f"10.8{net}.0.{place}"
            for net in range(RACKS + 1)
            for place, member in enumerate(members(name, net), 1)
        }
        yield Racks([member for net in range(RACKS) for member in members(name, net)[1:]], places)
    finally:
        for namespace in (*everyone, f"{name}r"):
            if Path("/run/netns", namespace).exists():
                ip("netns", "del", namespace)


@contextmanager
def switches(racks: Racks, secret: Path) -> Iterator[Racks]:
    """A switch in each rack, and one above them."""
    name = prefix()

    def one(net: int, *words: str) -> Switch:
        place = f"{racks.places[f'{name}s{net}']}:{PORT}"
        before = ["ip", "netns", "exec", f"{name}s{net}"]
        return stack.enter_context(switch(secret, *words, listen=place, before=before))

    with ExitStack() as stack:
        racks.top = one(RACKS, "--name", "top")
        racks.leaves = [one(net, "--name", f"rack{net}", "--uplink", racks.top.address) for net in range(RACKS)]
        yield racks
