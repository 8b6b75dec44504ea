"""Engines under test. An engine runs cases and gives every rank's result; that is all the matrix asks of it.

To add an engine, write a class with `name`, `admits` and `run`, and list it in ENGINES.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import unisono
from switch.support import make_secret, switch
from unisono import _core
from unisono._spec import Collective, Datatype, Func
from unisono.communicator import Communicator
from unisono.request import Request

from .case import AUTOMATIC, V_COLLECTIVES, Array, Buffers, Case, buffers, is_in_place, layout

#: What a rank has after a call: its dst (scatter's root in place: nothing), or the error code of a refusal.
Outcome = Array | str | None

#: Collectives that slots of a switch carry.
CARRIED = ("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather")

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


#: Says whether a rank's "src" or "dst" is in allocated memory.
Placement = Callable[[Case, int, str], bool]


def _scattered(case: Case, rank: int, which: str) -> bool:
    return zlib.crc32(f"{case.seed} {rank} {which}".encode()) & 1 == 1


PLACEMENTS: dict[str, Placement] = {
    "ordinary": lambda case, rank, which: False,
    "allocated": lambda case, rank, which: True,
    "mixed": _scattered,  # some buffers of some ranks
}


def all_allocated(case: Case, placement: str) -> bool:
    """Whether every buffer that any rank has is in allocated memory, so that all can be reached by all; the copies of
    compressed calls are."""
    if case.wire:
        return True
    chosen = PLACEMENTS[placement]
    own = [(rank, buffers(case, rank)) for rank in range(case.ranks)]
    return all(
        chosen(case, rank, which)
        for rank, pair in own
        for which, array in (("src", pair.src), ("dst", pair.dst))
        if array is not None and array.size > 0
    )


@dataclass
class Placed:
    """A rank's buffers as parts of larger arrays, off their borders, so that a write beside them shows."""

    src: Array | None = None
    dst: Array | None = None
    _around: list[Array] = field(default_factory=list)
    _src_before: bytes = b""

    GUARD = 0xA5

    def faults(self) -> str | None:
        """What was written that must not be."""
        if any((part.view(np.uint8) != self.GUARD).any() for part in self._around):
            return "wrote beside its buffers"
        if self.src is not None and self.src.tobytes() != self._src_before:
            return "wrote its src"
        return None


def place(comm: Communicator, case: Case, placement: str) -> Placed:
    """This rank's memory before the call."""
    own: Buffers = buffers(case, comm.rank)
    made = Placed()
    for which, array in (("src", own.src), ("dst", own.dst)):
        if array is None:
            continue
        before, after = (case.seed + 5 * comm.rank + (3 if which == "dst" else 0)) % 19, 3
        empty = comm.empty if PLACEMENTS[placement](case, comm.rank, which) else np.empty
        whole = empty(before + array.size + after, array.dtype)
        whole.view(np.uint8)[:] = Placed.GUARD
        part = whole[before : before + array.size]
        part[:] = array  # but not its padding
        setattr(made, which, part)
        if which == "src":
            made._src_before = part.tobytes()
        made._around += [whole[:before], whole[before + array.size :]]
    return made


def launch(comm: Communicator, case: Case, own: Placed, *, blocking: bool) -> Request | None:
    """Makes this rank's part of a call through the Python interface; the request if it is not blocking. Deadlines are
    the communicator's."""
    rank = comm.rank
    options: dict[str, Any] = {"algorithm": None if case.algorithm == AUTOMATIC else case.algorithm}
    if case.wire:
        options["wire_datatype"] = case.wire
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
    operation: Callable[..., Any] = getattr(comm, case.collective + ("" if blocking else "_async"))
    request: Any
    match case.collective:
        case "barrier":
            request = operation(**options)
        case "bcast":
            request = operation(dst, case.root, **options)
        case "allreduce" | "scan" | "exscan" | "reduce_scatter":
            request = operation(src, dst, case.op, **options)
        case "reduce":
            request = operation(src, dst, case.op, **rooted, **options)
        case "allgather" | "alltoall":
            request = operation(src, dst, **options)
        case "gather" | "scatter":
            request = operation(src, dst, **rooted, **options)
        case "reduce_scatterv":
            v = layout(case)
            request = operation(src, dst, v.counts[0], case.op, displacements=v.recv_displacements[0], **options)
        case "gatherv":
            v = layout(case)
            request = operation(src, dst, v.counts[0], displacements=v.recv_displacements[0], **rooted, **options)
        case "scatterv":
            v = layout(case)
            request = operation(src, dst, v.counts[0], displacements=v.send_displacements[0], **rooted, **options)
        case "allgatherv":
            v = layout(case)
            request = operation(src, dst, v.counts[0], displacements=v.recv_displacements[0], **options)
        case "alltoallv":
            v = layout(case)
            if case.in_place:
                options["count"] = int(v.counts.max(initial=0))
            request = operation(
                src,
                dst,
                None if case.in_place else v.counts[rank],
                v.counts[:, rank],
                send_displacements=None if case.in_place else v.send_displacements[rank],
                recv_displacements=v.recv_displacements[rank],
                **options,
            )
        case _:
            raise ValueError(f"the matrix does not know {case.collective}")
    return None if blocking else request


