"""Calls whose operands and results are stream ports, and kernels at the ports. Every rank has different data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import unisono
from hypothesis import given, settings
from hypothesis import strategies as st
from unisono import Communicator, DeadlineError, Stream, ThreadJob

ROOT = Path(__file__).resolve().parents[3]
P = 4
N = 1000


def run(function, size: int = P, **options):
    return ThreadJob(size, timeout=30, **options).run(function)


def mine(rank: int, n: int = N, dtype: str = "float32") -> np.ndarray:
    return (np.arange(n) % 97 * (rank + 1) + rank).astype(dtype)


def total(n: int = N, size: int = P) -> np.ndarray:
    return sum(mine(rank, n) for rank in range(size))  # type: ignore[return-value]


def streaming(comm: Communicator, kind: str) -> Communicator:
    return comm if kind == "lanes" else comm.dup(streams=True)


KINDS = ["lanes", "streams"]


@pytest.mark.parametrize("kind", KINDS)
def test_reduce_from_streams_into_a_buffer(kind: str) -> None:
    def member(world: Communicator) -> np.ndarray | None:
        comm = streaming(world, kind)
        request = comm.reduce_async(Stream(0, N, "float32"), np.empty(N, "f4") if comm.rank == 2 else None, root=2)
        comm.stream(0).write(mine(comm.rank))
        return request.wait()

    results = run(member)
    np.testing.assert_array_equal(results[2], total())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 50, 3000])
def test_streams_on_one_rank_only(kind: str, n: int) -> None:
    def member(world: Communicator) -> np.ndarray:
        comm = streaming(world, kind)
        if comm.rank != 1:
            return comm.allreduce(mine(comm.rank, n))
        request = comm.allreduce_async(Stream(3, n, "f4"), Stream(3, n, "f4"))
        comm.stream(3).write(mine(1, n))
        result = comm.stream(3).take(n, "f4")
        assert request.wait() is None
        return result

    for result in run(member):
        np.testing.assert_array_equal(result, total(n))


@pytest.mark.parametrize("kind", KINDS)
def test_longer_than_a_port_by_two_threads(kind: str) -> None:
    n = 100_000

    def member(world: Communicator) -> np.ndarray:
        comm = streaming(world, kind)
        port = comm.stream(0)
        request = comm.allreduce_async(Stream(0, n, "f4"), Stream(0, n, "f4"))
        giver = threading.Thread(target=port.write, args=(mine(comm.rank, n),))
        giver.start()
        result = port.take(n, "f4")
        giver.join()
        request.wait()
        return result

    for result in run(member, 2):
        np.testing.assert_array_equal(result, total(n, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_every_collective(kind: str) -> None:
    def member(world: Communicator) -> None:
        comm = streaming(world, kind)
        rank, size = comm.rank, comm.size
        given_, taken = comm.stream(1), comm.stream(2)

        def call(function, *rest, give=None, take=0, **options) -> np.ndarray:
            request = function(*rest, **options)
            if give is not None:
                given_.write(give)
            result = taken.take(take, "f4")
            request.wait()
            return result

        block = [mine(r, 30) for r in range(size)]
        every = np.concatenate(block)
        src = Stream(1, 30, "f4")
        wide = Stream(1, 30 * size, "f4")
        np.testing.assert_array_equal(
            call(comm.allgather_async, src, Stream(2), give=block[rank], take=30 * size), every
        )
        got = call(comm.gather_async, src, Stream(2), root=3, give=block[rank], take=30 * size * (rank == 3))
        if rank == 3:
            np.testing.assert_array_equal(got, every)
        got = call(
            comm.scatter_async, wide if rank == 1 else None, Stream(2, 30, "f4"), root=1,
            give=every if rank == 1 else None, take=30,
        )  # fmt: skip
        np.testing.assert_array_equal(got, block[rank])
        mixed = np.concatenate([mine(rank + 10 * r, 30) for r in range(size)])
        got = call(comm.alltoall_async, wide, Stream(2), give=mixed, take=30 * size)
        np.testing.assert_array_equal(got, np.concatenate([mine(r + 10 * rank, 30) for r in range(size)]))
        got = call(comm.reduce_scatter_async, wide, Stream(2, 30, "f4"), give=mixed, take=30)
        np.testing.assert_array_equal(got, sum(mine(r + 10 * rank, 30) for r in range(size)))
        got = call(comm.scan_async, src, Stream(2), give=block[rank], take=30)
        np.testing.assert_array_equal(got, sum(block[: rank + 1]))
        counts = [5, 0, 17, 2]
        got = call(
            comm.gatherv_async, Stream(1, counts[rank], "f4"), Stream(2), counts, root=0,
            give=mine(rank, counts[rank]), take=sum(counts) * (rank == 0),
        )  # fmt: skip
        if rank == 0:
            np.testing.assert_array_equal(got, np.concatenate([mine(r, counts[r]) for r in range(size)]))
        table = [[(i * 3 + j) % 4 for j in range(size)] for i in range(size)]
        sends = np.concatenate([mine(rank + 7 * j, table[rank][j]) for j in range(size)])
        receives = [table[j][rank] for j in range(size)]
        got = call(
            comm.alltoallv_async, Stream(1, dtype="f4"), Stream(2), table[rank], receives, give=sends,
            take=sum(receives),
        )  # fmt: skip
        np.testing.assert_array_equal(got, np.concatenate([mine(j + 7 * rank, receives[j]) for j in range(size)]))
        got = call(comm.bcast_async, Stream(1, 30, "f4") if rank == 2 else Stream(2, 30, "f4"), root=2,
                   give=block[2] if rank == 2 else None, take=0 if rank == 2 else 30)  # fmt: skip
        if rank != 2:
            np.testing.assert_array_equal(got, block[2])

    run(member)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_copies_and_windows(kind: str) -> None:
    def member(world: Communicator) -> None:
        comm = streaming(world, kind)
        rank, right, left = comm.rank, (comm.rank + 1) % P, (comm.rank - 1) % P
        one, two = comm.stream(1), comm.stream(2)
        sending = comm.send_async(Stream(1, N, "f4"), right, tag=4)
        one.write(mine(rank))
        np.testing.assert_array_equal(comm.recv(np.empty(N, "f4"), left, tag=4), mine(left))
        sending.wait()
        receiving = comm.recv_async(Stream(2, N, "f4"), left, tag=5)
        comm.send(mine(rank), right, tag=5)
        np.testing.assert_array_equal(two.take(N, "f4"), mine(left))
        receiving.wait()
        assert receiving.received == N
        copying = comm.copy_async(Stream(1, N, "f4"), Stream(2))
        one.write(mine(rank))
        np.testing.assert_array_equal(two.take(N, "f4"), mine(rank))
        copying.wait()
        window = np.zeros(N, "f4")
        comm.window(window)
        putting = comm.put_async(Stream(1, 10, "f4"), right, offset=40)
        one.write(mine(rank, 10))
        putting.wait()
        comm.barrier()
        np.testing.assert_array_equal(window[10:20], mine(left, 10))
        getting = comm.get_async(Stream(2, 10, "f4"), left, offset=40)
        np.testing.assert_array_equal(two.take(10, "f4"), mine((rank - 2) % P, 10))
        getting.wait()
        comm.barrier()
        comm.window(None)

    run(member)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_put_to_a_port_needs_no_receive(kind: str) -> None:
    def member(world: Communicator) -> None:
        comm = streaming(world, kind)
        right, left = (comm.rank + 1) % P, (comm.rank - 1) % P
        for n in (1, 100, 20_000):
            request = comm.stream_put_async(mine(comm.rank, n), right, 7)
            np.testing.assert_array_equal(comm.stream(7).take(n, "f4"), mine(left, n))
            request.wait()
        request = comm.stream_put_async(Stream(0, N, "f4"), right, 8)
        comm.stream(0).write(mine(comm.rank))
        np.testing.assert_array_equal(comm.stream(8).take(N, "f4"), mine(left))
        request.wait()

    run(member)


def test_elements_go_on_one_by_one() -> None:
    """A ring of kernels: each gives an element only when it has one of its neighbour. Only streams can do that."""

    def member(world: Communicator) -> list[float]:
        comm = world.dup(streams=True)
        right, left = (comm.rank + 1) % P, (comm.rank - 1) % P
        n = 40
        requests = [comm.send_async(Stream(0, n, "f8"), right), comm.recv_async(Stream(1, n, "f8"), left)]
        seen = []
        value = float(comm.rank)
        for _ in range(n):
            comm.stream(0).write([value])
            value = comm.stream(1).take(1)[0]
            seen.append(value)
        for request in requests:
            request.wait()
        return seen

    for rank, seen in enumerate(run(member)):
        assert seen == [float((rank - 1 - step) % P) for step in range(40)]


def test_automatic_choice_of_a_communicator_of_streams() -> None:
    def member(world: Communicator) -> list[str | None]:
        comm = world.dup(streams=True)
        names = []
        comm.bcast(np.zeros(N), root=0)
        names.append(comm.last_algorithm.name)
        comm.reduce(np.zeros(N), np.zeros(N) if comm.rank == 0 else None, root=0)
        names.append(comm.last_algorithm.name)
        return names

    assert run(member)[0] == ["chain", "chain"]


def explained(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unisono", "explain", *arguments, "--streams"], capture_output=True, text=True,
        timeout=60, env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "100"},
    )  # fmt: skip


def test_explain_says_what_is_copied() -> None:
    done = explained("allreduce", "--ranks", "4", "--bytes", "64K", "--format", "json")
    streams = json.loads(done.stdout)["streams"]
    assert streams["algorithm"] == "chain"
    assert streams["algorithms"]["chain"] == {"src": True, "dst": True}
    assert streams["algorithms"]["ring"] == {"src": False, "dst": False}
    lines = [line.rstrip() for line in explained("allreduce", "--ranks", "4", "--bytes", "64K").stdout.splitlines()]
    page = (ROOT / "docs" / "streams.md").read_text().splitlines()
    begin = page.index("on a communicator of streams  src                 dst")
    for line in page[begin : begin + 5]:
        assert line in lines
    refused = explained("gatherv")
    assert refused.returncode == 2
    assert "counts by rank" in refused.stderr


def test_wrong_use_is_refused_and_nothing_is_lost() -> None:
    def member(comm: Communicator) -> None:
        n = np.zeros(4, "f4")
        with pytest.raises(unisono.InvalidArgumentError, match="port 16"):
            comm.copy(Stream(16, 4, "f4"), n)
        with pytest.raises(unisono.InvalidArgumentError, match="allowed are 0 to 15"):
            comm.stream(16)
        with pytest.raises(unisono.InvalidArgumentError, match="port"):
            comm.stream_put(n, 0, 99)
        with pytest.raises(unisono.InvalidDatatypeError, match="no dtype is known"):
            comm.allreduce(Stream(0, 4), Stream(1, 4))
        with pytest.raises(unisono.InvalidCountError, match="no count is known"):
            comm.allreduce(Stream(0, dtype="f4"), Stream(1))
        with pytest.raises(unisono.InvalidCountError, match="4 and 5 elements"):
            comm.allreduce(n, Stream(0, 5))
        with pytest.raises(unisono.InvalidDatatypeError, match="must be equal"):
            comm.allreduce(n, Stream(0, dtype="f8"))
        with pytest.raises(unisono.UnsupportedError, match="wire_datatype"):
            comm.allreduce(n, Stream(0), wire_datatype="fp16")
        with pytest.raises(unisono.UnsupportedError, match="displaced to element 3"):
            comm.allgatherv(n[:1], Stream(0), counts=[1], displacements=[3])
        with pytest.raises(unisono.UnsupportedError, match="group"), comm.group():
            comm.copy_async(Stream(0, 4, "f4"), n)
        request = comm.copy_async(Stream(0, 4, "f4"), n)
        comm.stream(0).write(np.arange(4, dtype="f4"))
        request.wait()
        np.testing.assert_array_equal(n, np.arange(4))

    run(member, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_that_gives_too_little_is_named(kind: str) -> None:
    def member(world: Communicator) -> None:
        comm = streaming(world, kind)
        request = comm.send_async(Stream(2, 100, "f4"), 0, timeout=0.3)
        comm.stream(2).write(np.ones(40, "f4"))
        with pytest.raises(DeadlineError, match=r"send .*stream port 2: its kernel has given 40 of 100 elements"):
            request.wait()

    run(member, 1)


def test_a_kernel_that_nobody_serves_ends_by_its_deadline() -> None:
    def member(comm: Communicator) -> None:
        began = time.monotonic()
        with pytest.raises(DeadlineError, match="read from stream port 4"):
            comm.stream(4).take(3)
        with pytest.raises(DeadlineError, match="write to stream port 4"):
            comm.stream(4).write(np.zeros(10_000))
        assert time.monotonic() - began < 5
        assert comm.stream(5).write(np.zeros(10_000), timeout=0.1) == 16384
        assert comm.stream(6).read(np.zeros(10), timeout=0) == 0

    ThreadJob(1, timeout=0.3).run(member)


#: Bytes that a kernel gives or takes at once: parts of elements, and more than a port holds.
CUTS = st.lists(st.integers(1, 100) | st.integers(4000, 70000), min_size=1, max_size=8)


@settings(max_examples=15, deadline=None)
@given(
    pieces=CUTS,
    takes=CUTS,
    calls=st.lists(st.integers(0, 700) | st.integers(2000, 12000), min_size=1, max_size=6),
    streams=st.booleans(),
)
def test_bytes_go_through_in_order_however_they_are_cut(
    pieces: list[int], takes: list[int], calls: list[int], streams: bool
) -> None:
    """Whatever a kernel gives and takes at once, and however long the calls are: what comes out is what went in."""

    def member(world: Communicator) -> None:
        comm = world.dup(streams=True) if streams else world
        peer = 1 - comm.rank
        n = sum(calls)
        own, other = mine(comm.rank, n, "i8"), mine(peer, n, "i8")
        requests = []
        for count in calls:
            requests.append(comm.send_async(Stream(0, count, "i8"), peer))
            requests.append(comm.recv_async(Stream(1, count, "i8"), peer))
        result = np.empty(n, "i8")

        def cut(all_bytes: np.ndarray, lengths: list[int], move: Callable[[np.ndarray], object]) -> None:
            at = step = 0
            while at < all_bytes.size:
                piece = lengths[step % len(lengths)]
                move(all_bytes[at : at + piece])
                at, step = at + piece, step + 1

        giver = threading.Thread(target=cut, args=(own.view("u1"), pieces, comm.stream(0).write))
        giver.start()
        cut(result.view("u1"), takes, comm.stream(1).read)
        giver.join()
        for request in requests:
            request.wait()
        np.testing.assert_array_equal(result, other)

    run(member, 2)
