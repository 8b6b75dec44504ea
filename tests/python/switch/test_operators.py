"""Operators in C that switches fold by: the bits of the ranks, whatever becomes of the switch."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from handlers import operator_sources
from handlers.support import needs_clang
from hosts.support import start

from .support import SECONDS, Switch, command, local, make_secret, run, switch

pytestmark = needs_clang

CARRIED = (
    operator_sources.BEGIN
    + """
import json
from unisono import _core

def results(world):
    secret = _core.switch_secret(sys.argv[3])
    (pool,) = json.loads(_core.switch_ask(sys.argv[2], secret, "show", b"0", 5))["pools"]
    return pool["counters"]["results"]

with unisono.init(timeout=15) as context:
    world = context.world
    rank, size = world.rank, world.size
    world.allreduce(np.arange(3.0))
    for name, function, dtype in (("larger", larger, PAIR), ("affine", affine, AFFINE)):
        op = world.load_operator(f"{folder}/{name}.uh", commutative=name == "larger")
        assert op.carrier.startswith("the switch "), op.carrier
        for salt, count in enumerate((1, 7, 500)):
            parts = [given(dtype, count * size, of, salt) for of in range(size)]
            whole = folded(function, parts)
            before = results(world) if rank == 0 else 0
            world.barrier()
            assert np.array_equal(world.allreduce(parts[rank], op=op), whole), (name, count)
            got = world.reduce(parts[rank], root=salt, op=op)
            assert rank != salt or np.array_equal(got, whole)
            got = world.reduce_scatter(parts[rank], op=op)
            assert np.array_equal(got, whole[count * rank : count * (rank + 1)])
            world.barrier()
            assert rank != 0 or results(world) >= before + 5, "the switch folds them"
        op.free()
    # Loaded again it has its number again, of which switches have 16.
    for again in range(20):
        op = world.load_operator(f"{folder}/affine.uh", commutative=False)
        assert op.carrier.startswith("the switch "), (again, op.carrier)
        op.free()
    # The numbers of a process change hands, on rank 1 alone: calls are carried on all ranks or on none.
    op = world.load_operator(f"{folder}/larger.uh")
    op.free()
    mine = [unisono.Operator(f"mine{i}", np.add) for i in range(3 * (rank == 1))]
    part = world.split(0)
    op = part.load_operator(f"{folder}/larger.uh")
    parts = [given(PAIR, 60, of, 9) for of in range(size)]
    assert np.array_equal(world.allreduce(parts[rank], op=op), folded(larger, parts))
    world.barrier()
    op.free()
    for one in mine:
        one.free()
    part.free()
    # Sums of fp32 round: the switch's are the fold in listed order.
    op = world.load_operator(f"{folder}/sum.uh")
    parts = [np.random.default_rng(of).standard_normal(999).astype("f4") for of in range(size)]
    assert np.array_equal(world.allreduce(parts[rank], op=op), folded(np.add, parts))
    wide_op = world.load_operator(f"{folder}/wide.uh", commutative=False)
    assert wide_op.carrier == "its ranks: elements of 32 bytes are folded by ranks"
    parts = [given(WIDE, 9, of) for of in range(size)]
    assert np.array_equal(world.allreduce(parts[rank], op=wide_op), folded(wide, parts))
    # Stopped in the switch: an error on every rank, and no hang.
    divides = world.load_operator(f"{folder}/divides.uh")
    assert divides.carrier.startswith("the switch "), divides.carrier
    try:
        world.allreduce(np.full(10, [40, 2, 2, 0][rank], np.uint32), op=divides)
    except unisono.UnisonoError as error:
        print("right" if "by the switch" in str(error) else error)
"""
)

LONG = (
    operator_sources.BEGIN
    + """
import time
with unisono.init(timeout=15) as context:
    world = context.world
    op = world.load_operator(f"{folder}/affine.uh", commutative=False)
    begin, salt = time.monotonic(), 0
    print(op.carrier, flush=True) if world.rank == 0 else None
    while world.allreduce(np.array([time.monotonic() - begin]), op="max")[0] < float(sys.argv[2]):
        parts = [given(AFFINE, 300, of, salt) for of in range(world.size)]
        assert np.array_equal(world.allreduce(parts[world.rank], op=op), folded(affine, parts)), salt
        salt += 1
    if world.rank == 0:
        print("right", world.state.carrier)
