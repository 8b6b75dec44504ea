"""Switches of the simulated network carry collectives: results bit for bit in the tree's order, errors on all ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .native_cluster import run

# Folds as the tree says, in listed order: sums of these numbers round, so another order shows.
COMMON = """
import sys
import numpy as np
import unisono

def fold(node, given):
    if isinstance(node, int):
        return given[node]
    result = fold(node[0], given)
    for child in node[1:]:
        result = result + fold(child, given)
    return result

def values(rank, count, salt):
    made = np.random.default_rng([rank, count, salt])
    return (made.standard_normal(count) * np.where(made.random(count) < 0.3, 1e-6, 1e3)).astype(np.float32)

def tree_of_communicator(comm):
    said = comm.state.carrier
    assert said.startswith("switches in the network: "), said
    return eval(said.removeprefix("switches in the network: ").replace(" ", ","))
"""
CALLS = (
    COMMON
    + """
def used(world):
    assert world.last_algorithm.name == "switch", world.last_algorithm

with unisono.init(timeout=30) as context:
    world = context.world
    rank, size = world.rank, world.size
    tree = tree_of_communicator(world)
    for salt, count in enumerate((1, 5, 1000, 2033, 30000)):
        given = [values(r, count, salt) for r in range(size)]
        total = fold(tree, given)
        root = (count + salt) % size
        got = world.allreduce(given[rank]); used(world)
        assert got.tobytes() == total.tobytes(), "allreduce"
        mine = given[rank].copy()
        world.allreduce(unisono.IN_PLACE, mine)
        assert mine.tobytes() == total.tobytes(), "allreduce in place"
        got = world.reduce(given[rank], root=root); used(world)
        assert rank != root or got.tobytes() == total.tobytes(), "reduce"
        whole = given[root].copy() if rank == root else np.zeros(count, np.float32)
        world.bcast(whole, root); used(world)
        assert whole.tobytes() == given[root].tobytes(), "bcast"
        joined = np.concatenate(given)
        assert np.asarray(world.allgather(given[rank])).tobytes() == joined.tobytes(), "allgather"
        used(world)
        got = world.gather(given[rank], root=root); used(world)
        assert rank != root or np.asarray(got).tobytes() == joined.tobytes(), "gather"
        block = np.zeros(count, np.float32)
        world.scatter(joined if rank == root else None, block, root=root); used(world)
        assert block.tobytes() == given[rank].tobytes(), "scatter"
        blocks = [[values(r + 50 * b, count, salt) for r in range(size)] for b in range(size)]
        got = world.reduce_scatter(np.concatenate([blocks[b][rank] for b in range(size)])); used(world)
        assert np.asarray(got).tobytes() == fold(tree, blocks[rank]).tobytes(), "reduce_scatter"
        world.barrier(); used(world)
    pending = [world.allreduce_async(np.full(700, rank + turn, np.int64)) for turn in range(12)]
    for turn, request in enumerate(pending):
        assert (request.wait() == size * turn + sum(range(size))).all(), "several at once"
    print(f"rank {rank} is right\\n", end="")
"""
)

SHAPES = {
    "one switch": (5, "topology = switch\naggregation = ais@switch0\n"),
    "leaves": (8, "topology = leaf_spine\nleaves = 2\nspines = 1\naggregation = ais@leaf*\n"),
    "leaves and spine": (6, "topology = leaf_spine\nleaves = 3\nspines = 2\naggregation = ais@leaf*|ais@spine0\n"),
    "torus": (8, "topology = torus\ncolumns = 4\nrows = 2\naggregation = ais@router*\n"),
    "a node": (4, "topology = switch\nnodes = 5\naggregation = aas@node4\n"),
}


def configuration(folder: Path, text: str, policy: str = "pause") -> Path:
    path = folder / "network.conf"
    path.write_text(f"policy = {policy}\n{text}")
    return path


def script(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("shape", SHAPES)
def test_each_collective_has_the_bits_of_the_tree(tmp_path: Path, shape: str) -> None:
    ranks, text = SHAPES[shape]
    network = configuration(tmp_path, text)
    done = run(ranks, "--network", network, "--prices", "off", script(tmp_path, CALLS))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is right" for rank in range(ranks)]
    # Five rounds of eight collectives, one of them twice, and twelve at once: the top has a part in all of them.
    assert re.search(r"switch \w+: 57 calls", done.stderr), done.stderr


def test_equal_runs_take_equal_cycles(tmp_path: Path) -> None:
    network, program = configuration(tmp_path, SHAPES["leaves"][1]), script(tmp_path, CALLS)
    cycles = set()
    for _ in range(2):
        done = run(8, "--network", network, "--prices", "off", program)
        assert done.returncode == 0, done.stderr
        cycles.add(re.findall(r"(\d+) cycles", done.stderr)[0])
    assert len(cycles) == 1


TYPES = """
import numpy as np
import unisono

with unisono.init(timeout=30) as context:
    world = context.world
    rank, size = world.rank, world.size
    count = 0
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16,
                 np.float32, np.float64, np.complex64, np.complex128, np.bool_):
        given = [(np.arange(300) * (r + 1) % 7 + r).astype(kind) for r in range(size)]
        integer = np.issubdtype(kind, np.integer)
        for op in ("sum", "prod", "min", "max", "bitwise_and", "bitwise_or", "bitwise_xor", "avg"):
            if op.startswith("bitwise") and not integer or op == "prod" and not integer:
                continue
            if kind == np.bool_ and op in ("sum", "avg") or integer and op == "avg":
                continue
            if np.issubdtype(kind, np.complexfloating) and op in ("min", "max"):
                continue
            by_switch = world.allreduce(given[rank], op=op)
            assert world.last_algorithm.name == "switch", (kind, op)
            among_ranks = world.allreduce(given[rank], op=op, algorithm="recursive_doubling")
            assert by_switch.tobytes() == among_ranks.tobytes(), (kind, op)
            count += 1
    print(f"rank {rank} compared {count}\\n", end="")
