"""What of a rooted call the root alone knows, as in MPI: whether it is in place, and counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob

P = 3
COUNTS = [2, 0, 5]
BEGINS = np.cumsum([0, *COUNTS[:-1]])
LANES = pytest.mark.parametrize("lanes", [True, False], ids=["lanes", "messages"])
BLOCKING = pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])


def run(function: Callable[[Communicator], Any], **settings: Any) -> list[Any]:
    return ThreadJob(P, **{"timeout": 30.0, **settings}).run(function)


def mine(rank: int, n: int) -> np.ndarray:
    return np.arange(n, dtype=np.int32) + 1000 * (rank + 1)


def call(comm: Communicator, name: str, blocking: bool, *args: Any, **options: Any) -> Any:
    if blocking:
        return getattr(comm, name)(*args, **options)
    return getattr(comm, name + "_async")(*args, **options).wait()


@LANES
@BLOCKING
@pytest.mark.parametrize("n", [0, 3, 5000])
def test_in_place_on_the_root_alone(lanes: bool, blocking: bool, n: int) -> None:
    def member(comm: Communicator) -> None:
        for root in range(P):
            for elsewhere in (False, True, False):
                at_root = comm.rank == root
                flag = at_root or elsewhere
                own = mine(comm.rank, n)
                everything = np.concatenate([mine(rank, n) for rank in range(P)])

                dst = own.copy() if at_root else None
                call(comm, "reduce", blocking, None if at_root else own, dst, "sum", root, in_place=flag)
                if at_root:
                    np.testing.assert_array_equal(dst, everything.reshape(P, n).sum(0))

                dst = None
                if at_root:
                    dst = np.zeros((P, n), np.int32)
                    dst[root] = own
                call(comm, "gather", blocking, None if at_root else own, dst, root, in_place=flag)
                if at_root:
                    np.testing.assert_array_equal(dst.reshape(-1), everything)

                dst = None if at_root else np.zeros(n, np.int32)
                call(comm, "scatter", blocking, everything if at_root else None, dst, root, in_place=flag)
                if not at_root:
                    np.testing.assert_array_equal(dst, own)

    run(member, lanes=lanes)


@LANES
@BLOCKING
@pytest.mark.parametrize("in_place", [False, True], ids=["", "in place"])
@pytest.mark.parametrize("dtype", ["i4", "S5"])
def test_counts_on_the_root_alone(lanes: bool, blocking: bool, in_place: bool, dtype: str) -> None:
    def values(rank: int) -> np.ndarray:
        return mine(rank, COUNTS[rank]).astype(dtype)

    def member(comm: Communicator) -> None:
        for turn in range(2 * P):
            root = turn % P
            at_root = comm.rank == root
            counts = COUNTS if at_root else None
            own = values(comm.rank)
            everything = np.concatenate([values(rank) for rank in range(P)])

            dst = None
            if at_root:
                dst = np.zeros(sum(COUNTS), dtype)
                if in_place:
                    dst[BEGINS[root] : BEGINS[root] + COUNTS[root]] = own
            src = (IN_PLACE if in_place else own) if at_root else own
            call(comm, "gatherv", blocking, src, dst, counts, root)
            if at_root:
                np.testing.assert_array_equal(dst, everything)

            there = at_root and in_place
            dst = None if there else np.zeros(COUNTS[comm.rank], dtype)
            call(comm, "scatterv", blocking, everything if at_root else None, dst, counts, root, in_place=there)
            if not there:
                np.testing.assert_array_equal(dst, own)
            assert comm.last_algorithm.name == "linear"

    run(member, lanes=lanes)


def test_displacements_are_the_roots() -> None:
    def member(comm: Communicator) -> None:
        own = mine(comm.rank, COUNTS[comm.rank])
        if comm.rank == 1:
            dst = np.zeros(20, np.int32)
            comm.gatherv(own, dst, COUNTS, 1, displacements=[10, 0, 1])
            np.testing.assert_array_equal(dst[10:12], mine(0, 2))
            np.testing.assert_array_equal(dst[1:6], mine(2, 5))
        else:
            comm.gatherv(own, None, root=1)

    run(member)


def test_compressed_with_counts_on_the_root_alone() -> None:
    def member(comm: Communicator) -> None:
        own = np.full(COUNTS[comm.rank], comm.rank + 1, np.float32)
        dst = np.zeros(sum(COUNTS), np.float32) if comm.rank == 0 else None
        comm.gatherv(own, dst, COUNTS if comm.rank == 0 else None, wire_datatype="bf16")
        if dst is not None:
            np.testing.assert_array_equal(dst, np.repeat([1, 2, 3], COUNTS))

    run(member)


@LANES
@pytest.mark.parametrize("name", ["gatherv", "scatterv"])
@pytest.mark.parametrize("wrong", [1, 400_000])
def test_counts_that_differ_are_an_error_on_every_rank(lanes: bool, name: str, wrong: int) -> None:
    heard: list[BaseException | None] = [None] * P

    def member(comm: Communicator) -> None:
        n = wrong if comm.rank == 2 else COUNTS[comm.rank]
        big = np.zeros(sum(COUNTS), np.int32)
        try:
            if name == "gatherv":
                comm.gatherv(np.zeros(n, np.int32), big, COUNTS if comm.rank == 0 else None)
            else:
                comm.scatterv(big, np.zeros(n, np.int32), COUNTS if comm.rank == 0 else None)
            comm.barrier()
        except unisono.UnisonoError as error:
            heard[comm.rank] = error

    with contextlib.suppress(unisono.UnisonoError):
        run(member, lanes=lanes, timeout=10.0)
    assert all(error is not None for error in heard), heard
    assert any(isinstance(error, unisono.MismatchedCallError) for error in heard), heard
    assert any("different counts for the block of rank 2" in str(error) for error in heard), heard


def test_what_is_refused() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank != 0:
            with pytest.raises(unisono.UnsupportedError, match='"binomial" needs the counts of every rank'):
                comm.gatherv(mine(comm.rank, 2), None, root=0, algorithm="binomial")
            with pytest.raises(unisono.InvalidArgumentError, match="dst and counts are both None"):
                comm.scatterv(None, None, root=0)
        else:
            words = "gatherv: recv_counts is null; the root gives the counts of all 3 ranks, in elements "
            with pytest.raises(unisono.InvalidArgumentError, match=words):
                comm.gatherv(mine(0, 2), np.zeros(6, np.int32))
        with pytest.raises(unisono.InvalidArgumentError, match="recv_counts is null; every rank gives the counts of"):
            comm.allgatherv(mine(0, 2), np.zeros(6, np.int32), None)

    run(member)
