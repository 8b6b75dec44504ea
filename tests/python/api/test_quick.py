"""The short way of blocking calls: results and errors of the long way, and taken for what people mostly pass."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import unisono
from unisono import Communicator, ThreadJob

Array = npt.NDArray[Any]

#: What NumPy itself has, and the engine computes on.
DTYPES = [
    "bool",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "longlong",
    "ulonglong",
]
SIZE = 3


def mine(dtype: str, count: int, rank: int) -> Array:
    """Elements of a rank's own."""
    return (np.arange(count) * (rank + 2) % 5 + rank).astype(dtype)


def calls(comm: Communicator, dtype: str, count: int, **options: Any) -> list[Array]:
    """One call of each collective that has a short way, with `options`; its results."""
    rank, size = comm.rank, comm.size
    one, all_of_them = mine(dtype, count, rank), mine(dtype, count * size, rank)
    op = "max" if dtype == "bool" else "sum"
    results = []

    def note(result: Array | None) -> None:
        if result is not None:
            results.append(result.copy())

    note(comm.bcast(one.copy(), 1, **options))
    note(comm.allgather(one, np.zeros(count * size, dtype), **options))
    note(comm.alltoall(all_of_them, np.zeros(count * size, dtype), **options))
    note(comm.gather(one, np.zeros(count * size, dtype), 2, **options))
    note(comm.scatter(all_of_them, np.zeros(count, dtype), 1, **options))
    note(comm.allreduce(one, np.zeros(count, dtype), op, **options))
    note(comm.scan(one, np.zeros(count, dtype), op, **options))
    note(comm.exscan(one, np.zeros(count, dtype), op, **options))
    note(comm.reduce(one, np.zeros(count, dtype), op, 1, **options))
    note(comm.reduce_scatter(all_of_them, np.zeros(count, dtype), op, **options))
    for call in (comm.allreduce, comm.scan, comm.exscan, comm.alltoall):
        both = mine(dtype, count * size, rank)
        note(call(both, both, **options) if call == comm.alltoall else call(both, both, op, **options))
    comm.barrier(**options)
    return results


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 7, 5000])
def test_both_ways_give_the_same(dtype: str, count: int) -> None:
    def member(comm: Communicator) -> tuple[list[Array], list[Array]]:
        return calls(comm, dtype, count), calls(comm, dtype, count, timeout=60.0)

    for short, long in ThreadJob(SIZE, timeout=60).run(member):
        assert len(short) == len(long) >= 8
        for a, b in zip(short, long, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def answers(call: Callable[[Communicator, Array, Array], Any], src: Any, dst: Any) -> bool:
    """Whether a call of one rank takes the short way; it must end well either way."""
    taken: list[bool] = []

    class Watched:
        """The extension's communicator, with a look at what `quick` answers."""

        def __init__(self, core: Any) -> None:
            self._core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self._core, name)

        def quick(self, *given: Any) -> bool:
            taken.append(self._core.quick(*given))
            return taken[-1]

    def member(comm: Communicator) -> None:
        comm._core = Watched(comm._core)  # type: ignore[assignment]
        call(comm, src, dst)

    ThreadJob(1, timeout=60).run(member)
    return taken == [True]


def test_what_goes_the_short_way() -> None:
    def reduced(comm: Communicator, src: Any, dst: Any) -> Any:
        return comm.allreduce(src, dst)

    plain = np.arange(6.0)
    assert answers(reduced, plain, np.zeros(6))
    assert answers(reduced, plain.reshape(2, 3), np.zeros((3, 2)))  # lengths count, shapes do not
    assert answers(reduced, np.full((), 3.0), np.zeros(()))
    assert not answers(reduced, plain, None)
    assert not answers(reduced, plain.view(np.recarray), np.zeros(6))
    assert not answers(reduced, plain, np.zeros(7))
    assert not answers(lambda comm, src, dst: comm.allreduce(src, dst, "su" + "m" * len(src[:1])), plain, np.zeros(6))
    assert answers(lambda comm, src, dst: comm.bcast(dst, 0), plain, plain.copy())
    assert not answers(lambda comm, src, dst: comm.bcast(dst, np.int64(0)), plain, plain.copy())
    assert answers(lambda comm, src, dst: comm.barrier(), plain, plain)
    assert answers(lambda comm, src, dst: comm.allreduce(dst, dst), plain, plain.copy())