"""


def test_all_operators_and_types(tmp_path: Path) -> None:
    """The numbers are small: their sums do not round, so ranks and switches have the same bits."""
    done = run(4, "--network", configuration(tmp_path, SHAPES["one switch"][1]), script(tmp_path, TYPES))
    assert done.returncode == 0, done.stderr
    assert len(set(re.findall(r"compared (\d+)", done.stdout))) == 1
    assert len(done.stdout.splitlines()) == 4


GROUPS = (
    COMMON
    + """
with unisono.init(timeout=30) as context:
    world = context.world
    rank, size = world.rank, world.size
    for turn in range(3):
        half = world.split(rank // 4)
        given = [values(4 * (rank // 4) + r, 500, turn) for r in range(4)]
        total = half.allreduce(given[half.rank])
        assert half.last_algorithm.name == "switch"
        assert total.tobytes() == fold(tree_of_communicator(half), given).tobytes()
        half.free()
    mixed = world.split(0, key=rank % 4 * 2 + rank // 4)
    assert mixed.state.carrier.startswith("none: its ranks do not stand in the order"), mixed.state.carrier
    total = mixed.allreduce(np.full(9, rank, np.int32))
    assert mixed.last_algorithm.name != "switch" and (total == sum(range(size))).all()
    astride = world.split(rank % 2)
    total = astride.allreduce(np.full(9, rank, np.int32))
    assert astride.last_algorithm.name == "switch" and (total == sum(range(rank % 2, size, 2))).all()
    with_all = world.dup()
    made = [world.dup() for _ in range(12)]
    for turn, one in enumerate((with_all, *made)):
        assert (one.allreduce(np.full(5, rank + turn)) == sum(range(size)) + size * turn).all()
        assert one.last_algorithm.name == "switch", one.state.carrier
    print(f"rank {rank} is right\\n", end="")
"""
)


def test_communicators_have_trees_of_their_own(tmp_path: Path) -> None:
    done = run(8, "--network", configuration(tmp_path, SHAPES["leaves"][1]), script(tmp_path, GROUPS))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 8


@pytest.mark.parametrize("wrong", ["world.allreduce(np.ones(8))", "world.allreduce(np.ones(7))", "world.barrier()"])
def test_calls_that_differ_end_on_all_ranks(tmp_path: Path, wrong: str) -> None:
    program = f"""
import numpy as np, unisono
with unisono.init(timeout=30) as context:
    world = context.world
    try:
        {wrong} if world.rank == 2 else world.bcast(np.ones(8), 1)
        world.barrier()  # whoever had the data before the mistake was seen hears of it here
    except unisono.UnisonoError as error:
        print(type(error).__name__ + "\\n", end="")
"""
    done = run(4, "--network", configuration(tmp_path, SHAPES["one switch"][1]), script(tmp_path, program))
    names = done.stdout.split()
    assert len(names) == 4, done.stdout + done.stderr
    assert set(names) <= {"MismatchedCallError", "RevokedError"}, done.stdout + done.stderr
    assert "MismatchedCallError" in names


def test_a_deadline_says_who_is_missing_and_where(tmp_path: Path) -> None:
    program = """
import time
import numpy as np, unisono
with unisono.init(timeout=30) as context:
    world = context.world
    if world.rank != 2:
        world.allreduce(np.ones(4), timeout=0.02)
"""
    done = run(4, "--network", configuration(tmp_path, SHAPES["one switch"][1]), script(tmp_path, program))
    assert done.returncode != 0
    told = done.stderr
    assert "switch 0 (switch0): call 0 allreduce: waits for rank 2" in told or "has left the job" in told, told


def test_a_lost_frame_on_the_way_to_a_switch_is_told(tmp_path: Path) -> None:
    program = """
import numpy as np, unisono
with unisono.init(timeout=30) as context:
    for turn in range(40):
        total = context.world.allreduce(np.full(3000, context.world.rank + turn, np.int64))
        assert (total == 6 + 4 * turn).all(), "a wrong sum"
"""
    text = SHAPES["one switch"][1] + "loss@node1>* = 0.02\n"
    done = run(4, "--network", configuration(tmp_path, text), "--seed", 3, script(tmp_path, program))
    assert done.returncode != 0
    assert "FramesLostError" in done.stderr, done.stderr
    assert "the switch at address 4" in done.stderr, done.stderr
    assert "a wrong sum" not in done.stderr
    assert "MismatchedCallError" not in done.stderr


def test_off_leaves_all_to_the_ranks(tmp_path: Path) -> None:
    program = """
import numpy as np, unisono
with unisono.init(timeout=30) as context:
    context.world.allreduce(np.ones(4))
    print(context.world.last_algorithm.name, repr(context.world.state.carrier))
"""
    network = configuration(tmp_path, SHAPES["leaves"][1])
    done = run(8, "--network", network, "--switch", "off", script(tmp_path, program))
    assert done.returncode == 0, done.stderr
    assert "switch" not in done.stdout


def test_options_that_fit_nothing_are_refused(tmp_path: Path) -> None:
    program = script(tmp_path, "")
    done = run(2, "--switch", "native", program)
    assert done.returncode != 0
    assert "no file is given" in done.stderr
    done = run(2, "--network", configuration(tmp_path, "topology = switch\n"), "--switch", "native", program)
    assert done.returncode != 0
    assert "names no switches" in done.stderr
    done = run(2, "--network", configuration(tmp_path, "aggregation = ais@leaf*\n"), program)
    assert done.returncode != 0
    assert "line 2" in done.stderr, done.stderr
