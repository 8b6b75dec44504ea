"""Groups of ranks for algorithms of two levels: of one size, of several, of any ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import unisono
from unisono import Operator
from unisono.communicator import Communicator

RANKS = 7
#: The group of each rank, and what the library makes of it: the number of groups, and that of each rank.
KINDS = {
    "ranges of several sizes": ([9, 9, 9, 9, 0, 0, 0], 2, [0, 0, 0, 0, 1, 1, 1]),
    "dealt in turn": ([5, 3, 5, 3, 5, 3, 5], 2, [0, 1, 0, 1, 0, 1, 0]),
    "anyhow": ([1, 2, 0, 2, 1, 1, 7], 4, [0, 1, 2, 1, 0, 0, 3]),
    "all together": ([4] * 7, 1, [0] * 7),
    "each alone": (list(range(7)), 1, [0] * 7),
}


def on_ranks(function: Any) -> list[Any]:
    return unisono.ThreadJob(RANKS, timeout=30.0).run(function)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_what_ranks_say(kind: str) -> None:
    numbers, groups, positions = KINDS[kind]

    def member(world: Communicator) -> None:
        comm = world.dup(group=numbers[world.rank])
        assert (comm.state.groups, comm.state.group) == (groups, positions[comm.rank])
        again = comm.dup()
        assert (again.state.groups, again.state.group) == (groups, positions[comm.rank])
        turned = comm.split(0, -comm.rank, group=numbers[world.rank])
        assert turned is not None
        for one in (comm, again, turned):
            mine = np.arange(1000) * (world.rank + 1)
            for algorithm in ("two_level", "multi_leader"):
                total = one.allreduce(mine, algorithm=algorithm)
                assert np.array_equal(total, np.arange(1000) * 28)
            rows = one.allgather(np.full(3, one.rank), algorithm="two_level")
            assert rows.ravel().tolist() == [rank for rank in range(RANKS) for _ in range(3)]
            blocks = one.reduce_scatter(np.arange(2.0 * RANKS) + one.rank, algorithm="two_level", op="avg")
            assert blocks.tolist() == [2 * one.rank + 3.0, 2 * one.rank + 4.0]

    on_ranks(member)


def test_a_call_without_algorithm_uses_the_groups() -> None:
    def member(world: Communicator) -> str | None:
        comm = world.dup(group=world.rank % 3)
        comm.allreduce(np.ones(3))
        return comm.last_algorithm.name

    assert on_ranks(member) == ["two_level"] * RANKS


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (lambda rank: {"group": rank} if rank != 3 else {}, ["rank 3", "does not", "all ranks"]),
        (lambda rank: {"group": 0, "group_size": 2}, ["group and a group_size"]),
    ],
)
def test_contradictions_are_refused_on_every_rank(settings: Any, words: list[str]) -> None:
    def member(world: Communicator) -> str:
        with pytest.raises(unisono.MismatchedCallError) as failure:
            world.split(0, 0, **settings(world.rank))
        assert world.allreduce(np.array([1]))[0] == RANKS
        return str(failure.value)

    for text in on_ranks(member):
        assert all(word in text for word in words), text


def test_what_two_levels_cannot_do_is_said() -> None:
    """A scan follows the ranks, so its groups are ranges; an operator that does not commute needs them, too."""

    def member(world: Communicator) -> None:
        comm = world.dup(group=world.rank % 2)
        with pytest.raises(unisono.UnsupportedError, match="groups are ranges of ranks"):
            comm.scan(np.ones(3), algorithm="two_level")
        assert comm.scan(np.ones(3)).tolist() == [world.rank + 1.0] * 3
        with pytest.raises(unisono.UnsupportedError, match="rank order"):
            comm.allreduce(np.ones(3), op=first, algorithm="two_level")
        assert comm.allreduce(np.full(3, world.rank + 5.0), op=first).tolist() == [5.0] * 3

    first = Operator("first", lambda a, _: a.copy(), commutative=False)
    try:
        on_ranks(member)
    finally:
        first.free()
