"""Engines under test. An engine runs cases and gives every rank's result; that is all the matrix asks of it.

To add an engine, write a class with `name`, `admits` and `run`, and list it in ENGINES.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import unisono
from unisono import _core
from unisono._spec import Collective, Datatype, Func
from unisono.communicator import Communicator

from .case import V_COLLECTIVES, Array, Case, buffers, is_in_place, layout

#: What a rank has after a call: its dst (scatter's root in place: nothing), or the error code of a refusal.
Outcome = Array | str | None

TIMEOUT = 60.0  # seconds for a call; far more than any needs, so that a lost message is reported and not awaited


class Engine(Protocol):
    """One way to execute a collective."""

    name: str

    def admits(self, case: Case) -> bool:
        """Whether this engine can run the case at all, by size or capability."""
        ...

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """Outcomes by case, then by rank; every case has `ranks` ranks."""
        ...


def needs_direct_access(case: Case) -> bool:
    """Whether the programs of a case reach src and dst of other ranks."""
    return case.algorithm in ("direct", "direct_replicated")


def call(comm: Communicator, case: Case) -> Outcome:
    """This rank's part of a case, through the Python interface."""
    rank = comm.rank
    own = buffers(case, rank)
    options: dict[str, Any] = {"algorithm": case.algorithm, "timeout": TIMEOUT}
    src: Any = own.src
    dst: Any = own.dst
    if is_in_place(case, rank):
        if src is None:
            src = unisono.IN_PLACE
        else:
            dst = unisono.IN_PLACE
    rooted: dict[str, Any] = {"root": case.root}
    if case.collective not in ("bcast",) and case.in_place:
        rooted["in_place"] = True
    try:
        match case.collective:
            case "barrier":
                comm.barrier(**options)
            case "bcast":
                comm.bcast(dst, case.root, **options)
            case "allreduce" | "scan" | "exscan" | "reduce_scatter":
                getattr(comm, case.collective)(src, dst, case.op, **options)
            case "reduce":
                comm.reduce(src, dst, case.op, **rooted, **options)
            case "allgather" | "alltoall":
                getattr(comm, case.collective)(src, dst, **options)
            case "gather" | "scatter":
                getattr(comm, case.collective)(src, dst, **rooted, **options)
            case "gatherv":
                v = layout(case)
                comm.gatherv(src, dst, v.counts[0], displacements=v.recv_displacements[0], **rooted, **options)
            case "scatterv":
                v = layout(case)
                comm.scatterv(src, dst, v.counts[0], displacements=v.send_displacements[0], **rooted, **options)
            case "allgatherv":
                v = layout(case)
                comm.allgatherv(src, dst, v.counts[0], displacements=v.recv_displacements[0], **options)
            case "alltoallv":
                v = layout(case)
                sends = None if case.in_place else v.counts[rank]
                displacements = None if case.in_place else v.send_displacements[rank]
                if case.in_place:
                    options["count"] = int(v.counts.max(initial=0))
                comm.alltoallv(
                    src,
                    sends,
                    dst,
                    v.counts[:, rank],
                    send_displacements=displacements,
                    recv_displacements=v.recv_displacements[rank],
                    **options,
                )
            case _:
                raise ValueError(f"the matrix does not know {case.collective}")
    except unisono.UnsupportedError:
        return "unsupported"
    return own.dst


def run_rank(world: Communicator, cases: Sequence[Case]) -> list[Outcome]:
    """All cases in order on one rank. Communicators with groups are made once for each group size."""
    grouped: dict[int, Communicator] = {0: world}
    outcomes: list[Outcome] = []
    for case in cases:
        if case.group_size not in grouped:
            made = world.split(0, world.rank, group_size=case.group_size)
            if made is None:
                raise AssertionError("split with a colour gave no communicator")
            grouped[case.group_size] = made
        if case.skew:
            time.sleep(float(np.random.default_rng([case.seed, world.rank, 7]).random()) * 0.003)
        outcomes.append(call(grouped[case.group_size], case))
    return outcomes


class Threads:
    """The native engine, ranks as threads. `eager_limit` and the others force its protocols."""

    def __init__(self, name: str, **settings: int) -> None:
        self.name = name
        self._settings = settings

    def admits(self, case: Case) -> bool:
        """Every case but those of direct algorithms: it does not reach the memory of other ranks yet."""
        return not needs_direct_access(case)

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """One thread job for all cases."""
        job: unisono.ThreadJob[list[Outcome]] = unisono.ThreadJob(ranks, timeout=TIMEOUT, **self._settings)
        by_rank = job.run(lambda world: run_rank(world, cases))
        return [[by_rank[r][k] for r in range(ranks)] for k in range(len(cases))]


