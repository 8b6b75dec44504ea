"""Arrays of any layout, scalars and lists: calls give what they give on contiguous arrays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import unisono
from hypothesis import given, settings
from hypothesis import strategies as st
from unisono import IN_PLACE, Communicator, InvalidArgumentError, Request, ThreadJob
from unisono._arrays import writable

Array = npt.NDArray[Any]

BESIDE = 0x5A  # every byte of the memory between the elements of a view


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory: the order of its axes, outermost first, and the step and the begin of each."""

    order: tuple[int, ...]
    steps: tuple[int, ...]
    begins: tuple[int, ...]

    def of(self, values: Array, empty: Callable[..., Array] = np.empty) -> tuple[Array, Array]:
        """An array equal to `values` that lies so, and the whole memory that it is a view of, which `empty` makes."""
        order = [axis for axis in self.order if axis < values.ndim]
        lengths = [
            begin + abs(step) * max(length, 1) + 1
            for length, step, begin in zip(values.shape, self.steps, self.begins, strict=False)
        ]
        memory = empty([lengths[axis] for axis in order], values.dtype)
        memory.view(np.uint8)[...] = BESIDE
        whole = memory.transpose(np.argsort(order)) if order else memory
        view = whole[tuple(slice(begin, None, abs(step)) for step, begin in zip(self.steps, self.begins, strict=False))
                     [: values.ndim]]  # fmt: skip
        view = view[tuple(slice(length) for length in values.shape)]
        view = view[tuple(slice(None, None, 1 if step > 0 else -1) for step in self.steps[: values.ndim])]
        view[...] = values
        assert view.shape == values.shape
        return view, memory


def layouts() -> st.SearchStrategy[Layout]:
    """Any order of three axes, with steps of both signs."""
    steps = st.sampled_from([-3, -2, -1, 1, 2, 3])
    return st.builds(
        Layout,
        st.permutations(range(3)).map(tuple),
        st.tuples(steps, steps, steps),
        st.tuples(*[st.integers(0, 2)] * 3),
    )


def beside(memory: Array, view: Array) -> Array:
    """The bytes of a memory, with the elements of a view of it zeroed."""
    view[...] = np.zeros((), view.dtype)
    return memory.view(np.uint8).copy()


def values(dtype: Any, shape: tuple[int, ...], rank: int, salt: int) -> Array:
    """Small numbers of a rank's own."""
    count = int(np.prod(shape))
    return ((np.arange(count) * (2 * rank + 3) + salt) % 7 + rank).astype(dtype).reshape(shape)


@dataclass(frozen=True)
class Case:
    """An operation; `call(name of a method, ...)` of the communicator is what `by` makes of it."""

    name: str
    dst_of: Callable[[int, int, int], int]  #: elements of dst, of those of src, the ranks and this rank
    call: Callable[[Any, Communicator, Any, Any], Any]
    computes: bool = False


def counts_of(total: int, ranks: int) -> list[int]:
    """Unequal counts, one of them 0 where there are more than two ranks, with that sum."""
    counts = [0] * ranks
    for element in range(total):
        counts[(element * element) % max(1, ranks - 1)] += 1
    return counts


def places(length: int, ranks: int) -> list[int]:
    """Of blocks that begin at element 2."""
    return [rank * length + 2 for rank in range(ranks)]


def _mine(total: int, ranks: int, rank: int) -> int:
    return counts_of(total, ranks)[rank]


