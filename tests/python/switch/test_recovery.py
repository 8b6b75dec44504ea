"""Communicators that are made after something went wrong: switches carry them like any other."""

from __future__ import annotations

import socket
from pathlib import Path

from .support import local, make_secret, run, switch

SHRUNK = """
import json, os, signal, sys
import numpy as np
import unisono
from unisono import _core

def results(number):
    secret = _core.switch_secret(sys.argv[2])
    pools = json.loads(_core.switch_ask(sys.argv[1], secret, "show", str(number).encode(), 5))["pools"]
    return sum(pool["counters"]["results"] for pool in pools)

def check(comm):
    assert comm.state.carrier.startswith("the switch "), comm.state.carrier
    # Every rank is known by the number that it had at first.
    first = [r for r in range(4) if r not in gone]
    before = results(comm.state.number) if comm.rank == 0 else 0
    comm.barrier()
    for k in range(5):
        got = comm.allreduce(np.arange(300) * (mine + 1) + k)
        assert np.array_equal(got, np.arange(300) * sum(r + 1 for r in first) + k * len(first)), k
    comm.barrier()
    assert comm.rank != 0 or results(comm.state.number) >= before + 6
    comm.barrier()

gone = []
with unisono.init(timeout=20) as context:
    comm = context.world
    mine = comm.rank
    check(comm)
    for dead in (0, 2):  # the first rank, which had asked the switch, and another one
        if mine == dead:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                comm.barrier()
        except (unisono.PeerDeadError, unisono.RevokedError):
            comm.revoke("a rank has died")
        smaller = comm.shrink()
        gone.append(dead)
        comm = smaller
        check(comm)
    part = comm.dup()
    check(part)
    print("right", comm.size)
"""

RESET = """
import numpy as np
import unisono
with unisono.init(timeout=20) as context:
    first = context.world.allreduce(np.array([context.world.rank]))[0]
    context.reset()
    world = context.world
    assert world.state.carrier.startswith("the switch "), world.state.carrier
    assert world.allreduce(np.array([world.rank]))[0] == first == 3
    print("right")
"""

HASTY = """
import numpy as np
import unisono
with unisono.init(timeout=1) as context:
    world = context.world
    part = world.dup()
    assert part.state.carrier == ""
    assert part.allreduce(np.array([world.rank]))[0] == 3
    print("right")
"""


def test_communicators_of_those_that_are_left_are_carried(tmp_path: Path) -> None:
    program = tmp_path / "shrunk.py"
    program.write_text(SHRUNK)
    with switch(make_secret(tmp_path)) as one:
        done = run(
            *local(4), "--keep-going", "--timeout", 60, "--aggregate", one.address,
            "--aggregate-secret-file", one.secret, program, one.address, one.secret,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "right 2\n" * 2), done.stderr


def test_a_context_that_is_reset_is_carried(tmp_path: Path) -> None:
    program = tmp_path / "reset.py"
    program.write_text(RESET)
    with switch(make_secret(tmp_path)) as one:
        options = [*local(3), "--timeout", 60, "--aggregate", one.address, "--aggregate-secret-file", one.secret]
        done = run(*options, program)
        assert (done.returncode, done.stdout) == (0, "right\n" * 3), done.stderr


def test_a_switch_that_does_not_answer_takes_longer_than_calls_may(tmp_path: Path) -> None:
    """Nobody but the first rank waits for it, and the others' deadlines are no reason to fail."""
    program = tmp_path / "hasty.py"
    program.write_text(HASTY)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        where = f"127.0.0.1:{deaf.getsockname()[1]}"
        options = [*local(3), "--timeout", 80, "--aggregate", where, "--aggregate-secret-file", make_secret(tmp_path)]
        done = run(*options, program)
        assert (done.returncode, done.stdout) == (0, "right\n" * 3), done.stderr
        assert f"is not carried by switches: the switch at {where}" in done.stderr
