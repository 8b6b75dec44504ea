"""Exchanges along graphs and exchanges with a dtype for each peer, against what their definition gives in NumPy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob


def run(ranks: int, function: Any, **settings: Any) -> list[Any]:
    return ThreadJob(ranks, timeout=30, **settings).run(function)


def edges_of(ranks: int, number: int, seed: int) -> list[tuple[int, int]]:
    """Random edges, some between the same two ranks, some from a rank to itself."""
    draw = random.Random(seed)
    return [(draw.randrange(ranks), draw.randrange(ranks)) for _ in range(number)]


def content(edge: int, count: int) -> np.ndarray:
    return (np.arange(count) + 1000 * edge).astype(np.int32)


SETTINGS = {
    "lanes": {},
    "messages": {"lanes": False},
    "rendezvous": {"lanes": False, "eager_limit": 1, "segment_bytes": 256, "rx_buffer_count": 1},
    "functional": {"lanes": False},
}


FEW = [(1, 3), (2, 1), (3, 7), (5, 12), (4, 150)]


@pytest.mark.parametrize(
    ("ranks", "number", "settings"),
    [*((*each, name) for each in FEW for name in SETTINGS), (33, 200, "lanes"), (33, 200, "messages")],
)
def test_every_block_goes_its_way(ranks: int, number: int, settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if settings == "functional":
        monkeypatch.setenv("UNISONO_PLATFORM", "functional")
    edges = edges_of(ranks, number, 10 * ranks + number)
    lengths = [0 if edge % 4 == 3 else (edge * 37) % 90 for edge in range(number)]

    def member(comm: Communicator) -> None:
        incoming = [e for e, (_, to) in enumerate(edges) if to == comm.rank]
        outgoing = [e for e, (origin, _) in enumerate(edges) if origin == comm.rank]
        graph = comm.graph([edges[e][0] for e in incoming], [edges[e][1] for e in outgoing])
        assert graph.sources == tuple(edges[e][0] for e in incoming)

        blocks = np.concatenate([content(e, 5) for e in outgoing] or [np.empty(0, np.int32)])
        got = comm.neighbour_alltoall(graph, blocks, np.full((len(incoming), 5), -1, np.int32))
        np.testing.assert_array_equal(got, np.array([content(e, 5) for e in incoming]).reshape(-1, 5))

        own = content(comm.rank, 7)
        heard = comm.neighbour_allgather_async(graph, own, heard_of := np.full((len(incoming), 7), -1, np.int32))
        heard.wait()
        np.testing.assert_array_equal(heard_of, np.array([content(s, 7) for s in graph.sources]).reshape(-1, 7))

        sends, receives = [lengths[e] for e in outgoing], [lengths[e] for e in incoming]
        ragged = np.concatenate([content(e, lengths[e]) for e in outgoing] or [np.empty(0, np.int32)])
        # Blocks arrive in reverse order, with a gap of one element between any two.
        places = [sum(receives[i + 1 :]) + len(receives) - 1 - i for i in range(len(receives))]
        target = np.full(sum(receives) + len(receives), -1, np.int32)
        expected = target.copy()
        for e, at in zip(incoming, places, strict=True):
            expected[at : at + lengths[e]] = content(e, lengths[e])
        comm.neighbour_alltoallv(graph, ragged, target, sends, receives, recv_displacements=places)
        np.testing.assert_array_equal(target, expected)

        told = comm.neighbour_allgatherv(graph, content(comm.rank, comm.rank), None, list(graph.sources))
        np.testing.assert_array_equal(
            told, np.concatenate([content(s, s) for s in graph.sources] or [np.empty(0, np.int32)])
        )

    run(ranks, member, **SETTINGS[settings])


def test_a_ring_of_neighbours_shapes_its_result() -> None:
    def member(comm: Communicator) -> np.ndarray:
        left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        graph = comm.graph([left, right], [left, right])
        assert repr(graph) == f"<unisono.Graph: edges from {[left, right]}, to {[left, right]}>"
        return comm.neighbour_allgather(graph, np.full((2, 3), comm.rank, np.float64))

    for rank, halo in enumerate(run(4, member)):
        assert halo.shape == (2, 2, 3)
        np.testing.assert_array_equal(halo[0], (rank - 1) % 4)
        np.testing.assert_array_equal(halo[1], (rank + 1) % 4)


def test_ends_that_disagree_are_named() -> None:
    def member(comm: Communicator) -> str:
        with pytest.raises(unisono.MismatchedCallError) as caught:
            comm.graph([0] if comm.rank == 2 else [], [2, 2] if comm.rank == 0 else [])
        comm.barrier()
        return str(caught.value)

    for text in run(3, member):
        assert "rank 0 names rank 2 as a destination 2 times" in text
        assert "rank 2 names rank 0 as a source once" in text


ERRORS: list[tuple[str, Any, type[unisono.UnisonoError], list[str]]] = [
    ("no graph", lambda c, g: c.neighbour_allgather(None, np.zeros(2)), unisono.InvalidArgumentError, ["NoneType"]),
    ("counts", lambda c, g: c.neighbour_allgatherv(g, np.zeros(2), None, [2]), unisono.InvalidCountError,
     ["counts has 1 entries", "2 sources"]),
    ("blocks", lambda c, g: c.neighbour_alltoall(g, np.zeros(3)), unisono.InvalidCountError,
     ["3 elements", "multiple of the 2 edges"]),
    ("in place", lambda c, g: c.neighbour_alltoall(g, IN_PLACE, np.zeros(4)), unisono.InvalidArgumentError, ["src"]),
    ("a small dst", lambda c, g: c.neighbour_allgather(g, np.zeros(3), np.zeros(5)), unisono.BufferTooSmallError,
     ["dst holds 5 elements", "needs 6"]),
    ("an algorithm", lambda c, g: c.neighbour_allgather(g, np.zeros(3), algorithm="ring"),
     unisono.UnknownAlgorithmError, ["none to choose from"]),
    ("no rank", lambda c, g: c.graph([1], []), unisono.InvalidArgumentError, ["source 1", "ranks 0 to 0"]),
    ("no type", lambda c, g: c.alltoallw(np.zeros(1), np.zeros(1), [1], ["nonsense"], [1], ["f8"]),
     unisono.InvalidDatatypeError, ["send_dtypes"]),
    ("too few types", lambda c, g: c.alltoallw(np.zeros(1), np.zeros(1), [1], [], [1], ["f8"]),
     unisono.InvalidCountError, ["send_datatypes has 0 entries"]),
    ("beyond dst", lambda c, g: c.alltoallw(np.zeros(1), np.zeros(1, "f4"), [1], ["f8"], [1], ["f8"]),
     unisono.BufferTooSmallError, ["4 bytes", "8 bytes"]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "parts"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS])
def test_what_is_wrong_is_said(call: Any, kind: type[unisono.UnisonoError], parts: list[str]) -> None:
    def member(comm: Communicator) -> str:
        graph = comm.graph([0, 0], [0, 0])
        with pytest.raises(kind) as caught:
            call(comm, graph)
        return str(caught.value)

    (text,) = run(1, member)
    for part in parts:
        assert part in text


DTYPES = ("f8", "i2", "c8", "u1", "f4")


def test_every_pair_with_a_dtype_of_its_own() -> None:
    ranks = 4

    def block(origin: int, to: int) -> np.ndarray:
        dtype = np.dtype(DTYPES[(origin + 2 * to) % len(DTYPES)])
        return (np.arange((origin * 3 + to) % 5) + 10 * origin + to).astype(dtype)

    def member(comm: Communicator) -> None:
        out = [block(comm.rank, to) for to in range(ranks)]
        expected = [block(origin, comm.rank) for origin in range(ranks)]
        src = np.frombuffer(b"".join(b.tobytes() for b in out), np.uint8)
        lengths = [b.nbytes for b in expected]
        places = [sum(lengths[:i]) + 3 * i for i in range(ranks)]  # bytes, with gaps of three
        dst = np.zeros(sum(lengths) + 3 * ranks, np.uint8)
        result = comm.alltoallw(
            src, dst, [len(b) for b in out], [b.dtype for b in out], [len(b) for b in expected],
            [b.dtype for b in expected], recv_displacements=places,
        )  # fmt: skip
        assert result is dst
        for at, want in zip(places, expected, strict=True):
            np.testing.assert_array_equal(dst[at : at + want.nbytes].view(want.dtype), want)

    run(ranks, member)


def test_typed_exchange_in_place_and_later() -> None:
    def member(comm: Communicator) -> np.ndarray:
        # What rank 0 and 1 exchange are three doubles, what a rank has for itself is one int32.
        kinds = ["i4", "f8"] if comm.rank == 0 else ["f8", "i4"]
        counts = [1, 3] if comm.rank == 0 else [3, 1]
        buffer = np.zeros(28, np.uint8)
        places = [24, 0] if comm.rank == 0 else [0, 24]
        buffer[:24].view("f8")[:] = comm.rank + np.arange(3)
        comm.alltoallw_async(IN_PLACE, buffer, None, None, counts, kinds, recv_displacements=places).wait()
        return buffer[:24].view("f8")

    zero, one = run(2, member)
    np.testing.assert_array_equal(zero, [1, 2, 3])
    np.testing.assert_array_equal(one, [0, 1, 2])


def test_typed_exchange_after_untyped_ones() -> None:
    """The short way of the calls before knows no datatypes of pairs: it must leave such a call alone."""

    def member(comm: Communicator) -> bytes:
        src = np.full(8, comm.rank + 1, np.uint8)
        dst = np.zeros(8, np.uint8)
        for _ in range(3):
            comm.alltoallv(src, dst, [1, 1], [1, 1])
        comm.alltoallw(src, dst, [1, 1], ["f4", "f4"], [1, 1], ["f4", "f4"])
        return dst.tobytes()

    assert run(2, member) == [bytes([1, 1, 1, 1, 2, 2, 2, 2])] * 2


def test_lengths_that_differ_are_an_error_on_both_sides() -> None:
    def member(comm: Communicator) -> bool:
        comm.timeout = 10
        count = 3 if comm.rank == 0 else 2  # of what the other one sends, each believes something else

        def calls() -> None:
            comm.alltoallw(np.zeros(6), np.zeros(6), [3, 3], ["f8", "f8"], [count, count], ["f8", "f8"])
            comm.barrier()

        with pytest.raises(unisono.UnisonoError):
            calls()
        return True

    assert all(run(2, member, lanes=False))