CASES = [
    Case("copy", lambda n, p, r: n, lambda by, c, a, b: by(c, "copy", a, b)),
    Case("combine", lambda n, p, r: n, lambda by, c, a, b: by(c, "combine", a, b, "max"), True),
    Case("allreduce", lambda n, p, r: n, lambda by, c, a, b: by(c, "allreduce", a, b), True),
    Case("allreduce in place", lambda n, p, r: n, lambda by, c, a, b: by(c, "allreduce", IN_PLACE, b), True),
    Case("both", lambda n, p, r: n, lambda by, c, a, b: by(c, "allreduce", b, b), True),
    Case("scan", lambda n, p, r: n, lambda by, c, a, b: by(c, "scan", a, b), True),
    Case("exscan", lambda n, p, r: n, lambda by, c, a, b: by(c, "exscan", a, b), True),
    Case("reduce", lambda n, p, r: n, lambda by, c, a, b: by(c, "reduce", a, b, root=1), True),
    Case("bcast", lambda n, p, r: n, lambda by, c, a, b: by(c, "bcast", b, c.size - 1)),
    Case("reduce_scatter", lambda n, p, r: n // p, lambda by, c, a, b: by(c, "reduce_scatter", a, b), True),
    Case("allgather", lambda n, p, r: n * p, lambda by, c, a, b: by(c, "allgather", a, b)),
    Case("gather", lambda n, p, r: n * p, lambda by, c, a, b: by(c, "gather", a, b)),
    Case("scatter", lambda n, p, r: n // p, lambda by, c, a, b: by(c, "scatter", a, b, 1)),
    Case("alltoall", lambda n, p, r: n, lambda by, c, a, b: by(c, "alltoall", a, b)),
    Case("alltoall in place", lambda n, p, r: n, lambda by, c, a, b: by(c, "alltoall", IN_PLACE, b)),
    Case(
        "gatherv",
        lambda n, p, r: n * p + 2,
        lambda by, c, a, b: by(c, "gatherv", a, b, [a.size] * c.size, displacements=places(a.size, c.size)),
    ),
    Case("scatterv", _mine, lambda by, c, a, b: by(c, "scatterv", a, b, counts_of(a.size, c.size))),
    Case("allgatherv", lambda n, p, r: n * p, lambda by, c, a, b: by(c, "allgatherv", a, b, [a.size] * c.size)),
    Case("allgatherv of nothing", lambda n, p, r: n, lambda by, c, a, b: by(c, "allgatherv", a, b, [0] * c.size)),
]  # fmt: skip


def blocking(comm: Communicator, name: str, *given: Any, **more: Any) -> Any:
    """The form that blocks."""
    return getattr(comm, name)(*given, **more)


def started(comm: Communicator, name: str, *given: Any, **more: Any) -> Any:
    """The form that is waited for."""
    return getattr(comm, name + "_async")(*given, **more).wait()


def flat(result: Any) -> Array | None:
    return None if result is None else np.asarray(result).reshape(-1)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_every_layout_gives_what_contiguous_arrays_give(data: st.DataObject) -> None:
    ranks = data.draw(st.integers(2, 4), "ranks")
    dtype = data.draw(
        st.sampled_from(["f4", "i2", "u8", "c16", "f8", ml_dtypes.bfloat16, "S3", "i4,f8", ">i4"]), "dtype"
    )
    dtype = np.dtype(dtype)
    rest = data.draw(st.lists(st.integers(0, 4), max_size=2).map(tuple), "shape of a block")
    lies = data.draw(st.lists(layouts(), min_size=2 * ranks, max_size=2 * ranks), "layouts")
    chosen = data.draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=4), "operations")
    by = data.draw(st.sampled_from([blocking, started]), "form")
    allocated = data.draw(st.booleans(), "in allocated memory")
    if dtype.kind in "SV" or dtype.byteorder == ">":
        chosen = [case for case in chosen if not case.computes and dtype != ml_dtypes.bfloat16]
    if dtype == ml_dtypes.bfloat16 or "complex" in dtype.name:
        chosen = [case for case in chosen if case.name != "combine"]  # has no max of them

    def member(comm: Communicator) -> None:
        shape = (2 * comm.size, *rest)
        src_lies, dst_lies = lies[2 * comm.rank], lies[2 * comm.rank + 1]
        for salt, case in enumerate(chosen):
            src = values(dtype, shape, comm.rank, salt)
            length = case.dst_of(src.size, comm.size, comm.rank)
            dst = values(dtype, (length // 2, 2) if length % 2 == 0 else (length,), comm.rank, salt + 5)
            empty = comm.empty if allocated else np.empty
            src_view, src_memory = src_lies.of(src, empty)
            dst_view, dst_memory = dst_lies.of(dst, empty)
            before = src_memory.tobytes()
            untouched = dst_lies.of(np.zeros_like(dst))[1].view(np.uint8)
            expected = flat(case.call(blocking, comm, src, dst))
            result = case.call(by, comm, src_view, dst_view)
            if expected is None:
                assert result is None
            else:
                np.testing.assert_array_equal(flat(result), expected)
                assert result is dst_view
            np.testing.assert_array_equal(flat(dst_view), flat(dst))
            assert src_memory.tobytes() == before
            np.testing.assert_array_equal(beside(dst_memory, dst_view), untouched)

    ThreadJob(ranks, timeout=60).run(member)


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_messages_of_every_layout(data: st.DataObject) -> None:
    ranks = data.draw(st.integers(2, 4), "ranks")
    shape = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple), "shape")
    lies = data.draw(st.lists(layouts(), min_size=2 * ranks, max_size=2 * ranks), "layouts")

    def member(comm: Communicator) -> None:
        to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        src, _ = lies[2 * comm.rank].of(values("f8", shape, comm.rank, 1))
        comes = values("f8", shape, source, 1)
        dst, _ = lies[2 * comm.rank + 1].of(np.zeros(shape))
        assert comm.sendrecv(src, to, dst, source) is dst
        np.testing.assert_array_equal(dst, comes)
        dst[...] = 0
        request = comm.recv_async(dst, source)
        comm.send(src, to)
        assert request.wait() is dst
        np.testing.assert_array_equal(dst, comes)
        # A message that is shorter than the destination leaves what is behind it.
        dst[...] = -1
        request = comm.recv_async(dst, source)
        comm.send(src, to, count=1)
        request.wait()
        assert request.received == 1
        np.testing.assert_array_equal(flat(dst), [comes.flat[0], *[-1] * (dst.size - 1)])
        # To and from windows, which are contiguous themselves.
        window = np.zeros(dst.size)
        comm.window(window)
        comm.put(src, to)
        comm.barrier()
        np.testing.assert_array_equal(window, flat(comes))
        comm.get(dst, comm.rank)
        np.testing.assert_array_equal(dst, comes)
        comm.window(None)

    ThreadJob(ranks, timeout=60).run(member)


