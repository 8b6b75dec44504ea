"""Strangers at the ports of a job's ranks: refused, counted where people look, and told of once a second."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .support import ENVIRONMENT, SECONDS, start

# All ranks add up, again and again, until the file is there; then they say what they have counted.
WORKING = """
import json, os, pathlib, re, sys
import numpy as np
import unisono

stop = pathlib.Path(sys.argv[1])

def ports(table, state):
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            inodes.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            pass
    found = []
    for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == state and f"socket:[{words[9]}]" in inodes:
            found.append(int(words[1].rpartition(":")[2], 16))
    return found

with unisono.init(timeout=60) as context:
    world = context.world
    rank, size = world.rank, world.size
    world.barrier()
    meeting = [int(port) for port in re.findall(r":(\\d+)(?:,|$)", os.environ["UNISONO_JOIN"])]
    where = {
        "tcp": [port for port in ports("tcp", "0A") + ports("tcp6", "0A") if port not in meeting],
        "udp": ports("udp", "07") + ports("udp6", "07"),
    }
    print(json.dumps(where | {"rank": rank}), flush=True)
    sums, over = 0, 0
    while not over:
        total = world.allreduce(np.arange(1000) * (rank + 1) + sums)
        assert np.array_equal(total, np.arange(1000) * size * (size + 1) // 2 + size * sums)
        sums += 1
        over = world.allreduce(np.array([int(stop.exists())])).item()
    print(json.dumps({"rank": rank, "refused": world.counters()["strangers_refused"], "sums": sums}), flush=True)
"""
ENOUGH = 400


def counted(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", *map(str, words), "--deadline", "60"],
        capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def annoy(tcp: list[int], udp: list[int]) -> None:
    """Garbage, once to each of these ports and more."""
    for port in tcp:
        with socket.socket() as stranger:
            stranger.settimeout(30)
            stranger.connect(("127.0.0.1", port))
            stranger.sendall(b"x" * 200)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for number in range(50):
            for port in udp:
                stranger.sendto(bytes([number % 7]) * (1 + 13 * number), ("127.0.0.1", port))


@pytest.mark.parametrize("network", ["tcp", "udp"])
def test_strangers_are_counted_and_a_flood_is_told_of_once_a_second(tmp_path: Path, network: str) -> None:
    script = tmp_path / "working.py"
    script.write_text(WORKING)
    stop = tmp_path / "stop"
    job = start("--hosts", "a,b", "--agent", "local", "--counters", "--transport", network, script, stop)
    assert job.stdout is not None
    try:
        where = {one["rank"]: one for one in (json.loads(job.stdout.readline()) for _ in range(2))}
        assert all(one["tcp"] for one in where.values()), where
        assert all(bool(one["udp"]) == (network == "udp") for one in where.values()), where
        begin = end = time.monotonic()
        refused = [0, 0]
        while min(refused) < ENOUGH and end < begin + 60:
            for one in where.values():
                for _ in range(200):
                    annoy(one["tcp"], one["udp"])
            (values,) = json.loads(counted("counters", job.pid, "--json"))
            assert refused <= values["strangers_refused"], "a counter only rises"
            refused = values["strangers_refused"]
            end = time.monotonic()
        assert min(refused) >= ENOUGH, refused
        dump = counted("dump", job.pid)
        for rank in range(2):
            (line,) = [line for line in dump.splitlines() if line.startswith(f"rank {rank} has refused ")]
            assert line.endswith(" connections or datagrams that did not prove to be of the job")
            assert int(line.split()[4]) >= refused[rank]
        stop.touch()
        output, errors = job.communicate(timeout=SECONDS)
    finally:
        job.kill()
        job.communicate()
    assert job.returncode == 0, errors
    said = {one["rank"]: one for one in map(json.loads, output.splitlines())}
    assert said[0]["sums"] == said[1]["sums"] > 0
    at_the_end = next(line.split()[1:] for line in errors.splitlines() if line.startswith("strangers_refused "))
    assert [int(number.replace(",", "")) for number in at_the_end] >= refused
    most = int(time.monotonic() - begin) + 1
    for rank in range(2):
        assert said[rank]["refused"] >= refused[rank]
        kinds = {"a connection"} | ({"a datagram"} if network == "udp" else set())
        for kind in kinds:
            told = [line for line in errors.splitlines() if f"endpoint {rank} has refused {kind} from" in line]
            assert 1 <= len(told) <= most < ENOUGH, (kind, len(told), most)
            assert all("keep them away, for instance by a firewall" in line for line in told)
