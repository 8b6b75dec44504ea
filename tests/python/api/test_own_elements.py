"""Elements that have no datatype travel as bytes, in all calls that do not compute; every rank has different data."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob

P = 3
PARTICLE = np.dtype([("name", "S5"), ("at", "f4", (3,)), ("born", "M8[ms]")])
DTYPES = {
    "S8": np.dtype("S8"),
    "unicode": np.dtype("U3"),
    "structure": PARTICLE,
    "aligned structure": np.dtype([("a", "i1"), ("b", "f8")], align=True),
    "void": np.dtype("V7"),
    "datetime": np.dtype("M8[us]"),
    "timedelta": np.dtype("m8[s]"),
    "big-endian": np.dtype(">i4"),
    "long double": np.dtype(np.longdouble),
    "float8": np.dtype(ml_dtypes.float8_e4m3fn),
}


@pytest.fixture(params=DTYPES.values(), ids=DTYPES.keys())
def dtype(request: pytest.FixtureRequest) -> np.dtype:
    return request.param


def values(rank: int, n: int, dtype: np.dtype) -> np.ndarray:
    """Elements that differ from one another and from those of other ranks."""
    numbers = 20 * rank + np.arange(n)
    made = np.zeros(n, dtype)
    if dtype.names:
        for name in dtype.names:
            made[name] = values(rank, n, dtype[name]) if dtype[name].subdtype is None else numbers[:, np.newaxis]
        return made
    if dtype.kind in "SU":
        return np.array([f"{number}".encode() if dtype.kind == "S" else f"{number}" for number in numbers], dtype)
    if dtype.type is np.void:
        made.view(np.uint8).reshape(n, dtype.itemsize)[...] = numbers[:, np.newaxis]
        return made
    return numbers.astype(dtype)


def same(given: np.ndarray | None, expected: np.ndarray) -> None:
    assert given is not None
    assert given.dtype == expected.dtype
    assert given.shape == expected.shape
    assert np.array_equal(given, expected)


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """As `numpy.concatenate`, which changes the byte order."""
    whole = np.zeros(sum(part.size for part in parts), parts[0].dtype)
    at = 0
    for part in parts:
        whole[at : at + part.size] = part
        at += part.size
    return whole


def run(function: Callable[[Communicator], object]) -> list:
    return ThreadJob(P, timeout=30).run(function)


def test_every_collective_that_moves(dtype: np.dtype) -> None:
    n = 4
    everyone = joined([values(rank, n, dtype) for rank in range(P)]).reshape(P, n)
    blocks = joined([values(rank, P, dtype) for rank in range(P)]).reshape(P, P)  # one element for each pair

    def member(comm: Communicator) -> None:
        mine = everyone[comm.rank].copy()
        same(comm.copy(mine), mine)
        same(comm.bcast(mine.copy(), root=1), everyone[1])
        same(comm.allgather(mine), everyone)
        placed = np.zeros_like(everyone)
        placed[comm.rank] = mine
        same(comm.allgather(IN_PLACE, placed), everyone)
        gathered = comm.gather(mine, root=2)
        if comm.rank == 2:
            same(gathered, everyone)
        same(comm.scatter(gathered, np.zeros(n, dtype), root=2), mine)
        same(comm.alltoall(blocks[comm.rank].copy()), np.ascontiguousarray(blocks[:, comm.rank]))

    run(member)


def test_counts_are_of_elements(dtype: np.dtype) -> None:
    counts = [2, 0, 3]
    everyone = [values(rank, 6, dtype) for rank in range(P)]
    packed = joined([everyone[rank][: counts[rank]] for rank in range(P)])

    def member(comm: Communicator) -> None:
        mine = everyone[comm.rank][: counts[comm.rank]].copy()
        same(comm.allgatherv(mine, None, counts), packed)
        spread = comm.gatherv(mine, None, counts, root=1, displacements=[4, 4, 0])
        if comm.rank == 1:
            assert spread is not None
            same(spread[4:6], packed[:2])
            same(spread[:3], packed[2:])
        same(comm.scatterv(packed, np.zeros(counts[comm.rank], dtype), counts), mine)
        same(comm.bcast(everyone[comm.rank].copy(), count=2)[:2], everyone[0][:2])
        sends = [comm.rank + 1] * P
        turned = comm.alltoallv(np.repeat(mine_for(comm.rank), sends), None, sends, [1, 2, 3])
        same(turned, joined([np.repeat(mine_for(rank)[comm.rank : comm.rank + 1], rank + 1) for rank in range(P)]))
        own = comm.alltoallv(IN_PLACE, mine_for(comm.rank), None, [1] * P)
        same(own, joined([mine_for(rank)[comm.rank : comm.rank + 1] for rank in range(P)]))

    def mine_for(rank: int) -> np.ndarray:
        return values(rank, P, dtype)

    run(member)


def test_messages_windows_and_neighbours(dtype: np.dtype) -> None:
    def member(comm: Communicator) -> None:
        right, left = (comm.rank + 1) % P, (comm.rank - 1) % P
        mine, theirs = values(comm.rank, 3, dtype), values(left, 3, dtype)
        sending = comm.send_async(mine, right)
        receiving = comm.recv_async(np.zeros(5, dtype), left)
        sending.wait()
        result = receiving.wait()
        assert receiving.received == 3
        assert result is not None
        same(result[:3], theirs)
        same(comm.sendrecv(mine, right, np.zeros(5, dtype), left), theirs)
        window = np.zeros(3, dtype)
        comm.window(window)
        comm.put(mine[1:], right, offset=dtype.itemsize)
        comm.barrier()
        same(window[1:], theirs[1:])
        same(comm.get(np.zeros(2, dtype), right, offset=dtype.itemsize), mine[1:])
        comm.window(None)
        ring = comm.graph([left], [right])
        same(comm.neighbour_allgather(ring, mine), theirs[np.newaxis])
        same(comm.neighbour_alltoall(ring, mine), theirs[np.newaxis])
        counts = [[2, 3, 1][left]]
        same(comm.neighbour_alltoallv(ring, mine, None, [[2, 3, 1][comm.rank]], counts), theirs[: counts[0]])
        same(comm.neighbour_allgatherv(ring, mine, None, [3]), theirs)

    run(member)


def test_a_dtype_for_each_peer() -> None:
    dtypes = [np.dtype("S5"), PARTICLE, np.dtype("i4")]  # of what comes from rank r
    data = [values(rank, P, dtypes[rank]) for rank in range(P)]

    def member(comm: Communicator) -> None:
        dst = np.zeros(sum(dtype.itemsize for dtype in dtypes), np.uint8)
        comm.alltoallw(data[comm.rank], dst, [1] * P, [dtypes[comm.rank]] * P, [1] * P, dtypes)
        assert dst.tobytes() == b"".join(data[rank][comm.rank : comm.rank + 1].tobytes() for rank in range(P))

    run(member)


def test_arrays_without_axes_and_without_elements(dtype: np.dtype) -> None:
    def member(comm: Communicator) -> None:
        one = values(comm.rank, 1, dtype).reshape(())
        same(comm.bcast(one.copy(), root=2), values(2, 1, dtype).reshape(()))
        same(comm.allgather(np.zeros((0, 2), dtype)), np.zeros((P, 0, 2), dtype))

    run(member)


def test_memory_that_ranks_share(dtype: np.dtype) -> None:
    n = 5000

    def member(comm: Communicator) -> None:
        mine = comm.empty(n, dtype)
        mine[...] = values(comm.rank, n, dtype) if dtype.kind not in "SU" else b"abc"[comm.rank : comm.rank + 1]
        same(comm.allgather(mine)[comm.rank], mine)

    if dtype.itemsize > 1:  # the numbers do not fit
        run(member)


def test_other_lengths_are_found() -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises((unisono.MismatchedCallError, unisono.RevokedError)) as failure:
            comm.allgather(np.zeros(2, "S8" if comm.rank else "S6"))
        return str(failure.value)

    texts = run(member)
    assert any("12 byte" in text and "16 byte" in text for text in texts), texts


def test_half_an_element_is_none() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.zeros(3, "S4"), 1)
        elif comm.rank == 1:
            with pytest.raises(unisono.MismatchedCallError, match="12 bytes came, which are no whole elements of 8"):
                comm.recv(np.zeros(2, "S8"), 0)
        comm.barrier()

    run(member)


@pytest.mark.parametrize("platform", ["native", "functional"])
def test_over_messages_and_on_devices_too(dtype: np.dtype, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNISONO_PLATFORM", platform)
    everyone = joined([values(rank, 6, dtype) for rank in range(P)]).reshape(P, 6)

    def member(comm: Communicator) -> None:
        mine = everyone[comm.rank].copy()
        same(comm.allgather(mine), everyone)
        same(comm.scatter(mine if comm.rank == 1 else None, root=1), everyone[1].reshape(P, 2)[comm.rank])
        same(comm.sendrecv(mine, (comm.rank + 1) % P, source=(comm.rank - 1) % P), everyone[(comm.rank - 1) % P])

    ThreadJob(P, timeout=30, lanes=False).run(member)
