"""Calls with counts take src, dst, counts; what has the order of earlier versions works, and warns."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, Graph, ThreadJob

P = 3


def counts_here(kind: str, given: list[int]) -> Any:
    """Counts as a list, a tuple, or an array."""
    return {"list": list, "tuple": tuple, "array": np.array}[kind](given)


def reduce_scatterv(
    comm: Communicator, dtype: str, kind: str
) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Calls in the new order and in the old one, by what the warning says of the new one."""
    counts = counts_here(kind, [1, 2, 5])
    src = (np.arange(8) + comm.rank).astype(dtype)

    def into(length: int | None = None) -> Any:
        return np.zeros([1, 2, 5][comm.rank] if length is None else length, dtype)

    def view() -> Any:
        return memoryview(bytearray(into().data)).cast(src.data.format)

    call, later = comm.reduce_scatterv, comm.reduce_scatterv_async
    given: Any = call
    return [
        ("(src, dst, counts)", lambda: call(src, into(), counts), lambda: given(src, counts, into())),
        ("(src, None, counts)", lambda: call(src, None, counts), lambda: given(src, counts)),
        ("(src, None, counts)", lambda: call(src, None, counts), lambda: given(src, counts=counts)),
        ("(src, None, counts, op)", lambda: call(src, None, counts, "max"), lambda: given(src, counts, op="max")),
        ("(src, None, counts, op)", lambda: call(src, None, counts, "max"), lambda: given(src, counts, None, "max")),
        ("(src, dst, counts, op)", lambda: call(src, into(), counts, "max"), lambda: given(src, counts, into(), "max")),
        ("(src, dst, counts)", lambda: call(src, into(), counts), lambda: given(src, counts, dst=into())),
        ("(src, dst, counts)", lambda: call(IN_PLACE, src.copy(), counts), lambda: given(IN_PLACE, counts, src.copy())),
        ("_async(src, dst, counts)", lambda: later(src, into(), counts).wait(),
         lambda: later(src, counts, into()).wait()),  # type: ignore[arg-type]
        # What is no array, and counts by name.
        ("(src, dst, counts)", lambda: call(src, dst=view(), counts=counts), lambda: given(src, counts, view())),
    ]  # fmt: skip


def alltoallv(comm: Communicator, dtype: str, kind: str) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    sends = counts_here(kind, [comm.rank + 1 + to for to in range(P)])
    receives = counts_here(kind, [comm.rank + 1 + origin for origin in range(P)])
    length = sum(int(count) for count in sends)
    src = (np.arange(length) + 10 * comm.rank).astype(dtype)

    def into() -> Any:
        return np.zeros(length, dtype)

    call: Any = comm.alltoallv
    later: Any = comm.alltoallv_async
    return [
        ("(src, dst, send_counts, recv_counts)", lambda: call(src, into(), sends, receives),
         lambda: call(src, sends, into(), receives)),
        ("(src, None, send_counts, recv_counts)", lambda: call(src, None, sends, receives),
         lambda: call(src, sends, None, receives)),
        ("(src, dst, send_counts, recv_counts)", lambda: call(src, into(), sends, recv_counts=receives),
         lambda: call(src, sends, dst=into(), recv_counts=receives)),
        ("(src, dst, send_counts, recv_counts)", lambda: call(IN_PLACE, src.copy(), None, receives),
         lambda: call(IN_PLACE, None, src.copy(), receives)),
        ("(src, dst, send_counts, recv_counts)", lambda: call(src, src, None, receives).copy(),
         lambda: call(src, None, src, receives)),
        ("_async(src, dst, send_counts, recv_counts)", lambda: later(src, into(), sends, receives).wait(),
         lambda: later(src, sends, into(), receives).wait()),
    ]  # fmt: skip


def alltoallw(comm: Communicator, dtype: str, kind: str) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    counts = counts_here(kind, [2] * P)
    types = [dtype] * P
    src = (np.arange(2 * P) + 10 * comm.rank).astype(dtype)

    def into() -> Any:
        return np.zeros(2 * P, dtype)

    names = "(src, dst, send_counts, send_dtypes, recv_counts, recv_dtypes)"
    call: Any = comm.alltoallw
    later: Any = comm.alltoallw_async
    return [
        (names, lambda: call(src, into(), counts, types, counts, types),
         lambda: call(src, counts, types, into(), counts, types)),
        (names, lambda: call(IN_PLACE, src.copy(), None, None, counts, types),
         lambda: call(IN_PLACE, None, None, src.copy(), counts, types)),
        ("_async" + names, lambda: later(src, into(), counts, types, counts, types).wait(),
         lambda: later(src, counts, types, into(), counts, types).wait()),
    ]  # fmt: skip


