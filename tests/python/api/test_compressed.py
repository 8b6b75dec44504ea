"""Compressed calls: float32 that travels as fp16 or bf16. What each collective gives is in the conformance matrix."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import unisono
from unisono import IN_PLACE, Communicator, ThreadJob

NARROW = {"fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
PLATFORMS = ("native", "functional")


def run(ranks: int, function: Any, **settings: Any) -> list[Any]:
    return ThreadJob(ranks, timeout=30, **settings).run(function)


def values(rank: int, count: int) -> np.ndarray:
    return (np.random.default_rng(rank).standard_normal(count) * 3).astype(np.float32)


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "functional":
        monkeypatch.setenv("UNISONO_PLATFORM", "functional")
    return str(request.param)


@pytest.mark.parametrize("wire", NARROW)
@pytest.mark.parametrize("count", [1, 1000, 70_000])
def test_it_is_the_narrow_call_on_rounded_values(wire: str, count: int, platform: str) -> None:
    """Bit for bit, and equal on all ranks."""
    narrow = NARROW[wire]

    def member(comm: Communicator) -> list[np.ndarray]:
        mine = values(comm.rank, count)
        before = mine.copy()
        sums = comm.allreduce(mine, wire_datatype=wire)
        np.testing.assert_array_equal(mine, before)
        assert sums.dtype == np.float32
        expected = comm.allreduce(mine.astype(narrow))
        np.testing.assert_array_equal(sums, expected.astype(np.float32))
        largest = comm.scan(mine, np.empty_like(mine), "max", wire_datatype=wire)
        np.testing.assert_array_equal(largest, comm.scan(mine.astype(narrow), None, "max").astype(np.float32))
        return [sums, comm.bcast(mine, 1, wire_datatype=wire)]

    results = run(4, member)
    for of_rank in results:
        for got, first in zip(of_rank, results[0], strict=True):
            np.testing.assert_array_equal(got, first)
    np.testing.assert_array_equal(results[0][1], values(1, count).astype(narrow).astype(np.float32))


@pytest.mark.parametrize("wire", NARROW)
@pytest.mark.parametrize("settings", [{}, {"lanes": False}])
def test_messages(wire: str, settings: dict[str, Any]) -> None:
    """A receive may be longer than its message: what was not received stays. One side may hold it narrow."""

    def member(comm: Communicator) -> None:
        for count in (0, 1, 5, 3000, 100_000):
            mine = values(comm.rank, count)
            sent = comm.send_async(mine, (comm.rank + 1) % comm.size, tag=count, wire_datatype=wire)
            source = (comm.rank - 1) % comm.size
            expected = values(source, count).astype(NARROW[wire])
            if comm.rank == 1:
                raw = np.zeros(count, NARROW[wire])
                assert comm.recv(raw, source, tag=count).size == count
                np.testing.assert_array_equal(raw.view(np.uint16), expected.view(np.uint16))
            else:
                longer = np.full(count + 3, 7.125, np.float32)
                longer[:count] = 99
                assert comm.recv(longer, source, tag=count, wire_datatype=wire).size == count
                np.testing.assert_array_equal(longer[:count], expected.astype(np.float32))
                np.testing.assert_array_equal(longer[count:], [7.125] * 3)
            sent.wait()

    run(3, member, **settings)


def test_all_forms(platform: str) -> None:
    """Chained, persistent, grouped, in place and in flight together."""

    def member(comm: Communicator) -> None:
        def total(scale: float) -> np.ndarray:
            return comm.allreduce((values(comm.rank, 50) * np.float32(scale)).astype(np.float16)).astype(np.float32)

        # A call behind another one begins with what that one has written.
        first = np.empty(50, np.float32)
        ahead = comm.allreduce_async(values(comm.rank, 50), first, wire_datatype="fp16")
        second = np.empty(50 * comm.size, np.float32)
        behind = comm.allgather_async(first, second, wire_datatype="bf16", wait_for=[ahead])
        plain = np.empty(50 * comm.size, np.float32)
        last = comm.allgather_async(first, plain, wait_for=[ahead, behind])
        last.wait()
        np.testing.assert_array_equal(first, total(1))
        np.testing.assert_array_equal(plain, np.tile(total(1), comm.size))
        np.testing.assert_array_equal(second, plain.astype(ml_dtypes.bfloat16).astype(np.float32))

        buffer = np.empty(50, np.float32)
        again = comm.allreduce_async(IN_PLACE, buffer, wire_datatype="fp16", start=False)
        for scale in (1, 2, 3):
            buffer[:] = values(comm.rank, 50) * np.float32(scale)
            again.start()
            again.wait()
            np.testing.assert_array_equal(buffer, total(scale))

        # Compressed ones are fused with one another, and with those that hold what travels.
        results = [np.empty(50, np.float32) for _ in range(4)]
        held = np.empty(50, np.float16)
        with comm.group():
            for k, into in enumerate(results):
                comm.allreduce_async(values(comm.rank, 50) * np.float32(k), into, wire_datatype="fp16")
            comm.allreduce_async(values(comm.rank, 50).astype(np.float16), held)
            other = comm.allreduce_async(values(comm.rank, 50))
        for k, got in enumerate(results):
            np.testing.assert_allclose(got, total(k), rtol=1e-2, atol=1e-2)
        np.testing.assert_allclose(held.astype(np.float32), total(1), rtol=1e-2, atol=1e-2)
        assert other.result is not None
        np.testing.assert_allclose(other.result, comm.allreduce(values(comm.rank, 50)), rtol=1e-5)

    run(3, member)


def test_too_large_values_become_infinite() -> None:
    """And what is no number stays none."""

    def member(comm: Communicator) -> None:
        given = np.array([1e6, -1e6, np.nan, 65504.0, 1e-30, -0.0], np.float32)
        got = comm.allreduce(given, op="max", wire_datatype="fp16")
        np.testing.assert_array_equal(got, np.array([np.inf, -np.inf, np.nan, 65504.0, 0.0, -0.0], np.float32))
        wide = comm.allreduce(given, op="max", wire_datatype="bf16")
        np.testing.assert_array_equal(wide, given.astype(ml_dtypes.bfloat16).astype(np.float32))

    run(2, member)


def test_what_is_refused() -> None:
    """In words, on every rank, and nothing is sent."""

    def member(comm: Communicator) -> None:
        doubles, floats = np.zeros(4), np.zeros(4, np.float32)
        with pytest.raises(unisono.InvalidDatatypeError, match="fp64 cannot travel as fp16; fp32 can, as fp16 or bf16"):
            comm.allreduce(doubles, wire_datatype="fp16")
        with pytest.raises(unisono.InvalidDatatypeError, match="fp32 cannot travel as int32"):
            comm.allreduce(floats, wire_datatype=unisono.Datatype.INT32)
        with pytest.raises(unisono.InvalidDatatypeError, match="wire_datatype is 'fp8'; allowed are 'fp16', "):
            comm.allreduce(floats, wire_datatype="fp8")
        with pytest.raises(unisono.UnsupportedError, match="copy: wire_datatype fp16 was given, but the call has no"):
            comm.copy(floats, np.empty_like(floats), wire_datatype="fp16")
        with pytest.raises(unisono.UnsupportedError, match="exchanges along a graph"):
            comm.neighbour_allgather(comm.graph([comm.rank], [comm.rank]), floats, wire_datatype="fp16")
        with pytest.raises(unisono.UnsupportedError, match="barrier: wire_datatype bf16 was given"):
            comm.barrier(wire_datatype="bf16")
        assert comm.allreduce(floats + comm.rank)[0] == 1

    run(2, member)


def test_ranks_that_differ_are_told() -> None:
    """One travels as fp16, the other as bf16."""

    def member(comm: Communicator) -> str:
        with pytest.raises((unisono.MismatchedCallError, unisono.RevokedError)) as caught:
            comm.allreduce(np.zeros(4, np.float32), wire_datatype="fp16" if comm.rank == 0 else "bf16")
        return str(caught.value)

    texts = run(2, member, lanes=False)
    assert any("fp16" in text and "bf16" in text for text in texts), texts
