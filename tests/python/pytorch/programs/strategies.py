"""Ways to share out a training: each trains a few steps on data that differ by rank, and keeps losses and weights.

    strategies.py FOLDER

On Unisono and on gloo, one after the other, as the rank that the environment says. Rank 0 writes `unisono.npz` and
`gloo.npz` to the folder: for each name of `WAYS` the losses of all ranks ("ddp.losses") and all weights.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import unisono.torch  # noqa: F401  (makes the backend known)
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

WIDTH, CLASSES, ROWS, STEPS = 48, 10, 16, 5


class Network(nn.Module):
    """Blocks that FSDP shards one by one, and whose layers tensor parallel splits."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, 4 * WIDTH)
        self.second = nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores of the classes, for each row."""
        return self.head(rows + self.second(torch.tanh(self.first(rows))))  # type: ignore[no-any-return]


def ddp(network: Network, mesh: DeviceMesh) -> nn.Module:
    """Small buckets: several are in flight during one backward pass."""
    return DistributedDataParallel(network, bucket_cap_mb=0.02)


def fsdp(network: Network, mesh: DeviceMesh) -> nn.Module:
    """Every rank holds a part of each parameter."""
    for layer in (network.first, network.second):
        fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh)
    return network


def tensor(network: Network, mesh: DeviceMesh) -> nn.Module:
    """Every rank computes a part of each layer."""
    return parallelize_module(network, mesh, {"first": ColwiseParallel(), "second": RowwiseParallel()})


WAYS: dict[str, Callable[[Network, DeviceMesh], nn.Module]] = {"ddp": ddp, "fsdp": fsdp, "tensor": tensor}


def train(way: str) -> dict[str, Any]:
    """Losses of all ranks, and all weights."""
    torch.manual_seed(7)  # equal weights on all ranks
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    network = WAYS[way](Network(), mesh)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    # Of tensor parallel, all ranks see the same rows; otherwise each has its own.
    data = torch.Generator().manual_seed(100 + (0 if way == "tensor" else dist.get_rank()))
    losses = []
    for _ in range(STEPS):
        rows = torch.randn(ROWS, WIDTH, generator=data)
        labels = rows[:, :CLASSES].argmax(dim=1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(rows), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = {}
    for name, of_name in network.state_dict().items():
        weights[name.removeprefix("module.")] = of_name.full_tensor() if isinstance(of_name, DTensor) else of_name
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, losses)
    kept = {"losses": np.array(everyone), **{name: weight.detach().numpy() for name, weight in weights.items()}}
    return {f"{way}.{name}": value for name, value in kept.items()}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    for backend in ("unisono", "gloo"):
        store = dist.FileStore(str(folder / f"{backend}.store"), ranks)
        dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)
        kept = {}
        for way in WAYS:
            kept.update(train(way))
        if rank == 0:
            np.savez(folder / f"{backend}.npz", **kept)
        dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