"""
)

SHOWN = (
    operator_sources.BEGIN
    + """
from unisono import _core
from unisono.cli import main
with unisono.init(timeout=15) as context:
    world = context.world
    op = world.load_operator(f"{folder}/affine.uh", commutative=False)
    world.allreduce(given(AFFINE, 300, world.rank), op=op)
    if world.rank == 0:
        print(_core.switch_ask(sys.argv[2], _core.switch_secret(sys.argv[3]), "stat", b"", 5).decode(), flush=True)
        assert main(["switch", "stat", sys.argv[2], "--secret-file", sys.argv[3]]) == 0
    world.barrier()
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = operator_sources.write(tmp_path_factory.mktemp("operators"))
    (path / "carried.py").write_text(CARRIED)
    (path / "long.py").write_text(LONG)
    (path / "shown.py").write_text(SHOWN)
    return path


@pytest.fixture(scope="module")
def secret(folder: Path) -> Path:
    return make_secret(folder)


def options(made: Switch, secret: Path, hosts: int = 4) -> list[object]:
    return [*local(hosts), "--aggregate", made.address, "--aggregate-secret-file", secret]


def test_the_switch_folds_with_the_bits_of_the_ranks(folder: Path, secret: Path) -> None:
    with switch(secret) as made:
        done = run(*options(made, secret), folder / "carried.py", folder, made.address, secret)
        assert (done.returncode, done.stdout) == (0, "right\n" * 4), done.stderr


def test_one_that_was_loaded_by_command(folder: Path, secret: Path) -> None:
    """Before any job. What folds is shown while it does, with what it has folded."""
    own = ("--secret-file", secret)
    with switch(secret) as made:
        done = command("load", made.address, folder / "none.uh", "--operator", *own)
        assert done.returncode == 2, done.stdout
        assert "US_OPERATOR" in done.stderr
        done = command("load", made.address, folder / "affine.uh", "--operator", "--name", "maps", *own)
        assert done.returncode == 0, done.stderr
        assert "has the operator maps, " in done.stdout
        done = run(*options(made, secret, 3), folder / "shown.py", folder, made.address, secret)
        assert done.returncode == 0, done.stderr
        shown, *table = done.stdout.splitlines()
        answer = json.loads(shown)
        (loaded,) = answer["handlers"]
        (folds,) = answer["operators"]
        assert (loaded["name"], loaded["element_bytes"]) == ("maps", 16)
        assert (folds["hash"], folds["source"]) == (loaded["hash"], "affine.c")
        assert (folds["elements"], folds["stops"], folds["last_stop"]) == (2 * 300, 0, None)
        (row,) = [line for line in table if "16 B" in line]
        assert "600" in row


def test_what_a_switch_refuses_the_ranks_fold(folder: Path, secret: Path) -> None:
    with switch(secret, "--handlers", 0, "--name", "none") as made:
        done = run(*options(made, secret), folder / "long.py", folder, 0.3)
        assert done.returncode == 0, done.stderr
        first, last = done.stdout.splitlines()
        assert first == "its ranks: the switch none takes no operators of users; start it with --handlers N"
        assert last.startswith("right the switch none")


@pytest.mark.parametrize(("again", "patience"), [(True, 5), (False, 1)], ids=["starts again", "is gone"])
def test_when_the_switch_is_killed(folder: Path, secret: Path, again: bool, patience: int) -> None:
    with switch(secret) as made:
        words = [*options(made, secret, 3), folder / "long.py", folder, 2.5]
        process = start(*words, UNISONO_AGGREGATE_TIMEOUT_S=str(patience))
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("the switch ")
            time.sleep(0.3)
            made.end(signal.SIGKILL)
            if again:
                made.start_again()
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert output.startswith("right ")
    # Given up, the ranks fold on; else operators came back with the pool.
    assert output.startswith("right the switch ") == again, (output, errors)
