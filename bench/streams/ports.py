"""Elements from a kernel of rank 0 to one of rank 1, through stream ports, beside a send of buffers.

Prints a JSON line for each, the median of repetitions: on a communicator of streams, where elements go on as they come,
and on one with lanes, where they are staged. Run by tools/bench-streams.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import unisono
from unisono import Communicator, Stream

COUNT = 16 << 20
REPETITIONS = 5


def through_ports(comm: Communicator, elements: np.ndarray) -> bool:
    """Gives and takes pieces of so many elements."""
    port = comm.stream(0)
    pieces = COUNT // elements.size
    if comm.rank == 0:
        request = comm.send_async(Stream(0, COUNT, "f4"), 1)
        for _ in range(pieces):
            port.write(elements)
        request.wait()
        return True
    request = comm.recv_async(Stream(0, COUNT, "f4"), 0)
    right = True
    for _ in range(pieces):
        port.read(elements)
        right = right and elements[-1] == elements.size - 1
    request.wait()
    return right


def by_buffers(comm: Communicator, elements: np.ndarray) -> bool:
    """Sends one message after the other."""
    for _ in range(COUNT // elements.size):
        if comm.rank == 0:
            comm.send(elements, 1)
        else:
            comm.recv(elements, 0)
    return bool(elements[-1] == elements.size - 1)


def measure(op: str, comm: Communicator, piece: int, run: Callable[[Communicator, np.ndarray], bool]) -> None:
    """Prints what it takes."""
    seconds, right = [], True
    elements = np.arange(piece, dtype="f4")
    for _ in range(REPETITIONS):
        if comm.rank == 1:
            elements[:] = 0
        comm.barrier()
        begin = time.perf_counter()
        right = run(comm, elements) and right
        seconds.append(time.perf_counter() - begin)
    if comm.rank == 1:
        median = statistics.median(seconds)
        record = {
            "system": "unisono", "op": op, "network": "shm", "ranks": 2, "bytes": 4 * COUNT, "piece_bytes": 4 * piece,
            "gbps": round(4 * COUNT / median / 1e9, 3), "verified": bool(right),
        }  # fmt: skip
        print(json.dumps(record), flush=True)


def main() -> None:
    """Measures all."""
    with unisono.init() as context:
        world = context.world
        streams = world.dup(streams=True)
        for piece in (4096, 65536, COUNT):
            measure("send", world, piece, by_buffers)
            measure("send_stream", streams, piece, through_ports)
            measure("send_stream_staged", world, piece, through_ports)


if __name__ == "__main__":
    main()
