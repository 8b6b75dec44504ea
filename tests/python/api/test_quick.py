"""The short way of calls: results and errors of the long way, and taken for what people mostly pass."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob

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
    for call, given in ((comm.allreduce, (op,)), (comm.scan, (op,)), (comm.exscan, (op,)), (comm.alltoall, ())):
        both = mine(dtype, count * size, rank)
        note(call(both, both, *given, **options))
    comm.barrier(**options)
    for note_of in (in_place, counted, messages):
        for result in note_of(comm, dtype, count, op, options):
            note(result)
    return results


def in_place(comm: Communicator, dtype: str, count: int, op: str, options: dict[str, Any]) -> Iterator[Array | None]:
    """One call of each collective in place, as it can be said."""
    rank, size = comm.rank, comm.size

    def many() -> Array:
        return mine(dtype, count * size, rank)

    for reduction in (comm.allreduce, comm.scan, comm.exscan, comm.reduce_scatter):
        yield reduction(IN_PLACE, many(), op, **options)
    yield comm.allgather(IN_PLACE, many(), **options)
    yield comm.alltoall(IN_PLACE, many(), **options)
    root = 1 % size
    is_root = rank == root
    one = mine(dtype, count, rank)
    yield comm.reduce(IN_PLACE if is_root else one, one if is_root else None, op, root, in_place=True, **options)
    yield comm.gather(IN_PLACE if is_root else one, many() if is_root else None, root, in_place=True, **options)
    kept = many()
    assert (comm.scatter(kept if is_root else None, IN_PLACE if is_root else one, root, in_place=True, **options)
            is None) == is_root  # fmt: skip
    yield kept
    yield one
    counts = [count * (r + 1) for r in range(size)]
    whole = mine(dtype, sum(counts), rank)
    yield comm.allgatherv(IN_PLACE, whole, counts, **options)
    yield comm.reduce_scatterv(IN_PLACE, whole, counts, op, **options)
    yield comm.alltoallv(IN_PLACE, many(), None, [count] * size, **options)
    yield comm.gatherv(IN_PLACE if is_root else whole[: counts[rank]].copy(), whole if is_root else None, counts, root,
                       in_place=True, **options)  # fmt: skip
    got = mine(dtype, counts[rank], rank)
    left = comm.scatterv(
        whole if is_root else None, IN_PLACE if is_root else got, counts, root, in_place=True, **options
    )
    assert (left is None) == is_root
    yield got


def counted(comm: Communicator, dtype: str, count: int, op: str, options: dict[str, Any]) -> Iterator[Array | None]:
    """One call of each collective with counts, which are given in each way, one of them 0."""
    rank, size = comm.rank, comm.size
    counts = [count * r for r in range(size)]
    total = sum(counts)
    own, whole = mine(dtype, counts[rank], rank), mine(dtype, total, rank)
    places = [total - sum(counts[: r + 1]) + 2 for r in range(size)]  # the other way round, after a gap of 2
    for given in (counts, tuple(counts), np.array(counts), np.array(counts, "i4")):
        yield comm.gatherv(own, np.zeros(total, dtype), given, 1 % size, **options)
        yield comm.gatherv(own, np.full(total + 2, 1, dtype), given, 2 % size, displacements=places, **options)
        yield comm.scatterv(
            whole if rank == 1 % size else None, np.zeros(counts[rank], dtype), given, 1 % size, **options
        )
        yield comm.scatterv(np.append(whole, whole[:2]), np.zeros(counts[rank], dtype), given,
                            displacements=[place - 2 for place in places], **options)  # fmt: skip
        yield comm.allgatherv(own, np.full(total + 2, 1, dtype), given, displacements=tuple(places), **options)
        yield comm.reduce_scatterv(whole, np.zeros(counts[rank], dtype), given, op, **options)
        yield comm.alltoallv(whole, np.zeros(size * counts[rank], dtype), given, [counts[rank]] * size, **options)
        yield comm.alltoallv(whole, np.zeros(size * counts[rank] + 1, dtype), given, [counts[rank]] * size,
                             recv_displacements=np.arange(size) * counts[rank] + 1, **options)  # fmt: skip


def messages(comm: Communicator, dtype: str, count: int, op: str, options: dict[str, Any]) -> Iterator[Array | None]:
    """Around a circle: messages of the length that is there, and shorter ones."""
    rank, size = comm.rank, comm.size
    to, source = (rank + 1) % size, (rank - 1) % size
    for length in (count, count + 3):
        src, dst = mine(dtype, count, rank), np.zeros(length, dtype)
        result = comm.sendrecv(src, to, dst, source, 5, **options)
        assert result.size == count
        assert np.shares_memory(result, dst) or count == 0
        yield result
        yield comm.sendrecv(src, to, np.zeros(length, dtype), source, rank, source, **options)
        dst = np.zeros(length, dtype)
        if rank == 0:
            comm.send(src, to, **options)
        result = comm.recv(dst, source, **options)
        if rank != 0:
            comm.send(src, to, **options)
        assert result.size == count
        assert (result is dst) == (length == count)
        yield result


class Started:
    """A communicator whose calls are started, and waited for at once."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    def __getattr__(self, name: str) -> Any:
        start = getattr(self._comm, name + "_async", None)
        if start is None:
            return getattr(self._comm, name)

        def call(*given: Any, **named: Any) -> Any:
            request = start(*given, **named)
            result = request.wait()
            if name != "recv" or request.received == result.size:
                return result
            return result[: request.received]

        return call


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 7, 5000])
@pytest.mark.parametrize("form", [lambda comm: comm, Started], ids=["blocking", "started"])
def test_both_ways_give_the_same(dtype: str, count: int, form: Callable[[Communicator], Any]) -> None:
    def member(comm: Communicator) -> tuple[list[Array], list[Array]]:
        return calls(form(comm), dtype, count), calls(comm, dtype, count, timeout=60.0)

    for short, long in ThreadJob(SIZE, timeout=60).run(member):
        assert len(short) == len(long) >= 8
        for a, b in zip(short, long, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["i4", "f8", "bool"])