def test_fortran_order_travels_row_by_row() -> None:
    """The order of the elements is that of the array's own axes, whatever its memory has."""

    def member(comm: Communicator) -> None:
        table = np.asfortranarray(np.arange(6).reshape(2, 3) + 10 * comm.rank)
        if comm.rank == 0:
            comm.send(table, 1)
        else:
            np.testing.assert_array_equal(comm.recv(np.zeros(6, int), 0), range(6))
        gathered = comm.allgather(table)
        assert gathered.shape == (2, 2, 3)
        assert gathered.flags.c_contiguous
        np.testing.assert_array_equal(gathered[1], np.arange(6).reshape(2, 3) + 10)
        total = np.zeros((2, 3), order="F")
        assert comm.allreduce(np.ones((2, 3)), total) is total
        np.testing.assert_array_equal(total, np.full((2, 3), 2))

    ThreadJob(2, timeout=60).run(member)


def test_scalars() -> None:
    def member(comm: Communicator) -> None:
        mine = comm.rank + 1
        numbers: list[tuple[Callable[[int], Any], Any]] = [
            (int, "i8"),
            (float, "f8"),
            (lambda rank: rank * 1j, "c16"),
            (np.float32, "f4"),
            (lambda rank: np.array(rank, "u2"), "u2"),
            (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        ]
        for number, dtype in numbers:
            for total in (comm.allreduce(number(mine)), comm.allreduce_async(number(mine)).wait()):
                assert isinstance(total, np.generic)
                assert total.dtype == dtype
                assert total == number(6)
            gathered = comm.allgather(number(mine))
            assert gathered.dtype == dtype
            np.testing.assert_array_equal(gathered, np.array([number(rank) for rank in (1, 2, 3)], dtype))
        assert comm.allreduce(comm.rank == 1, op="logical_or") == np.True_
        assert comm.scan(mine) == sum(range(1, mine + 1))
        assert comm.exscan(mine) == sum(range(1, mine))
        total = comm.reduce(mine, root=2)
        assert total == 6 if comm.rank == 2 else total is None
        assert comm.sendrecv(mine, (comm.rank + 1) % 3, source=(comm.rank - 1) % 3) == (comm.rank - 1) % 3 + 1
        into = np.zeros(())
        assert comm.allreduce(float(mine), into) is into
        assert into == 6
        # A request has the destination itself until it has ended.
        request = comm.allreduce_async(mine)
        assert isinstance(request.result, np.ndarray)
        assert request.wait() == 6
        assert isinstance(request.result, np.int64)

    ThreadJob(3, timeout=60).run(member)


def test_lists() -> None:
    def member(comm: Communicator) -> None:
        np.testing.assert_array_equal(comm.allreduce([comm.rank, 1.5]), [1, 3])
        np.testing.assert_array_equal(comm.allreduce(((1, 2), (3, comm.rank)), op="max"), [[1, 2], [3, 1]])
        np.testing.assert_array_equal(comm.allgather((comm.rank, 7)), [[0, 7], [1, 7]])
        block = comm.scatter([1, 2, 3, 4] if comm.rank == 0 else None)
        np.testing.assert_array_equal(block, [1 + 2 * comm.rank, 2 + 2 * comm.rank])
        counts = [1, 2]
        np.testing.assert_array_equal(comm.allgatherv([comm.rank] * counts[comm.rank], None, counts), [0, 1, 1])
        assert comm.allreduce([]).size == 0
        if comm.rank == 0:
            comm.send([1, 2, 3], 1)
        else:
            np.testing.assert_array_equal(comm.recv(np.zeros(5, int), 0), [1, 2, 3])

    ThreadJob(2, timeout=60).run(member)


def test_views_of_one_array_may_overlap_where_they_are_packed() -> None:
    def member(comm: Communicator) -> None:
        array = np.arange(6.0)
        comm.allreduce(array[::-1], array)
        np.testing.assert_array_equal(array, [10, 8, 6, 4, 2, 0])
        comm.allreduce(array[::2], array[1::2])
        np.testing.assert_array_equal(array, [10, 20, 6, 12, 2, 4])

    ThreadJob(2, timeout=60).run(member)


def test_a_packed_source_is_free_once_the_call_has_started() -> None:
    def member(comm: Communicator) -> None:
        array = np.full((2, 50_000), comm.rank + 1.0)
        request = comm.allreduce_async(array[:, ::2])
        array[...] = -1
        np.testing.assert_array_equal(request.wait(), np.full((2, 25_000), 3))

    ThreadJob(2, timeout=60).run(member)


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[::2],
        lambda array: array.reshape(1, 2)[:, ::2],
        lambda array: array[np.newaxis, :, np.newaxis],
    ],
    ids=["one element of two", "one column of two", "axes of one"],
)
def test_what_numpy_calls_contiguous_is_not_copied(view: Callable[[Array], Array]) -> None:
    def member(comm: Communicator) -> None:
        array = np.full(2, comm.rank + 1.0)
        src = view(array)
        assert src.flags.c_contiguous
        request = comm.allreduce_async(src, start=False)  # which refuses what would be packed
        for factor in (1, 10):
            array[:] = factor * (comm.rank + 1)
            request.start()
            np.testing.assert_array_equal(request.wait(), np.full(src.shape, 3 * factor))

    ThreadJob(2, timeout=60).run(member)


