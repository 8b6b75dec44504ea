"""Ranks are killed; those that are left notice it, agree, shrink their communicator and go on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}

PROLOGUE = """
import json, os, random, signal, sys, threading, time
import numpy as np
import unisono
out = sys.argv[1]
victims = json.loads(sys.argv[2])
def tell(rank, what):
    with open(os.path.join(out, f"{rank}.json"), "w") as file:
        json.dump(what, file)
"""


def run(tmp_path: Path, ranks: int, body: str, victims: object, *options: str) -> tuple[int, dict[int, Any], str]:
    """Runs a script; returns its status, what each rank has written, and standard error."""
    script = tmp_path / "job.py"
    script.write_text(PROLOGUE + body)
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), *options, str(script), str(tmp_path)]
    result = subprocess.run(
        [*command, json.dumps(victims)], capture_output=True, text=True, timeout=90, env=ENVIRONMENT
    )
    said = {int(path.stem): json.loads(path.read_text()) for path in tmp_path.glob("[0-9]*.json")}
    return result.returncode, said, result.stderr


GO_ON = """
with unisono.init(timeout=30) as context:
    world = comm = context.world
    noticed = None
    results = []
    for step in range(8):
        if step == 3 and world.rank in victims and comm is world:
            if world.rank == min(victims):
                open(os.path.join(out, "killed"), "w").write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        mine = np.arange(500) * (comm.rank + 1) + step
        try:
            results.append(int(comm.allreduce(mine)[499]))
        except (unisono.PeerDeadError, unisono.RevokedError) as error:
            noticed = [time.time(), type(error).__name__, str(error)]
            agreed = comm.agree(0b1111 & ~(1 << world.rank % 3))
            failed = comm.failed
            comm = comm.shrink()
    everyone = comm.allgather(np.array([world.rank])).ravel().tolist()
    tell(world.rank, [noticed, agreed, failed, comm.rank, everyone, results])
"""


@pytest.mark.parametrize(("ranks", "victims"), [(2, [0]), (3, [2]), (4, [0]), (5, [1, 3]), (4, [0, 1, 2])])
def test_the_others_go_on(tmp_path: Path, ranks: int, victims: list[int]) -> None:
    status, said, errors = run(tmp_path, ranks, GO_ON, victims, "--keep-going")
    assert status == 0, errors
    left = [rank for rank in range(ranks) if rank not in victims]
    assert sorted(said) == left
    killed = float((tmp_path / "killed").read_text())
    bits = 0b1111
    for rank in left:
        bits &= ~(1 << rank % 3)
    for position, rank in enumerate(left):
        noticed, agreed, failed, new_rank, everyone, results = said[rank]
        assert noticed[0] - killed < 5  # a second, with room for a busy machine
        assert "has died" in noticed[2]
        assert agreed == bits
        assert failed == victims
        assert new_rank == position
        assert everyone == left
        before = [sum(499 * (r + 1) + step for r in range(ranks)) for step in range(3)]
        after = [sum(499 * (r + 1) + step for r in range(len(left))) for step in range(4, 8)]
        assert results == before + after


AGREE = """
with unisono.init(timeout=60) as context:
    world = context.world
    rng = random.Random(world.rank)
    if world.rank in victims:  # dies at some moment of the agreements, which may be the middle of a message
        threading.Thread(target=lambda: (time.sleep(rng.random() * 0.03), os.kill(os.getpid(), signal.SIGKILL))).start()
    agreed = []
    for round in range(400):
        agreed.append(world.agree(rng.getrandbits(60) | rng.getrandbits(60) | rng.getrandbits(60)))
    while len(world.failed) < len(victims):
        time.sleep(0.01)
    small = world.shrink()
    tell(world.rank, [agreed, small.allgather(np.array([world.rank])).ravel().tolist()])