def call(comm: Communicator, case: Case, placement: str) -> Outcome:
    """This rank's part of a case. Some ranks block, others start a request and wait for it."""
    own = place(comm, case, placement)
    try:
        request = launch(comm, case, own, blocking=(case.seed + comm.rank) % 3 != 0)
        if request is not None:
            request.wait()
    except unisono.UnsupportedError:
        return "unsupported"
    if (wrong := own.faults()) is not None:
        raise AssertionError(f"{case}: rank {comm.rank} {wrong}")
    return None if own.dst is None else own.dst.copy()


def bits(array: Array) -> list[bytes]:
    """An array's bytes but for padding, which a copy need not keep."""
    parts = [array] if array.dtype.names is None else [array[name] for name in array.dtype.names]
    return [part.tobytes() for part in parts]


def of_groups(world: Communicator, case: Case) -> Communicator:
    """A communicator with the groups of a case."""
    if case.groups:
        made = world.split(0, world.rank, group=case.group_of(world.rank))
    elif case.group_size == 0 and world.state.groups == 1:
        return world
    else:  # of several hosts no group is asked for by one of all ranks
        made = world.split(0, world.rank, group_size=case.group_size or world.size)
    if made is None:
        raise AssertionError("split with a colour gave no communicator")
    return made


def run_rank(world: Communicator, cases: Sequence[Case], placement: str) -> list[Outcome]:
    """All cases in order on one rank. Communicators with groups are made once for each kind."""
    grouped: dict[tuple[int, str], Communicator] = {}
    outcomes: list[Outcome] = []
    for case in cases:
        kind = (case.group_size, case.groups)
        if kind not in grouped:
            grouped[kind] = of_groups(world, case)
        comm = world if case.algorithm == AUTOMATIC and kind == (0, "") else grouped[kind]
        if case.skew:
            time.sleep(float(np.random.default_rng([case.seed, world.rank, 7]).random()) * 0.003)
        outcome = call(comm, case, placement)
        if case.algorithm == AUTOMATIC:  # the second time without the checks that it has passed
            again = call(comm, case, placement)
            arrays = isinstance(outcome, np.ndarray) and isinstance(again, np.ndarray)
            if arrays and bits(outcome) != bits(again):  # type: ignore[arg-type]
                raise AssertionError(f"{case}: rank {world.rank} has another result the second time")
        outcomes.append(outcome)
    return outcomes


class Threads:
    """The native engine, ranks as threads, which reach all memory. The settings force its ways and protocols."""

    _placement = "mixed"

    def __init__(self, name: str, **settings: Any) -> None:
        self.name = name
        self._settings = settings
        self._direct = settings.get("lanes", True)

    def admits(self, case: Case) -> bool:
        """Every case, but no direct algorithms where there are messages only."""
        return self._direct or not needs_direct_access(case)

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """One thread job for all cases."""
        job: unisono.ThreadJob[list[Outcome]] = unisono.ThreadJob(ranks, timeout=TIMEOUT, **self._settings)
        by_rank = job.run(lambda world: run_rank(world, cases, self._placement))
        return [[by_rank[r][k] for r in range(ranks)] for k in range(len(cases))]


