"""Operators of reductions in C, on ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import unisono
from hosts.support import run
from unisono import handler

from . import operator_sources
from .support import EXAMPLES, needs_clang

pytestmark = needs_clang


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return operator_sources.write(tmp_path_factory.mktemp("operators"))


def test_all_reductions_have_the_bits_of_the_fold_in_order(folder: Path) -> None:
    done = run("-n", 4, folder / "reductions.py", folder)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


def test_what_differs_or_is_none_is_refused_on_all_ranks(folder: Path) -> None:
    done = run("-n", 4, folder / "errors.py", folder)
    assert (done.returncode, done.stdout) == (0, "right\n" * 4), done.stderr


def test_ranks_of_one_process_share_an_operator(folder: Path) -> None:
    affine = np.dtype([("scale", "u8"), ("shift", "u8")])

    def member(world: unisono.Communicator) -> tuple[int, int]:
        mine = np.array([(world.rank + 2, world.rank)] * 1000, affine)
        op = world.load_operator(folder / "affine.uh", commutative=False)
        part = world.split(world.rank % 2)
        again = part.load_operator(folder / "affine.uh", commutative=False)
        assert (op.func, op.name) == (again.func, again.name)
        whole = world.allreduce(mine, op=op)
        world.barrier()
        op.free()  # the other one still stands
        wanted = np.array([[(8, 2), (15, 8)][world.rank % 2]] * 1000, affine)
        assert np.array_equal(part.allreduce(mine, op=again), wanted)
        world.barrier()
        again.free()
        with pytest.raises(unisono.InvalidArgumentError, match="was freed"):
            world.allreduce(mine, op=again)
        return tuple(map(int, whole[0]))  # type: ignore[return-value]

    for _ in range(2):
        assert unisono.ThreadJob(4).run(member) == [(120, 33)] * 4


def test_whatever_a_switch_has_the_first_rank_raise_all_ranks_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> str:
        raise RuntimeError("lost")

    monkeypatch.setattr(unisono._core, "carry_operator", lost)

    def member(world: unisono.Communicator) -> str:
        op = world.load_operator(folder / "affine.uh", commutative=False)
        carrier = op.carrier
        world.barrier()
        op.free()
        return carrier

    assert unisono.ThreadJob(3).run(member) == ["its ranks: RuntimeError: lost"] * 3


def test_the_example_is_an_operator() -> None:
    made = handler.compile(EXAMPLES / "larger.c")
    assert made.functions == ["payload"]
    assert len(made.binary) < 1000


def test_elements_that_are_too_large_are_refused_by_the_compiler(tmp_path: Path) -> None:
    source = tmp_path / "large.c"
    source.write_text("#include <unisono_operator.h>\nstruct large { uint8_t bytes[65]; };\n"
                      "US_OPERATOR(struct large, a, b) { return a; }\n")  # fmt: skip
    with pytest.raises(handler.HandlerError, match=r"large\.c:3:.*an operator's elements have 1 to 64 bytes"):
        handler.compile(source)
