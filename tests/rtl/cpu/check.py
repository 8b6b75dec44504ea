"""Comparison of what came out with what the native generator says."""

from __future__ import annotations

import numpy as np

from .cases import LOCAL, POINT_TO_POINT
from .cpu import Call, Expected, Run


def same_program(run: Run, expected: Expected, call: Call) -> None:
    """Asserts that all moves and all lists are equal bit for bit."""
    assert run.fail is None, f"{call} failed with code {run.fail}"
    assert run.ended, call
    got = np.array(run.moves, dtype=np.uint32).reshape(-1, 16)
    assert len(got) == len(expected.moves), call
    different = np.flatnonzero((got != expected.moves).any(axis=1))
    assert not len(different), (
        f"{call}: move {different[0]} is {got[different[0]]}, should be {expected.moves[different[0]]}"
    )
    assert run.pool == expected.pool.tolist(), call


def same_context(run: Run, expected: Expected, call: Call, position: int, communicator: int) -> None:
    """Asserts that signature, datatype, algorithm and way of matching are right."""
    context = run.context
    assert context is not None
    assert context.signature == expected.signature, call
    assert context.dtype == call.dtype
    assert context.algorithm == position + 1
    assert context.communicator == communicator
    assert context.space == (2 if call.collective in POINT_TO_POINT else 0 if call.collective in LOCAL else 1)