class Loop(Threads):
    """The native engine on the loop network: each thread is a host of its own, and none reaches another's memory."""

    _placement = "ordinary"

    def __init__(self, name: str) -> None:
        super().__init__(name, network="loop")
        self._direct = False


class Carried(Loop):
    """The same with a switch, which carries the calls that slots carry. What names an algorithm never goes there."""

    def admits(self, case: Case) -> bool:
        """Calls that may be carried, and those between them that are not."""
        return case.algorithm == AUTOMATIC

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """As Threads; calls of any length go to the switch."""
        with tempfile.TemporaryDirectory() as folder, switch(make_secret(Path(folder))) as one:
            with variables(
                UNISONO_AGGREGATE=one.address,
                UNISONO_AGGREGATE_SECRET_FILE=str(one.secret),
                UNISONO_AGGREGATE_UP_TO=str(1 << 30),
                UNISONO_AGGREGATE_TIMEOUT_S=str(TIMEOUT),
            ):
                outcomes = super().run(ranks, cases)
            came: int = one.ask("status")["counters"]["frames_in"]
        carried = [
            case
            for case in cases
            if case.collective in CARRIED
            and not case.wire
            and not (case.collective == "reduce_scatter" and case.in_place)
            and not (case.op == "avg" and "reduce" in case.collective)
        ]
        if came < ranks * len(carried):  # each rank gives something to each call
            raise AssertionError(f"{came} frames came to the switch for {len(carried)} calls of {ranks} ranks")
        return outcomes


