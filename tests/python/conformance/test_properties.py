"""Properties of generators and interpreter, on calls that hypothesis chooses and shrinks."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .case import DTYPES, MEANS, OPS, REDUCTIONS, ROOTED, Case
from .engines import interpret
from .matrix import GROUPED, NO_IN_PLACE, names
from .test_conformance import judge


@st.composite
def cases(draw: st.DrawFn) -> Case:
    collective, algorithm = draw(st.sampled_from(names()))
    ranks = draw(st.integers(1, 12))
    dtype = draw(st.sampled_from(list(DTYPES)))
    ops = [op for op in OPS[dtype] if op != "avg" or collective in MEANS]
    return Case(
        collective,
        algorithm,
        ranks,
        0 if collective == "barrier" else draw(st.integers(0, 40)),
        dtype=dtype,
        op=draw(st.sampled_from(ops)) if collective in REDUCTIONS else "sum",
        root=draw(st.integers(0, ranks - 1)) if collective in ROOTED else 0,
        in_place=collective not in NO_IN_PLACE and draw(st.booleans()),
        group_size=draw(st.integers(0, ranks)) if algorithm in GROUPED else 0,
    )


PROPERTY = settings(
    max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


@PROPERTY
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_any_schedule_gives_the_defined_result(case: Case, seed: int) -> None:
    assert judge(case, interpret(case, "random", seed)) == []


@PROPERTY
@given(case=cases())
def test_the_least_permissive_engine_ends_with_the_defined_result(case: Case) -> None:
    assert judge(case, interpret(case, "least_permissive", 0)) == []
