"""Two racks of four hosts with a switch each, and one above them: the tree that jobs make of it, and what it gives."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hosts.support import run

from .jobs import HASTY, frames, stream
from .programs import COLLECTIVES
from .racks import EACH, RACKS, Racks, networks, switches
from .support import make_secret

SIZE = RACKS * EACH


@pytest.fixture(scope="module")
def racks() -> Iterator[Racks]:
    with networks() as made:
        yield made


@pytest.fixture
def tree(racks: Racks, tmp_path: Path) -> Iterator[Racks]:
    with switches(racks, make_secret(tmp_path)) as made:
        assert all(leaf.line.endswith("connected") for leaf in made.leaves)
        yield made


def job(racks: Racks, folder: Path, most: int, *words: object, **more: str) -> tuple[list[dict[str, Any]], str]:
    """What the ranks of a job with all collectives say."""
    program = folder / "collectives.py"
    program.write_text(COLLECTIVES)
    done = run(*racks.options, "--timeout", 80, *words, program, most, **more)
    assert done.returncode == 0, done.stderr
    said = sorted(map(json.loads, done.stdout.splitlines()), key=lambda one: one["rank"])
    assert [one["rank"] for one in said] == list(range(SIZE))
    return said, done.stderr


def in_tree_order(most: int) -> list[str]:
    """Digests of the sums of fp32 that the program makes, folded as this tree does: rack by rack, then both."""
    digests = []
    lengths = [length for length in (0, 4, 100, 1024, 1340, 20_000, 1 << 20) if length <= most]
    for salt, length in enumerate(lengths):
        given = [
            np.random.default_rng(1000 * salt + of).standard_normal(length // 4).astype(np.float32)
            for of in range(SIZE)
        ]
        sums = []
        for rack in range(RACKS):
            total, *others = given[rack * EACH : (rack + 1) * EACH]
            for other in others:
                total = total + other
            sums.append(total)
        digests.append(hashlib.sha256((sums[0] + sums[1]).tobytes()).hexdigest())
    return digests


def test_all_collectives_through_the_tree(tree: Racks, tmp_path: Path) -> None:
    most = 1 << 20
    named = ",".join(leaf.address for leaf in tree.leaves)
    aggregate = ["--aggregate", named, "--aggregate-secret-file", tree.leaves[0].secret]
    carried, errors = job(tree, tmp_path, most, *aggregate, UNISONO_AGGREGATE_UP_TO=str(16 << 20), UNISONO_LOG="info")
    assert "communicator 0 (8 ranks) is carried by the switch rack" in errors
    assert "not carried" not in errors
    assert tree.top is not None
    counted = [frames(one) for one in (tree.top, *tree.leaves)]
    assert min(counted) > 1000, "all three carry"
    assert counted[0] < min(counted[1:]), "what a rack has folded goes up once"
    alone, _ = job(tree, tmp_path, most, "--aggregate", "off")
    assert [frames(one) for one in (tree.top, *tree.leaves)] == counted, "nobody asks them"
    assert [one["digest"] for one in carried] == [one["digest"] for one in alone]
    expected = in_tree_order(most)
    for one in carried:
        assert [text for text in one["sums"] if isinstance(text, str)] == expected
        assert all(text for text in one["sums"]), "a reduce has the bits of an allreduce"


def test_the_tree_that_a_job_makes(tree: Racks, tmp_path: Path) -> None:
    with stream(tmp_path, SIZE, tree.leaves, *tree.options) as running:
        for number, leaf in enumerate(tree.leaves):
            (pool,) = leaf.ask("show", 0)["pools"]
            assert (pool["state"], pool["above"]) == ("running", "top")
            ranks = [member["first"] for member in pool["members"]]
            assert ranks == list(range(number * EACH, (number + 1) * EACH)), "each rack hangs below its own switch"
        assert tree.top is not None
        (pool,) = tree.top.ask("show", 0)["pools"]
        below = [(member["switch"], member["first"], member["ranks"]) for member in pool["members"]]
        assert below == [("rack0", 0, EACH), ("rack1", EACH, EACH)]
        (at_work,) = tree.top.ask("jobs")["jobs"]
        assert at_work["frames"] > 0
        running.end()


@pytest.mark.parametrize("host", [0, 5])
@pytest.mark.parametrize("way", ["to the switch", "from the switch"])
def test_a_cut_in_one_direction(tree: Racks, tmp_path: Path, host: int, way: str) -> None:
    """One host and its switch do not hear each other any more: all ranks go on without the switches."""
    leaf = tree.leaves[host // EACH]
    sender, receiver = tree.names[host], tree.at(leaf)
    if way == "from the switch":
        sender, receiver = receiver, sender
    with stream(tmp_path, SIZE, tree.leaves, *tree.options, **HASTY) as running:
        assert frames(leaf) > 0
        with tree.losing(sender, receiver):
            said, errors = running.end()
    assert "its ranks go on without it" in errors
    assert max(one["slowest"] for one in said) < 10


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_top_that_is_lost(tree: Racks, tmp_path: Path, number: signal.Signals) -> None:
    """What is below it cannot fold any more, and says nothing to the ranks, who go on."""
    assert tree.top is not None
    with stream(tmp_path, SIZE, tree.leaves, *tree.options, **HASTY) as running:
        tree.top.send(number)
        said, errors = running.end()
    assert "its ranks go on without it" in errors
    assert max(one["slowest"] for one in said) < 10