WRONG: list[tuple[str, Callable[[Communicator], Any], type[Exception], str]] = [
    ("short dst", lambda c: c.allreduce(np.zeros(4), np.zeros(3)), unisono.BufferTooSmallError, "3"),
    ("other dtype", lambda c: c.allreduce(np.zeros(4), np.zeros(4, "f4")), unisono.InvalidDatatypeError, "float32"),
    (
        "read only",
        lambda c: c.allreduce(np.zeros(4), np.broadcast_to(0.0, 4)),
        unisono.ReadOnlyBufferError,
        "read-only",
    ),
    ("strides", lambda c: c.allreduce(np.zeros(8)[::2], np.zeros(3)), unisono.BufferTooSmallError, "3"),
    (
        "bytes turned",
        lambda c: c.allreduce(np.zeros(4, ">f8"), np.zeros(4, ">f8")),
        unisono.InvalidDatatypeError,
        ">f8",
    ),
    ("root", lambda c: c.bcast(np.zeros(4), 2), unisono.UnisonoError, "2"),
    ("root below", lambda c: c.bcast(np.zeros(4), -1), unisono.UnisonoError, "-1"),
    ("large root", lambda c: c.bcast(np.zeros(4), 1 << 70), unisono.UnisonoError, "root"),
    ("op", lambda c: c.allreduce(np.zeros(4), np.zeros(4), "som"), unisono.UnisonoError, "som"),
    ("op of type", lambda c: c.allreduce(np.zeros(4, "c8"), np.zeros(4, "c8"), "max"), unisono.UnisonoError, "max"),
    ("blocks", lambda c: c.alltoall(np.zeros(3), np.zeros(3)), unisono.InvalidCountError, "3"),
    ("overlap", lambda c: (a := np.zeros(8)) is None or c.allreduce(a[:5], a[3:]), unisono.UnisonoError, "overlap"),
]


@pytest.mark.parametrize(("name", "call", "kind", "word"), WRONG, ids=[entry[0] for entry in WRONG])
def test_what_is_wrong_is_told_as_ever(
    name: str, call: Callable[[Communicator], Any], kind: type[Exception], word: str
) -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises(kind) as caught:
            call(comm)
        comm.barrier()
        return str(caught.value)

    for text in ThreadJob(2, timeout=60).run(member):
        assert word in text


def test_a_freed_communicator_and_an_open_group_are_refused() -> None:
    def member(comm: Communicator) -> None:
        a, b = np.full(3, 1.0 + comm.rank), np.zeros(3)
        other = comm.dup()
        other.allreduce(a, b)
        other.free()
        with pytest.raises(unisono.FreedCommunicatorError):
            other.allreduce(a, b)
        comm.allreduce(a, b)
        with comm.group(), pytest.raises(unisono.InvalidArgumentError, match="group"):
            comm.allreduce(a, b)

    ThreadJob(2, timeout=60).run(member)


def test_nothing_is_allocated() -> None:
    with unisono.init() as context:
        comm = context.world
        a, b = np.arange(3.0), np.zeros(3)
        for _ in range(10):
            comm.allreduce(a, b)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            comm.allreduce(a, b)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert after - before < 1000, "bytes kept by 1000 calls"


def test_a_child_of_fork_is_refused() -> None:
    with unisono.init() as context:
        comm = context.world
        a, b = np.arange(3.0), np.zeros(3)
        comm.allreduce(a, b)
        child = os.fork()
        if child == 0:
            try:
                comm.allreduce(a, b)
            except unisono.WrongProcessError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
