"""Streams of a simulated engine, in cycles of its clock: figures 8 and 9 of ACCL+, and EasyNet's collectives.

`unisono run -n 2 --platform rtl --kernels LIBRARY engine.py` measures sends from stream to stream and from memory to
memory, the latency of a word, and that of calls; with more ranks the six collectives from stream to stream, as one call
each and by sends and receives of the kernels. A JSON line for each figure. Kernels look at every element that comes
(engine_kernels.cpp); one that is wrong ends the program with status 1. Run by tools/bench-streams.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from typing import Any

import numpy as np
import unisono
from unisono import Context

MHZ = 250
BYTES_PER_CYCLE = 50  #: of a link of 100 Gb/s
FRAMING = 64 + 66  #: bytes of header, and of Ethernet, IP and UDP, for each segment
SEGMENT = 8128  #: bytes, the longest that engines have: fills a link best. Chains go on sooner with short ones
HOP = 200  #: cycles: two cables of 50 and a switch of 100
#: A message of a word from the first cycle at a node to the last one at the other: three cycles of its header on the
#: first link, which the switch does not wait beyond, and all four on the second.
WORD_ON_WIRE = HOP + 3 + 4
TURNS = 3  #: the last one counts: what comes before fills the microcode memory and caches
TRIALS = 5  #: a round may begin while some ranks have their kernels, and others not
LEAD = 600  #: cycles between the receiver's call and the sender's
WORD = 64
MOST_SUMS = 512 * WORD  #: of an all-reduce: what engine_kernels.cpp has room for
KINDS = ("bcast", "scatter", "gather", "reduce", "allreduce", "allgather")
#: Host to host by way of the card, as ACCL+ models it (5, Fig. 10): PCIe 3.0 x16 carries 12.8 GB/s of payload, a copy
#: takes 1 us to begin; a kernel's invocation is Coyote's 2 us.
PCIE_GBYTES, PCIE_US, INVOKE_US = 12.8, 1.0, 2.0

Line = dict[str, Any]


def wire(count: int, segment: int = SEGMENT) -> float:
    """Least cycles in which so many bytes pass a link."""
    segments = max(1, -(-count // segment))
    return (count + segments * FRAMING) / BYTES_PER_CYCLE


def round_of(cycles: float) -> int:
    """One that is surely longer than this and what an engine does when it sees a call for the first time."""
    return 4096 * -(-int(1.3 * cycles + 8000) // 4096)


def turns_of(count: int) -> int:
    """How often; the last time counts. What comes before a long message does not show in it."""
    return TURNS if count < 1 << 16 else 2


class Bench:
    """One job, which prints on rank 0."""

    def __init__(self, context: Context) -> None:
        """Collective."""
        self.context = context
        self.comm = context.world.dup(streams=True)
        self.wrong = 0
        self.segment = self.comm.state.segment_bytes

    def all_times(self, mine: np.ndarray[Any, np.dtype[np.int64]], wrong: np.ndarray[Any, Any]) -> Any:
        """Those of each rank, and counts what was wrong anywhere."""
        every = np.zeros((self.comm.size, mine.size), np.int64)
        self.comm.allgather(np.ascontiguousarray(mine), every)
        total = np.zeros(1, np.int64)
        self.comm.allreduce(wrong, total)
        self.wrong += int(total[0])
        self.right = not total[0]
        return every

    def print(self, op: str, count: int, cycles: float, limit: float, **more: object) -> None:
        """A line; `limit`: least cycles."""
        line: Line = {
            "system": "unisono",
            "op": op,
            "network": "rtl",
            "ranks": self.comm.size,
            "bytes": count,
            "buffers": "streams",
            "segment_bytes": self.segment,
            "cycles": cycles,
            "us": round(cycles / MHZ, 4),
            "limit_ratio": round(cycles / limit, 4) if limit else None,
            "ratio": None,
            **more,
            "verified": self.right,
        }
        if self.comm.rank == 0:
            print(json.dumps(line), flush=True)

    def stream(self, count: int, open_call: bool) -> tuple[int, int, int]:
        """Call or word, first word, last word: cycles of the last turn."""
        comm, words, length = self.comm, count // WORD, round_of(wire(count))
        turns = turns_of(count)
        times, wrong = np.zeros(2 * turns, np.int64), np.zeros(1, np.int64)
        if comm.rank == 0:
            own = np.zeros(turns, np.int64)
            self.context.kernel("send_stream")(1, words, length, LEAD, open_call, own, comm).wait()
            times[::2] = own
        else:
            self.context.kernel("receive_stream")(0, words, length, times, wrong, comm).wait()
        every = self.all_times(times, wrong)
        return int(every[0][-2]), int(every[1][-2]), int(every[1][-1])

    def buffer(self, count: int) -> tuple[int, int]:
        """Sender's call, receiver's end."""
        comm, times, wrong = self.comm, np.zeros(2 * turns_of(count), np.int64), np.zeros(1, np.int64)
        data = np.zeros(count // 4, np.int32)
        self.context.kernel("move_buffer")(
            1 - comm.rank, comm.rank == 0, data, round_of(1.5 * wire(count)), LEAD, times, wrong, comm
        ).wait()
        every = self.all_times(times, wrong)
        return int(every[0][-2]), int(every[1][-1])

    def pairs(self, sizes: list[int]) -> None:
        """Sends, and the latency of words and calls."""
        for open_call, op in ((False, "kernel_call_to_word"), (True, "word_on_open_call")):
            begin, first, _ = self.stream(WORD, open_call)
            self.print(op, WORD, first - begin, WORD_ON_WIRE, beyond_wire=first - begin - WORD_ON_WIRE)
        times, wrong = np.zeros(2 * TURNS, np.int64), np.zeros(1, np.int64)
        self.context.kernel("empty_call")(round_of(0), times, self.comm).wait()
        every = self.all_times(times, wrong)
        self.print("empty_call", 0, int(every[0][-1] - every[0][-2]), 0)
        for count in sizes:
            begin, first, last = self.stream(count, False)
            # The first segment is stored before its first word comes: few would show no rate of the link.
            long = count >= 16 * SEGMENT
            rate = {"gbps": round(8 * (count - WORD) * MHZ / 1000 / (last - first), 2)} if long else {}
            limit = wire(count)
            self.print(
                "send_stream", count, last - first + 1, limit, first_word=first - begin, whole=last - begin, **rate
            )
            begin, end = self.buffer(count)
            host = INVOKE_US + 2 * (PCIE_US + count / PCIE_GBYTES / 1000)
            self.print(
                "send_buffer",
                count,
                end - begin,
                HOP + limit,
                buffers="device memory",
                gbps=round(8 * count * MHZ / 1000 / (end - begin), 2),
                host_path_copies_us=round(host, 3),
            )

    def collectives(self, sizes: list[int], segment: int) -> None:
        """From the begin, in the same cycle on all ranks, to the last word that any rank takes."""
        size = self.comm.size
        for (number, kind), linear, count in itertools.product(enumerate(KINDS), (False, True), sizes):
            blocks = size - 1 if kind in ("scatter", "gather", "allgather") else 1
            least = wire(count * blocks, segment) + HOP
            length = round_of((size if linear else 2) * least + size * 400)
            times, wrong = np.zeros(2 * TURNS, np.int64), np.zeros(1, np.int64)
            for _ in range(TRIALS):
                self.context.kernel("collective")(number, linear, count // WORD, length, times, wrong, self.comm).wait()
                every = self.all_times(times, wrong)
                begins, ends = every[:, -2], every[:, -1]
                if begins.max() == begins.min():
                    break
            else:
                raise SystemExit(f"bench-streams: ranks did not begin a {kind} in the same cycle, {TRIALS} times")
            made = "linear: sends and receives of the kernels" if linear else "one call"
            self.print(kind, count, int(ends.max() - begins.min()), least, made=made)


def main() -> int:
    """Measures; the status is 1 if an element was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", help="bytes, multiples of 64: 64,1024,4096,65536,1048576 (two ranks)")
    parser.add_argument("--segment", type=int, default=SEGMENT, help="bytes of a segment of collectives (8128)")
    options = parser.parse_args()
    segment = options.segment
    with unisono.init(timeout=0.2, segment_bytes=segment, eager_limit=segment, rx_buffer_count=16) as context:
        bench = Bench(context)
        pairs = bench.comm.size == 2
        usual = "64,1024,4096,65536,1048576" if pairs else "1024,16384"
        sizes = [int(count) for count in (options.sizes or usual).split(",")]
        if any(count < WORD or count % WORD for count in sizes):
            parser.error("sizes are multiples of 64 bytes")
        if not pairs and max(sizes) > MOST_SUMS:
            parser.error(f"collectives have {MOST_SUMS} bytes at most")
        if pairs:
            bench.pairs(sizes)
        else:
            bench.collectives(sizes, segment)
        return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