@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3), ()])
def test_destinations_that_are_made_are_alike(dtype: str, shape: tuple[int, ...]) -> None:
    def member(comm: Communicator) -> tuple[list[Any], list[Any], list[Any]]:
        src = np.full(shape, comm.rank, dtype)
        op = "max"
        made = [comm.allreduce(src, None, op), comm.scan(src, None, op), comm.allgather(src)]
        requests = [comm.allreduce_async(src, None, op), comm.scan_async(src, None, op), comm.allgather_async(src)]
        options: Any = {"timeout": 60.0}
        long = [comm.allreduce(src, None, op, **options), comm.scan(src, None, op, **options)]
        return made, [request.wait() for request in requests], [*long, comm.allgather(src, **options)]

    for results in ThreadJob(SIZE, timeout=60).run(member):
        for made, started, long in zip(*results, strict=True):
            for one in (made, started):
                assert type(one) is type(long)
                assert (one.dtype, one.shape) == (long.dtype, long.shape)
                np.testing.assert_array_equal(one, long)


def test_dropped_requests_keep_their_arrays_and_waited_ones_do_not() -> None:
    def member(comm: Communicator) -> None:
        for form in ("wait", "drop"):
            src, dst = np.full(3, 1.0 + comm.rank), np.zeros(3)
            before = sys.getrefcount(src), sys.getrefcount(dst)
            if comm.rank == 1:
                comm.recv(np.zeros(1), 0)  # so that rank 0's call cannot end at once
            request = comm.allreduce_async(src, dst)
            assert request.result is dst
            if comm.rank == 0:
                assert sys.getrefcount(src) > before[0], "a call in flight keeps what it reads"
                comm.send(np.zeros(1), 1)
            if form == "wait":
                assert request.wait() is dst
                del request
            else:
                del request
                comm.barrier()
                comm.allreduce_async(np.zeros(1), np.zeros(1)).wait()  # lets go of what was dropped
            assert (sys.getrefcount(src), sys.getrefcount(dst)) == before
            assert np.array_equal(dst, np.full(3, 3.0))

    ThreadJob(2, timeout=60).run(member)


def test_a_started_call_in_a_group_goes_with_it() -> None:
    def member(comm: Communicator) -> None:
        a, b = np.full(3, 1.0 + comm.rank), [np.zeros(3), np.zeros(3)]
        with comm.group():
            requests = [comm.allreduce_async(a, each) for each in b]
        for request, each in zip(requests, b, strict=True):
            assert request.wait() is each
            assert np.array_equal(each, np.full(3, 3.0))

    ThreadJob(2, timeout=60).run(member)


def answers(call: Callable[[Communicator, Array, Array], Any], src: Any, dst: Any) -> bool:
    """Whether all calls of one rank take the short way; they must end well either way."""
    taken: list[bool] = []

    class Watched:
        """The extension's communicator, with a look at what `quick` answers."""

        def __init__(self, core: Any) -> None:
            self._core = core

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._core, name)
            if not name.startswith("quick"):
                return found

            def quick(*given: Any) -> Any:
                answer = found(*given)
                taken.append(answer is not False and answer is not None and not (type(answer) is int and answer < 0))
                return answer

            return quick

    def member(comm: Communicator) -> None:
        comm._core = Watched(comm._core)  # type: ignore[assignment]
        call(comm, src, dst)

    ThreadJob(1, timeout=60).run(member)
    return bool(taken) and all(taken)


