"""Scatter without a destination: allocated on every rank, of the elements and shape that the root has."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob, pair_dtype

P = 3
LONG = np.dtype([(f"a field with a long name, number {k}", "f4") for k in range(20)])  # beyond the first broadcast
DTYPES = [
    np.float64, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ">i4", "S8", "U3", "V5",
    "M8[ns]", "m8[D]", np.dtype([("a", "i1"), ("b", "f8", (2,))], align=True), pair_dtype("fp64_int32"), LONG,
]  # fmt: skip


def run(function, **settings):
    return ThreadJob(P, timeout=30, **settings).run(function)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(np.dtype(dtype))[:20])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_rank_gets_its_block(dtype: object, asynchronous: bool) -> None:
    known = np.dtype(dtype)
    raw = np.random.default_rng(7).integers(0, 2, size=P * 2 * 5 * known.itemsize, dtype=np.uint8)
    data = raw.view(known).reshape(P * 2, 5)

    def member(comm: Communicator) -> np.ndarray | None:
        src = data if comm.rank == 1 else None
        return comm.scatter_async(src, root=1).wait() if asynchronous else comm.scatter(src, root=1)

    for rank, block in enumerate(run(member)):
        assert block.dtype == known
        assert block.shape == (2, 5)
        assert block.tobytes() == data[2 * rank : 2 * rank + 2].tobytes()


def test_shapes_follow_the_root() -> None:
    for shape, expected in [((P,), ()), ((P, 4), (4,)), ((2 * P, 2, 2), (2, 2, 2)), ((1, 2 * P), (2,)), ((0,), (0,))]:
        data = np.arange(np.prod(shape)).reshape(shape)
        blocks = run(lambda comm, data=data: comm.scatter(data if comm.rank == 0 else None))
        expected = (1,) if expected == () else expected
        for rank, block in enumerate(blocks):
            assert block.shape == expected
            np.testing.assert_array_equal(block.reshape(-1), data.reshape(-1)[rank * block.size :][: block.size])


def test_counts_by_rank() -> None:
    counts = [2, 0, 3]
    data = np.array([b"ab", b"cd", b"ef", b"gh", b"ij"])

    def member(comm: Communicator) -> np.ndarray | None:
        return comm.scatterv(data if comm.rank == 2 else None, None, counts, root=2)

    for block, expected in zip(run(member), (data[:2], data[:0], data[2:]), strict=True):
        assert block.dtype == "S2"
        np.testing.assert_array_equal(block, expected)


def test_allocated_memory_begets_allocated_memory() -> None:
    from unisono._arrays import allocation_of

    def member(comm: Communicator) -> bool:
        src = None
        if comm.rank == 0:
            src = comm.empty((P, 1000))
            src[...] = np.arange(P)[:, np.newaxis]
        block = comm.scatter(src)
        assert block is not None
        np.testing.assert_array_equal(block, np.full(1000, comm.rank))
        return allocation_of(block) is not None

    assert run(member) == [True] * P


def test_alone_there_is_nobody_to_tell() -> None:
    def member(comm: Communicator) -> int:
        np.testing.assert_array_equal(comm.scatter(np.arange(3)), np.arange(3))
        return comm.state.calls

    assert ThreadJob(1).run(member) == [1]


def test_given_destinations_tell_nothing_ahead() -> None:
    def member(comm: Communicator) -> int:
        before = comm.state.calls
        comm.scatter(np.arange(6) if comm.rank == 0 else None, np.zeros(2, int))
        return comm.state.calls - before

    assert run(member) == [1] * P


@pytest.mark.parametrize("given", [0, 1])
def test_some_with_and_some_without_a_destination_is_an_error(given: int) -> None:
    def member(comm: Communicator) -> str:
        dst = np.zeros(2, int) if comm.rank == given else None
        try:
            comm.scatter(np.arange(6) if comm.rank == 0 else None, dst)
            comm.barrier()  # what the root has sent may have gone before anybody looked at it
        except (unisono.MismatchedCallError, unisono.RevokedError) as error:
            return " ".join([str(error), *getattr(error, "__notes__", [])])
        return "no error"

    texts = run(member)
    assert "no error" not in texts
    assert any("all ranks leave out dst" in text or "all ranks pass dst, or none does" in text for text in texts), texts


def test_what_the_root_got_wrong_harms_nobody() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            with pytest.raises(unisono.InvalidCountError, match="src has 5 elements"):
                comm.scatter(np.arange(5))
            with pytest.raises(unisono.InvalidDatatypeError, match="object"):
                comm.scatter(np.zeros(3, object))
        block = comm.scatter(np.arange(3) if comm.rank == 0 else None)
        np.testing.assert_array_equal(block, [comm.rank])

    run(member)
