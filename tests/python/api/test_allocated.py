"""Arrays in allocated memory: what they are, how long they live, and that calls reach them directly."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob
from unisono._arrays import allocation_of

ROOT = Path(__file__).resolve().parents[3]
PAGE = 4096


def processes(tmp_path: Path, ranks: int, text: str) -> str:
    """Output of a script on `ranks` processes; all must end well."""
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", str(ranks), str(script)],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64, "u1"])
@pytest.mark.parametrize("shape", [0, 5, (), (0, 3), (2, 3, 4), (PAGE + 1,), np.int64(7), [2, 2]])
def test_arrays_are_numpy_arrays_of_zeros(shape: Any, dtype: Any) -> None:
    with unisono.init() as context:
        for made in (context.zeros(shape, dtype), context.world.zeros(shape, dtype)):
            expected = np.zeros(shape, dtype)
            assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
            assert not made.view().astype(np.float64).any()
            assert made.flags.c_contiguous
            assert made.flags.writeable
            assert made.ctypes.data % PAGE == 0
            assert allocation_of(made) is not None
    assert context.world.size == 1


def advised_for_huge_pages(array: np.ndarray) -> list[bool]:
    """For each mapping that the array's memory is part of: whether the kernel was asked for huge pages."""
    begin, end = array.ctypes.data, array.ctypes.data + array.nbytes
    advised, inside = [], False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) < end and begin < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            advised.append("hg" in line.split())
    return advised


def test_huge_pages_are_asked_for_where_they_are_of_use() -> None:
    huge = 2 << 20
    with unisono.init() as context:
        small, large, larger = (context.empty(size, np.uint8) for size in (PAGE, huge, 3 * huge + 5))
        assert advised_for_huge_pages(small) == [False]
        for array in (large, larger):
            assert array.ctypes.data % huge == 0
            advised = advised_for_huge_pages(array)
            assert advised
            assert all(advised)


def test_the_default_is_float64_as_numpys() -> None:
    with unisono.init() as context:
        assert context.empty(3).dtype == np.float64
        assert context.zeros(3).dtype == np.float64


@pytest.mark.parametrize("shape", [np.array([2, 3]), np.array([], int), np.array(5), range(2, 4), [np.int8(2), 1]])
def test_shapes_are_what_numpy_takes(shape: Any) -> None:
    with unisono.init() as context:
        for made in (context.empty(shape), context.zeros(shape), context.world.zeros(shape)):
            assert made.shape == np.zeros(shape).shape


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "words"),
    [
        (-1, "f4", unisono.InvalidArgumentError, ["shape is -1", "0 and more"]),
        ((2, -3), "f4", unisono.InvalidArgumentError, ["(2, -3)", "0 and more"]),
        (2.5, "f4", unisono.InvalidArgumentError, ["shape is 2.5", "number of elements"]),
        ("ab", "f4", unisono.InvalidArgumentError, ["shape is 'ab'"]),
        ({2, 3}, "f4", unisono.InvalidArgumentError, ["shape is {2, 3}", "sequence of lengths"]),
        (np.array([2.0, 3.0]), "f4", unisono.InvalidArgumentError, ["shape is array([2., 3.])", "0 and more"]),
        (np.array([2, -3]), "f4", unisono.InvalidArgumentError, ["shape is array([ 2, -3])", "0 and more"]),
        (3, "no such", unisono.InvalidDatatypeError, ["'no such'"]),
        (3, object, unisono.InvalidDatatypeError, ["object", "hold no objects"]),
        (1 << 50, "f8", unisono.NoMemoryError, [str(1 << 53), "this machine has"]),
        ((1 << 40, 1 << 40), "f8", unisono.NoMemoryError, [str(1 << 83), "beyond any machine"]),
    ],
)
def test_what_cannot_be_had_is_refused(shape: Any, dtype: Any, error: type[Exception], words: list[str]) -> None:
    with unisono.init() as context:
        for make in (context.empty, context.zeros):
            with pytest.raises(error) as refusal:
                make(shape, dtype)
            for word in words:
                assert word in str(refusal.value)
        context.empty(10)[:] = 1  # and the next request is served


def test_more_than_the_rank_has_left_is_refused() -> None:
    piece = 9 << 30
    if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") < piece:
        pytest.skip("the machine has less memory than that")

    def member(comm: Communicator) -> str:
        held = comm.empty(piece, "u1")  # of the 16 GiB that a rank of a thread job has; no page is touched
        with pytest.raises(unisono.NoMemoryError) as refusal:
            comm.empty(piece, "u1")
        del held
        comm.empty(piece, "u1")
        return str(refusal.value)

    for text in ThreadJob(2).run(member):
        assert f"{piece} bytes in one piece are not left" in text


def test_memory_goes_back_with_the_last_view_and_comes_again_as_zeros() -> None:
    with unisono.init() as context:
        array = context.empty((100, 10), np.int32)
        array[:] = 1 + np.arange(1000).reshape(100, 10)
        place = array.ctypes.data
        view = array[50:, 3].view()
        del array
        gc.collect()
        other = context.empty(1000, np.int32)
        assert other.ctypes.data != place  # the view still holds it
        assert view[0] == 504
        del view, other
        gc.collect()
        again = context.empty(1000, np.int32)
        assert again.ctypes.data == place
        assert not again.any()


