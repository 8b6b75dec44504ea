"""The data of benchmark processes in Python (bench/process)."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from bench_support import FORMS, ROOT

sys.path.append(str(ROOT / "bench"))

from process.data import SETS, Call, draw_counts, expected, fill, is_right, stamp, values


@pytest.mark.parametrize("count", [1, 17, 1000])
def test_changing_counts_have_the_mean_that_was_asked_for(count: int) -> None:
    table = draw_counts(count, 3, SETS)
    assert table.shape == (SETS, 3, 3)
    assert (table.mean(axis=0) == count).all()
    assert table.min() >= 0
    assert table.max() <= 2 * count
    assert len({tuple(each.ravel()) for each in table}) > SETS // 2
    assert (draw_counts(count, 3, 1) == count).all()


def test_counts_are_those_of_every_rank() -> None:
    calls = [Call("alltoallv", "fp32", 20, rank, 3, changing=True) for rank in range(3)]
    for number in range(SETS):
        for source in range(3):
            for target in range(3):
                sent = calls[source].counts_of(number, source)[target]
                assert calls[target].counts_for(number, target)[source] == sent
    assert calls[0].counts_of(SETS + 2) == calls[0].counts_of(2)


def test_stamps_and_values_differ() -> None:
    assert len({stamp(rank, number) for rank in range(2) for number in range(100)}) > 190
    parts = [values(rank, block, 0, 50, seed) for rank in range(2) for block in range(2) for seed in range(2)]
    assert len({tuple(part) for part in parts}) == 8
    assert (values(0, 0, 10, 40, 1) == values(0, 0, 0, 50, 1)[10:]).all()
    assert max(part.max() for part in parts) < 1 << 14


@pytest.mark.parametrize(("op", "counts"), [*FORMS, ("inflight", "equal"), ("waited", "equal")])
@pytest.mark.parametrize("last", [0, 1, 5])
def test_what_is_right_and_what_is_not(op: str, counts: str, last: int) -> None:
    for rank in range(3):
        call = Call(op, "fp64", 40, rank, 3, changing=counts == "changing")
        call.src = np.empty(call.src_elements)
        call.dst = np.empty(call.dst_elements)
        fill(call, 9)
        wanted = expected(call, 9, last)
        if wanted is None:
            continue
        assert not is_right(call, 9, last) or len(wanted) == 0 or (op == "bcast" and rank == 0)
        call.dst[: len(wanted)] = wanted
        assert is_right(call, 9, last)
        assert not is_right(call, 10, last) or len(wanted) == 0
        for place in (0, len(wanted) - 1):
            call.dst[place] += 1
            assert not is_right(call, 9, last)
            call.dst[place] -= 1