def test_what_goes_the_short_way() -> None:
    def reduced(comm: Communicator, src: Any, dst: Any) -> Any:
        return comm.allreduce(src, dst)

    plain = np.arange(6.0)
    assert answers(reduced, plain, np.zeros(6))
    assert answers(reduced, plain.reshape(2, 3), np.zeros((3, 2)))  # lengths count, shapes do not
    assert answers(reduced, np.full((), 3.0), np.zeros(()))
    assert answers(reduced, plain, None)
    assert answers(reduced, plain[1:3], None)
    assert answers(lambda comm, src, dst: comm.allgather(src), plain, None)
    assert not answers(reduced, np.full((), 3.0), None)  # the result is a number
    assert not answers(lambda comm, src, dst: comm.allreduce(comm.empty(3)), plain, None)  # as is its destination
    assert not answers(lambda comm, src, dst: comm.exscan(src), plain, None)
    assert not answers(reduced, plain.view(np.recarray), np.zeros(6))
    assert not answers(reduced, plain, np.zeros(7))
    assert not answers(lambda comm, src, dst: comm.allreduce(src, dst, "su" + "m" * len(src[:1])), plain, np.zeros(6))
    assert answers(lambda comm, src, dst: comm.bcast(dst, 0), plain, plain.copy())
    assert not answers(lambda comm, src, dst: comm.bcast(dst, np.int64(0)), plain, plain.copy())
    assert answers(lambda comm, src, dst: comm.barrier(), plain, plain)
    assert answers(lambda comm, src, dst: comm.allreduce(dst, dst), plain, plain.copy())
    for form in (in_place, counted, messages):
        assert answers(every(form, "f8", {}), plain, plain) == (form is not counted)  # it has counts of int32, too
        assert not answers(every(form, "f8", {"timeout": 60.0}), plain, plain)
    assert not answers(lambda comm, src, dst: comm.allgatherv(src, dst, range(6, 7)), plain, plain.copy())
    assert not answers(lambda comm, src, dst: comm.allgatherv(src, dst, [np.int64(6)]), plain, plain.copy())
    assert answers(lambda comm, src, dst: comm.allgatherv(src, dst, [6]), plain, plain.copy())
    assert not answers(lambda comm, src, dst: comm.sendrecv(src, 0), plain, None)

    def accesses(comm: Communicator, src: Array, dst: Array) -> None:
        comm.window(src.copy())
        comm.put(src, 0)
        assert comm.get(dst, 0) is dst

    assert answers(accesses, plain, np.zeros(6))


def test_what_goes_the_short_way_when_it_is_started() -> None:
    plain = np.arange(6.0)
    assert answers(lambda comm, src, dst: comm.allreduce_async(src, dst).wait(), plain, np.zeros(6))
    assert answers(lambda comm, src, dst: comm.allreduce_async(src).wait(), plain, None)
    assert answers(lambda comm, src, dst: comm.barrier_async().wait(), plain, None)
    assert answers(lambda comm, src, dst: comm.allgatherv_async(src, dst, [6]).wait(), plain, plain.copy())
    assert not answers(lambda comm, src, dst: comm.allreduce_async(list(src), dst).wait(), plain, np.zeros(6))
    assert not answers(lambda comm, src, dst: comm.exscan_async(src).wait(), plain, None)

    def messages(comm: Communicator, src: Array, dst: Array) -> None:
        comm.window(src.copy())
        requests = [comm.recv_async(dst, 0, 4), comm.send_async(src, 0, 4)]
        requests += [comm.put_async(src, 0), comm.get_async(src.copy(), 0)]
        for request in requests:
            request.wait()
        assert (requests[0].source, requests[0].tag, requests[0].received) == (0, 4, 6)

    assert answers(messages, plain, np.zeros(6))


