"""A send and a receive at once. Every rank has different data."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob

P = 3
SIZES = [0, 1, 7, 200, 5000, 300_000]  # in lines of lanes, in messages, with announcement


def run(function, size: int = P, **settings):
    return ThreadJob(size, timeout=30, **settings).run(function)


def mine(rank: int, n: int) -> np.ndarray:
    return np.arange(n) * 10.0 + rank


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_around_a_circle(n: int, lanes: bool) -> None:
    def member(comm: Communicator) -> np.ndarray:
        return comm.sendrecv(mine(comm.rank, n), (comm.rank + 1) % P, source=(comm.rank - 1) % P, tag=3)

    for rank, received in enumerate(run(member, lanes=lanes)):
        np.testing.assert_array_equal(received, mine((rank - 1) % P, n))


@pytest.mark.parametrize("n", SIZES)
def test_two_exchange(n: int) -> None:
    def member(comm: Communicator) -> np.ndarray:
        for _ in range(5):
            received = comm.sendrecv(mine(comm.rank, n), 1 - comm.rank)
        return received

    for rank, received in enumerate(run(member, 2)):
        np.testing.assert_array_equal(received, mine(1 - rank, n))


def test_with_oneself() -> None:
    def member(comm: Communicator) -> np.ndarray:
        return comm.sendrecv(mine(comm.rank, 50_000), comm.rank)

    for rank, received in enumerate(run(member)):
        np.testing.assert_array_equal(received, mine(rank, 50_000))


def test_other_peers_tags_and_lengths() -> None:
    def member(comm: Communicator) -> np.ndarray:
        left, right = (comm.rank - 1) % P, (comm.rank + 1) % P
        dst = np.zeros(8)
        received = comm.sendrecv(mine(comm.rank, 6), right, dst, left, 10 + comm.rank, 10 + left, count=comm.rank + 1)
        assert np.shares_memory(received, dst)
        return received

    for rank, received in enumerate(run(member)):
        left = (rank - 1) % P
        np.testing.assert_array_equal(received, mine(left, left + 1))


def test_it_meets_plain_sends_and_receives() -> None:
    def member(comm: Communicator) -> np.ndarray | None:
        if comm.rank == 0:
            return comm.sendrecv(mine(0, 4), 1, source=2)
        if comm.rank == 1:
            return comm.recv(np.zeros(4), 0)
        comm.send(mine(2, 4), 0)
        return None

    results = run(member)
    np.testing.assert_array_equal(results[0], mine(2, 4))
    np.testing.assert_array_equal(results[1], mine(0, 4))


def test_compressed_and_after_other_calls() -> None:
    def member(comm: Communicator) -> np.ndarray:
        src = np.zeros(4, np.float32)
        first = comm.allreduce_async(np.full(4, comm.rank + 1, np.float32), src)
        return comm.sendrecv(src, 1 - comm.rank, wait_for=[first], wire_datatype="bf16")

    for received in run(member, 2):
        np.testing.assert_array_equal(received, np.full(4, 3, np.float32))


def test_a_message_that_is_too_long() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            with pytest.raises(unisono.TruncatedError, match="72"):
                comm.sendrecv(mine(0, 3), 1, np.zeros(3))
        else:
            # What comes is as long as it may be; that its own is too long, its sender may be told or not.
            with contextlib.suppress(unisono.TruncatedError):
                np.testing.assert_array_equal(comm.sendrecv(mine(1, 9), 0, np.zeros(9)), mine(0, 3))

    run(member, 2)


def test_a_deadline_says_who_is_missing() -> None:
    passed = threading.Event()

    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            with pytest.raises(unisono.DeadlineError, match=r"recv .*peer 1"):
                comm.sendrecv(mine(0, 3), 1, timeout=0.3)
            passed.set()
        passed.wait(20)

    run(member, 2)


def test_a_signal_ends_it(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import numpy as np, os, unisono\n"
        "with unisono.init() as context:\n"
        "    try:\n"
        "        print('ready', flush=True)\n"
        "        context.world.sendrecv(np.arange(3.0), 0, recv_tag=1)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(30) == 0
