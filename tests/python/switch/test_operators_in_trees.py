"""Operators in C in trees of switches: all of them fold by one, or none."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from handlers import operator_sources
from handlers.support import needs_clang
from hosts.support import start

from .support import SECONDS, Switch, local, make_secret, run, switch
from .test_operators import LONG

pytestmark = needs_clang

RANKS = 6

#: Sums of fp32 round at each switch: first what is below a leaf, then what leaves have.
FOLDED = (
    operator_sources.BEGIN
    + """
with unisono.init(timeout=20) as context:
    world = context.world
    rank, half = world.rank, world.size // 2
    for name, function, dtype in (("larger", larger, PAIR), ("affine", affine, AFFINE)):
        op = world.load_operator(f"{folder}/{name}.uh", commutative=name == "larger")
        assert op.carrier.startswith("the switch "), op.carrier
        for salt, count in enumerate((1, 7, 500)):
            parts = [given(dtype, count, of, salt) for of in range(world.size)]
            assert np.array_equal(world.allreduce(parts[rank], op=op), folded(function, parts)), (name, count)
            got = world.reduce(parts[rank], root=salt, op=op)
            assert rank != salt or np.array_equal(got, folded(function, parts))
        op.free()
    op = world.load_operator(f"{folder}/sum.uh")
    parts = [np.random.default_rng(of).standard_normal(999).astype("f4") for of in range(world.size)]
    whole = folded(np.add, [folded(np.add, parts[:half]), folded(np.add, parts[half:])])
    assert np.array_equal(world.allreduce(parts[rank], op=op), whole)
    # Stopped at the top alone: an error on every rank, and no hang.
    divides = world.load_operator(f"{folder}/divides.uh")
    assert divides.carrier.startswith("the switch "), divides.carrier
    try:
        world.allreduce(np.full(10, [40, 2, 2, 5, 6, 1][rank], np.uint32), op=divides)
    except unisono.UnisonoError as error:
        print("right" if "by the switch" in str(error) else error)
"""
)


class Tree(NamedTuple):
    top: Switch
    leaves: list[Switch]

    def options(self) -> list[object]:
        named = ",".join(leaf.address for leaf in self.leaves)
        return [*local(RANKS), "--aggregate", named, "--aggregate-secret-file", self.top.secret]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = operator_sources.write(tmp_path_factory.mktemp("operators"))
    (path / "folded.py").write_text(FOLDED)
    (path / "long.py").write_text(LONG)
    return path


@contextmanager
def tree(secret: Path, *at_the_top: object) -> Iterator[Tree]:
    with ExitStack() as stack:
        top = stack.enter_context(switch(secret, "--name", "top", *at_the_top))
        leaves = [
            stack.enter_context(switch(secret, "--name", name, "--uplink", top.address)) for name in ("left", "right")
        ]
        yield Tree(top, leaves)


def test_switches_of_a_tree_fold_in_its_order(folder: Path) -> None:
    with tree(make_secret(folder)) as made:
        done = run(*made.options(), folder / "folded.py", folder)
        assert (done.returncode, done.stdout) == (0, "right\n" * RANKS), done.stderr


def test_what_the_top_refuses_the_ranks_fold(folder: Path) -> None:
    with tree(make_secret(folder), "--handlers", 0) as made:
        done = run(*made.options(), folder / "long.py", folder, 0.3)
        assert done.returncode == 0, done.stderr
        first, last = done.stdout.splitlines()
        assert first == "its ranks: the switch top takes no operators of users; start it with --handlers N"
        assert last.startswith("right the switch left")


@pytest.mark.parametrize("which", ["top", "leaf"])
def test_when_one_is_killed_and_starts_again(folder: Path, which: str) -> None:
    """Operators come back with the pools."""
    with tree(make_secret(folder)) as made:
        killed = made.top if which == "top" else made.leaves[1]
        process = start(*made.options(), folder / "long.py", folder, 3, UNISONO_AGGREGATE_TIMEOUT_S="8")
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("the switch ")
            time.sleep(0.3)
            killed.end(signal.SIGKILL)
            killed.start_again()
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert output.startswith("right the switch "), (output, errors)


def test_a_top_that_starts_again_and_takes_none(folder: Path) -> None:
    """Its leaves do not fold what could not be finished above them: their silence sends the ranks on."""
    with tree(make_secret(folder), "--handlers", 64) as made:
        process = start(*made.options(), folder / "long.py", folder, 3, UNISONO_AGGREGATE_TIMEOUT_S="2")
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("the switch ")
            time.sleep(0.3)
            made.top.end(signal.SIGKILL)
            made.top.words[made.top.words.index("--handlers") + 1] = "0"
            made.top.start_again()
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=SECONDS)
        assert process.returncode == 0, errors
        assert output == "right \n", (output, errors)