def every(form: Any, dtype: str, options: dict[str, Any]) -> Callable[[Communicator, Array, Array], Any]:
    """All calls of a form."""
    return lambda comm, src, dst: list(form(comm, dtype, 6, "sum", options))


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
    ("peer", lambda c: c.send(np.zeros(4), 2), unisono.InvalidRootError, "send: peer 2"),
    ("source", lambda c: c.recv(np.zeros(4), 9), unisono.InvalidRootError, "recv: peer 9"),
    ("tag", lambda c: c.recv(np.zeros(4), 0, -1), unisono.InvalidArgumentError, "recv: tag -1"),
    ("large tag", lambda c: c.send(np.zeros(4), 0, 1 << 40), unisono.InvalidArgumentError, "send: tag"),
    ("read-only to receive", lambda c: c.recv(np.broadcast_to(0.0, 4), 0), unisono.ReadOnlyBufferError, "read-only"),
    ("dtypes", lambda c: c.sendrecv(np.zeros(4), 0, np.zeros(4, "f4"), 0), unisono.InvalidDatatypeError, "float32"),
    ("put to", lambda c: c.put(np.zeros(4), 2), unisono.InvalidRootError, "put: peer 2"),
    ("get of", lambda c: c.get(np.zeros(4), 1 << 40), unisono.UnisonoError, "get: peer"),
    ("put at", lambda c: c.put(np.zeros(4), 0, -1), unisono.InvalidArgumentError, "offset is -1"),
    ("put without", lambda c: c.put(np.zeros(4), 1 - c.rank), unisono.UnisonoError, "window"),
    ("read-only to get", lambda c: c.get(np.broadcast_to(0.0, 4), 0), unisono.ReadOnlyBufferError, "read-only"),
    ("counts", lambda c: c.allgatherv(np.zeros(4), np.zeros(8), [4, 5]), unisono.BufferTooSmallError, "needs"),
    ("no counts", lambda c: c.allgatherv(np.zeros(4), np.zeros(8), None), unisono.InvalidArgumentError, "counts"),
    ("three counts", lambda c: c.gatherv(np.zeros(4), np.zeros(8), (4, 4, 4)), unisono.InvalidCountError, "3 entries"),
    ("minus", lambda c: c.scatterv(np.zeros(4), np.zeros(4), [4, -4]), unisono.InvalidCountError, "counts[1] is -4"),
    (
        "minus in an array",
        lambda c: c.scatterv(np.zeros(4), np.zeros(4), np.array([4, -4])),
        unisono.InvalidCountError,
        "counts[1] is -4",
    ),
    (
        "huge count",
        lambda c: c.allgatherv(np.zeros(4), np.zeros(4), [4, 1 << 60]),
        unisono.InvalidCountError,
        f"counts[1] is {1 << 60}",
    ),
    ("blocks in place", lambda c: c.allgather(IN_PLACE, np.zeros(5)), unisono.InvalidCountError, "5"),
    ("in place twice", lambda c: c.allreduce(IN_PLACE, IN_PLACE), unisono.InvalidArgumentError, "dst is missing"),
    (
        "in place by a number",
        lambda c: c.reduce(np.zeros(2), np.zeros(2), "sum", 5, in_place=True),
        unisono.InvalidRootError,
        "5",
    ),
    ("overlap", lambda c: (a := np.zeros(8)) is None or c.allreduce(a[:5], a[3:]), unisono.UnisonoError, "overlap"),
]


@pytest.mark.parametrize(("name", "call", "kind", "word"), WRONG, ids=[entry[0] for entry in WRONG])
@pytest.mark.parametrize("form", [lambda comm: comm, Started], ids=["blocking", "started"])
def test_what_is_wrong_is_told_as_ever(
    name: str,
    call: Callable[[Any], Any],
    kind: type[Exception],
    word: str,
    form: Callable[[Communicator], Any],
) -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises(kind) as caught:
            call(form(comm))
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


ALLOCATIONS: dict[str, Callable[[Communicator, Array, Array], Any]] = {
    "allreduce": lambda comm, a, b: comm.allreduce(a, b),
    "allreduce in place": lambda comm, a, b: comm.allreduce(IN_PLACE, b),
    "allgatherv": lambda comm, a, b: comm.allgatherv(a, b, [3]),
    "gatherv": lambda comm, a, b: comm.gatherv(a, b, (3,)),
    "scatterv": lambda comm, a, b: comm.scatterv(a, b, [3]),
    "reduce_scatterv": lambda comm, a, b: comm.reduce_scatterv(a, b, [3]),
    "alltoallv": lambda comm, a, b: comm.alltoallv(a, b, [3], [3]),
    "sendrecv": lambda comm, a, b: comm.sendrecv(a, 0, b, 0),
    "send and recv": lambda comm, a, b: comm.send(a, 0) or comm.recv(b, 0),
    "put and get": lambda comm, a, b: comm.put(a, 0) or comm.get(b, 0),
}


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_nothing_is_allocated(name: str) -> None:
    call = ALLOCATIONS[name]
    with unisono.init() as context:
        comm = context.world
        a, b = np.arange(3.0), np.zeros(3)
        comm.window(np.zeros(3))
        for _ in range(10):
            call(comm, a, b)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            call(comm, a, b)
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert after - before < 1000, "bytes kept by 1000 calls"
    # At no time more than the frames and lists of one call: no array, no request.
    assert peak - before < 1000


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
