"""Every engine × collective × algorithm × … against NumPy, and engine against engine bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from .case import OPS, REDUCTIONS, ROOTED, Case, compare
from .engines import ENGINES, STARTED, Outcome
from .matrix import (
    CORE_RANKS,
    MANY_RANKS,
    NO_IN_PLACE,
    RANKS,
    all_names,
    compressed,
    core,
    edges,
    many,
    names,
    refused,
    sample,
)


def judge(case: Case, outcomes: list[Outcome]) -> list[str]:
    """What is wrong with a case, in sentences."""
    refusals = [isinstance(outcome, str) for outcome in outcomes]
    if refused(case):
        return [] if all(refusals) else [f"{case}: should have been refused on every rank"]
    if any(refusals):
        return [f"{case}: refused on ranks {[r for r, yes in enumerate(refusals) if yes]}"]
    found = []
    for rank, outcome in enumerate(outcomes):
        if not isinstance(outcome, str):
            wrong = compare(case, rank, outcome)
            if wrong is not None:
                found.append(wrong)
    return found


def run_and_judge(engine: str, ranks: int, cases: list[Case]) -> None:
    cases = [case for case in cases if ENGINES[engine].admits(case)]
    results = ENGINES[engine].run(ranks, cases)
    wrong = [text for case, outcomes in zip(cases, results, strict=True) for text in judge(case, outcomes)]
    assert not wrong, "\n".join([f"{len(wrong)} wrong:", *wrong[:20]])


@pytest.mark.parametrize(("collective", "algorithm"), names(), ids=["/".join(name) for name in names()])
@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in STARTED])
def test_core(engine: str, collective: str, algorithm: str) -> None:
    if not any(ENGINES[engine].admits(case) for case in core(collective, algorithm, CORE_RANKS[0])):
        pytest.skip(f"{engine} does not run {collective}/{algorithm}")
    for ranks in CORE_RANKS:
        run_and_judge(engine, ranks, list(core(collective, algorithm, ranks)))


#: Numbers of ranks for what takes its time: engines that differ little from another one run less.
IN_PROCESSES = {
    "processes": (2, 3, 4), "processes-allocated": (2, 3, 4), "processes-mixed": (3,), "processes-messages": (4,),
    "processes-copied": (2, 3), "processes-hosts": (3, 4), "processes-tcp": (2, 3), "processes-udp": (3,),
    "processes-ofi": (3,), "processes-tls": (3,), "threads-switch": (),
}  # fmt: skip
AT_EDGES = {
    "threads": (2, 3, 7), "threads-messages": (4,), "threads-rendezvous": (3,), "functional": (3,),
    "processes": (3,), "processes-allocated": (2, 4), "processes-mixed": (3,), "processes-messages": (2,),
    "processes-hosts": (4,), "processes-tcp": (3,), "processes-udp": (2,), "threads-switch": (2, 3, 7),
    **({"processes-ofi": (2,)} if "processes-ofi" in STARTED else {}),
    **({"processes-copied": (4,)} if "processes-copied" in STARTED else {}),
}  # fmt: skip


@pytest.mark.parametrize(("engine", "ranks"), [(engine, p) for engine in STARTED for p in IN_PROCESSES[engine]])
def test_core_in_processes(engine: str, ranks: int) -> None:
    run_and_judge(engine, ranks, [case for name in names() for case in core(*name, ranks)])


@pytest.mark.parametrize(("engine", "ranks"), [(engine, p) for engine, ranks in AT_EDGES.items() for p in ranks])
def test_edges(engine: str, ranks: int) -> None:
    run_and_judge(engine, ranks, [case for name in all_names() for case in edges(*name, ranks)])


#: Engines that run every name there. The interpreter does not choose, so it leaves out what has no name.
AT_MANY = {
    "threads": MANY_RANKS, "threads-messages": MANY_RANKS, "interpreter-least-permissive": MANY_RANKS,
    "functional": (9,),
}  # fmt: skip


@pytest.mark.parametrize(("engine", "ranks"), [(engine, p) for engine, ranks in AT_MANY.items() for p in ranks])
def test_every_name_on_many_ranks(engine: str, ranks: int) -> None:
    cases = [case for name in all_names() for case in many(*name, ranks)]
    admitted = {(case.collective, case.algorithm) for case in cases if ENGINES[engine].admits(case)}
    direct = {name for name in names() if name[1] in ("direct", "direct_replicated")}
    assert admitted >= set(names()) - (direct if engine in ("threads-messages", "functional") else set())
    run_and_judge(engine, ranks, cases)


def test_many_ranks_are_both_forms_and_both_ends() -> None:
    """At least two cases of each name, and those of each dimension that a collective has."""
    for collective, algorithm in names():
        for ranks in MANY_RANKS:
            cases = list(many(collective, algorithm, ranks))
            assert collective == "barrier" or len({case.count for case in cases}) == 2
            assert {case.in_place for case in cases} == {False, collective not in NO_IN_PLACE}
            assert {case.root for case in cases} == {0, ranks - 1 if collective in ROOTED else 0}


COMPRESSED = {
    "threads": (1, 2, 5, 9), "threads-messages": (3,), "threads-rendezvous": (4,), "functional": (3,),
    "processes-allocated": (3,),
}  # fmt: skip


@pytest.mark.parametrize(("engine", "ranks"), [(engine, p) for engine, ranks in COMPRESSED.items() for p in ranks])
def test_compressed(engine: str, ranks: int) -> None:
    moving = [name for name in all_names() if name[0] != "barrier"]
    run_and_judge(engine, ranks, [case for name in moving for case in compressed(*name, ranks)])


@pytest.mark.parametrize("engine", [name for name in ENGINES if "interpreter" not in name])
def test_engines_run_what_they_are_for(engine: str) -> None:
    """Direct algorithms by name: an engine that admitted none would test nothing of them."""
    direct = {name for name in names() if name[1] in ("direct", "direct_replicated")}
    assert len(direct) >= 9
    admitted = {name for name in direct if all(ENGINES[engine].admits(case) for case in core(*name, 3))}
    assert admitted == (direct if engine in ("threads", "processes-allocated", "processes-copied") else set())


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in STARTED])
def test_sample(engine: str, ranks: int) -> None:
    run_and_judge(engine, ranks, [case for case in sample() if case.ranks == ranks])


@pytest.mark.parametrize("ranks", [r for r in RANKS if r > 1])
def test_engines_agree_bit_for_bit(ranks: int) -> None:
    """Random inputs, for which the order of reduction shows in the last bits."""
    cases = [case for case in sample() if case.ranks == ranks and not case.exact and not refused(case)]
    engines = [name for name in ENGINES if name not in STARTED or ranks == 3 or name == "processes"]
    results: dict[Case, dict[str, list[Outcome]]] = {case: {} for case in cases}
    for name in engines:
        admitted = [case for case in cases if ENGINES[name].admits(case)]
        for case, outcomes in zip(admitted, ENGINES[name].run(ranks, admitted), strict=True):
            results[case][name] = outcomes
    for case, by_engine in results.items():
        first, *others = by_engine
        for other in others:
            for rank in range(ranks):
                a, b = by_engine[first][rank], by_engine[other][rank]
                if a is None and b is None:
                    continue
                assert isinstance(a, np.ndarray)
                assert isinstance(b, np.ndarray)
                assert a.tobytes() == b.tobytes(), f"{case}: rank {rank} differs between {first} and {other}"


def test_the_sample_covers_the_matrix() -> None:
    """A sample that misses an algorithm, a datatype or an operator altogether would test less than it says."""
    cases = sample()
    assert {(c.collective, c.algorithm) for c in cases} == set(names())
    reduced = {(c.dtype, c.op) for c in cases if c.collective in REDUCTIONS}
    assert reduced == {(dtype, op) for dtype, ops in OPS.items() for op in ops}
    assert {c.dtype for c in cases if c.collective not in REDUCTIONS} == set(OPS)
    assert any(c.in_place for c in cases)
    assert any(c.skew for c in cases)


def test_a_wrong_result_is_noticed() -> None:
    """The judge itself: one flipped bit of one element of one rank."""
    case = Case("allreduce", "ring", 4, 17)
    results = ENGINES["threads"].run(4, [case])[0]
    assert judge(case, results) == []
    broken = results[2]
    assert isinstance(broken, np.ndarray)
    broken.view(np.uint8)[5] ^= 1
    assert len(judge(case, results)) == 1
