"""The Python interface on thread jobs: results, shapes, requests, communicators. Every rank has different data."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob

P = 3


def mine(comm: Communicator, n: int, dtype: object = np.float64) -> np.ndarray:
    return (np.arange(n) * 10 + comm.rank + 1).astype(dtype)


def everyones(n: int) -> list[np.ndarray]:
    return [np.arange(n) * 10.0 + rank + 1 for rank in range(P)]


def run(function):
    return ThreadJob(P, timeout=30).run(function)


def test_allreduce_allocates_and_keeps_the_shape() -> None:
    results = run(lambda comm: comm.allreduce(mine(comm, 6).reshape(2, 3), op="max"))
    for result in results:
        np.testing.assert_array_equal(result, everyones(6)[2].reshape(2, 3))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_every_datatype(dtype: object) -> None:
    results = run(lambda comm: comm.allreduce(np.arange(5).astype(dtype) + np.asarray(comm.rank, dtype)))
    for result in results:
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.astype(np.float64), np.arange(5) * 3.0 + 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64])
def test_integers_wrap(dtype: type[np.integer]) -> None:
    largest = np.iinfo(dtype).max
    for result in run(lambda comm: comm.allreduce(np.array([largest, comm.rank], dtype))):
        assert result.dtype == dtype
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(result, [np.array([largest] * P, dtype).sum(dtype=dtype), 3])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype: type) -> None:
    results = run(lambda comm: comm.allreduce(np.array([1 + 2j, comm.rank + 1j], dtype), op="prod"))
    for result in results:
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, [(1 + 2j) ** 3, 1j * (1 + 1j) * (2 + 1j)])


def test_logic_and_bits() -> None:
    flags = run(lambda comm: comm.allreduce(np.array([comm.rank == 1, True, False]), op="logical_or"))
    for result in flags:
        assert result.dtype == np.bool_
        assert result.tolist() == [True, True, False]
    for result in run(lambda comm: comm.allreduce(np.array([7 << comm.rank, 12], np.uint8), op="bitwise_and")):
        assert result.tolist() == [4, 12]
    raw = run(lambda comm: comm.allreduce(np.array([1 << comm.rank], np.uint8).view("V1"), op="bitwise_xor"))
    for result in raw:
        assert result.view(np.uint8).tolist() == [7]


@pytest.mark.parametrize("name", ["fp32_int32", "fp64_int32", "int32_int32", "int64_int64"])
def test_where_the_least_stands(name: str) -> None:
    dtype = unisono.pair_dtype(name)

    def member(comm: Communicator) -> tuple[list, list]:
        pairs = np.zeros(3, dtype)
        pairs["value"] = [5 - comm.rank, comm.rank, 4]
        pairs["index"] = comm.rank * 10
        low = comm.allreduce(pairs, op="minloc")
        own = np.rec.fromrecords([(5 - comm.rank, 9)], dtype=dtype)  # another array type of the same layout
        high = comm.allreduce(own, op="maxloc")
        return low.tolist(), high.tolist()

    for low, high in run(member):
        assert low == [(3, 20), (0, 0), (4, 0)]
        assert high == [(5, 9)]


def test_pairs_are_known_by_their_layout() -> None:
    assert unisono.pair_dtype("fp64_int32").itemsize == 16
    renamed = np.dtype({"names": ["d", "k"], "formats": ["f8", "i4"], "itemsize": 16})
    for result in run(lambda comm: comm.allreduce(np.array([(1.5, 7 - comm.rank)], renamed), op="minloc")):
        assert result.dtype == renamed
        assert result.tolist() == [(1.5, 5)]
    with pytest.raises(unisono.InvalidDatatypeError, match="fp32_int32, fp64_int32"):
        unisono.pair_dtype("fp16_int32")


def test_means_are_equal_on_all_ranks() -> None:
    rng = np.random.default_rng(4)
    values = rng.standard_normal((P, 1000)).astype(np.float32)
    results = run(lambda comm: comm.allreduce(values[comm.rank], op="avg"))
    sums = run(lambda comm: comm.allreduce(values[comm.rank]))
    for result, total in zip(results, sums, strict=True):
        assert result.tobytes() == results[0].tobytes()
        assert result.tobytes() == (total / np.float32(P)).tobytes()


@pytest.mark.parametrize("twice", [False, True])
def test_in_place(twice: bool) -> None:
    def member(comm: Communicator) -> np.ndarray:
        data = mine(comm, 4)
        result = comm.allreduce(data if twice else IN_PLACE, data)
        assert result is data
        return data

    for result in run(member):
        np.testing.assert_array_equal(result, sum(everyones(4)))


def test_rooted_in_place_is_said_by_all() -> None:
    def member(comm: Communicator) -> np.ndarray | None:
        data = mine(comm, 4)
        if comm.rank == 1:
            return comm.reduce(IN_PLACE, data, root=1, in_place=True)
        return comm.reduce(data, root=1, in_place=True)

    results = run(member)
    assert results[0] is None
    assert results[2] is None
    np.testing.assert_array_equal(results[1], sum(everyones(4)))


def test_blocks_are_allocated_by_the_leading_axis() -> None:
    def member(comm: Communicator) -> tuple[np.ndarray, ...]:
        gathered = comm.allgather(mine(comm, 2))
        scattered = comm.reduce_scatter(gathered)
        turned = comm.alltoall(np.full((P, 2), comm.rank, np.int32))
        return gathered, scattered, turned

    for rank, (gathered, scattered, turned) in enumerate(run(member)):
        np.testing.assert_array_equal(gathered, everyones(2))
        np.testing.assert_array_equal(scattered, everyones(2)[rank] * P)
        np.testing.assert_array_equal(turned, [[0, 0], [1, 1], [2, 2]])


def test_gather_and_scatter() -> None:
    def member(comm: Communicator) -> tuple[object, object]:
        gathered = comm.gather(mine(comm, 2), root=2)
        block = comm.scatter(gathered, np.zeros(2), root=2)
        np.testing.assert_array_equal(comm.scatter(gathered, root=2), block)
        return gathered, block

    results = run(member)
    assert results[0][0] is None
    np.testing.assert_array_equal(results[2][0], everyones(2))
    for rank, (_, block) in enumerate(results):
        np.testing.assert_array_equal(block, everyones(2)[rank])


def test_v_collectives() -> None:
    counts = [2, 0, 3]

    def member(comm: Communicator) -> tuple[object, ...]:
        own = mine(comm, counts[comm.rank])
        gathered = comm.gatherv(own, None, counts, root=1, displacements=[4, 0, 0])
        everything = comm.allgatherv(own, None, counts)
        part = comm.scatterv(everything, np.zeros(counts[comm.rank]), counts, root=0)
        sends = [comm.rank + 1] * P
        turned = comm.alltoallv(np.full(sum(sends), comm.rank), None, sends, [1, 2, 3])
        return gathered, everything, part, turned

    values = everyones(3)
    results = run(member)
    np.testing.assert_array_equal(results[1][0][[0, 1, 2, 4, 5]], [*values[2], *values[0][:2]])
    for rank, (_, everything, part, turned) in enumerate(results):
        np.testing.assert_array_equal(everything, [*values[0][:2], *values[2]])
        np.testing.assert_array_equal(part, values[rank][: counts[rank]])
        np.testing.assert_array_equal(turned, [0, 1, 1, 2, 2, 2])


def test_reduce_scatterv() -> None:
    counts = [2, 0, 3]

    def member(comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
        whole = mine(comm, 6)
        block = comm.reduce_scatterv(whole, None, counts, displacements=[4, 0, 0])
        everything = whole[:5].copy()
        comm.reduce_scatterv_async(IN_PLACE, everything, counts, "max", algorithm="linear").wait()
        return block, everything

    values = everyones(6)
    total, largest = np.sum(values, axis=0), np.max(values, axis=0)
    results = run(member)
    for rank, (part, top) in enumerate(zip((total[4:6], [], total[0:3]), (largest[:2], [], largest[2:5]), strict=True)):
        block, everything = results[rank]
        np.testing.assert_array_equal(block, part)
        np.testing.assert_array_equal(everything[: counts[rank]], top)


def test_a_radix_is_written_behind_the_name() -> None:
    def member(comm: Communicator) -> list[np.ndarray]:
        return [comm.allreduce(mine(comm, 3), algorithm=f"recursive_multiplying{k}") for k in ("", ":2", ":3", ":200")]

    for sums in run(member):
        for total in sums:
            np.testing.assert_array_equal(total, np.sum(everyones(3), axis=0))
    radices = {str(a): a.radix for a in unisono.algorithms()}
    assert radices["bcast/knomial"] == 4
    assert radices["barrier/dissemination"] == 2
    assert radices["allreduce/ring"] == 0


def test_in_place_alltoallv_agrees_on_the_largest_block() -> None:
    sizes = np.array([[1, 4, 0], [4, 2, 3], [0, 3, 1]])

    def member(comm: Communicator) -> np.ndarray:
        own = sizes[comm.rank]
        data = np.concatenate([np.full(n, 10 * comm.rank + j) for j, n in enumerate(own)])
        comm.alltoallv(IN_PLACE, data, None, own)
        return data

    for rank, data in enumerate(run(member)):
        expected = np.concatenate([np.full(n, 10 * j + rank) for j, n in enumerate(sizes[rank])])
        np.testing.assert_array_equal(data, expected)


def test_messages_and_their_length() -> None:
    def member(comm: Communicator) -> np.ndarray:
        sending = comm.send_async(mine(comm, comm.rank + 1), (comm.rank + 1) % P, tag=7)
        received = comm.recv(np.zeros(8), (comm.rank - 1) % P, tag=7)
        sending.wait()
        return received

    for rank, received in enumerate(run(member)):
        left = (rank - 1) % P
        np.testing.assert_array_equal(received, everyones(left + 1)[left])


def test_window() -> None:
    def member(comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
        window = np.zeros(4, np.int64)
        comm.window(window)
        comm.put(np.full(2, comm.rank + 1), (comm.rank + 1) % P, offset=16)
        comm.barrier()
        got = comm.get(np.zeros(4, np.int64), (comm.rank + 1) % P)
        comm.window(None)
        return window, got

    for rank, (window, got) in enumerate(run(member)):
        np.testing.assert_array_equal(window, [0, 0, (rank - 1) % P + 1, (rank - 1) % P + 1])
        np.testing.assert_array_equal(got, [0, 0, rank + 1, rank + 1])


def test_requests_chain_and_complete() -> None:
    def member(comm: Communicator) -> np.ndarray:
        total, largest = np.zeros(4), np.zeros(4)
        first = comm.allreduce_async(mine(comm, 4), total)
        second = comm.allreduce_async(total, largest, "max", wait_for=[first])
        assert second.wait() is largest
        assert first.test()
        assert first.result is total
        return largest

    for result in run(member):
        np.testing.assert_array_equal(result, sum(everyones(4)))


def test_a_request_dropped_in_flight_keeps_its_memory() -> None:
    def member(comm: Communicator) -> np.ndarray:
        comm.send_async(np.full(50_000, comm.rank, np.int64), (comm.rank + 1) % P)
        result = comm.recv(np.zeros(50_000, np.int64), (comm.rank - 1) % P)
        comm.barrier()  # leaving the job would cancel what this rank still sends
        return result

    for rank, result in enumerate(run(member)):
        np.testing.assert_array_equal(result, (rank - 1) % P)


def test_split_orders_by_key_and_gives_none_for_no_colour() -> None:
    def member(comm: Communicator) -> tuple[int, int, float] | None:
        part = comm.split(None if comm.rank == 1 else 5, key=-comm.rank)
        if part is None:
            return None
        result = part.rank, part.size, float(part.allreduce(np.array([comm.rank + 1.0]))[0])
        part.free()
        return result

    assert run(member) == [(1, 2, 4.0), None, (0, 2, 4.0)]


def test_splits_from_two_threads_get_different_numbers() -> None:
    def member(comm: Communicator) -> list[float]:
        parents = [comm.split(0), comm.split(0)]
        sums: list[float] = [0.0, 0.0]

        def work(index: int) -> None:
            parent = parents[index]
            assert parent is not None
            child = parent.split(0)
            assert child is not None
            for _ in range(20):
                sums[index] = float(child.allreduce(np.array([(index + 1.0) * (comm.rank + 1)]))[0])

        threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return sums

    assert run(member) == [[6.0, 12.0]] * P


def test_other_buffers() -> None:
    def member(comm: Communicator) -> bytes:
        buffer = bytearray(b"root" if comm.rank == 0 else b"....")
        comm.bcast(buffer)
        return bytes(buffer)

    assert run(member) == [b"root"] * P


def test_results_come_by_rank_and_errors_name_the_rank() -> None:
    assert run(lambda comm: comm.rank * 2) == [0, 2, 4]

    def fails(comm: Communicator) -> None:
        if comm.rank == 1:
            raise KeyError("own")
        comm.barrier()

    with pytest.raises(KeyError) as failure:
        run(fails)
    assert "rank 1 of 3" in failure.value.__notes__[0]


def test_program_files_run(tmp_path) -> None:
    from unisono.cli import main

    path = tmp_path / "ring.uni"
    assert (
        main(["show", "allreduce/ring", "--ranks", str(P), "--count", "7", "--datatype", "fp64", "--file", str(path)])
        == 0
    )
    program = unisono.Program.load(path)
    assert program.size == P
    for result in run(lambda comm: comm.run_program(program, mine(comm, 7), np.zeros(7))):
        np.testing.assert_array_equal(result, sum(everyones(7)))
