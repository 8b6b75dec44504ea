"""Models that are trained in parts, by this backend and by gloo: the same losses and weights."""

from collections.abc import Callable

import torch
import torch.distributed as dist
import unisono.torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

STEPS = 4
Made = Callable[[], tuple[torch.nn.Module, int]]


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(48, 96), torch.nn.GELU(), torch.nn.Linear(96, 96), torch.nn.GELU(), torch.nn.Linear(96, 48)
    )


def trained(model: torch.nn.Module, seed: int) -> list[torch.Tensor]:
    """Its losses, and its weights at the end."""
    found = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        x = torch.randn(8, 48, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.flip(1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return found + [
        (each.full_tensor() if hasattr(each, "full_tensor") else each).detach().clone() for each in model.parameters()
    ]


def data_parallel() -> list[torch.Tensor]:
    # Several buckets, which are summed while the backward pass goes on.
    model = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.02)
    return trained(model, dist.get_rank())


def fully_sharded() -> list[torch.Tensor]:
    model = network()
    for part in model:
        if isinstance(part, torch.nn.Linear):
            fully_shard(part)
    return trained(fully_shard(model), dist.get_rank())


def tensor_parallel() -> list[torch.Tensor]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return trained(model, 0)


def shared_buckets() -> list[torch.Tensor]:
    model = unisono.torch.ddp(network(), bucket_cap_mb=0.02, gradient_as_bucket_view=True)
    return trained(model, dist.get_rank())


kinds = [data_parallel, fully_sharded, tensor_parallel]
found = {}
for backend in ("unisono", "gloo"):
    dist.init_process_group(backend)
    for kind in kinds:
        found[backend, kind] = kind()
    if backend == "unisono":
        found["shared"] = shared_buckets()
        # All ranks have the same weights, bit for bit.
        for weight in found["unisono", data_parallel][STEPS:]:
            first = weight.clone()
            dist.broadcast(first, 0)
            assert torch.equal(first, weight)
    dist.destroy_process_group()
for kind in kinds:
    for ours, theirs in zip(found["unisono", kind], found["gloo", kind], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
for ours, theirs in zip(found["unisono", data_parallel], found["shared"], strict=True):
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
print("right", flush=True)