"""


@pytest.mark.parametrize("attempt", range(4))
def test_agreements_are_equal_whoever_dies(tmp_path: Path, attempt: int) -> None:
    victims = [[0, 1, 2], [0], [4, 5], [1, 2, 3, 4]][attempt]
    status, said, errors = run(tmp_path, 6, AGREE, victims, "--keep-going")
    assert status == 0, errors
    left = [rank for rank in range(6) if rank not in victims]
    assert sorted(said) == left
    assert len({json.dumps(agreed) for agreed, _ in said.values()}) == 1
    assert all(everyone == left for _, everyone in said.values())
    assert len(set(said[left[0]][0])) > 100  # the agreements were about different values


def test_without_the_option_the_others_are_ended(tmp_path: Path) -> None:
    status, said, errors = run(tmp_path, 3, GO_ON, [1])
    assert status == 128 + 9
    assert not said
    assert "rank 1 of 3 was ended by SIGKILL" in errors


WAITS_ON = """
with unisono.init(timeout=1.5) as context:
    comm, other = context.world, context.world.dup()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == 2:
        other.free()
        time.sleep(3)
        os._exit(0)
    try:
        other.recv(np.zeros(1), source=unisono.ANY_SOURCE)
    except unisono.DeadlineError as error:
        tell(comm.rank, str(error))
    os._exit(0)
"""


def test_the_error_of_a_deadline_says_who_has_gone(tmp_path: Path) -> None:
    """A receive of anybody waits on after a death; the system says nothing of a process that was waited for."""
    _, said, errors = run(tmp_path, 3, WAITS_ON, [], "--keep-going")
    assert re.search(r"Rank 1, endpoint 1 \(pid \d+\): has died; ", said[0]), errors
    assert re.search(r"Rank 2, endpoint 2 \(pid \d+\): has freed it", said[0]), errors


def test_who_has_left_is_not_taken_for_late() -> None:
    def body(world: unisono.Communicator) -> str:
        if world.rank == 1:
            return ""
        if world.rank == 2:
            time.sleep(1)
            return ""
        with pytest.raises(unisono.DeadlineError) as caught:
            world.recv(np.zeros(1), source=unisono.ANY_SOURCE, timeout=0.5)
        return str(caught.value)

    text = unisono.ThreadJob(3).run(body)[0]
    assert "Rank 1, endpoint 1 (pid" in text
    assert "): has left the job" in text
    assert "has not made" not in text


def test_who_does_not_come_is_named() -> None:
    def body(world: unisono.Communicator) -> str:
        if world.rank == 1:
            time.sleep(1.0)
            return ""
        world.set_timeout(0.4)
        with pytest.raises(unisono.DeadlineError) as caught:
            world.agree(True)
        return str(caught.value)

    said = unisono.ThreadJob(3).run(body)
    for text in (said[0], said[2]):
        assert "agreement on communicator 0" in text
        assert "timed out after 400 ms; rank 1, endpoint 1" in text
        assert "has called nothing on it" in text


def test_different_agreements_are_found() -> None:
    def body(world: unisono.Communicator) -> str:
        world.set_timeout(20)
        with pytest.raises(unisono.MismatchedCallError) as caught:
            world.agree(1) if world.rank == 0 else world.shrink()
        return str(caught.value)

    for text in unisono.ThreadJob(3).run(body):
        assert "agree and shrink must be called alike" in text


def test_shrinking_a_whole_communicator_copies_it() -> None:
    def body(world: unisono.Communicator) -> tuple[int, int, int, bool]:
        world.revoke("for the test")
        made = world.shrink()
        assert not world.failed
        again = made.shrink()
        return (
            made.size,
            made.rank,
            int(again.allreduce(np.array([world.rank + 1]))[0]),
            bool(again.agree(world.rank != 2)),
        )

    for rank, result in enumerate(unisono.ThreadJob(4).run(body)):
        assert result == (4, rank, 10, False)


@pytest.mark.parametrize("value", [-1, 1 << 63, 1.5, "all"])
def test_values_that_cannot_be_agreed_on(value: Any) -> None:
    def body(world: unisono.Communicator) -> None:
        world.agree(value)

    with pytest.raises(unisono.InvalidArgumentError):
        unisono.ThreadJob(1).run(body)


def test_calls_that_end_during_an_agreement_are_told_of() -> None:
    def body(world: unisono.Communicator) -> float:
        if world.rank == 1:
            time.sleep(0.2)
            world.send(np.arange(5.0), 0)
            time.sleep(1.0)
            world.agree(True)
            return 1.0
        ended: list[float] = []
        request = world.recv_async(np.empty(5), 1)
        request.add_done_callback(lambda _: ended.append(time.monotonic()))
        world.agree(True)
        agreed = time.monotonic()
        request.wait()
        return agreed - ended[0]

    assert min(unisono.ThreadJob(2).run(body)) > 0.5
