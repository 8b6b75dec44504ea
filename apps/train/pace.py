"""How long a step of data-parallel training takes on Unisono and on gloo, in the same processes.

    torchrun --standalone --nproc-per-node 2 apps/train/pace.py --model large

Each way has a network of its own, and they train by turns, a few steps each: what else the machine does meets all of
them alike. Of every step the slowest rank's time counts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import digits
import networks
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from unisono.torch import parallel
from unisono.torch.hooks import bf16_wire_hook

WAYS: dict[str, tuple[str, Any, Any]] = {
    "gloo": ("gloo", torch.nn.parallel.DistributedDataParallel, None),
    "unisono": ("unisono", parallel.DistributedDataParallel, None),
    "unisono, buckets of torch": ("unisono", torch.nn.parallel.DistributedDataParallel, None),
    "unisono, bf16": ("unisono", parallel.DistributedDataParallel, bf16_wire_hook),
}
TURN = 7  # steps, of which the first does not count
WARM = 2  # turns before those that count


class Trainee:
    """A network that one way trains."""

    def __init__(self, way: str, model: str) -> None:
        backend, kind, hook = WAYS[way]
        self.model = kind(
            networks.network(model), process_group=dist.new_group(backend=backend), gradient_as_bucket_view=True
        )
        if hook is not None:
            self.model.register_comm_hook(self.model.process_group, hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def step(self, mine: digits.Digits) -> float:
        """One step; the seconds it took."""
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        cross_entropy(self.model(mine.images), mine.labels).backward()
        self.optimizer.step()
        return time.perf_counter() - begin


def measured(model: str, turns: int) -> dict[str, list[float]]:
    """For each way, and each of its turns, the median seconds of a step."""
    training, _ = digits.load()
    batches = list(digits.batches(training, 0, dist.get_rank(), dist.get_world_size()))
    trainees = {way: Trainee(way, model) for way in WAYS}
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(WARM + turns):
        order = list(WAYS) if turn % 2 else list(WAYS)[::-1]
        for way in order:
            dist.barrier()
            seconds = torch.tensor([trainees[way].step(batch) for batch in batches[:TURN]])
            dist.all_reduce(seconds, dist.ReduceOp.MAX)
            if turn >= WARM:
                times[way].append(median(seconds[1:].tolist()))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="The pace of training, on Unisono beside gloo.")
    parser.add_argument("--model", choices=networks.SIZES, default="large")
    parser.add_argument("--turns", type=int, default=9, help=f"of {TURN} steps for each way (default: 9)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keeps the times of all turns")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the ranks are the parallelism
    dist.init_process_group("gloo")
    times = measured(options.model, options.turns)
    if dist.get_rank() == 0:
        if options.json:
            options.json.write_text(json.dumps(times))
        count = networks.parameters(networks.network(options.model))
        print(f"{dist.get_world_size()} ranks, {count:,} parameters, {digits.BATCH} images a step")
        for way, of_way in times.items():
            ratios = sorted(mine / gloo for mine, gloo in zip(of_way, times["gloo"], strict=True))
            print(
                f"  {way:25} {median(of_way) * 1e3:8.2f} ms  {digits.BATCH / median(of_way):9,.0f} images/s  "
                f"{median(ratios):.2f} x gloo (turns: {ratios[0]:.2f} to {ratios[-1]:.2f})"
            )
    dist.barrier()  # rank 0 has written all
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
