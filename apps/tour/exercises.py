"""One exercise per operation: buffers, the call, and what must stand in them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import oracle
import unisono
from oracle import Array, data

SUM = "sum"
ROOT = 1  # not 0, so that a forgotten root shows; `root` below bends it to the size
UNTOUCHED = -7  # what a result buffer holds before


@dataclass
class Exercise:
    """A call that can be made again and again, and its expected results."""

    call: Callable[[], object]
    expected: list[tuple[Array, Array]] = field(default_factory=list)  # buffer, what it must hold
    inputs: list[tuple[Array, Array]] = field(default_factory=list)  # buffer, what to put there before a call

    def prepare(self) -> None:
        """Puts the inputs in place, and rubbish where results will be."""
        for buffer, _ in self.expected:
            buffer[...] = UNTOUCHED
        for buffer, values in self.inputs:
            buffer[...] = values

    def errors(self) -> int:
        """Elements that are not what they must be."""
        return sum(int(np.count_nonzero(buffer != values)) for buffer, values in self.expected)


@dataclass(frozen=True)
class Memory:
    """Where buffers are: in allocated memory, which the ranks read and write directly, or in ordinary memory."""

    comm: unisono.Communicator
    allocated: bool = True

    def empty(self, count: int) -> Array:
        """A result buffer."""
        return self.comm.empty(count, np.float32) if self.allocated else np.empty(count, np.float32)

    def of(self, values: Array) -> Array:
        """An input buffer that holds these values."""
        buffer = self.empty(len(values))
        buffer[:] = values
        return buffer


def root(comm: unisono.Communicator) -> int:
    """The root of rooted operations."""
    return ROOT % comm.size


def copy(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """Dst = src, on this rank."""
    src, dst = memory.of(data("copy", comm.rank, n)), memory.empty(n)
    return Exercise(lambda: comm.copy(src, dst, algorithm=algorithm), [(dst, src)])


def combine(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """Dst = src + dst, on this rank."""
    src, was, dst = memory.of(data("combine", comm.rank, n)), data("combine'", comm.rank, n), memory.empty(n)
    return Exercise(lambda: comm.combine(src, dst, SUM, algorithm=algorithm), [(dst, src + was)], [(dst, was)])


def send_recv(comm: unisono.Communicator, memory: Memory, n: int) -> Exercise:
    """Everybody sends to the right and receives from the left."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    src, dst = memory.of(data("send", comm.rank, n)), memory.empty(n)

    def call() -> None:
        sending = comm.send_async(src, right, tag=5)
        comm.recv(dst, left, tag=5)
        sending.wait()

    return Exercise(call, [(dst, data("send", left, n))])


