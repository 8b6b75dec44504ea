"""Which cases are run: a fixed core, and a sample of the rest that a seed chooses."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import unisono

from .case import AUTOMATIC, DTYPES, MEANS, OPS, REDUCTIONS, ROOTED, Case

#: Counts of the full matrix.
COUNTS = (0, 1, 2, 3, 17, 1023, 4097)
RANKS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16)
CORE_RANKS = (1, 2, 3, 4, 5, 8)
RADICES = (2, 3, 7)
CORE_COUNTS = (0, 1, 17)
#: Where every name of the table runs beside these, in few cases.
MANY_RANKS = (6, 7, 9, 16, 33)
#: Groups that are not of one size, or no ranges of ranks (`Case.groups`).
GROUPS = ("dealt", "uneven")
#: Algorithms that look at groups.
GROUPED = ("two_level", "multi_leader")
NOT_HERE = ("nop", "copy", "combine", "send", "recv", "put", "get", "program")  # tested in tests/python/api
NO_IN_PLACE = ("bcast", "barrier")

SAMPLES = int(os.environ.get("UNISONO_CONFORMANCE_SAMPLES", "600"))
SEED = int(os.environ.get("UNISONO_CONFORMANCE_SEED", "20"))


def names() -> list[tuple[str, str]]:
    """(collective, algorithm) of the whole table; where there is a radix, with others than the usual one as well."""
    table = [a for a in unisono.algorithms() if a.collective not in NOT_HERE]
    radices = [(a.collective, f"{a.name}:{radix}") for a in table if a.radix for radix in RADICES]
    return [*((a.collective, a.name) for a in table), *radices]


def refused(case: Case) -> bool:
    """The restrictions that the table states, written out again so that a wrong refusal is noticed."""
    p = case.ranks
    match case.collective, case.algorithm.partition(":")[0]:
        case "scan" | "exscan" | "alltoall", "two_level":
            return case.groups == "dealt" and p > 2
        case "allgather", "recursive_doubling":
            return p & (p - 1) != 0
        case "alltoallv", "scattered":
            return case.in_place
        case "allreduce", "direct_replicated":
            return case.in_place or p > 16
        case _, "direct":
            return p > 16
        case _, "switch":  # a communicator has no tree
            return True
        case "allgather", "flat":
            return p > 32
        case "allreduce" | "barrier", "flat":
            return p > 64
        case "reduce", "two_shot":
            return p > 17
        case "scan" | "exscan", "one_shot":
            return p > 32
        case "allreduce" | "reduce_scatter", "one_shot" | "two_shot":
            return p > 31
        case _:
            return False


def core(collective: str, algorithm: str, ranks: int) -> Iterator[Case]:
    """What every change must pass: both forms, two roots, counts below, at and above the number of ranks."""
    roots = sorted({0, ranks - 1}) if collective in ROOTED else [0]
    groups = sorted({2, 3}) if algorithm in GROUPED else [0]
    for root in roots:
        for group_size in groups:
            for in_place in (False,) if collective in NO_IN_PLACE else (False, True):
                for count in (0,) if collective == "barrier" else (*CORE_COUNTS, 2 * ranks + 1):
                    yield Case(collective, algorithm, ranks, count, root=root, group_size=group_size, in_place=in_place)
        if algorithm in GROUPED:
            for kind, count in itertools.product(GROUPS, (0,) if collective == "barrier" else (0, 17)):
                in_place = collective not in NO_IN_PLACE and count == 17 and kind == GROUPS[root == 0]
                yield Case(collective, algorithm, ranks, count, root=root, groups=kind, in_place=in_place)


def all_names() -> list[tuple[str, str]]:
    """As `names`, and every collective with the engine's own choice."""
    return [*names(), *((collective, AUTOMATIC) for collective in dict(names()))]


#: Bytes at which an engine does something else: payload of a line, smallest direct call, a segment, several of them.
EDGES = (48, 4096, 65536, 3 * 65536)


def operators_of(collective: str, dtype: str) -> tuple[str, ...]:
    """The operators that a collective may have on a datatype."""
    if collective not in REDUCTIONS:
        return ("sum",)
    return tuple(op for op in OPS[dtype] if op != "avg" or collective in MEANS)


