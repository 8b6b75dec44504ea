"""Ranks of a host that has no port left: they say so, and take nobody for dead. Hosts are network namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import run
from .test_namespaces import Pair, pair  # noqa: F401  (a fixture)

WORDS = "no port of this host is free: widen net.ipv4.ip_local_port_range"
# The range is one of its network namespace. Ports that somebody has bound are given to nobody else.
FILL = """
import pathlib, socket

def fill(kinds):
    first, last = 40000, 40003
    pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{first} {last}")
    held = []
    for kind in kinds:
        for port in range(first, last + 1):
            held.append(socket.socket(socket.AF_INET6, kind))
            held[-1].bind(("::", port))
    return held
"""
# Rank 1, of host b, is the first to need a connection; rank 0 asks for none before it has seen the error.
CONNECT = (
    FILL
    + """
import sys, time
import numpy as np
import unisono

seen = pathlib.Path(sys.argv[1])
kinds = [getattr(socket, name) for name in sys.argv[2].split(",")]
with unisono.init(timeout=60) as context:
    world = context.world
    if world.rank == 1:
        held = fill(kinds)
        try:
            # Too long to be sent without an answer; and for longer than a host may be silent.
            world.send(np.arange(100_000.0), 0, timeout=5)
        except unisono.DeadlineError as error:
            print("told:", error, flush=True)
        assert world.failed == [], "nobody is dead"
        for each in held:
            each.close()
        seen.touch()
    else:
        until = time.monotonic() + 60
        while not seen.exists() and time.monotonic() < until:
            time.sleep(0.01)
    context.reset()
    total = context.world.allreduce(np.arange(100_000) * (world.rank + 1))
    assert np.array_equal(total, np.arange(100_000) * 3)
    print("right", flush=True)
"""
)


@pytest.fixture
def hosts(pair: Pair) -> list[str]:  # noqa: F811
    """Options for a rank on each."""
    return ["--hosts", ",".join(pair.names), "--agent", "ip netns exec {host}"]


only_four = pytest.mark.parametrize("pair", ["IPv4"], indirect=True)


@only_four
@pytest.mark.parametrize("network", ["tcp", "udp", "ofi"])
@pytest.mark.parametrize("kinds", ["SOCK_STREAM", "SOCK_STREAM,SOCK_DGRAM"])
def test_a_rank_that_cannot_connect_for_want_of_ports(
    hosts: list[str], tmp_path: Path, network: str, kinds: str
) -> None:
    script = tmp_path / "connect.py"
    script.write_text(CONNECT)
    done = run(*hosts, "--timeout", 80, "--transport", network, script, tmp_path / "seen", kinds)
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("told:")]
    assert WORDS in told
    assert "rank 0" in told
    assert "died" not in told
    assert done.stdout.count("right") == 2


@only_four
@pytest.mark.parametrize("network", ["tcp", "udp"])
def test_a_rank_that_cannot_even_listen(hosts: list[str], tmp_path: Path, network: str) -> None:
    """Its ports are gone before it joins; that of rank 0 is held by the launcher. It gives up before the others do, so
    that its reason is the one that the job ends with."""
    script = tmp_path / "join.py"
    script.write_text(
        FILL + "import os, unisono\n"
        "if os.environ['UNISONO_RANK'] == '1': held = fill([socket.SOCK_STREAM, socket.SOCK_DGRAM])\n"
        "with unisono.init() as context: context.world.barrier()\n"
    )
    done = run(*hosts, "--timeout", 60, "--transport", network, script, UNISONO_JOIN_TIMEOUT_S="12")
    assert done.returncode == 1, done.stderr
    assert WORDS in done.stderr
