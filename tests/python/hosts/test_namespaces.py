"""Jobs of two hosts that see each other through a network only: namespaces with a cable between them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .support import ENVIRONMENT, EXCHANGE, RUN, SECONDS, run

LINK = "veth0"
BLOCKS = 4 * 200_000 * 8  # bytes that the ranks of a host send to those of the other in the largest all-to-all


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=SECONDS)


@dataclass
class Pair:
    """Two namespaces."""

    names: tuple[str, str]

    @property
    def hosts(self) -> list[str]:
        return ["--hosts", ",".join(f"{name}:2" for name in self.names)]

    def counter(self, host: int, name: str, link: str = LINK) -> int:
        done = ip("netns", "exec", self.names[host], "cat", f"/sys/class/net/{link}/statistics/{name}")
        return int(done.stdout)


@pytest.fixture(params=["IPv4", "IPv6", "link-local"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair((f"uno{os.getpid()}a", f"uno{os.getpid()}b"))
    try:
        steps = [["netns", "add", name] for name in made.names]
        cable = ["type", "veth", "peer", "name", LINK, "netns", made.names[1]]
        steps.append(["link", "add", LINK, "netns", made.names[0], *cable])
        for number, name in enumerate(made.names, 1):
            address = {
                "IPv4": [f"10.77.0.{number}/24"],
                "IPv6": [f"fd77::{number}/64", "nodad"],
                "link-local": [f"fe80::77:{number}/64", "nodad"],
            }[request.param]
            steps += [
                ["-n", name, "link", "set", LINK, "addrgenmode", "none"],
                ["-n", name, "link", "set", "lo", "up"],
                ["-n", name, "link", "set", LINK, "up"],
                ["-n", name, "addr", "add", *address, "dev", LINK],
            ]
        try:
            for step in steps:
                done = ip(*step)
                if done.returncode != 0:
                    pytest.skip(f"network namespaces cannot be made here: ip {' '.join(step)}: {done.stderr.strip()}")
        except FileNotFoundError:
            pytest.skip("network namespaces cannot be made here: there is no program ip (iproute2)")
        yield made
    finally:
        for name in made.names:
            if Path("/run/netns", name).exists():
                ip("netns", "del", name)


@pytest.fixture
def exchange(tmp_path: Path) -> Path:
    path = tmp_path / "exchange.py"
    path.write_text(EXCHANGE)
    return path


networks = pytest.mark.parametrize("network", ["tcp", "udp", "ofi"])


# Libfabric looks up no scopes of links.
@pytest.mark.parametrize(
    ("pair", "network"),
    [(kind, network) for kind in ("IPv4", "IPv6", "link-local") for network in ("tcp", "udp", "ofi")][:-1],
    indirect=["pair"],
)
def test_data_goes_over_the_cable(pair: Pair, exchange: Path, network: str) -> None:
    before = [pair.counter(host, "tx_bytes") for host in range(2)]
    done = run(*pair.hosts, "--agent", "ip netns exec {host}", "--transport", network, exchange)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"right {rank} 4 -" for rank in range(4)]
    for host in range(2):
        sent = pair.counter(host, "tx_bytes") - before[host]
        assert BLOCKS < sent < 10 * BLOCKS
        # Ranks of one host share memory.
        assert pair.counter(host, "tx_bytes", "lo") < BLOCKS / 10


@pytest.mark.parametrize("pair", ["IPv4"], indirect=True)
def test_this_machine_and_another(pair: Pair, exchange: Path, tmp_path: Path) -> None:
    """`localhost` needs no ssh; what stands for ssh hands a line to a shell, as ssh does."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    python = folder / "python's"
    python.symlink_to(sys.executable)
    script = folder / "ssh"
    script.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift 2; done\n'
        'host=$1; shift; cd /; exec ip netns exec "$host" env -i SSH_CONNECTION="x 1 10.77.0.2 22" sh -c "$*"\n'
    )
    script.chmod(0o755)
    paths = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], *(path for path in sys.path if path.endswith("-packages"))])
    for hosts in (f"localhost:2,{pair.names[1]}:2", f"{pair.names[1]}:2,localhost:2"):
        done = subprocess.run(
            ["ip", "netns", "exec", pair.names[0], *RUN, "--hosts", hosts, "--python", str(python), str(exchange)],
            capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path,
            env=ENVIRONMENT | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": paths, "UNISONO_LOG": "debug"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("right") == 4
        listening = "10.77.0.1" if hosts.startswith("localhost") else "10.77.0.2"
        assert f"the ranks meet at tcp://{listening}:" in done.stderr
    assert pair.counter(0, "tx_bytes") > BLOCKS


@networks
@pytest.mark.parametrize("pair", ["IPv4"], indirect=True)
def test_a_cable_that_is_cut(pair: Pair, tmp_path: Path, network: str) -> None:
    """Ranks name those that they cannot reach any more."""
    script = tmp_path / "cut.py"
    script.write_text(
        "import numpy as np, subprocess, unisono\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    world.alltoall(np.zeros(4))\n"
        f"    if world.rank == 0: subprocess.run(['ip', 'link', 'set', '{LINK}', 'down'], check=True)\n"
        "    world.alltoall(np.zeros(400_000), timeout=40)\n"
    )
    done = run(*pair.hosts, "--agent", "ip netns exec {host}", "--timeout", 60, "--transport", network, script)
    assert done.returncode == 1, done.stderr
    # The rank that finds it out says so, or another one, that hears of it and ends first, repeats its words.
    # What finds it out is the connection, or the silence of the other host, whichever is first.
    found = re.search(r"rank \d, endpoint \d .* (is out of reach|has died) \((on|has not answered)", done.stderr)
    assert found, done.stderr


@networks
@pytest.mark.parametrize("pair", ["IPv4"], indirect=True)
def test_a_short_cut_before_the_first_message_between_two_ranks(pair: Pair, tmp_path: Path, network: str) -> None:
    """A way that is missing when a connection is begun may come back, as that of a connection that there is."""
    script = tmp_path / "short.py"
    script.write_text(
        "import numpy as np, subprocess, sys, time, unisono\n"
        "link = lambda to: subprocess.run(['ip', 'link', 'set', sys.argv[1], to], check=True)\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    if world.rank == 0:\n"
        "        link('down')\n"
        "        request = world.send_async(np.arange(5.0), 2)\n"
        "        begin = time.monotonic()\n"
        "        while time.monotonic() < begin + 1: request.test()\n"
        "        link('up')\n"
        "        request.wait()\n"
        "    elif world.rank == 2:\n"
        "        assert np.array_equal(world.recv(np.empty(5), 0), np.arange(5.0))\n"
        "    world.barrier()\n"
        "    print('right')\n"
    )
    done = run(*pair.hosts, "--agent", "ip netns exec {host}", "--timeout", 60, "--transport", network, script, LINK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("right") == 4


@networks
@pytest.mark.parametrize("pair", ["IPv4"], indirect=True)
def test_how_long_a_host_may_be_silent_can_be_said(pair: Pair, tmp_path: Path, network: str) -> None:
    """A cut that is mended before that is no death; one that lasts is."""
    script = tmp_path / "silence.py"
    script.write_text(
        "import numpy as np, subprocess, sys, time, unisono\n"
        "link = lambda to: subprocess.run(['ip', 'link', 'set', sys.argv[1], to], check=True)\n"
        "with unisono.init() as context:\n"
        "    world = context.world\n"
        "    world.barrier()\n"
        "    if world.rank == 0:\n"
        "        link('down')\n"
        "        time.sleep(6)\n"
        "        link('up')\n"
        "    total = world.allreduce(np.arange(100_000) * (world.rank + 1), timeout=40)\n"
        "    assert np.array_equal(total, np.arange(100_000) * 10)\n"
        "    print('right')\n"
    )
    options = ("--agent", "ip netns exec {host}", "--timeout", 60, "--transport", network)
    arguments = (*pair.hosts, *options, script, LINK)
    patient = run(*arguments, UNISONO_HOST_TIMEOUT_S="30")
    assert patient.returncode == 0, patient.stderr
    assert patient.stdout.count("right") == 4
    hasty = run(*arguments, UNISONO_HOST_TIMEOUT_S="1.5")
    assert hasty.returncode == 1
    # Of a host to which there was no connection yet, that it cannot be reached.
    found = re.search("has not answered for 1500 ms|is out of reach .*Network is unreachable", hasty.stderr)
    assert found, hasty.stderr
