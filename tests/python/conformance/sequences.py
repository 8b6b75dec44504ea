"""Sequences of calls: what every rank does with them. Run as a module, one rank of a job of processes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import unisono
from unisono.communicator import Communicator
from unisono.request import Request

from .case import Case, compare
from .engines import TIMEOUT, Placed, all_allocated, launch, needs_direct_access, place


@dataclass(frozen=True)
class Step:
    """One call of a sequence. `reversed_ranks`: on the second communicator, where the ranks stand the other way round.
    `wait`: how many of the requests that are open are waited for behind it, oldest or youngest first."""

    case: Case
    placement: str
    blocking: bool
    reversed_ranks: bool
    wait: int
    youngest: bool


def refusal_expected(step: Step, reach: str) -> bool:
    """Whether a direct algorithm that was named cannot be run; `reach` is the memory of others that a rank reaches:
    all, allocated or none."""
    case = step.case
    if not needs_direct_access(case) or reach == "all":
        return False
    if reach == "none":
        return True
    return case.ranks > 1 and case.count != 0 and not all_allocated(case, step.placement)


def perform(world: Communicator, steps: Sequence[Step], reach: str) -> list[str]:
    """All steps on this rank; what is wrong, in sentences."""
    other = world.split(0, -world.rank)
    if other is None:
        raise AssertionError("split with a colour gave no communicator")
    try:
        return _perform(world, other, steps, reach)
    except unisono.UnisonoError as error:
        other.revoke(f"on another communicator: {error}")  # somebody may wait on it for this rank
        raise
    finally:
        other.free()


def _perform(world: Communicator, other: Communicator, steps: Sequence[Step], reach: str) -> list[str]:
    wrong: list[str] = []
    pending: list[tuple[Step, Communicator, Placed, Request]] = []

    def judge(step: Step, comm: Communicator, own: Placed, refused: bool) -> None:
        if refused != refusal_expected(step, reach):
            wrong.append(f"{step}: rank {comm.rank} was {'' if refused else 'not '}refused")
        if (fault := own.faults()) is not None:
            wrong.append(f"{step}: rank {comm.rank} {fault}")
        if not refused and (text := compare(step.case, comm.rank, own.dst)) is not None:
            wrong.append(f"{step}: {text}")

    def settle(entry: tuple[Step, Communicator, Placed, Request]) -> None:
        step, comm, own, request = entry
        refused = False
        try:
            request.wait()
        except unisono.UnsupportedError:
            refused = True
        judge(step, comm, own, refused)

    for step in steps:
        comm = other if step.reversed_ranks else world
        own = place(comm, step.case, step.placement)
        try:
            request = launch(comm, step.case, own, blocking=step.blocking)
        except unisono.UnsupportedError:
            judge(step, comm, own, True)
        else:
            if request is None:
                judge(step, comm, own, False)
            else:
                pending.append((step, comm, own, request))
        for _ in range(min(step.wait, len(pending))):
            settle(pending.pop(-1 if step.youngest else 0))
    while pending:
        settle(pending.pop())
    return wrong


def main() -> None:
    """Argument: the folder of the task."""
    folder = Path(sys.argv[1])
    sequences, settings = pickle.loads((folder / "task").read_bytes())
    reach = "allocated" if settings.get("lanes", True) else "none"
    with unisono.init(timeout=TIMEOUT, **settings) as context, ThreadPoolExecutor(1) as thread:
        wrong = [thread.submit(perform, context.world, steps, reach).result() for steps in sequences]
        (folder / f"rank{context.world.rank}").write_bytes(pickle.dumps(wrong))
        context.world.barrier()


if __name__ == "__main__":
    main()