class Processes:
    """The native engine, ranks as processes started by `unisono run`."""

    name = "processes"

    def admits(self, case: Case) -> bool:
        """Every case but those of direct algorithms: it does not reach the memory of other ranks yet."""
        return not needs_direct_access(case)

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """One job for all cases; outcomes come back in files."""
        root = Path(__file__).resolve().parents[1]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "cases").write_bytes(pickle.dumps(list(cases)))
            command = [sys.executable, "-m", "unisono.cli", "run", "-n", str(ranks), "--"]
            command += [sys.executable, "-m", "conformance.worker", folder]
            environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode != 0:
                raise AssertionError(f"unisono run exited with {done.returncode}:\n{done.stdout}\n{done.stderr}")
            by_rank: list[list[Outcome]] = [
                pickle.loads((Path(folder) / f"rank{r}").read_bytes()) for r in range(ranks)
            ]
        return [[by_rank[r][k] for r in range(ranks)] for k in range(len(cases))]


def vectors(case: Case) -> list[list[list[int]]]:
    """Counts and displacements by rank, as the interpreter takes them: send, send displacements, receive, likewise."""
    if case.collective not in V_COLLECTIVES:
        return []
    v = layout(case)
    ranks = range(case.ranks)
    match case.collective:
        case "scatterv":
            return [[v.counts[0].tolist(), v.send_displacements[0].tolist(), [], []] for _ in ranks]
        case "gatherv" | "allgatherv":
            return [[[], [], v.counts[0].tolist(), v.recv_displacements[0].tolist()] for _ in ranks]
        case _:
            sends = v.recv_displacements if case.in_place else v.send_displacements
            return [
                [v.counts[r].tolist(), sends[r].tolist(), v.counts[:, r].tolist(), v.recv_displacements[r].tolist()]
                for r in ranks
            ]


def interpret(case: Case, policy: str, seed: int) -> list[Outcome]:
    """A case under one schedule of the reference interpreter."""
    inputs = [buffers(case, rank) for rank in range(case.ranks)]
    count = case.count
    if case.collective in V_COLLECTIVES:
        v = layout(case)
        count = int(v.counts.max(initial=0)) if case.collective == "alltoallv" else int(v.counts.sum())
    try:
        results = _core.interpret(
            collective=int(Collective[case.collective.upper()]),
            algorithm=case.algorithm,
            size=case.ranks,
            root=case.root,
            op=int(Func[case.op.upper()]),
            datatype=int(Datatype[case.dtype.upper()]),
            count=count,
            in_place=case.in_place,
            group_size=case.group_size,
            src=[np.empty(0, np.uint8) if own.src is None else own.src.view(np.uint8) for own in inputs],
            dst=[np.empty(0, np.uint8) if own.dst is None else own.dst.view(np.uint8) for own in inputs],
            layouts=vectors(case),
            policy=policy,
            seed=seed,
        )
    except unisono.UnsupportedError:
        return ["unsupported"] * case.ranks
    outcomes: list[Outcome] = []
    for own, result in zip(inputs, results, strict=True):
        if own.dst is None:
            outcomes.append(None)
            continue
        out = own.dst.copy()  # the interpreter binds what the call needs; blocks of no elements may lie behind
        touched = np.frombuffer(result, dtype=out.dtype)
        out[: touched.size] = touched[: out.size]
        outcomes.append(out)
    return outcomes


class Interpreter:
    """The reference interpreter under one kind of schedule."""

    def __init__(self, policy: str) -> None:
        self.name = f"interpreter-{policy.replace('_', '-')}"
        self._policy = policy

    def admits(self, case: Case) -> bool:
        """It takes an element at a time, so large cases take long."""
        return case.ranks * case.ranks * max(case.count, 1) <= 300_000

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """Each case by itself, with its own seed."""
        return [interpret(case, self._policy, case.seed) for case in cases]


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Threads("threads"),
        Threads("threads-rendezvous", eager_limit=1, segment_bytes=256, rx_buffer_count=1),
        Processes(),
        Interpreter("least_permissive"),
        Interpreter("random"),
    )
}

__all__ = ["ENGINES", "Engine", "Outcome", "V_COLLECTIVES", "call", "run_rank"]