ENDINGS: dict[str, Callable[[Request], Any]] = {
    "wait": lambda request: request.wait(),
    "test": lambda request: [None for _ in iter(request.test, True)],
    "wait_any": lambda request: unisono.wait_any([None, request]),
    "wait_some": lambda request: unisono.wait_some([None, request]),
    "wait_all": lambda request: unisono.wait_all([None, request]),
    "test_any": lambda request: [None for _ in iter(lambda: unisono.test_any([None, request]), 1)],
    "test_all": lambda request: [None for _ in iter(lambda: unisono.test_all([None, request]), True)],
    "await": lambda request: asyncio.run(awaited(request)),
}


async def awaited(request: Request) -> Any:
    return await request


@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_sees_the_end_unpacks(ending: str) -> None:
    def member(comm: Communicator) -> None:
        memory = np.full(20, -1.0)
        request = comm.allreduce_async(np.full(10, comm.rank + 1.0), memory[::2])
        assert request.result is not None
        assert request.result.base is memory
        ENDINGS[ending](request)
        np.testing.assert_array_equal(memory, [3, -1] * 10)
        memory[...] = 0
        request.wait()  # once is enough: what the user has written since stays
        assert not memory.any()

    ThreadJob(2, timeout=60).run(member)


def test_a_callback_finds_the_result() -> None:
    def member(comm: Communicator) -> None:
        memory, seen = np.zeros(6), []
        called = threading.Event()

        def look(request: Request) -> None:
            seen.append(memory.tolist())
            called.set()

        request = comm.allreduce_async(np.arange(3.0), memory[::2])
        request.add_done_callback(look)
        request.wait()
        assert called.wait(10)
        assert seen == [[0, 0, 2, 0, 4, 0]]

    ThreadJob(2, timeout=60).run(member)


