"""Receives of any source and with any tag, probes, and what is known of a message."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import unisono
from unisono import (
    ANY_SOURCE,
    ANY_TAG,
    Communicator,
    DeadlineError,
    InvalidArgumentError,
    InvalidRootError,
    PeerDeadError,
    Status,
    ThreadJob,
)

P = 4


def run(function, size: int = P, **settings):
    return ThreadJob(size, timeout=30, **settings).run(function)


def mine(rank: int, n: int) -> np.ndarray:
    return np.arange(n) * 10.0 + rank


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("n", [0, 5, 700, 40_000])
def test_a_receive_of_anybody_says_what_came(n: int, lanes: bool) -> None:
    def member(comm: Communicator) -> list[tuple[int, int]]:
        if comm.rank != 0:
            comm.send(mine(comm.rank, n + comm.rank), 0, tag=20 + comm.rank)
            return []
        came = []
        for i in range(P - 1):
            status = Status()
            room = np.zeros(n + P)
            if i == 0:
                got = comm.recv(room, source=ANY_SOURCE, tag=ANY_TAG, status=status)
            elif i == 1:
                got = comm.recv(room, ANY_SOURCE, ANY_TAG, status=status, timeout=20)
            else:
                request = comm.recv_async(room, source=ANY_SOURCE, tag=ANY_TAG)
                request.wait()
                status = request.status
                assert (request.source, request.tag, request.received) == (status.source, status.tag, status.count)
                got = room[: request.received]
            assert status.count == n + status.source == got.size
            assert status.nbytes == 8 * status.count
            assert status.datatype == unisono.Datatype.FP64
            assert status.dtype == np.float64
            np.testing.assert_array_equal(got, mine(status.source, got.size))
            came.append((status.source, status.tag))
        return came

    assert sorted(run(member, lanes=lanes)[0]) == [(1, 21), (2, 22), (3, 23)]


def test_without_a_status_too() -> None:
    def member(comm: Communicator) -> float:
        if comm.rank != 0:
            comm.send(np.full(3, comm.rank), 0, tag=comm.rank)
            return 0
        return float(sum(comm.recv(np.zeros(5, int), ANY_SOURCE, ANY_TAG).sum() for _ in range(P - 1)))

    assert run(member)[0] == 3 * (1 + 2 + 3)


def test_at_once_with_a_send() -> None:
    def member(comm: Communicator) -> np.ndarray:
        return comm.sendrecv(mine(comm.rank, 500), (comm.rank + 1) % P, source=ANY_SOURCE, recv_tag=ANY_TAG)

    for rank, received in enumerate(run(member)):
        np.testing.assert_array_equal(received, mine((rank - 1) % P, 500))


@pytest.mark.parametrize("lanes", [True, False])
def test_a_probe_tells_how_much_room_a_message_needs(lanes: bool) -> None:
    def member(comm: Communicator) -> None:
        if comm.rank != 0:
            comm.send(np.arange(comm.rank * 111, dtype=np.float32), 0, tag=comm.rank)
            comm.barrier()
            return
        assert comm.iprobe(tag=99) is None
        for _ in range(P - 1):
            found = comm.probe()
            assert comm.iprobe(found.source, found.tag).count == found.count == 111 * found.source
            got = comm.recv(np.empty(found.count, found.dtype), found.source, found.tag)
            np.testing.assert_array_equal(got, np.arange(found.count))
        assert comm.iprobe() is None
        comm.barrier()

    run(member, lanes=lanes)


@pytest.mark.parametrize("lanes", [True, False])
def test_a_probe_that_times_out_leaves_the_communicator_as_it_was(lanes: bool) -> None:
    def member(comm: Communicator) -> np.ndarray:
        if comm.rank == 0:
            with pytest.raises(DeadlineError, match=r"probe .*any source, tag 3\): timed out after 50 ms"):
                comm.probe(tag=3, timeout=0.05)
        return comm.allreduce(np.ones(2))

    for total in run(member, lanes=lanes):
        np.testing.assert_array_equal(total, [P, P])


def test_a_deadline_says_what_waited_instead() -> None:
    def member(comm: Communicator) -> str:
        if comm.rank == 1:
            comm.send(np.ones(1), 0, tag=7)
        comm.barrier()
        if comm.rank != 0:
            time.sleep(1)  # who has left would be the reason
            return ""
        with pytest.raises(DeadlineError) as failed:
            comm.recv(np.zeros(1), source=ANY_SOURCE, tag=8, timeout=0.1)
        return str(failed.value)

    text = run(member, 2)[0]
    assert "any source, tag 8" in text
    assert "waits for a message (tag 8) from any source" in text
    assert "Messages that no receive has asked for: tag 7 of rank 1" in text


def test_objects_come_from_anybody() -> None:
    def member(comm: Communicator) -> list[object]:
        if comm.rank != 0:
            comm.send_object({"rank": comm.rank, "data": np.arange(5000 * (comm.rank - 1))}, 0, tag=comm.rank)
            return []
        objects = []
        for _ in range(P - 1):
            status = Status()
            thing = comm.recv_object(source=ANY_SOURCE, tag=ANY_TAG, status=status)
            assert thing["rank"] == status.source == status.tag
            assert thing["data"].size == 5000 * (status.source - 1)
            objects.append(thing["rank"])
        return objects

    assert sorted(run(member)[0]) == [1, 2, 3]


def test_several_receives_in_flight_get_the_messages_in_their_order() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            requests = [comm.recv_async(np.zeros(1, int), source=ANY_SOURCE, tag=5) for _ in range(50)]
            comm.send(np.zeros(1), 1)
            values = [int(request.wait()[0]) for request in requests]
            assert values == list(range(50))
        else:
            comm.recv(np.zeros(1), 0)
            for i in range(50):
                comm.send(np.array([i]), 0, tag=5)

    run(member, 2)


def test_threads_of_one_rank_share_what_comes() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank != 0:
            for i in range(100):
                comm.send(np.array([comm.rank, i]), 0, tag=i % 3)
            return
        seen: list[tuple[int, int]] = []
        lock = threading.Lock()

        def take() -> None:
            for _ in range(100):
                got = comm.recv(np.zeros(2, int), source=ANY_SOURCE, tag=ANY_TAG)
                with lock:
                    seen.append((int(got[0]), int(got[1])))

        threads = [threading.Thread(target=take) for _ in range(P - 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == [(rank, i) for rank in range(1, P) for i in range(100)]

    run(member)


def test_who_is_left_may_still_send() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            got = comm.recv(np.zeros(1), source=ANY_SOURCE)  # rank 1 has left before
            assert got[0] == 2
            with pytest.raises(PeerDeadError, match="from any source, and no other rank is left to send one"):
                comm.recv(np.zeros(1), source=ANY_SOURCE)
        elif comm.rank == 2:
            time.sleep(0.3)
            comm.send(np.array([2.0]), 0)

    run(member, 3)


def test_what_is_wrong_is_said() -> None:
    def member(comm: Communicator) -> None:
        with pytest.raises(InvalidRootError, match="peer -1 was given"):
            comm.recv(np.zeros(1), comm.rank - 1)
        with pytest.raises(InvalidRootError, match=f"peer {ANY_SOURCE} was given"):
            comm.send(np.zeros(1), ANY_SOURCE)
        with pytest.raises(InvalidArgumentError, match=f"tag {ANY_TAG} was given"):
            comm.send(np.zeros(1), 0, ANY_TAG)
        with pytest.raises(InvalidArgumentError, match="both peer and source"):
            comm.recv(np.zeros(1), 0, source=0)
        with pytest.raises(InvalidArgumentError, match="peer is None; pass an integer"):
            comm.recv(np.zeros(1))
        with pytest.raises(InvalidArgumentError, match=r"status is a dict; pass a unisono\.Status"):
            comm.recv(np.zeros(1), 0, status={})
        with pytest.raises(InvalidRootError, match="probe: source 5 was given"):
            comm.probe(5)
        with pytest.raises(InvalidArgumentError, match="tag -7 was given"):
            comm.iprobe(tag=-7)

    run(member, 1)