class Functional(Threads):
    """Devices without hardware: every call is a descriptor in exchange memory, and its buffers are copied to and fro.
    Ranks are threads, each with a device of its own."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, lanes=False, **settings)

    def admits(self, case: Case) -> bool:
        """Devices take groups of one size only."""
        return super().admits(case) and not case.groups

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """As Threads."""
        with variables(UNISONO_PLATFORM="functional"):
            return super().run(ranks, cases)


@contextlib.contextmanager
def variables(**given: str) -> Iterator[None]:
    """Has them in the environment of this process for a while."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def in_processes(
    module: str, ranks: int, task: object, options: Sequence[str] = (), seconds: float = 300, kernel_copy: str = "off"
) -> list[Any]:
    """Runs a module of this package on ranks started by `unisono run`; what each leaves, by rank."""
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "task").write_bytes(pickle.dumps(task))
        command = [sys.executable, "-m", "unisono.cli", "run", "-n", str(ranks), *options, "--"]
        command += [sys.executable, "-m", f"conformance.{module}", folder]
        environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        environment["UNISONO_KERNEL_COPY"] = kernel_copy
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
        if done.returncode != 0:
            raise AssertionError(f"unisono run exited with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return [pickle.loads((Path(folder) / f"rank{r}").read_bytes()) for r in range(ranks)]


def kernel_copies() -> bool:
    """Whether the system lets processes copy from each other at all: containers may not."""
    return bool(_core.copy_class()["source"] != "refused")


def has_fabric() -> bool:
    """Whether libfabric is here, and its headers, without which a build leaves it out."""
    with contextlib.suppress(OSError):
        ctypes.CDLL("libfabric.so.1")
        return Path("/usr/include/rdma/fi_domain.h").exists()
    return False


class Processes:
    """The native engine, ranks as processes started by `unisono run`. `placement` says where the buffers are; with
    `copied` the kernel copies what is not allocated, however short. With `hosts` the ranks are dealt in turn to so many
    hosts, which share no memory: `transport` carries what goes between them."""

    def __init__(
        self,
        name: str,
        placement: str,
        *,
        copied: bool = False,
        hosts: int = 1,
        transport: str = "tcp",
        tls: bool = False,
        **settings: Any,
    ) -> None:
        self.name = name
        self._options = ("--tls",) * tls + (("--transport", transport) if transport != "tcp" else ())
        self._placement = placement
        self._copied = copied
        self._hosts = hosts
        self._settings = settings

    def admits(self, case: Case) -> bool:
        """Direct algorithms need all buffers to be within reach."""
        return self._placement == "allocated" or self._copied or not needs_direct_access(case)

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """One job for all cases; outcomes come back in files."""
        task = (list(cases), self._placement, self._settings, self._hosts)
        by_rank = in_processes("worker", ranks, task, self._options, kernel_copy="1" if self._copied else "off")
        return [[by_rank[r][k] for r in range(ranks)] for k in range(len(cases))]


class Cluster:
    """Engines in RTL: each rank a process attached to its own node of the simulated cluster (`make cluster`). Of the
    ranks that are named the engine is the native one."""

    name = "rtl"

    def __init__(self, native: Sequence[int] = (), options: Sequence[str] = ()) -> None:
        self._options = (*(("--native", ",".join(map(str, native))) if native else ()), *options)

    def admits(self, case: Case) -> bool:
        """What the engines' capability word has; the rest is refused, which `test_rtl` tests by itself."""
        plain = case.op != "avg" and not case.dtype.startswith("complex") and ":" not in case.algorithm
        plain = plain and not case.groups
        return plain and not needs_direct_access(case)

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """One job for all cases; outcomes come back in files."""
        # A device's time: millions of cycles, which are simulated in a minute or two.
        task = (list(cases), "ordinary", {"timeout": 0.02}, 1)
        by_rank = in_processes("worker", ranks, task, ("--platform", "rtl", *self._options), seconds=900)
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
        case "gatherv" | "allgatherv" | "reduce_scatterv":
            return [[[], [], v.counts[0].tolist(), v.recv_displacements[0].tolist()] for _ in ranks]
        case _:
            sends = v.recv_displacements if case.in_place else v.send_displacements
            return [
                [v.counts[r].tolist(), sends[r].tolist(), v.counts[:, r].tolist(), v.recv_displacements[r].tolist()]
                for r in ranks
            ]


def interpret(case: Case, policy: str, seed: int, algorithm: str = "", tree: str = "") -> list[Outcome]:
    """A case under one schedule of the reference interpreter, by its algorithm or by another one. `tree`: members stand
    in for its switches.
    """
    inputs = [buffers(case, rank) for rank in range(case.ranks)]
    count = case.count
    if case.collective in V_COLLECTIVES:
        v = layout(case)
        count = int(v.counts.max(initial=0)) if case.collective == "alltoallv" else int(v.counts.sum())
    try:
        results = _core.interpret(
            collective=int(Collective[case.collective.upper()]),
            algorithm=algorithm or case.algorithm,
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
            tree=tree,
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
        """It takes an element at a time, so large cases take long. It chooses no algorithm, and converts nothing."""
        plain = case.algorithm != AUTOMATIC and not case.wire and not case.groups
        return plain and case.ranks * case.ranks * max(case.count, 1) <= 300_000

    def run(self, ranks: int, cases: Sequence[Case]) -> list[list[Outcome]]:
        """Each case by itself, with its own seed."""
        return [interpret(case, self._policy, case.seed) for case in cases]


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Threads("threads"),
        Threads("threads-messages", lanes=False),
        Threads("threads-rendezvous", lanes=False, eager_limit=1, segment_bytes=256, rx_buffer_count=1),
        Loop("threads-loop"),
        Carried("threads-switch"),
        Functional("functional"),
        Processes("processes", "ordinary"),
        Processes("processes-allocated", "allocated"),
        Processes("processes-mixed", "mixed"),
        Processes("processes-messages", "ordinary", lanes=False),
        *([Processes("processes-copied", "mixed", copied=True)] if kernel_copies() else []),
        Processes("processes-hosts", "ordinary", hosts=2),
        Processes("processes-tcp", "ordinary", hosts=1024),
        Processes("processes-tls", "ordinary", hosts=1024, tls=True),
        Processes("processes-udp", "ordinary", hosts=1024, transport="udp"),
        *([Processes("processes-ofi", "ordinary", hosts=1024, transport="ofi")] if has_fabric() else []),
        Interpreter("least_permissive"),
        Interpreter("random"),
    )
}

#: Engines that start processes, which takes its time.
STARTED = tuple(name for name, engine in ENGINES.items() if isinstance(engine, Processes | Carried))

__all__ = ["ENGINES", "Cluster", "STARTED", "Engine", "Outcome", "V_COLLECTIVES", "call", "run_rank"]
