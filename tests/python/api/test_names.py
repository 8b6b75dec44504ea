"""Names of communicators: where they are given, and where they are told."""

from __future__ import annotations

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob


def run(function, size: int = 3, **settings):
    return ThreadJob(size, timeout=30, **settings).run(function)


def test_where_they_are_given() -> None:
    def member(comm: Communicator) -> None:
        assert comm.name is None
        comm.name = "everybody"
        assert comm.name == "everybody"
        made = [
            comm.dup(name="a dup"),
            comm.split(comm.rank % 2, name="a split"),
            comm.subset([2, 0, 1], name="a subset"),
            comm.create_group([0, 1, 2], name="a group"),
        ]
        assert [one.name for one in made if one] == ["a dup", "a split", "a subset", "a group"]
        assert comm.dup().name is None
        comm.name = None
        assert comm.name is None

    run(member)


@pytest.mark.parametrize("platform", ["native", "functional"])
def test_repr_has_number_and_name(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNISONO_PLATFORM", platform)

    def member(comm: Communicator) -> None:
        assert repr(comm) == f"<unisono.Communicator 0, rank {comm.rank} of 2>"
        part = comm.dup(name="stage 1")
        assert part.state.number != 0
        assert repr(part) == f'<unisono.Communicator {part.state.number} "stage 1", rank {comm.rank} of 2>'
        number = part.state.number
        part.free()
        assert repr(part) == f"<unisono.Communicator {number}, rank {comm.rank} of 2>"

    run(member, 2)


@pytest.mark.parametrize(("lanes", "platform"), [(True, "native"), (False, "native"), (False, "functional")])
def test_errors_tell_them(lanes: bool, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNISONO_PLATFORM", platform)

    def member(comm: Communicator) -> str:
        part = comm.dup(name="stage 1")
        title = f'communicator {part.state.number} "stage 1"'
        text = ""
        with pytest.raises(unisono.UnisonoError) as failure:
            part.allreduce(np.zeros(4 + comm.rank))
        text += f"{failure.value}\n"
        with pytest.raises(unisono.RevokedError) as failure:
            part.barrier()
        text += f"{failure.value}\n"
        comm.barrier()
        assert text.count(title) >= 2, text
        return title

    titles = run(member, 2, lanes=lanes)
    assert titles[0] == titles[1]


def test_dump_says_the_name() -> None:
    with unisono.init() as context:
        context.world.name = "all of us"
        part = context.world.dup(name="me")
        assert 'communicator 0 "all of us", 1 rank' in context.dump()
        assert f'communicator {part.state.number} "me", 1 rank' in context.dump()


def test_a_reset_keeps_the_name_of_the_world() -> None:
    with unisono.init() as context:
        context.world.name = "all of us"
        context.reset()
        assert context.world.name == "all of us"
        assert f'<unisono.Communicator {context.world.state.number} "all of us", ' in repr(context.world)