def groups_of(algorithm: str, rng: random.Random) -> dict[str, Any]:
    """Groups for a case, of any kind."""
    if algorithm not in GROUPED:
        return {}
    kind = rng.choice(("", *GROUPS))
    return {"groups": kind} if kind else {"group_size": 2}


def edges(collective: str, algorithm: str, ranks: int) -> Iterator[Case]:
    """One element below, at or above each edge, of some datatype, with some root: the case's name decides."""
    for edge in () if collective == "barrier" else EDGES:
        rng = random.Random(f"{SEED} {collective} {algorithm} {ranks} {edge}")
        dtype = rng.choice(list(DTYPES))
        yield Case(
            collective,
            algorithm,
            ranks,
            edge // DTYPES[dtype].itemsize + rng.choice((-1, 0, 1)),
            dtype=dtype,
            op=rng.choice(operators_of(collective, dtype)),
            root=rng.randrange(ranks) if collective in ROOTED else 0,
            in_place=collective not in NO_IN_PLACE and rng.random() < 0.4,
            **groups_of(algorithm, rng),
        )


def many(collective: str, algorithm: str, ranks: int) -> Iterator[Case]:
    """What runs on many ranks: a count near the number of ranks, and one above a rank's share of a segment."""
    datatypes = ("int32", "fp64")
    longer = EDGES[2] // ranks // DTYPES[datatypes[1]].itemsize + 1
    # Both counts from both ends, each once in place.
    for count, dtype, last, in_place in (
        (17, datatypes[0], False, False),
        (17, datatypes[0], True, True),
        (longer, datatypes[1], True, False),
        (longer, datatypes[1], False, True),
    ):
        yield Case(
            collective,
            algorithm,
            ranks,
            0 if collective == "barrier" else count,
            dtype=dtype,
            root=ranks - 1 if last and collective in ROOTED else 0,
            in_place=in_place and collective not in NO_IN_PLACE,
            group_size=5 if algorithm in GROUPED else 0,  # divides none of MANY_RANKS
        )


def compressed(collective: str, algorithm: str, ranks: int) -> Iterator[Case]:
    """Calls of fp32 that travel narrow, with values that are rounded on the way."""
    for in_place in (False,) if collective in NO_IN_PLACE else (False, True):
        for wire in ("fp16", "bf16"):
            for count in (0, 1, 17, 40_000 if algorithm == AUTOMATIC else 1023):
                rng = random.Random(f"{SEED} {collective} {algorithm} {ranks} {count} {wire} {in_place}")
                yield Case(
                    collective,
                    algorithm,
                    ranks,
                    count,
                    op=rng.choice(operators_of(collective, wire)),
                    root=rng.randrange(ranks) if collective in ROOTED else 0,
                    in_place=in_place,
                    group_size=2 if algorithm in GROUPED else 0,
                    exact=False,
                    wire=wire,
                )


def sample() -> list[Case]:
    """Cases drawn from the full product."""
    rng = random.Random(SEED)
    table = names()
    operators = [(dtype, op) for dtype, ops in OPS.items() for op in ops]
    rng.shuffle(operators)
    next_operator = itertools.cycle(operators)
    means: list[tuple[str, str]] = []
    cases = []
    for drawn in range(SAMPLES):
        collective, algorithm = table[drawn] if drawn < len(table) else rng.choice(table)
        ranks = rng.choice(RANKS)
        dtype, op = rng.choice(list(DTYPES)), "sum"
        if collective in REDUCTIONS:
            # What this collective does not take is the next one's that does, so that all of them come.
            dtype, op = means.pop() if means and collective in MEANS else next(next_operator)
            while op == "avg" and collective not in MEANS:
                means.append((dtype, op))
                dtype, op = next(next_operator)
        cases.append(
            Case(
                collective,
                algorithm,
                ranks,
                0 if collective == "barrier" else rng.choice(COUNTS),
                dtype=dtype,
                op=op,
                root=rng.randrange(ranks) if collective in ROOTED else 0,
                in_place=collective not in NO_IN_PLACE and rng.random() < 0.4,
                group_size=rng.choice((0, 2, 3, 4)) if algorithm in GROUPED else 0,
                skew=rng.random() < 0.2,
                exact=rng.random() < 0.6 or DTYPES[dtype].kind in "iubV" or collective not in REDUCTIONS,
            )
        )
    return cases
