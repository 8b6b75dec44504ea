"""What a buffer may be: docs/buffers.md."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob

P = 3


def run(member: Callable[[Communicator], Any], **settings: Any) -> list[Any]:
    return ThreadJob(P, timeout=30, **settings).run(member)


def total(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float64) * P + sum(range(P))


def mine(comm: Communicator, count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float64) + comm.rank


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("count", [3, 500, 100_001])
def test_any_alignment(count: int, lanes: bool) -> None:
    """Not even that of the elements; and no byte beside the buffer is touched."""

    def member(comm: Communicator) -> None:
        for shift in (1, 3, 4, 63):
            places = [np.full(8 * count + 128, 0x5A, np.uint8) for _ in range(2)]
            src, dst = (place[shift : shift + 8 * count].view(np.float64) for place in places)
            assert shift % 8 == 0 or not src.flags.aligned or src.ctypes.data % 8 == 0
            src[:] = mine(comm, count)
            comm.allreduce(src, dst)
            np.testing.assert_array_equal(dst, total(count))
            np.testing.assert_array_equal(src, mine(comm, count))
            for place in places:
                assert (place[:shift] == 0x5A).all()
                assert (place[shift + 8 * count :] == 0x5A).all()

    run(member, lanes=lanes)


@pytest.mark.parametrize("count", [3, 100_001])
def test_sources_in_memory_that_cannot_be_written(count: int, tmp_path: Path) -> None:
    def member(comm: Communicator) -> None:
        path = tmp_path / f"{comm.rank}"
        mine(comm, count).tofile(path)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            np.testing.assert_array_equal(comm.allreduce(np.frombuffer(mapped)), total(count))
            with pytest.raises(unisono.ReadOnlyBufferError, match="dst is read-only"):
                comm.allreduce(mine(comm, count), np.frombuffer(mapped))
        result = np.memmap(path, np.float64, "r+")
        comm.allreduce(mine(comm, count), result)
        np.testing.assert_array_equal(np.fromfile(path), total(count))

    run(member)


class Tensor:
    """What other libraries hand on by DLPack."""

    def __init__(self, held: np.ndarray, device: tuple[int, int] | None = None) -> None:
        self.held = held
        self.device = device

    def __dlpack__(self, **options: Any) -> Any:
        if self.device is not None:
            raise BufferError("in the memory of a device")
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.held.__dlpack_device__()


@pytest.mark.parametrize(
    "buffer",
    [
        lambda values: array.array("d", values),
        lambda values: memoryview(bytearray(values.tobytes())).cast("d"),
        lambda values: Tensor(values.copy()),
        lambda values: values.reshape(2, -1),
        lambda values: np.float64(0) + values.reshape(1, 2, -1),
    ],
    ids=["array.array", "memoryview", "DLPack", "rows", "boxes"],
)
def test_objects_with_memory(buffer: Callable[[np.ndarray], Any]) -> None:
    def member(comm: Communicator) -> None:
        given = buffer(mine(comm, 6))
        np.testing.assert_array_equal(comm.allreduce(given).reshape(-1), total(6))
        comm.allreduce(IN_PLACE, given)  # as a destination, and it is its own memory that is written
        held = np.asarray(given.held if isinstance(given, Tensor) else given)
        np.testing.assert_array_equal(held.reshape(-1), total(6))

    run(member)


def test_bytes_and_bytearrays_are_of_uint8() -> None:
    def member(comm: Communicator) -> None:
        largest = bytearray(3)
        comm.allreduce(bytes([comm.rank, 7, 200]), largest, "max")
        assert largest == bytes([P - 1, 7, 200])

    run(member)


def test_memory_of_a_device_is_refused() -> None:
    def member(comm: Communicator) -> None:
        with pytest.raises(unisono.InvalidArgumentError, match="in host memory"):
            comm.allreduce(Tensor(np.zeros(3), (2, 0)))

    run(member)


def test_only_what_a_call_needs_is_touched() -> None:
    def member(comm: Communicator) -> None:
        long = np.full(10, 9.0)
        comm.allreduce(mine(comm, 4), long)
        np.testing.assert_array_equal(long, [*total(4), *[9.0] * 6])
        # Between blocks, too; and a destination that has no result is not looked at.
        gathered = np.full(12, 9.0)
        counts, places = [1, 2, 0], [8, 3, 11]
        comm.gatherv(mine(comm, counts[comm.rank]), gathered, counts, 0, displacements=places)
        expected = np.full(12, 9.0)
        if comm.rank == 0:
            expected[[8, 3, 4]] = [0, 1, 2]
        np.testing.assert_array_equal(gathered, expected)
        comm.reduce(mine(comm, 3), gathered[:1] if comm.rank else np.empty(3), root=0)

    run(member)


def test_blocks_that_are_read_may_overlap_and_those_that_are_written_may_not() -> None:
    def member(comm: Communicator) -> None:
        places = [0, 1, 2]
        arrived = comm.alltoallv(mine(comm, 4), np.empty(2 * P), [2] * P, [2] * P, send_displacements=places)
        np.testing.assert_array_equal(arrived.reshape(P, 2)[:, 0], np.arange(P) + comm.rank)
        with pytest.raises(unisono.OverlappingBuffersError, match="recv_displacements make the blocks"):
            comm.alltoallv(mine(comm, 4), np.empty(2 * P), [2] * P, [2] * P, recv_displacements=places)
        comm.barrier()

    run(member)


def test_several_calls_may_read_one_buffer_at_once() -> None:
    def member(comm: Communicator) -> None:
        source = mine(comm, 5000)
        for request in [comm.allreduce_async(source) for _ in range(4)]:
            np.testing.assert_array_equal(request.wait(), total(5000))

    run(member)


def test_a_call_in_flight_holds_its_buffers() -> None:
    def member(comm: Communicator) -> None:
        text = bytearray(8)
        request = comm.allreduce_async(np.ones(1), memoryview(text).cast("d"))
        with pytest.raises(BufferError):
            text.extend(b"more")
        request.wait()
        assert np.frombuffer(text)[0] == P
        del request
        text.extend(b"more")

    run(member)


def test_arguments_that_are_no_buffers_are_copied() -> None:
    def member(comm: Communicator) -> None:
        counts = [1] * P
        request = comm.allgatherv_async(mine(comm, 1), np.empty(P), counts, start=False)
        counts[:] = [1000] * P
        request.start()
        np.testing.assert_array_equal(request.wait(), np.arange(P))

    run(member)