def test_calls_of_a_group_are_unpacked_one_by_one() -> None:
    def member(comm: Communicator) -> None:
        memory = np.zeros((3, 4), order="F")
        with comm.group():
            requests = [comm.allreduce_async(np.full(4, row + 1.0), memory[row]) for row in range(3)]
        for row, request in enumerate(requests):
            request.wait()
            np.testing.assert_array_equal(memory[: row + 1], np.outer(np.arange(1, row + 2) * 2.0, np.ones(4)))

    ThreadJob(2, timeout=60).run(member)


def test_a_failed_call_leaves_a_packed_destination() -> None:
    def member(comm: Communicator) -> None:
        memory = np.zeros(8)
        if comm.rank == 0:
            request = comm.recv_async(memory[::2], 1, timeout=0.2)
            with pytest.raises(unisono.UnisonoError):  # late, or the peer has left
                request.wait()
            assert not memory.any()

    ThreadJob(2, timeout=60).run(member)


def test_types_of_bytes_and_of_peers_are_packed_too() -> None:
    """An alltoallw counts in bytes of the packed copy; programs are bound to it."""

    def member(comm: Communicator) -> None:
        table = np.asfortranarray(np.arange(4, dtype="i4").reshape(2, 2) + 10 * comm.rank)
        into = np.zeros((4, 2), "i4")[::2]
        comm.alltoallw(table, into, [2, 2], ["i4"] * 2, [2, 2], ["i4"] * 2)
        np.testing.assert_array_equal(into, [[2 * comm.rank, 2 * comm.rank + 1],
                                             [10 + 2 * comm.rank, 11 + 2 * comm.rank]])  # fmt: skip
        doubled = np.zeros((3, 2), order="F")
        assert comm.run_program(swap, np.arange(12.0).reshape(3, 4)[:, ::2] + 100 * comm.rank, doubled) is doubled
        np.testing.assert_array_equal(doubled, [[100 - 100 * comm.rank + column + 4 * row for column in (0, 2)]
                                                for row in range(3)])  # fmt: skip

    def exchange(p: unisono.Builder) -> None:
        p.move(take=p.src(0, 6), send=p.message(1 - p.rank))
        p.move(take=p.arrival(1 - p.rank), keep=p.dst(0, 6))

    swap = unisono.Program.build(2, exchange, dtype="fp64")
    ThreadJob(2, timeout=60).run(member)


