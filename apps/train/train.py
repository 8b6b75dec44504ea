"""Data-parallel training with torch's DistributedDataParallel: on Unisono, or on a backend of torch to compare with.

    unisono run -n 2 apps/train/train.py
    torchrun --standalone --nproc-per-node 2 apps/train/train.py --backend gloo

Every rank learns from its own share of scikit-learn's hand-written digits; the ranks' gradients are averaged while the
backward pass still computes others. The README beside this file says what else it does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import checkpoint
import digits
import networks
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

RESTART = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


class Journal:
    """What is known of a run: a line of JSON for each step, each epoch and the end. Rank 0 writes it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path if dist.get_rank() == 0 else None

    def write(self, *lines: dict[str, Any]) -> None:
        """Appends lines."""
        if self._path is not None:
            with self._path.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)


def digest(network: nn.Module) -> str:
    """Hash of all bits of the weights."""
    bits = hashlib.sha256()
    for parameter in network.parameters():
        bits.update(parameter.detach().numpy().tobytes())
    return bits.hexdigest()[:16]


def same_on_all_ranks(text: str) -> bool:
    """Whether every rank says this."""
    said: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(said, text)
    return all(each == text for each in said)


def mean_over_ranks(values: list[float]) -> list[float]:
    """Each value's mean over all ranks."""
    total = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(total)
    return (total / dist.get_world_size()).tolist()  # type: ignore[no-any-return]


def accuracy(network: nn.Module, test: digits.Digits) -> float:
    """Share of the test's images that are recognised. Every rank looks at some of them."""
    mine = test.part(slice(dist.get_rank(), None, dist.get_world_size()))
    with torch.no_grad():
        right = (network(mine.images).argmax(dim=1) == mine.labels).sum()
    dist.all_reduce(right)
    return right.item() / len(test.labels)  # type: ignore[no-any-return]


def in_parallel(network: nn.Module, wire: str) -> nn.Module:
    """The network, whose gradients are averaged over the ranks; as bf16 on the way, if that is wanted."""
    if dist.get_backend() == "unisono":
        import unisono.torch

        # torch's own class does as well. With this one, gradients stand in memory that all ranks of a host reach.
        model = unisono.torch.ddp(network, gradient_as_bucket_view=True)
    else:
        model = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    if wire == "bf16":
        from unisono.torch.hooks import bf16_wire_hook

        model.register_comm_hook(None, bf16_wire_hook)
    return model


def die_if_wanted(options: argparse.Namespace, step: int) -> None:
    """Ends this rank as the system does when memory runs out, and says when; only the first time."""
    if options.die is not None and RESTART == 0 and (dist.get_rank(), step) == tuple(options.die):
        print(f"rank {dist.get_rank()} dies at {time.time():.6f}", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def train(options: argparse.Namespace) -> bool:
    """Trains, and tells of it; whether all ranks ended with the same weights."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    journal = Journal(options.json)
    training, test = digits.load()
    network = networks.network(options.model)
    optimizer = torch.optim.SGD(network.parameters(), lr=options.rate, momentum=0.9)
    done = checkpoint.resume(options.checkpoint, network, optimizer) if options.checkpoint else 0
    if not same_on_all_ranks(str(done)):
        raise RuntimeError(f"rank {rank} has a checkpoint of epoch {done}, another rank has not: ranks need one folder")
    model = in_parallel(network, options.wire)
    pace: list[float] = []
    loss, recognised = float("nan"), accuracy(network, test)
    for epoch in range(done, options.epochs):
        losses, seconds = [], []
        for number, mine in enumerate(digits.batches(training, epoch, rank, ranks)):
            die_if_wanted(options, epoch * digits.STEPS + number)
            begin = time.perf_counter()
            optimizer.zero_grad()
            of_step = cross_entropy(model(mine.images), mine.labels)
            of_step.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - begin)
            losses.append(of_step.item())
        losses = mean_over_ranks(losses)
        loss, recognised = sum(losses) / len(losses), accuracy(network, test)
        if epoch > done or options.epochs == 1:  # the first epoch warms up
            pace += seconds
        steps = [
            {"step": epoch * digits.STEPS + i, "loss": losses[i], "seconds": seconds[i], "restart": RESTART}
            for i in range(digits.STEPS)
        ]
        told = {"epoch": epoch, "loss": loss, "accuracy": recognised, "weights": digest(network)}
        journal.write(*steps, told)
        if options.checkpoint and rank == 0:
            checkpoint.save(options.checkpoint, epoch + 1, network, optimizer)
    weights = digest(network)
    same = same_on_all_ranks(weights)
    step = median(pace) if pace else float("nan")
    journal.write({
        "done": True, "backend": dist.get_backend(), "ranks": ranks, "model": options.model, "wire": options.wire,
        "parameters": networks.parameters(network), "epochs": options.epochs, "resumed": done, "restart": RESTART,
        "loss": loss, "accuracy": recognised, "weights": weights, "same_on_all_ranks": same,
        "step_seconds": step, "images_per_second": digits.BATCH / step,
    })  # fmt: skip
    if rank == 0:
        if options.weights:
            torch.save(network.state_dict(), options.weights)
        print(
            f"{dist.get_backend()}, {ranks} ranks: loss {loss:.4f}, {recognised:.2%} of {len(test.labels)} unseen "
            f"digits recognised; weights {weights}, {'equal on all ranks' if same else 'NOT EQUAL ON ALL RANKS'}; "
            f"{step * 1e3:.2f} ms for a step, {digits.BATCH / step:,.0f} images/s"
        )
    return same


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Data-parallel training on hand-written digits.")
    parser.add_argument("--backend", default="unisono", help="of torch.distributed (default: unisono)")
    parser.add_argument("--model", choices=networks.SIZES, default="small", help="large: 10 million parameters")
    parser.add_argument("--epochs", type=int, default=12, help=f"of {digits.STEPS} steps (default: 12)")
    parser.add_argument("--rate", type=float, default=0.08, help="learning rate (default: 0.08)")
    parser.add_argument(
        "--wire", choices=["fp32", "bf16"], default="fp32", help="what gradients travel as; bf16 needs unisono"
    )
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="keeps each epoch's state, and goes on from it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="appends a line for each step and epoch")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="keeps the weights at the end")
    parser.add_argument("--die", type=int, nargs=2, metavar=("RANK", "STEP"), help="kill this rank before this step")
    return parser.parse_args()


def main() -> int:
    """Trains as a rank of a job; 1 if the ranks ended with different weights."""
    options = arguments()
    torch.set_num_threads(1)  # the ranks are the parallelism
    if options.backend == "unisono":
        import unisono.torch  # noqa: F401  (makes the backend known)
    dist.init_process_group(options.backend)
    try:
        same = train(options)
    except RuntimeError as error:
        print(f"rank {dist.get_rank()} fails at {time.time():.6f}: {error}", file=sys.stderr, flush=True)
        raise
    dist.barrier()  # rank 0 has written all
    dist.destroy_process_group()
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