def put(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """Everybody writes into the second half of the right neighbour's window."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    src, window = memory.of(data("put", comm.rank, n)), memory.empty(2 * n)
    comm.window(window)

    def call() -> None:
        comm.put(src, right, offset=src.nbytes, algorithm=algorithm)
        comm.barrier()  # when all have left it, all have written

    return Exercise(call, [(window[n:], data("put", left, n))])


def get(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """Everybody reads the left neighbour's window."""
    left = (comm.rank - 1) % comm.size
    dst, window = memory.empty(n), memory.of(data("get", comm.rank, n))
    comm.window(window)
    return Exercise(lambda: comm.get(dst, left, algorithm=algorithm), [(dst, data("get", left, n))])


def bcast(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """The root's vector to everybody."""
    buffer = memory.empty(n)
    inputs = [(buffer, data("bcast", comm.rank, n))]
    return Exercise(
        lambda: comm.bcast(buffer, root(comm), algorithm=algorithm), [(buffer, data("bcast", root(comm), n))], inputs
    )


def reduce(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """The sum of all vectors, on the root."""
    src, dst = memory.of(data("reduce", comm.rank, n)), memory.empty(n)
    total = oracle.reduce("reduce", range(comm.size), n)
    expected = total if comm.rank == root(comm) else np.full(n, UNTOUCHED, np.float32)
    return Exercise(lambda: comm.reduce(src, dst, SUM, root(comm), algorithm=algorithm), [(dst, expected)])


def allreduce(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """The sum of all vectors, everywhere."""
    src, dst = memory.of(data("allreduce", comm.rank, n)), memory.empty(n)
    total = oracle.reduce("allreduce", range(comm.size), n)
    return Exercise(lambda: comm.allreduce(src, dst, SUM, algorithm=algorithm), [(dst, total)])


def reduce_scatter(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """The sum of all vectors, a block of n on each rank."""
    src, dst = memory.of(data("reduce_scatter", comm.rank, n * comm.size)), memory.empty(n)
    total = oracle.reduce("reduce_scatter", range(comm.size), n * comm.size)
    mine = total[comm.rank * n : (comm.rank + 1) * n]
    return Exercise(lambda: comm.reduce_scatter(src, dst, SUM, algorithm=algorithm), [(dst, mine)])


def scan(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """The sum of the vectors up to this rank's."""
    src, dst = memory.of(data("scan", comm.rank, n)), memory.empty(n)
    total = oracle.reduce("scan", range(comm.rank + 1), n)
    return Exercise(lambda: comm.scan(src, dst, SUM, algorithm=algorithm), [(dst, total)])


def exscan(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """The sum of the vectors before this rank's; rank 0 receives nothing."""
    src, dst = memory.of(data("exscan", comm.rank, n)), memory.empty(n)
    total = oracle.reduce("exscan", range(comm.rank), n) if comm.rank else np.full(n, UNTOUCHED, np.float32)
    return Exercise(lambda: comm.exscan(src, dst, SUM, algorithm=algorithm), [(dst, total)])


def gather(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """All vectors, one behind the other, on the root."""
    src, dst = memory.of(data("gather", comm.rank, n)), memory.empty(n * comm.size)
    whole = oracle.gather("gather", [n] * comm.size)
    expected = whole if comm.rank == root(comm) else np.full(n * comm.size, UNTOUCHED, np.float32)
    return Exercise(lambda: comm.gather(src, dst, root(comm), algorithm=algorithm), [(dst, expected)])


def allgather(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """All vectors, one behind the other, everywhere."""
    src, dst = memory.of(data("allgather", comm.rank, n)), memory.empty(n * comm.size)
    return Exercise(
        lambda: comm.allgather(src, dst, algorithm=algorithm), [(dst, oracle.gather("allgather", [n] * comm.size))]
    )


def scatter(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """A block of the root's vector to each rank."""
    src, dst = memory.of(data("scatter", comm.rank, n * comm.size)), memory.empty(n)
    block = oracle.blocks(data("scatter", root(comm), n * comm.size), [n] * comm.size)[comm.rank]
    return Exercise(lambda: comm.scatter(src, dst, root(comm), algorithm=algorithm), [(dst, block)])


def alltoall(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """Block j of rank i becomes block i of rank j."""
    matrix = [[n] * comm.size for _ in range(comm.size)]
    src, dst = memory.of(data("alltoall", comm.rank, n * comm.size)), memory.empty(n * comm.size)
    return Exercise(
        lambda: comm.alltoall(src, dst, algorithm=algorithm), [(dst, oracle.alltoall("alltoall", comm.rank, matrix))]
    )


def gatherv(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """As gather, every rank with another length."""
    counts = oracle.v_counts(comm.size, n)
    src, dst = memory.of(data("gatherv", comm.rank, counts[comm.rank])), memory.empty(sum(counts))
    whole = oracle.gather("gatherv", counts)
    expected = whole if comm.rank == root(comm) else np.full(len(whole), UNTOUCHED, np.float32)
    return Exercise(lambda: comm.gatherv(src, dst, counts, root=root(comm), algorithm=algorithm), [(dst, expected)])


def scatterv(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """As scatter, every rank with another length."""
    counts = oracle.v_counts(comm.size, n)
    src, dst = memory.of(data("scatterv", comm.rank, sum(counts))), memory.empty(counts[comm.rank])
    block = oracle.blocks(data("scatterv", root(comm), sum(counts)), counts)[comm.rank]
    return Exercise(lambda: comm.scatterv(src, dst, counts, root=root(comm), algorithm=algorithm), [(dst, block)])


def allgatherv(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """As allgather, every rank with another length."""
    counts = oracle.v_counts(comm.size, n)
    src, dst = memory.of(data("allgatherv", comm.rank, counts[comm.rank])), memory.empty(sum(counts))
    return Exercise(
        lambda: comm.allgatherv(src, dst, counts, algorithm=algorithm), [(dst, oracle.gather("allgatherv", counts))]
    )


def reduce_scatterv(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """As reduce_scatter, every rank with another length."""
    counts = oracle.v_counts(comm.size, n)
    src = memory.of(data("reduce_scatterv", comm.rank, sum(counts)))
    dst = memory.empty(counts[comm.rank])
    total = oracle.reduce("reduce_scatterv", range(comm.size), sum(counts))
    block = oracle.blocks(total, counts)[comm.rank]
    return Exercise(lambda: comm.reduce_scatterv(src, dst, counts, SUM, algorithm=algorithm), [(dst, block)])


def alltoallv(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """As alltoall, every pair with another length."""
    matrix = oracle.v_matrix(comm.size, 2 * n)
    sends, receives = matrix[comm.rank], [row[comm.rank] for row in matrix]
    src, dst = memory.of(data("alltoallv", comm.rank, sum(sends))), memory.empty(sum(receives))
    return Exercise(
        lambda: comm.alltoallv(src, dst, sends, receives, algorithm=algorithm),
        [(dst, oracle.alltoall("alltoallv", comm.rank, matrix))],
    )


def alltoallw(comm: unisono.Communicator, memory: Memory, n: int) -> Exercise:
    """As alltoall, every pair with a type of its own: int16, float32 or float64, in blocks of about n words."""
    types = [("i2", 2 * n, n), ("f4", n, n), ("f8", n // 2, n // 2 * 2)]  # dtype, elements, words of 32 bits
    pairs = [[types[(i + 2 * j) % 3] for j in range(comm.size)] for i in range(comm.size)]
    matrix = [[words for _, _, words in row] for row in pairs]
    out, into = pairs[comm.rank], [row[comm.rank] for row in pairs]
    src = memory.of(data("alltoallw", comm.rank, sum(matrix[comm.rank])))
    dst = memory.empty(sum(words for _, _, words in into))

    def call() -> None:
        comm.alltoallw(src, dst, [c for _, c, _ in out], [t for t, _, _ in out],
                       [c for _, c, _ in into], [t for t, _, _ in into])  # fmt: skip

    return Exercise(call, [(dst, oracle.alltoall("alltoallw", comm.rank, matrix))])


def neighbour_alltoall(comm: unisono.Communicator, memory: Memory, n: int) -> Exercise:
    """Around a ring, both ways: a block to the left and one to the right."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    # The block for the left comes from the right, and is the first on both sides.
    graph = comm.graph(sources=[right, left], destinations=[left, right])
    src, dst = memory.of(data("neighbour_alltoall", comm.rank, 2 * n)), memory.empty(2 * n)
    expected = np.concatenate(
        [data("neighbour_alltoall", right, 2 * n)[:n], data("neighbour_alltoall", left, 2 * n)[n:]]
    )
    return Exercise(lambda: comm.neighbour_alltoall(graph, src, dst), [(dst, expected)])


def barrier(comm: unisono.Communicator, memory: Memory, n: int, algorithm: str | None = None) -> Exercise:
    """Nobody leaves before everybody has entered: what a left neighbour wrote before it is there after it."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    src, window = memory.of(data("barrier", comm.rank, n)), memory.empty(n)
    comm.window(window)

    def call() -> None:
        comm.put(src, right)
        comm.barrier(algorithm=algorithm)

    return Exercise(call, [(window, data("barrier", left, n))])


def nonblocking(comm: unisono.Communicator, memory: Memory, n: int) -> Exercise:
    """Three all-reduces and a broadcast in flight at once."""
    sources = [memory.of(data(f"nonblocking {i}", comm.rank, n)) for i in range(3)]
    results = [memory.empty(n) for _ in sources]
    buffer = memory.empty(n)

    def call() -> None:
        requests = [comm.allreduce_async(src, dst, SUM) for src, dst in zip(sources, results, strict=True)]
        requests.append(comm.bcast_async(buffer, root(comm)))
        for request in reversed(requests):
            request.wait()

    totals = [oracle.reduce(f"nonblocking {i}", range(comm.size), n) for i in range(3)]
    return Exercise(
        call,
        [*zip(results, totals, strict=True), (buffer, data("nonblocking", root(comm), n))],
        [(buffer, data("nonblocking", comm.rank, n))],
    )


def chained(comm: unisono.Communicator, memory: Memory, n: int) -> Exercise:
    """reduce_scatter, then combine, then allgather, each started at once and waiting for the one before."""
    src, block, dst = memory.of(data("chained", comm.rank, n * comm.size)), memory.empty(n), memory.empty(n * comm.size)
    more = memory.of(data("chained'", comm.rank, n))

    def call() -> None:
        first = comm.reduce_scatter_async(src, block, SUM)
        second = comm.combine_async(more, block, SUM, wait_for=[first])
        comm.allgather_async(block, dst, wait_for=[second]).wait()

    total = oracle.reduce("chained", range(comm.size), n * comm.size)
    return Exercise(call, [(dst, total + oracle.gather("chained'", [n] * comm.size))])


def allreduce_bf16(comm: unisono.Communicator, memory: Memory, n: int) -> Exercise:
    """The sum of all vectors, everywhere, of float32 that travel as bf16."""
    # Each a little more than a whole number from 1 to 4, which is what bf16 makes of it. Sums of these of up to 63
    # ranks have eight bits, and bf16 holds them exactly.
    whole = [data("allreduce_bf16", rank, n) % 4 + 1 for rank in range(comm.size)]
    src, dst = memory.of(whole[comm.rank] + np.float32(2**-10)), memory.empty(n)
    total = np.add.reduce(np.stack(whole), axis=0)
    return Exercise(lambda: comm.allreduce(src, dst, SUM, wire_datatype="bf16"), [(dst, total)])


PRIMITIVES = (copy, combine, send_recv, put, get)
COLLECTIVES = (
    bcast,
    reduce,
    allreduce,
    reduce_scatter,
    scan,
    exscan,
    gather,
    allgather,
    scatter,
    alltoall,
    gatherv,
    scatterv,
    allgatherv,
    reduce_scatterv,
    alltoallv,
    alltoallw,
    neighbour_alltoall,
    barrier,
)
COMBINATIONS = (allreduce_bf16, nonblocking, chained)