def test_bytes_of_numpy_are_bytes() -> None:
    def member(comm: Communicator) -> None:
        gathered = comm.allgather(np.bytes_(b"ab" if comm.rank else b"cd"))
        assert gathered.tobytes() == b"cdab"
        with pytest.raises(unisono.ReadOnlyBufferError):
            comm.bcast(np.bytes_(b"ab"))

    ThreadJob(2, timeout=60).run(member)


def windows(length: int, of: int) -> Array:
    """A writable view of overlapping windows."""
    return np.lib.stride_tricks.sliding_window_view(np.zeros(length), of, writeable=True)


def strided(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any = np.int32) -> Array:
    """A view with any strides, of memory that has room for it."""
    room = sum((length - 1) * abs(step) for length, step in zip(shape, strides, strict=True))
    memory = np.zeros(room + np.dtype(dtype).itemsize, np.uint8)
    begin = sum((1 - length) * min(0, step) for length, step in zip(shape, strides, strict=True))
    return np.ndarray(shape, dtype, memory, begin, strides)


def shares(array: Array) -> bool:
    """Whether some two elements of an array have a byte in common, found byte by byte."""
    begins = sum(
        (np.arange(length).reshape([-1 if a == axis else 1 for a in range(array.ndim)]) * step
         for axis, (length, step) in enumerate(zip(array.shape, array.strides, strict=True))),
        start=np.zeros((), int),
    )  # fmt: skip
    taken = np.broadcast_to(begins, array.shape).reshape(-1, 1) + np.arange(array.itemsize)
    return int(np.unique(taken).size) != taken.size


@pytest.mark.parametrize(
    "dst",
    [
        windows(6, 2),
        windows(6, 2)[::-1],
        windows(6, 2).T,
        windows(9, 3)[::2],
        strided((3, 4), (4, 4)),
        strided((3, 4), (12, 4)),
        strided((4, 3), (8, 12)),  # neither stride covers the other's axis
        strided((4,), (2,)),  # in the midst of an element
        strided((1 << 20, 1 << 20), (4, 4)),
    ],
    ids=lambda dst: f"{dst.shape} {dst.strides}",
)
def test_destinations_whose_elements_overlap_are_refused(dst: Array) -> None:
    def member(comm: Communicator) -> None:
        src = np.broadcast_to(np.array(comm.rank, dst.dtype), dst.shape)
        for call in (lambda: comm.copy(src, dst), lambda: comm.bcast(dst), lambda: comm.allreduce(IN_PLACE, dst)):
            with pytest.raises(InvalidArgumentError, match="elements that share their memory"):
                call()
        comm.barrier()

    ThreadJob(2, timeout=60).run(member)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-20, 20)), min_size=1, max_size=4),
    st.sampled_from([np.int8, np.int32, np.float64]),
)
@settings(max_examples=400, deadline=None)
def test_overlap_is_found_exactly(axes: list[tuple[int, int]], dtype: Any) -> None:
    array = strided(tuple(length for length, _ in axes), tuple(step for _, step in axes), dtype)
    if shares(array):
        with pytest.raises(InvalidArgumentError, match="share their memory"):
            writable("call", "dst", array)
    else:
        assert writable("call", "dst", array) is array


def test_a_source_may_overlap_with_itself() -> None:
    def member(comm: Communicator) -> None:
        series = np.arange(6.0) * (comm.rank + 1)
        windows = np.lib.stride_tricks.sliding_window_view(series, 3)
        np.testing.assert_array_equal(comm.allreduce(windows), windows / (comm.rank + 1) * 3)

    ThreadJob(2, timeout=60).run(member)
