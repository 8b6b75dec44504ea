"""Programs whose moves take from stream ports, keep in them, and send to those of peers. Every rank has other data."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from unisono import Communicator, DeadlineError, MalformedProgramError, Program, ThreadJob
from unisono.program import Builder

N = 5000  # floats: more than a port holds


def mine(rank: int, n: int = N) -> np.ndarray:
    return (np.arange(n) % 89 * (rank + 1) + rank).astype("f4")


def to_the_next(p: Builder) -> None:
    """Each rank adds what its kernel gives at port 2 to src, and sends the sum to port 5 of the next rank."""
    p.move(p.stream(2, N), p.src(0, N), func="sum", send=p.stream(5, N).at((p.rank + 1) % p.size))


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("streams", [False, True])
def test_a_move_sends_to_a_port_of_a_peer(size: int, streams: bool) -> None:
    program = Program.build(size, to_the_next)
    assert program.check()

    def member(world: Communicator) -> np.ndarray:
        comm = world.dup(streams=True) if streams else world
        for _ in range(3):
            request = comm.run_program_async(program, mine(comm.rank), None)
            comm.stream(2).write(mine(comm.rank) * 3)
            taken = comm.stream(5).take(N, "f4")
            request.wait()
        return taken

    for rank, taken in enumerate(ThreadJob(size, timeout=30).run(member)):
        np.testing.assert_array_equal(taken, mine((rank - 1) % size) * 4)


def test_what_arrives_goes_on_to_a_port() -> None:
    """Rank 0 sends to rank 1, which keeps what it adds, and hands it on to port 0 of rank 2."""

    def write(p: Builder) -> None:
        if p.rank == 0:
            p.move(p.stream(1, N), send=p.message(1))
        elif p.rank == 1:
            p.move(p.arrival(0), p.src(0, N), keep=p.dst(0, N), send=p.stream(0, N).at(2))

    program = Program.build(3, write)
    assert program.check()

    def member(comm: Communicator) -> np.ndarray | None:
        src, dst = mine(comm.rank) if comm.rank == 1 else None, np.zeros(N, "f4") if comm.rank == 1 else None
        request = comm.run_program_async(program, src, dst)
        if comm.rank == 0:
            comm.stream(1).write(mine(0))
        if comm.rank == 2:
            request.wait()
            return comm.stream(0).take(N, "f4")
        request.wait()
        return dst

    results = ThreadJob(3, timeout=30).run(member)
    np.testing.assert_array_equal(results[1], mine(0) + mine(1))
    np.testing.assert_array_equal(results[2], mine(0) + mine(1))


def test_a_port_of_its_own_rank() -> None:
    """Moves keep in ports, and take from them; each count is more than the port holds."""

    def write(p: Builder) -> None:
        p.move(p.stream(3, N), p.src(0, N), func="max", keep=p.stream(4, N))

    program = Program.build(2, write)
    assert program.check()

    def member(comm: Communicator) -> np.ndarray:
        request = comm.run_program_async(program, mine(comm.rank), None)
        given, taken = mine(comm.rank)[::-1].copy(), np.empty(N, "f4")
        for at in range(0, N, 1000):
            comm.stream(3).write(given[at : at + 1000])
            comm.stream(4).read(taken[at : at + 1000])
        request.wait()
        return taken

    for rank, taken in enumerate(ThreadJob(2, timeout=30).run(member)):
        np.testing.assert_array_equal(taken, np.maximum(mine(rank), mine(rank)[::-1]))


def test_a_port_that_nobody_reads() -> None:
    """The sender's call ends at its deadline, and says at which port of whom it stood."""
    n = 4_000_000  # more than goes on without a receiver

    def write(p: Builder) -> None:
        if p.rank == 0:
            p.move(p.src(0, n), send=p.stream(7, n).at(1))

    program = Program.build(2, write)
    ended = threading.Event()

    def member(comm: Communicator) -> str:
        if comm.rank == 1:
            comm.run_program(program, None, None)
            assert ended.wait(20)
            return ""
        with pytest.raises(DeadlineError) as failure:
            comm.run_program(program, mine(0, n), None, timeout=0.5)
        ended.set()
        return str(failure.value)

    said = ThreadJob(2, timeout=30).run(member)[0]
    assert "port 7" in said, said
    assert "rank 1" in said, said


def test_two_ranks_at_one_port_are_a_race() -> None:
    def write(p: Builder) -> None:
        if p.rank != 0:
            p.move(p.src(0, 10), send=p.stream(0, 10).at(0))

    report = Program.build(3, write).check()
    assert (report.ok, report.kind) == (False, "race")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda p: p.move(p.stream(16, 1), keep=p.dst(0, 1)), "stream\\(16, 1\\) was given; ports are 0 to 15"),
        (lambda p: p.move(p.src(0, 1), p.stream(0, 1), keep=p.dst(0, 1)), "combine is Port"),
        (lambda p: p.move(p.src(0, 1), send=p.stream(0, 1)), "send is Port"),
        (lambda p: p.move(p.src(0, 2), send=p.stream(0, 1).at(1)), "count 2, 1 in one move"),
    ],
)
def test_what_has_no_meaning(write, said: str) -> None:
    with pytest.raises(MalformedProgramError, match=said):
        Program.build(2, write)
