"""Calls of torch.distributed by Unisono, beside gloo in the same rounds; verified.

    .venv-torch/bin/python -m unisono run -n 2 bench/pytorch/ops.py [--sizes 4,64K,4M] [--op all_reduce] [--json FILE]

One process of each rank has a group of each. Rounds take turns, in an order drawn anew; the ratio is the median of
those of neighbouring rounds. `direct`: the same call of `Communicator` on NumPy arrays, which is what a call costs
without torch. Rank 0 prints.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import unisono.torch  # noqa: F401

UNITS = {"K": 1 << 10, "M": 1 << 20}
SIZES = "4,1K,64K,1M,4M,64M"
ROUNDS = 9
SECONDS = 0.06  # of one round
Call = Callable[[], object]


def bytes_of(text: str) -> int:
    """A size as people write it."""
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def calls(count: int, group: dist.ProcessGroup, rank: int, size: int) -> dict[str, tuple[Call, Call]]:
    """By operation: a call of elements, and what checks its result."""
    mine, whole, block = torch.empty(count), torch.empty(size * count), torch.empty(count)

    def all_reduce() -> None:
        dist.all_reduce(mine, group=group)

    def check_all_reduce() -> None:
        mine.fill_(rank + 1)
        all_reduce()
        assert (mine == size * (size + 1) / 2).all()
        mine.zero_()

    def all_gather() -> None:
        dist.all_gather_single(whole, block, group=group)

    def check_all_gather() -> None:
        block.fill_(rank + 1)
        all_gather()
        assert all((part == r + 1).all() for r, part in enumerate(whole.split(count)))

    def reduce_scatter() -> None:
        dist.reduce_scatter_single(block, whole, group=group)

    def check_reduce_scatter() -> None:
        for r, part in enumerate(whole.split(count)):
            part.fill_((rank + 1) * (r + 1))
        reduce_scatter()
        assert (block == size * (size + 1) / 2 * (rank + 1)).all()

    def broadcast() -> None:
        dist.broadcast(mine, 0, group=group)

    def check_broadcast() -> None:
        mine.fill_(rank + 7)
        broadcast()
        assert (mine == 7).all()
        mine.zero_()

    def beside() -> None:
        dist.all_reduce(mine, group=group, async_op=True).wait()

    def messages() -> None:
        if rank == 0:
            dist.send(mine, 1, group=group)
            dist.recv(mine, 1, group=group)
        elif rank == 1:
            dist.recv(mine, 0, group=group)
            dist.send(mine, 0, group=group)

    return {
        "all_reduce": (all_reduce, check_all_reduce),
        "all_reduce async": (beside, check_all_reduce),
        "all_gather_single": (all_gather, check_all_gather),
        "reduce_scatter_single": (reduce_scatter, check_reduce_scatter),
        "broadcast": (broadcast, check_broadcast),
        "send, recv": (messages, check_broadcast),
    }


def direct_calls(count: int, size: int) -> dict[str, Call]:
    """The same without torch."""
    comm = dist.group.WORLD.communicator
    mine, whole = torch.zeros(count).numpy(), torch.zeros(size * count).numpy()
    return {
        "all_reduce": lambda: comm.allreduce(mine, mine),
        "all_gather_single": lambda: comm.allgather(mine, whole),
        "reduce_scatter_single": lambda: comm.reduce_scatter(whole, mine),
        "broadcast": lambda: comm.bcast(mine),
    }


def timed(call: Call, repetitions: int) -> float:
    """Seconds of a call, as rank 0 has them."""
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(repetitions):
        call()
    return (time.perf_counter() - begun) / repetitions


def in_words(seconds: float) -> str:
    """A time in a field of a table."""
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--op", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("unisono")
    groups = {"unisono": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    rank, size = dist.get_rank(), dist.get_world_size()
    draw = random.Random(0)
    if rank == 0:
        print(f"{'operation':22} {'bytes':>9} {'unisono':>10} {'gloo':>10}  ratio  {'direct':>10}")
    for text in given.sizes.split(","):
        count = max(bytes_of(text) // 4, 1)
        made = {name: calls(count, group, rank, size) for name, group in groups.items()}
        direct = direct_calls(count, size)
        for op in made["gloo"]:
            if given.op and op not in given.op.split(","):
                continue
            for name in groups:
                made[name][op][1]()
            systems: dict[str, Call] = {name: made[name][op][0] for name in groups}
            if op in direct:
                systems["direct"] = direct[op]
            once = torch.tensor([timed(systems["gloo"], 3)])
            dist.broadcast(once, 0)
            repetitions = int(min(500, max(2, SECONDS / once.item())))
            rounds: dict[str, list[float]] = {name: [] for name in systems}
            for _ in range(ROUNDS):
                for name in draw.sample(list(systems), len(systems)):
                    rounds[name].append(timed(systems[name], repetitions))
            if rank != 0:
                continue
            ratio = statistics.median(u / g for u, g in zip(rounds["unisono"], rounds["gloo"], strict=True))
            shown = {name: statistics.median(found) for name, found in rounds.items()}
            alone = in_words(shown["direct"]) if "direct" in shown else ""
            print(
                f"{op:22} {text:>9} {in_words(shown['unisono']):>10} {in_words(shown['gloo']):>10}  {ratio:5.2f}  "
                f"{alone:>10}", flush=True,
            )  # fmt: skip
            if given.json is not None:
                with given.json.open("a") as file:
                    for name, seconds in shown.items():
                        file.write(json.dumps({
                            "system": f"torch {name}", "op": op, "network": "shm", "ranks": size,
                            "bytes": count * 4, "buffers": "ordinary", "seconds": seconds,
                            "ratio": ratio if name == "unisono" else None, "verified": True,
                        }) + "\n")  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
