"""What is measured: the blocking calls of Unisono and of mpi4py, as their users write them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .data import DTYPES, FLIGHTS, IN_FLIGHT, Array, Call

Step = Callable[[], Any]


class Library(Protocol):
    """A communication library with a Python interface."""

    def open(self) -> tuple[int, int]:
        """Joins the job. Rank and size."""

    def allocate(self, elements: int, dtype: str, kind: str) -> Array:
        """Memory for a buffer; what is to be registered is ordinary memory."""

    def register(self, array: Array) -> object:
        """Makes ordinary memory known, as long as the result lives."""

    def step(self, call: Call, number: int) -> Step:
        """What makes call number `number` of a block; those after a period are the same again."""

    def barrier(self) -> None:
        """Waits for all ranks."""

    def algorithm(self) -> str | None:
        """Of the calls so far; None if the library does not say."""

    def close(self) -> None:
        """Leaves the job."""


def launched_rank(variables: tuple[str, ...]) -> int:
    """Rank of this process before the library has started."""
    for variable in variables:
        if variable in os.environ:
            return int(os.environ[variable])
    raise RuntimeError(f"{' and '.join(variables)} are not set: what started this process?")


def _ordinary(elements: int, dtype: str) -> Array:
    return np.empty(elements, DTYPES[dtype])


def blocks_of(call: Call) -> list[tuple[Array, Array]]:
    """The source and destination of each call in flight."""
    assert call.src is not None
    assert call.dst is not None
    return list(zip(call.src.reshape(FLIGHTS, -1), call.dst.reshape(FLIGHTS, -1), strict=True))


def _pair(send: Step, receive: Step, rank: int) -> Step:
    """A ping-pong; ranks above 1 do nothing."""

    def first() -> None:
        send()
        receive()

    def second() -> None:
        receive()
        send()

    return first if rank == 0 else second if rank == 1 else lambda: None


class Unisono:
    """Of this checkout, or of another."""

    rank_variables = ("UNISONO_RANK",)

    def __init__(self) -> None:
        import unisono

        self._unisono = unisono
        self._context: Any = None
        self._world: Any = None
        self._reversed: Any = None

    def open(self) -> tuple[int, int]:
        self._context = self._unisono.init(timeout=60.0)
        self._world = self._context.world
        self._reversed = self._world.split(0, -self._world.rank)
        return self._world.rank, self._world.size

    def allocate(self, elements: int, dtype: str, kind: str) -> Array:
        if kind == "allocated":
            array: Array = self._world.empty(elements, DTYPES[dtype])
            return array
        return _ordinary(elements, dtype)

    def register(self, array: Array) -> object:
        held: object = self._unisono.register(array)
        return held

    def step(self, call: Call, number: int) -> Step:
        world, rank, src, dst = self._world, call.rank, call.src, call.dst
        turn = number % call.turns
        comm = self._reversed if turn == 1 and call.op in ("scan", "exscan") else world
        named = {} if call.algorithm is None else {"algorithm": call.algorithm}
        run: Any = getattr(comm, call.op, None)
        if call.op == "pingpong":
            return _pair(lambda: world.send(src, 1 - rank), lambda: world.recv(dst, 1 - rank), rank)
        if call.op in IN_FLIGHT:
            return self._in_flight(call, world.allreduce_async, named)
        if call.op == "barrier":
            return lambda: run(**named)
        if call.op == "bcast":
            return lambda: run(dst, turn, **named)
        if call.op == "reduce":
            return lambda: run(src, dst, "sum", turn, **named)
        if call.op in ("allreduce", "reduce_scatter", "scan", "exscan"):
            return lambda: run(src, dst, "sum", **named)
        if call.op in ("gather", "scatter"):
            return lambda: run(src, dst, turn, **named)
        if call.op in ("allgather", "alltoall"):
            return lambda: run(src, dst, **named)
        return self._with_counts(call, number, run, named)

    @staticmethod
    def _in_flight(call: Call, start: Any, named: dict[str, str]) -> Step:
        blocks = blocks_of(call)

        def together() -> None:
            for request in [start(src, dst, "sum", **named) for src, dst in blocks]:
                request.wait()

        def each() -> None:
            for src, dst in blocks:
                start(src, dst, "sum", **named).wait()

        return together if call.op == "inflight" else each

    @staticmethod
    def _with_counts(call: Call, number: int, run: Any, named: dict[str, str]) -> Step:
        assert call.src is not None
        assert call.dst is not None
        turn, rank = number % call.turns, call.rank
        counts = call.counts_of(number)
        received = sum(counts)
        if call.op == "gatherv":
            src, dst = call.src[: counts[rank]], call.dst[:received]
            return lambda: run(src, dst, counts, turn, **named)
        if call.op == "scatterv":
            src, dst = call.src[:received], call.dst[: counts[rank]]
            return lambda: run(src, dst, counts, turn, **named)
        if call.op == "allgatherv":
            src, dst = call.src[: counts[rank]], call.dst[:received]
            return lambda: run(src, dst, counts, **named)
        if call.op == "reduce_scatterv":
            src, dst = call.src[:received], call.dst[: counts[rank]]
            return lambda: run(src, counts, dst, "sum", **named)
        sent, arriving = call.counts_of(number, rank), call.counts_for(number, rank)
        src, dst = call.src[: sum(sent)], call.dst[: sum(arriving)]
        return lambda: run(src, sent, dst, arriving, **named)

    def barrier(self) -> None:
        self._world.barrier()

    def algorithm(self) -> str | None:
        name: str | None = self._world.last_algorithm.name
        return name

    def close(self) -> None:
        self._context.close()


class Mpi4py:
    """Over Open MPI."""

    rank_variables = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")

    def __init__(self) -> None:
        self._mpi: Any = None
        self._world: Any = None
        self._reversed: Any = None

    def open(self) -> tuple[int, int]:
        from mpi4py import MPI

        self._mpi = MPI
        self._world = MPI.COMM_WORLD
        self._reversed = self._world.Split(0, -self._world.rank)
        return self._world.rank, self._world.size

    def allocate(self, elements: int, dtype: str, kind: str) -> Array:
        if kind != "allocated":
            return _ordinary(elements, dtype)
        memory = self._mpi.Alloc_mem(elements * np.dtype(DTYPES[dtype]).itemsize)
        return np.frombuffer(memory, DTYPES[dtype])

    def register(self, array: Array) -> object:
        return None  # MPI has no such thing

    def step(self, call: Call, number: int) -> Step:
        if call.algorithm is not None:
            raise ValueError("algorithms of an MPI library cannot be named here")
        world, rank, src, dst = self._world, call.rank, call.src, call.dst
        turn = number % call.turns
        comm = self._reversed if turn == 1 and call.op in ("scan", "exscan") else world
        steps: dict[str, Step] = {
            "pingpong": _pair(lambda: world.Send(src, 1 - rank), lambda: world.Recv(dst, 1 - rank), rank),
            "barrier": lambda: world.Barrier(),
            "bcast": lambda: world.Bcast(dst, turn),
            "reduce": lambda: world.Reduce(src, dst, root=turn),
            "allreduce": lambda: world.Allreduce(src, dst),
            "reduce_scatter": lambda: world.Reduce_scatter_block(src, dst),
            "scan": lambda: comm.Scan(src, dst),
            "exscan": lambda: comm.Exscan(src, dst),
            "gather": lambda: world.Gather(src, dst, turn),
            "scatter": lambda: world.Scatter(src, dst, turn),
            "allgather": lambda: world.Allgather(src, dst),
            "alltoall": lambda: world.Alltoall(src, dst),
        }
        if call.op == "inflight":
            return self._in_flight(call)
        return steps[call.op] if call.op in steps else self._with_counts(call, number)

    def _in_flight(self, call: Call) -> Step:
        start, wait_all = self._world.Iallreduce, self._mpi.Request.Waitall
        blocks = blocks_of(call)
        return lambda: wait_all([start(src, dst) for src, dst in blocks])

    def _with_counts(self, call: Call, number: int) -> Step:
        assert call.src is not None
        assert call.dst is not None
        world, turn, rank = self._world, number % call.turns, call.rank
        counts = call.counts_of(number)
        src, dst = call.src, call.dst
        own_src, own_dst = src[: counts[rank]], dst[: counts[rank]]
        if call.op == "gatherv":
            return lambda: world.Gatherv(own_src, (dst, counts), turn)
        if call.op == "scatterv":
            return lambda: world.Scatterv((src, counts), own_dst, turn)
        if call.op == "allgatherv":
            return lambda: world.Allgatherv(own_src, (dst, counts))
        if call.op == "reduce_scatterv":
            whole = src[: sum(counts)]
            return lambda: world.Reduce_scatter(whole, own_dst, counts)
        sent, arriving = call.counts_of(number, rank), call.counts_for(number, rank)
        return lambda: world.Alltoallv((src, sent), (dst, arriving))

    def barrier(self) -> None:
        self._world.Barrier()

    def algorithm(self) -> str | None:
        return None

    def close(self) -> None:
        self._reversed.Free()
        self._mpi.Finalize()


LIBRARIES: dict[str, Callable[[], Library]] = {"unisono": Unisono, "mpi4py": Mpi4py}
