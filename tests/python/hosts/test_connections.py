"""Several connections of TCP for a pair of ranks: what a job's calls give with them, and who says how many."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unisono import _core

from .support import run

#: Data differ by rank and place, and lengths lie around those of segments, of a message that asks for connections, and
#: of what is held for a message that is not awaited yet.
PROGRAM = """
import json, os, sys
import numpy as np
import unisono

own = json.loads(sys.argv[1])
if own:
    os.environ["UNISONO_TCP_CONNECTIONS"] = str(own[int(os.environ["UNISONO_RANK"]) % len(own)])


def data(rank, number, length):
    return ((np.arange(length) * 7 + (np.arange(length) >> 8) + rank * 131 + number * 17) % 251).astype(np.uint8)


def sockets():
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        except OSError:
            pass
    return count


with unisono.init() as context:
    world = context.world
    rank, size = world.rank, world.size
    world.barrier()
    before = sockets()
    segment = 32 << 10
    lengths = [0, 1, 4095, 64, segment - 1, segment, segment + 1, 8 * segment - 1, 8 * segment, 8 * segment + 1,
               9 * segment + 77, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2_500_001]
    for number, length in enumerate(lengths):
        right, left = (rank + 1) % size, (rank - 1) % size
        got = np.zeros(length, np.uint8)
        # Short messages go between long ones, and come in their turn.
        pending = [world.send_async(data(rank, number, length), right), world.send_async(data(rank, number, 5), right)]
        world.recv(got, left)
        short = np.zeros(5, np.uint8)
        world.recv(short, left)
        for request in pending:
            request.wait()
        assert np.array_equal(got, data(left, number, length)), ("ring", length)
        assert np.array_equal(short, data(left, number, 5)), ("short", length)
        # Some are awaited only once they are on their way.
        if rank % 2 == 0:
            world.send(data(rank, number, length), size - 1 - rank)
            world.recv(got, size - 1 - rank)
        else:
            world.recv(got, size - 1 - rank)
            world.send(data(rank, number, length), size - 1 - rank)
        assert np.array_equal(got, data(size - 1 - rank, number, length)), ("pair", length)
        count = max(1, length // 8)
        mine = data(rank, number, count).astype(np.int64)
        assert np.array_equal(world.allreduce(mine), sum(data(r, number, count).astype(np.int64) for r in range(size)))
        length = min(length, 300_001)
        blocks = np.concatenate([data(rank * size + to, number, length) for to in range(size)])
        taken = np.empty_like(blocks)
        world.alltoall(blocks, taken)
        assert np.array_equal(taken, np.concatenate([data(r * size + rank, number, length) for r in range(size)]))
    world.barrier()
    print(json.dumps([rank, sockets() - before]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def ran(program: Path, hosts: str, *options: str, own: tuple[int, ...] = (), **more: str) -> list[int]:
    """By rank, how many more sockets it had after long messages."""
    done = run("--hosts", hosts, "--agent", "local", *options, program, json.dumps(own), **more)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = sorted(json.loads(line) for line in done.stdout.splitlines())
    return [count for _, count in told]


@pytest.mark.parametrize("options", [[], ["--tls"]], ids=["plain", "encrypted"])
def test_all_calls_with_four(program: Path, options: list[str]) -> None:
    assert ran(program, "a,b", *options, UNISONO_TCP_CONNECTIONS="4") == [3, 3]


def test_two_ranks_on_each_host(program: Path) -> None:
    grown = ran(program, "a:2,b:2", UNISONO_TCP_CONNECTIONS="3")
    assert all(count >= 2 * 2 for count in grown), grown  # two further ones to each rank of the other host


def test_ranks_that_would_have_different_numbers(program: Path) -> None:
    assert ran(program, "a,b", own=(4, 2)) == [1, 1]
    assert ran(program, "a,b", own=(1, 8)) == [0, 0]


def test_the_lifeline_of_another_network_stays_alone(program: Path) -> None:
    assert ran(program, "a,b", "--transport", "udp,tcp", UNISONO_TCP_CONNECTIONS="4") == [0, 0]


def test_the_file_says_how_many_and_the_variable_before_it(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    network = {"latency": 1e4, "message": 1e3, "byte": 0.1, "near_latency": 300.0, "near_message": 300.0}
    text = json.dumps({"unisono_tuning": 1, "machine": _core.tuning_in_force()["machine"], "rules": []})
    path.write_text(_core.tune_network(text, "tcp", **network, connections=3, register_from=None, most_ranks=4))
    assert json.loads(path.read_text())["network"]["connections"] == 3
    assert ran(program, "a,b", UNISONO_TUNING=str(path)) == [2, 2]
    assert ran(program, "a,b", UNISONO_TUNING=str(path), UNISONO_TCP_CONNECTIONS="1") == [0, 0]
    assert ran(program, "a,b", UNISONO_TUNING="off") == [0, 0]


def test_a_number_that_is_none(program: Path) -> None:
    refused = run("--hosts", "a,b", "--agent", "local", program, "[]", UNISONO_TCP_CONNECTIONS="many")
    assert refused.returncode != 0
    assert (
        'environment variable UNISONO_TCP_CONNECTIONS is "many", but should be how many connections of TCP two ranks '
        "of different hosts may have for long messages, 1 to 16" in refused.stderr
    )
