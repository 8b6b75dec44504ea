"""The matrix on engines in RTL, through the driver: bit for bit what the reference interpreter has.

Needs the simulated cluster, so it runs with UNISONO_TEST_RTL=1 only (`make test-rtl`); 2 widens it to all cases.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from .case import AUTOMATIC, Case
from .engines import Cluster, Outcome, interpret
from .matrix import SEED, compressed, core, edges, names
from .test_conformance import judge

WIDTH = int(os.environ.get("UNISONO_TEST_RTL", "0"))
pytestmark = pytest.mark.skipif(WIDTH == 0, reason="UNISONO_TEST_RTL is not set")

RANKS = (2, 3, 4, 5, 8)
MIXED = [(2, (1,)), (3, (0, 2)), (4, (1, 3)), (2, (0,)), (3, (1,)), (4, (2,))]  # ranks, and those on the native engine
FEW = {2: 3, 3: 2, 4: 2, 5: 2, 8: 1}  # cases of each algorithm, by ranks


def same(got: Outcome, want: Outcome) -> bool:
    """Bit for bit, but for the padding of pairs."""
    if got is None or want is None or isinstance(got, str) or isinstance(want, str):
        return type(got) is type(want) and (got is None or got == want)
    fields = got.dtype.names
    if fields is None:
        return got.tobytes() == want.tobytes()
    return all(got[field].tobytes() == want[field].tobytes() for field in fields)


def cases_of(ranks: int, few: int) -> list[Case]:
    """`few` of the core of each algorithm, drawn by number, and one beyond a segment; or all."""
    cluster, chosen = Cluster(), []
    for name in names():
        own = [case for case in core(*name, ranks) if cluster.admits(case)]
        large = [case for case in edges(*name, ranks) if cluster.admits(case)]
        if WIDTH < 2:
            rng = random.Random(f"{SEED} {name} {ranks}")
            own = rng.sample(own, min(len(own), few))
            large = rng.sample(large[:2], min(len(large), 1))
        chosen += own + large
    return chosen


def agree_with_the_interpreter(cluster: Cluster, ranks: int, few: int, part: int = 1) -> None:
    """With `part`, one of so many of these cases, drawn by number."""
    cases = cases_of(ranks, few)
    if part > 1:
        cases = random.Random(f"{SEED} {ranks} {part}").sample(cases, -(-len(cases) // part))
    wrong = []
    for case, outcomes in zip(cases, cluster.run(ranks, cases), strict=True):
        expected = interpret(case, "least_permissive", case.seed)
        for rank, (got, want) in enumerate(zip(outcomes, expected, strict=True)):
            if not same(got, want):
                wrong.append(f"{case}: rank {rank}: {got if isinstance(got, str) else 'another result'}")
    assert not wrong, "\n".join([f"{len(wrong)} wrong of {len(cases)} cases:", *wrong[:20]])


@pytest.mark.parametrize("ranks", RANKS)
def test_engines_in_rtl_agree_with_the_interpreter(ranks: int) -> None:
    agree_with_the_interpreter(Cluster(), ranks, FEW[ranks])


@pytest.mark.parametrize("native", [(), (1,)])
def test_compressed(native: tuple[int, ...]) -> None:
    """What the hosts round and widen travels narrow between engines in RTL, and native ones."""
    cluster = Cluster(native)
    collectives = sorted({name[0] for name in names()} - {"barrier"})
    cases = [c for name in collectives for c in compressed(name, AUTOMATIC, 3) if c.count < 1000 and cluster.admits(c)]
    outcomes = cluster.run(3, cases)
    wrong = [text for case, of_ranks in zip(cases, outcomes, strict=True) for text in judge(case, of_ranks)]
    assert not wrong, "\n".join([f"{len(wrong)} wrong of {len(cases)} cases:", *wrong[:20]])


@pytest.mark.parametrize(("ranks", "native"), MIXED if WIDTH > 1 else MIXED[:3])
def test_members_of_which_some_are_native(ranks: int, native: tuple[int, ...]) -> None:
    agree_with_the_interpreter(Cluster(native), ranks, 1)


# Nothing of it was known when the model was built.
LATER = """
import os

import numpy as np
import unisono


def downhill(p):
    \"\"\"All-gather on a ring that goes down, the opposite way to the library's.\"\"\"
    block = lambda rank: p.dst(3 * (rank % p.size), 3)
    last = p.move(take=p.src(0, 3), keep=block(p.rank))
    for step in range(p.size - 1):
        p.move(take=block(p.rank + step), send=p.message((p.rank - 1) % p.size, tag=step), after=last)
        last = p.move(take=p.arrival((p.rank + 1) % p.size, tag=step), keep=block(p.rank + step + 1))


with unisono.init() as context:
    world = context.world
    program = unisono.Program.build(world.size, downhill, dtype="int32")
    assert program.check()
    for turn in range(3):
        mine = np.array([100 * world.rank + 10 * turn + i for i in range(3)], np.int32)
        everything = world.run_program(program, mine, np.zeros(3 * world.size, np.int32))
        want = [100 * r + 10 * turn + i for r in range(world.size) for i in range(3)]
        assert everything.tolist() == want, everything
    os.write(1, b"right\\n")  # in one piece, whatever Python buffers
"""


@pytest.mark.parametrize("ranks", [2, 5])
def test_a_collective_written_after_the_model_was_built(ranks: int, tmp_path: Path) -> None:
    script = tmp_path / "later.py"
    script.write_text(LATER)
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "--platform", "rtl", "-n", str(ranks), script],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["right"] * ranks


@pytest.mark.parametrize(("ranks", "native"), [(1, ""), (3, ""), (3, "1"), (3, "0,2")])
def test_windows(ranks: int, native: str) -> None:
    options = ["--native", native] if native else []
    script = Path(__file__).parents[1] / "platforms" / "windows.py"
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "--platform", "rtl", *options, "-n", str(ranks), script],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of {ranks} is right" for rank in range(ranks)]


# Most of its moves stand in the devices' memory.
LONG = """
import os

import numpy as np
import unisono

N = 90


def mirrored(p):
    \"\"\"Each element by a message of its own, to the next rank, which puts it where it has its mirror image.\"\"\"
    for i in range(N):
        p.move(take=p.src(i, 1), send=p.message((p.rank + 1) % p.size, tag=i))
        p.move(take=p.arrival((p.rank - 1) % p.size, tag=i), keep=p.dst(N - 1 - i, 1))


with unisono.init() as context:
    world = context.world
    program = unisono.Program.build(world.size, mirrored, dtype="int32")
    for turn in range(2):
        mine = np.arange(N, dtype=np.int32) + 1000 * world.rank + turn
        got = world.run_program(program, mine, np.zeros(N, np.int32))
        want = np.arange(N)[::-1] + 1000 * ((world.rank - 1) % world.size) + turn
        assert (got == want).all(), got
    os.write(1, b"right\\n")
"""


def test_a_program_of_more_moves_than_an_engine_holds(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(LONG)
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", "--platform", "rtl", "-n", "2", script],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["right"] * 2