@pytest.mark.parametrize("threads", [False, True])
def test_arrays_outlive_their_context(threads: bool) -> None:
    def member(comm: Communicator) -> np.ndarray:
        array = comm.zeros(3 * PAGE, np.int64)
        array[:] = np.arange(3 * PAGE) * (comm.rank + 1)
        return array

    if threads:
        arrays = ThreadJob(3).run(member)
    else:
        with unisono.init() as context:
            arrays = [member(context.world)]
        with pytest.raises(unisono.WrongProcessError):
            context.empty(1)
    gc.collect()
    for rank, array in enumerate(arrays):
        np.testing.assert_array_equal(array, np.arange(3 * PAGE) * (rank + 1))
        array += 1
    del array, arrays
    gc.collect()


def test_a_running_call_holds_the_memory() -> None:
    def member(comm: Communicator) -> np.ndarray:
        source = comm.empty(1 << 16, np.float32)
        source[:] = np.arange(1 << 16) % 1000 + comm.rank
        request = comm.allreduce_async(source)
        del source
        gc.collect()
        return request.wait()

    for result in ThreadJob(3).run(member):
        np.testing.assert_array_equal(result, 3 * (np.arange(1 << 16) % 1000) + 3)


def test_results_made_for_a_source_are_where_it_is() -> None:
    n = 6

    def member(comm: Communicator) -> None:
        for make, allocated in ((comm.zeros, True), (np.zeros, False)):
            x = make(n * comm.size, np.float32)
            results = [
                comm.allreduce(x), comm.scan(x), comm.exscan(x), comm.reduce_scatter(x), comm.allgather(x),
                comm.alltoall(x), comm.copy(x), comm.allreduce_async(x).wait(), comm.allgatherv(x, None, [x.size] * 2),
            ]  # fmt: skip
            results += [r for r in (comm.reduce(x), comm.gather(x)) if r is not None]
            assert [allocation_of(r) is not None for r in results] == [allocated] * len(results)

    ThreadJob(2).run(member)


DIRECT = """
import numpy as np, unisono
with unisono.init(timeout=60) as context:
    comm = context.world
    n = 100_003

    def make(ordinary):
        array = np.zeros(n, np.int64) if ordinary else context.zeros(n, np.int64)
        array[:] = np.arange(n) * (comm.rank + 1)
        return array

    expected = np.arange(n) * sum(range(1, comm.size + 1))
    # All buffers allocated, whole or in parts: the algorithm that reads and writes them where they are runs.
    result = comm.allreduce(make(False), algorithm="direct")
    assert np.array_equal(result, expected)
    whole = context.zeros(2 * n + 7, np.int64)
    whole[5 : n + 5] = make(False)
    comm.allreduce(whole[5 : n + 5], whole[n + 6 : 2 * n + 6], algorithm="direct")
    assert np.array_equal(whole[n + 6 : 2 * n + 6], expected)
    assert whole[n + 5] == whole[2 * n + 6] == 0
    # One rank's source, or one rank's destination, in ordinary memory: refused on all ranks if it was named, and
    # served without it if not.
    for ordinary_src, ordinary_dst in ((comm.size - 1, None), (None, 0), (0, 0)):
        src, dst = make(comm.rank == ordinary_src), make(comm.rank == ordinary_dst)
        try:
            comm.allreduce(src, dst, algorithm="direct")
            raise SystemExit("should have been refused")
        except unisono.UnsupportedError as refusal:
            assert "Allocate them" in str(refusal), refusal
        comm.allreduce(src, dst)
        assert np.array_equal(dst, expected), (comm.rank, ordinary_src, ordinary_dst)
    comm.barrier()
print("good")
"""


def test_direct_access_between_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNISONO_KERNEL_COPY", "off")  # which would reach ordinary memory, too
    assert processes(tmp_path, 3, DIRECT).count("good") == 3


FORK = """
import os, gc, numpy as np, unisono
with unisono.init() as context:
    array = context.zeros(5000, np.int64)
    array[:] = np.arange(5000)
    child = os.fork()
    if child == 0:
        del array  # not the child's to give back
        gc.collect()
        try:
            context.empty(5)
        except unisono.WrongProcessError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert np.array_equal(array, np.arange(5000)), "the child gave back its parent's memory"
    context.world.barrier()
# Arrays that live until the interpreter's end are harmless.
print("good")
"""


def test_a_child_of_fork_leaves_its_parents_memory_alone(tmp_path: Path) -> None:
    assert processes(tmp_path, 2, FORK).count("good") == 2


def test_a_thread_job_reaches_ordinary_memory_too() -> None:
    def member(comm: Communicator) -> np.ndarray:
        return comm.allreduce(np.arange(5000) * (comm.rank + 1), algorithm="direct")

    for result in ThreadJob(4).run(member):
        np.testing.assert_array_equal(result, np.arange(5000) * 10)


def test_without_lanes_nothing_is_direct() -> None:
    def member(comm: Communicator) -> None:
        x = comm.zeros(1 << 14)
        x[:] = comm.rank + 1
        with pytest.raises(unisono.UnsupportedError):
            comm.allreduce(x, algorithm="direct")
        np.testing.assert_array_equal(comm.allreduce(x), np.full(1 << 14, 3.0))

    ThreadJob(2, lanes=False).run(member)


@pytest.mark.parametrize("given", [0, 1, None, "yes"])
def test_lanes_are_there_or_not(given: Any) -> None:
    calls: list[Callable[[], object]] = [lambda: unisono.init(lanes=given), lambda: ThreadJob(2, lanes=given)]
    for call in calls:
        with pytest.raises(unisono.InvalidArgumentError, match=r"lanes is .* allowed are True"):
            call()
