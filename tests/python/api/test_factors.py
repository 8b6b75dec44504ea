"""Factors of reductions: pre_scale of what a rank gives, post_scale of the result (docs/factors.md)."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import unisono
from differing_calls import errors_of, texts_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unisono import IN_PLACE, Communicator, ThreadJob

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = {
    "fp16": np.dtype(np.float16),
    "bf16": BF16,
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
}
PLATFORMS = ("native", "functional")


def run(ranks: int, function: Any, **settings: Any) -> list[Any]:
    return ThreadJob(ranks, timeout=30, **settings).run(function)


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "functional":
        monkeypatch.setenv("UNISONO_PLATFORM", "functional")
    return str(request.param)


def values(rank: int, count: int, dtype: np.dtype[Any]) -> np.ndarray:
    random = np.random.default_rng(rank)
    made = random.standard_normal(count) * 3
    if dtype.kind == "c":
        made = made + 1j * random.standard_normal(count)
    return made.astype(dtype)


def multiplied(array: np.ndarray, factor: float) -> np.ndarray:
    """By the definition: in fp32 or fp64, rounded once."""
    if array.dtype.itemsize == 2:
        return (array.astype(np.float32) * np.float32(factor)).astype(array.dtype)
    part = np.float32 if array.dtype in (np.float32, np.complex64) else np.float64
    return (array.view(part) * part(factor)).view(array.dtype)


def same(got: np.ndarray | None, expected: np.ndarray) -> None:
    assert got is not None
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()


PRE = (0.3, -1.75, None, 3.1)  # by rank: one gives none
POST = 0.7


def pre_of(rank: int) -> float | None:
    return PRE[rank % len(PRE)]


def given_by(rank: int, count: int, dtype: np.dtype[Any]) -> np.ndarray:
    mine = values(rank, count, dtype)
    factor = pre_of(rank)
    return mine if factor is None else multiplied(mine, factor)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("count", [1, 1001, 70_000])
def test_it_is_the_call_on_multiplied_values(name: str, count: int, platform: str) -> None:
    """Bit for bit that of the plain call on what NumPy has multiplied; sources stay as they are."""
    dtype = TYPES[name]

    def member(comm: Communicator) -> None:
        rank, size = comm.rank, comm.size
        mine, scaled = values(rank, count, dtype), given_by(rank, count, dtype)
        before = mine.copy()
        pre = pre_of(rank)
        ops = ["sum", "avg", "prod"] if dtype.kind == "c" else ["sum", "avg", "prod", "min", "max"]
        for op in ops:
            plain = comm.allreduce(scaled, None, op)
            same(comm.allreduce(mine, None, op, pre_scale=pre), plain)
            same(comm.allreduce(mine, None, op, pre_scale=pre, post_scale=POST), multiplied(plain, POST))
            plain = comm.reduce(scaled, None, op, root=size - 1)
            got = comm.reduce(mine, None, op, root=size - 1, pre_scale=pre, post_scale=POST)
            if rank == size - 1:
                same(got, multiplied(plain, POST))
        same(comm.allreduce(mine, post_scale=-2.0), multiplied(comm.allreduce(mine), -2.0))
        for scan in (comm.scan, comm.exscan):
            plain = scan(scaled, np.full_like(mine, 9))
            got = scan(mine, np.full_like(mine, 9), pre_scale=pre, post_scale=POST)
            # The first rank's result of an exclusive scan is none, and stays as it is.
            same(got, plain if rank == 0 and scan == comm.exscan else multiplied(plain, POST))
        same(mine, before)

    run(4, member)


def test_blocks(platform: str) -> None:
    """Scattered results, by equal and by other counts; gaps between the blocks are not looked at."""

    def member(comm: Communicator) -> None:
        rank, size = comm.rank, comm.size
        mine, scaled = (of(rank, 50 * size, np.dtype(np.float32)) for of in (values, given_by))
        pre = pre_of(rank)
        plain = comm.reduce_scatter(scaled)
        same(comm.reduce_scatter(mine, pre_scale=pre, post_scale=POST), multiplied(plain, POST))
        counts = [0, 7, 40, 3][:size]
        displacements = [90, 1, 45, 10][:size]
        if platform == "functional":
            displacements = [0, 0, 7, 47][:size]
        plain = comm.reduce_scatterv(scaled, None, counts, displacements=displacements)
        got = comm.reduce_scatterv(mine, None, counts, displacements=displacements, pre_scale=pre, post_scale=POST)
        same(got, multiplied(plain, POST))

    run(4, member)


def test_in_place(platform: str) -> None:
    """The input that is no output stays as it is."""

    def member(comm: Communicator) -> None:
        rank, size = comm.rank, comm.size
        dtype = np.dtype(np.float32)
        for count in (3, 40_000):
            mine, scaled, pre = values(rank, count, dtype), given_by(rank, count, dtype), pre_of(rank)
            for post in (None, POST):

                def expected(plain: np.ndarray, post: float | None = post) -> np.ndarray:
                    return plain if post is None else multiplied(plain, post)

                comm.allreduce(IN_PLACE, plain := scaled.copy())
                comm.allreduce(IN_PLACE, buffer := mine.copy(), pre_scale=pre, post_scale=post)
                same(buffer, expected(plain))
                comm.allreduce(buffer := mine.copy(), buffer, pre_scale=pre, post_scale=post)
                same(buffer, expected(plain))

                def reduce(buffer: np.ndarray, **factors: float | None) -> None:
                    both = (IN_PLACE, buffer) if comm.rank == 0 else (buffer, None)
                    comm.reduce(*both, in_place=True, **factors)  # type: ignore[arg-type]

                reduce(plain := scaled.copy())
                reduce(buffer := mine.copy(), pre_scale=pre, post_scale=post)
                same(buffer, expected(plain) if rank == 0 else mine)

                blocks, plain = values(rank, count * size, dtype), given_by(rank, count * size, dtype)
                comm.reduce_scatter(IN_PLACE, plain)
                comm.reduce_scatter(IN_PLACE, blocks, pre_scale=pre, post_scale=post)
                same(blocks[:count], expected(plain[:count]))

                blocks, plain = values(rank, count * size, dtype), given_by(rank, count * size, dtype)
                counts = [count // 2, count, 0, 2 * count][:size]
                comm.reduce_scatterv(IN_PLACE, plain, counts)
                comm.reduce_scatterv(IN_PLACE, blocks, counts, pre_scale=pre, post_scale=post)
                same(blocks[: counts[rank]], expected(plain[: counts[rank]]))

                for scan in (comm.scan, comm.exscan):
                    scan(IN_PLACE, plain := scaled.copy())
                    scan(IN_PLACE, buffer := mine.copy(), pre_scale=pre, post_scale=post)
                    first = rank == 0 and scan == comm.exscan
                    same(buffer, mine if first else expected(plain))

    run(4, member)


def test_all_forms(platform: str) -> None:
    """Chained, persistent, grouped, and compressed: factors are of the wide elements."""

    def member(comm: Communicator) -> None:
        rank = comm.rank
        dtype = np.dtype(np.float32)
        mine, scaled, pre = values(rank, 50, dtype), given_by(rank, 50, dtype), pre_of(rank)
        plain = comm.allreduce(scaled)
        first, second = np.empty_like(mine), np.empty_like(mine)
        ahead = comm.allreduce_async(mine, first, pre_scale=pre)
        behind = comm.allreduce_async(first, second, "max", pre_scale=2.0, post_scale=0.5, wait_for=[ahead])
        behind.wait()
        same(first, plain)
        same(second, plain)

        buffer = mine.copy()
        again = comm.allreduce_async(buffer, second, pre_scale=pre, post_scale=POST, start=False)
        for step in (1, 2, 3):
            buffer[:] = mine * np.float32(step)
            again.start()
            again.wait()
            expected = comm.allreduce(buffer if pre is None else multiplied(buffer, pre))
            same(second, multiplied(expected, POST))

        outs = [np.empty_like(mine) for _ in range(6)]
        with comm.group():
            calls = [
                comm.allreduce_async(mine, out, pre_scale=pre, post_scale=float(1 + k // 2))
                for k, out in enumerate(outs)
            ]
        for call in calls:
            call.wait()
        for k, out in enumerate(outs):
            np.testing.assert_allclose(out, multiplied(plain, 1 + k // 2), rtol=1e-5)

        got = comm.allreduce(mine, wire_datatype="bf16", pre_scale=pre, post_scale=POST)
        narrow = comm.allreduce(scaled, wire_datatype="bf16")
        same(got, multiplied(narrow, POST))
        blocks, of_all = values(rank, 12 * comm.size, dtype), given_by(rank, 12 * comm.size, dtype)
        block = comm.reduce_scatter(of_all, wire_datatype="fp16")
        comm.reduce_scatter(IN_PLACE, blocks, wire_datatype="fp16", pre_scale=pre, post_scale=POST)
        same(blocks[:12], multiplied(block, POST))

    run(4, member)


def test_special_values() -> None:
    """0 leaves a rank out, but for what is no number; 1 is no factor, and agrees with none."""

    def member(comm: Communicator) -> None:
        mine = np.array([1.5, np.nan, -2.0, np.inf, 1e38, -1e-45], np.float32) + np.float32(0)
        got = comm.allreduce(mine, pre_scale=0.0 if comm.rank else 1.0)
        np.testing.assert_array_equal(got, np.array([1.5, np.nan, -2, np.nan, 1e38, -1e-45], np.float32))
        got = comm.allreduce(mine, post_scale=1.0 if comm.rank else None)
        np.testing.assert_array_equal(got, mine + mine)
        got = comm.allreduce(mine[:1], post_scale=1e39)  # more than float32 has
        np.testing.assert_array_equal(got, [np.inf])
        got = comm.allreduce(mine, op="max", post_scale=-0.0)
        np.testing.assert_array_equal(np.signbit(got[[0, 2]]), [True, False])

    run(2, member)


@pytest.mark.parametrize("settings_of_job", [{}, {"lanes": False}])
@pytest.mark.parametrize("count", [0, 3, 40_000])
@pytest.mark.parametrize("name", ["allreduce", "reduce", "reduce_scatter", "reduce_scatterv", "scan", "exscan"])
def test_every_rank_hears_of_other_factors_of_the_result(
    name: str, count: int, settings_of_job: dict[str, Any]
) -> None:
    def member(comm: Communicator) -> None:
        mine = values(comm.rank, count * (3 if "scatter" in name else 1), np.dtype(np.float32))
        post = 0.5 if comm.rank == 1 else 0.25
        layout = [[count] * 3] if name == "reduce_scatterv" else []
        getattr(comm, name)(mine, None, *layout, post_scale=post)
        comm.barrier()

    for text in texts_of(errors_of(3, member, **settings_of_job)):
        assert re.search(r"post_scale 0\.5\b", text), text
        assert re.search(r"post_scale 0\.25\b", text), text


def test_one_that_gives_none() -> None:
    def member(comm: Communicator) -> None:
        comm.allreduce(np.ones(3), post_scale=0.5 if comm.rank == 1 else None)

    for text in texts_of(errors_of(2, member)):
        assert "post_scale 0.5" in text
        assert text.count("post_scale") == 1


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u8", "?"])
@pytest.mark.parametrize("factor", [{"pre_scale": 2.0}, {"post_scale": 1.0}])
def test_integers_have_no_factors(dtype: str, factor: dict[str, float]) -> None:
    def member(comm: Communicator) -> None:
        with pytest.raises(unisono.InvalidDatatypeError, match=f"{next(iter(factor))} was given for elements of"):
            comm.allreduce(np.ones(3, dtype), op="max", **factor)  # type: ignore[arg-type]
        buffer = np.ones(3, dtype)
        with pytest.raises(unisono.InvalidDatatypeError, match="fp16, bf16, fp32, fp64, complex64 and complex128"):
            comm.allreduce(IN_PLACE, buffer, op="max", **factor)  # type: ignore[arg-type]
        comm.barrier()

    run(2, member)


def test_what_has_no_factors() -> None:
    def member(comm: Communicator) -> None:
        mine = np.ones(4)
        calls: list[Any] = [
            lambda **more: comm.bcast(mine, 0, **more),
            lambda **more: comm.allgather(mine, **more),
            lambda **more: comm.alltoall(np.ones(comm.size), **more),
            lambda **more: comm.combine(mine, np.ones(4), "sum", **more),
            lambda **more: comm.copy(mine, np.ones(4), **more),
            lambda **more: comm.send(mine, 0, **more),
            lambda **more: comm.barrier(**more),
            lambda **more: comm.sendrecv(mine, comm.rank, **more),
        ]
        for call in calls:
            for factor in ("pre_scale", "post_scale"):
                with pytest.raises(unisono.UnsupportedError, match=r"factor|pre_scale|post_scale"):
                    call(**{factor: 2.0})
        for wrong in ("2", True, [1.0], np.ones(2), 1j, np.complex64(1 + 2j), np.array(1j)):
            with pytest.raises(unisono.InvalidArgumentError, match="pass a number, or None"):
                comm.allreduce(mine, pre_scale=wrong)  # type: ignore[arg-type]
        same(comm.allreduce(mine, pre_scale=np.float32(0.5)), mine * (0.5 * comm.size))

    run(2, member)


def test_a_refused_call_has_touched_nothing() -> None:
    """In place, the factor is applied where the input stands, once the call is let in."""

    def member(comm: Communicator) -> None:
        buffer = np.arange(4.0)
        comm.revoke("for a test")
        with pytest.raises(unisono.UnisonoError):
            comm.allreduce(IN_PLACE, buffer, pre_scale=2.0)
        same(buffer, np.arange(4.0))

    run(1, member)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    ranks=st.integers(1, 5),
    count=st.integers(0, 300),
    name=st.sampled_from(sorted(TYPES)),
    factors=st.lists(st.floats(-8, 8, width=32) | st.none(), min_size=5, max_size=5),
    post=st.floats(-8, 8, width=32) | st.none(),
    form=st.sampled_from(["apart", "in place", "async"]),
    lanes=st.booleans(),
    algorithm=st.sampled_from([None, "ring", "recursive_doubling"]),
)
def test_any(
    ranks: int,
    count: int,
    name: str,
    factors: list[float | None],
    post: float | None,
    form: str,
    lanes: bool,
    algorithm: str | None,
) -> None:
    """The bits of the same algorithm on values that NumPy has multiplied."""
    dtype = TYPES[name]

    def member(comm: Communicator) -> None:
        mine, pre = values(comm.rank, count, dtype), factors[comm.rank]
        plain = comm.allreduce(mine if pre is None else multiplied(mine, pre), algorithm=algorithm)
        expected = plain if post is None else multiplied(plain, post)
        out = mine.copy()
        if form == "in place":
            comm.allreduce(IN_PLACE, out, pre_scale=pre, post_scale=post, algorithm=algorithm)
        elif form == "apart":
            comm.allreduce(mine, out, pre_scale=pre, post_scale=post, algorithm=algorithm)
        else:
            comm.allreduce_async(mine, out, pre_scale=pre, post_scale=post, algorithm=algorithm).wait()
        same(out, expected)

    run(ranks, member, lanes=lanes)