def neighbour_alltoallv(
    comm: Communicator, dtype: str, kind: str
) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    ring: Graph = comm.graph([(comm.rank - 1) % P] * 2, [(comm.rank + 1) % P] * 2)
    counts = counts_here(kind, [1, 4])
    src = (np.arange(5) + 10 * comm.rank).astype(dtype)

    def into() -> Any:
        return np.zeros(5, dtype)

    names = "(graph, src, dst, send_counts, recv_counts)"
    call: Any = comm.neighbour_alltoallv
    later: Any = comm.neighbour_alltoallv_async
    return [
        (names, lambda: call(ring, src, into(), counts, counts), lambda: call(ring, src, counts, into(), counts)),
        (names.replace("dst", "None"), lambda: call(ring, src, None, counts, counts),
         lambda: call(ring, src, counts, None, counts)),
        ("_async" + names, lambda: later(ring, src, into(), counts, counts).wait(),
         lambda: later(ring, src, counts, into(), counts).wait()),
    ]  # fmt: skip


def ran(calls: Any, dtype: str, kind: str, which: int, column: int) -> tuple[list[Any], list[warnings.WarningMessage]]:
    """The results of all ranks of one of the calls, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = ThreadJob(P, timeout=60).run(
            lambda comm: np.asarray(calls(comm, dtype, kind)[which][column]()).copy()
        )
    return results, caught


@pytest.mark.parametrize("kind", ["list", "tuple", "array"])
@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("calls", [reduce_scatterv, alltoallv, alltoallw, neighbour_alltoallv])
def test_both_orders(calls: Any, dtype: str, kind: str) -> None:
    """The same results; only the old order warns, and its warning has the new call."""
    variants = ThreadJob(P, timeout=60).run(lambda comm: [names for names, _, _ in calls(comm, dtype, kind)])[0]
    for which, names in enumerate(variants):
        expected, nothing = ran(calls, dtype, kind, which, 1)
        results, caught = ran(calls, dtype, kind, which, 2)
        assert not nothing
        assert len(caught) == P
        for warning in caught:
            assert warning.category is DeprecationWarning
            assert str(warning.message).endswith(f"write {calls.__name__}{names}")
            assert warning.filename == __file__
        for result, there in zip(results, expected, strict=True):
            assert result.size
            np.testing.assert_array_equal(result, there)


def test_integers_that_could_be_either_are_taken_in_the_new_order() -> None:
    def member(comm: Communicator) -> None:
        dst = np.zeros(3, int)
        comm.alltoallv(np.arange(3) + 10 * comm.rank, dst, np.array([1, 1, 1]), np.array([1, 1, 1]))
        np.testing.assert_array_equal(dst, [comm.rank, 10 + comm.rank, 20 + comm.rank])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ThreadJob(P, timeout=60).run(member)


WRONG: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    ("two lists", lambda c: c.alltoallv(np.zeros(2), [0, 0], [1, 1], [1, 1]), unisono.InvalidArgumentError, "dst is a"),
    ("no counts", lambda c: c.reduce_scatterv(np.zeros(2), np.zeros(1)), TypeError, "counts"),
    ("nothing", lambda c: c.reduce_scatterv(np.zeros(2)), TypeError, "dst"),
    ("counts twice", lambda c: c.reduce_scatterv(np.zeros(2), None, [1, 1], counts=[1, 1]), TypeError, "counts"),
    ("three counts", lambda c: c.reduce_scatterv(np.zeros(2), None, [1, 1, 0]), unisono.InvalidCountError, "3 entries"),
    ("three counts in the old order", lambda c: c.reduce_scatterv(np.zeros(2), [1, 1, 0], np.zeros(1)),
     unisono.InvalidCountError, "3 entries"),
    ("floats", lambda c: c.reduce_scatterv(np.zeros(2), None, [1.0, 1.0]), unisono.InvalidCountError, "sequence"),
    ("in place without destination", lambda c: c.alltoallv(IN_PLACE, None, None, [1, 1]),
     unisono.InvalidArgumentError, "dst is missing"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("call", "kind", "word"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_wrong_in_any_order(call: Callable[[Any], Any], kind: type[Exception], word: str) -> None:
    def member(comm: Communicator) -> None:
        with pytest.raises(kind, match=word):
            call(comm)
        comm.barrier()

    ThreadJob(2, timeout=60).run(member)


def test_one_order_of_arguments() -> None:
    """Source, destination, then counts, in every call that has them."""
    for name in dir(Communicator):
        parameters = list(inspect.signature(getattr(Communicator, name)).parameters) if name[0] != "_" and callable(
            getattr(Communicator, name)) else []  # fmt: skip
        if any(parameter.endswith("counts") for parameter in parameters):
            at = parameters.index("src")
            assert parameters[at + 1] == "dst", name
            assert parameters[at + 2] in ("counts", "send_counts"), name
            assert "Options: see" in str(inspect.getdoc(getattr(Communicator, name)))
