"""Random sequences of calls, the same on all ranks with different data, against NumPy."""

from __future__ import annotations

import unisono
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .case import DTYPES, REDUCTIONS, ROOTED, V_COLLECTIVES, Case
from .engines import PLACEMENTS, TIMEOUT, in_processes
from .matrix import EDGES, NO_IN_PLACE, all_names, operators_of, refused
from .sequences import Step, perform


@st.composite
def steps(draw: st.DrawFn, ranks: int) -> Step:
    collective, algorithm = draw(st.sampled_from(all_names()))
    dtype = draw(st.sampled_from(list(DTYPES)))
    at_an_edge = st.builds(
        lambda edge, beside: edge // DTYPES[dtype].itemsize + beside, st.sampled_from(EDGES), st.integers(-1, 1)
    )
    case = Case(
        collective,
        algorithm,
        ranks,
        0 if collective == "barrier" else draw(st.integers(0, 40) | at_an_edge),
        dtype=dtype,
        op=draw(st.sampled_from(operators_of(collective, dtype))),
        root=draw(st.integers(0, ranks - 1)) if collective in ROOTED else 0,
        in_place=collective not in NO_IN_PLACE and draw(st.booleans()),
        salt=draw(st.integers(1, 1 << 30)),
    )
    if refused(case):
        case = Case("barrier", "dissemination", ranks, 0)
    return Step(
        case,
        placement=draw(st.sampled_from(list(PLACEMENTS))),
        blocking=draw(st.booleans()),
        reversed_ranks=draw(st.booleans()),
        wait=draw(st.integers(0, 3)),
        youngest=draw(st.booleans()),
    )


def sequences(ranks: int) -> st.SearchStrategy[list[Step]]:
    return st.lists(steps(ranks), min_size=4, max_size=14)


def property_of(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        print_blob=True,
    )


def in_threads(ranks: int, sequence: list[Step], *, lanes: bool) -> list[str]:
    job: unisono.ThreadJob[list[str]] = unisono.ThreadJob(ranks, timeout=TIMEOUT, lanes=lanes)
    reach = "all" if lanes else "none"
    return [text for texts in job.run(lambda world: perform(world, sequence, reach)) for text in texts]


@property_of(120)
@given(data=st.data(), ranks=st.integers(1, 5))
def test_threads(data: st.DataObject, ranks: int) -> None:
    assert in_threads(ranks, data.draw(sequences(ranks)), lanes=True) == []


@property_of(25)
@given(data=st.data(), ranks=st.integers(1, 4))
def test_threads_with_messages_only(data: st.DataObject, ranks: int) -> None:
    assert in_threads(ranks, data.draw(sequences(ranks)), lanes=False) == []


@property_of(4)
@given(data=st.data(), ranks=st.integers(2, 4))
def test_processes(data: st.DataObject, ranks: int) -> None:
    """A job runs many sequences, for starting it takes longer than running them."""
    batch = data.draw(st.lists(sequences(ranks), min_size=20, max_size=20))
    by_rank = in_processes("sequences", ranks, (batch, {}))
    assert [text for wrong in by_rank for texts in wrong for text in texts] == []


def test_sequences_hold_what_they_shall() -> None:
    """Of all kinds of calls some: drawn as the tests draw them."""
    seen: list[Step] = []

    @property_of(200)
    @given(sequence=sequences(3))
    def draw(sequence: list[Step]) -> None:
        seen.extend(sequence)

    draw()
    assert {step.blocking for step in seen} == {step.reversed_ranks for step in seen} == {False, True}
    assert {step.placement for step in seen} == set(PLACEMENTS)
    algorithms = {step.case.algorithm for step in seen}
    assert {"automatic", "direct", "ring"} <= algorithms
    assert {step.case.collective for step in seen} >= {*ROOTED, *REDUCTIONS, *V_COLLECTIVES}
    assert any(step.case.count > 60_000 for step in seen)
    assert any(step.case.in_place for step in seen)
