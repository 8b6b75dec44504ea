"""Python objects of any kind as messages."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
import unisono
from hypothesis import given, settings
from hypothesis import strategies as st
from unisono import Communicator, InvalidArgumentError, ThreadJob
from unisono._objects import opened, packed


class Thing:
    """Something of a program's own, with an array inside."""

    def __init__(self, rank: int, elements: int) -> None:
        self.name = f"thing {rank}"
        self.array = np.full((elements, 2), rank + 0.5)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and self.name == other.name and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]


def things(rank: int) -> list[Any]:
    """Objects that differ on every rank, from none to megabytes."""
    return [
        None,
        rank,
        {"rank": rank, "list": list(range(rank)), "text": "ä" * rank},
        (np.float32(rank), b"x" * rank, {1, rank}),
        Thing(rank, 3),
        Thing(rank, 40_000),
        [np.arange(rank * 1000), np.asfortranarray(np.full((3, 5), rank)), np.array(["a", "bc"])],
        "long " * (400 + rank),
    ]


def same(one: Any, other: Any) -> bool:
    """Whether two objects are equal, arrays in them included."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=3000),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@settings(max_examples=200, deadline=None)
def test_what_is_packed_is_opened(value: Any) -> None:
    data = packed(value)
    assert data.size % 64 == 0
    assert opened(data) == value


def test_arrays_are_apart_from_the_stream_aligned_and_writable() -> None:
    value = {"a": np.arange(1000.0), "b": np.arange(7, dtype=np.int8), "c": np.arange(1000.0)[::2]}
    data = packed(value)
    assert data.tobytes().count(np.arange(1000.0).tobytes()) == 1
    result = opened(data)
    for name, array in value.items():
        np.testing.assert_array_equal(result[name], array)
        result[name][0] = 5
    assert result["a"].ctypes.data % 64 == data.ctypes.data % 64


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_all_calls_on_objects_that_differ_by_rank(size: int) -> None:
    def member(comm: Communicator) -> None:
        everybody = [things(rank) for rank in range(comm.size)]
        for at, mine in enumerate(things(comm.rank)):
            root = at % comm.size
            expected = [of_rank[at] for of_rank in everybody]
            assert same(comm.bcast_object(mine, root), expected[root])
            assert same(comm.allgather_object(mine), expected)
            gathered = comm.gather_object(mine, root)
            assert same(gathered, expected) if comm.rank == root else gathered is None
            assert same(comm.scatter_object(expected if comm.rank == root else None, root), expected[comm.rank])
            if comm.size > 1:
                right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
                if comm.rank % 2 == 0:
                    comm.send_object(mine, right, 7)
                    assert same(comm.recv_object(left, 7), expected[left])
                else:
                    received = comm.recv_object(left, 7)
                    comm.send_object(mine, right, 7)
                    assert same(received, expected[left])

    ThreadJob(size, timeout=60).run(member)


def test_what_arrives_is_a_copy_of_ones_own_and_ones_own_is_itself() -> None:
    def member(comm: Communicator) -> None:
        mine = Thing(comm.rank, 10)
        there = comm.bcast_object(mine, 0)
        assert (there is mine) == (comm.rank == 0)
        there.array[0, 0] = -comm.rank
        comm.barrier()
        assert there.array[0, 0] == -comm.rank
        assert comm.allgather_object(mine)[comm.rank] is mine

    ThreadJob(3, timeout=60).run(member)


CALLS: dict[str, Any] = {
    "bcast_object": lambda comm, value: comm.bcast_object(value, 1),
    "allgather_object": lambda comm, value: comm.allgather_object(value),
    "gather_object": lambda comm, value: comm.gather_object(value, 2),
    "scatter_object": lambda comm, value: comm.scatter_object([value] * comm.size if comm.rank == 1 else None, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_who_cannot_pickle_its_object_says_so_to_all(name: str) -> None:
    def member(comm: Communicator) -> str:
        value = threading.Lock() if comm.rank == 1 else "an object"
        with pytest.raises(InvalidArgumentError) as caught:
            CALLS[name](comm, value)
        if comm.rank == 1:
            assert isinstance(caught.value.__cause__, TypeError | pickle.PicklingError)
        comm.barrier()  # nothing is left behind
        assert comm.bcast_object(comm.rank, 2) == 2
        return str(caught.value)

    for text in ThreadJob(3, timeout=60).run(member):
        assert f"{name}: rank 1 has no object to send: TypeError: cannot pickle" in text


def test_a_receiver_hears_that_there_is_no_object() -> None:
    def member(comm: Communicator) -> str:
        def exchange() -> None:
            if comm.rank == 0:
                comm.send_object(threading.Lock(), 1)
            else:
                comm.recv_object(0)

        with pytest.raises(InvalidArgumentError) as caught:
            exchange()
        return str(caught.value)

    for text in ThreadJob(2, timeout=60).run(member):
        assert "rank 0 has no object to send" in text


def test_wrong_uses_are_told() -> None:
    def member(comm: Communicator) -> None:
        with pytest.raises(InvalidArgumentError, match=r"values is 3 of them; needed is one for each of the 2 ranks"):
            comm.scatter_object([1, 2, 3], 0)
        with pytest.raises(InvalidArgumentError, match="values is None"):
            comm.scatter_object()
        if comm.rank == 0:
            comm.send(np.zeros(5, np.uint8), 1)
        else:
            with pytest.raises(InvalidArgumentError, match="5 bytes and is no object"):
                comm.recv_object(0)
        with pytest.raises(unisono.UnisonoError):
            comm.bcast_object(1, 9)

    ThreadJob(2, timeout=60).run(member)


@pytest.mark.parametrize(
    ("values", "kind"),
    [({0: "a", 1: "b", 2: "c"}, "dict"), ({"a", "b", "c"}, "set"), (iter([1, 2, 3]), "list_iterator"), (3, "int")],
    ids=["dict", "set", "iterator", "number"],
)
def test_what_is_no_sequence_is_not_scattered(values: Any, kind: str) -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises(InvalidArgumentError) as caught:
            comm.scatter_object(values if comm.rank == 1 else None, 1)
        assert comm.scatter_object(["a", "b", "c"] if comm.rank == 1 else None, 1) == "abc"[comm.rank]
        return str(caught.value)

    for text in ThreadJob(3, timeout=20).run(member):
        assert f"scatter_object: rank 1 has no object to send: InvalidArgumentError: values is a {kind}; " in text
        assert "pass a list, or another sequence, of one object for each of the 3 ranks" in text


@pytest.mark.parametrize(
    "values", [("a", "b"), np.array([5, 6]), np.arange(4.0).reshape(2, 2), "xy", deque(["p", "q"])], ids=repr
)
def test_sequences_of_all_kinds_are_scattered(values: Any) -> None:
    def member(comm: Communicator) -> None:
        assert same(comm.scatter_object(values if comm.rank == 0 else None), values[comm.rank])

    ThreadJob(2, timeout=20).run(member)


class Leaves:
    """What ends a program while it is pickled."""

    def __init__(self, by: BaseException) -> None:
        self.by = by

    def __reduce__(self) -> Any:
        raise self.by


@pytest.mark.parametrize("by", [KeyboardInterrupt("pickling"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_who_is_interrupted_while_it_pickles_tells_the_others(name: str, by: BaseException) -> None:
    def member(comm: Communicator) -> str:
        kind = type(by) if comm.rank == 1 else InvalidArgumentError
        with pytest.raises(kind) as caught:
            CALLS[name](comm, Leaves(by) if comm.rank == 1 else f"object {comm.rank}")
        comm.barrier()  # nothing is left behind
        assert comm.bcast_object(comm.rank, 2) == 2
        return str(caught.value)

    texts = ThreadJob(3, timeout=20).run(member)
    assert texts.pop(1) == str(by)
    for text in texts:
        assert f"{name}: rank 1 has no object to send: {type(by).__name__}: {by}" in text


def test_a_receiver_hears_that_its_sender_was_interrupted() -> None:
    def member(comm: Communicator) -> None:
        if comm.rank == 0:
            with pytest.raises(KeyboardInterrupt):
                comm.send_object(Leaves(KeyboardInterrupt()), 1)
        else:
            with pytest.raises(InvalidArgumentError, match="rank 0 has no object to send: KeyboardInterrupt"):
                comm.recv_object(0)

    ThreadJob(2, timeout=20).run(member)


def test_an_array_that_was_read_only_arrives_read_only() -> None:
    def member(comm: Communicator) -> None:
        for writable in (True, False):
            array = np.arange(3.0) + comm.rank
            array.flags.writeable = writable
            for rank, came in enumerate(comm.allgather_object({"inside": array})):
                assert came["inside"].flags.writeable is writable
                np.testing.assert_array_equal(came["inside"], np.arange(3.0) + rank)

    ThreadJob(2, timeout=20).run(member)
