"""Tensors and buckets of gradients in memory that both ranks reach."""

from pathlib import Path

import torch
import torch.distributed as dist
import unisono.torch


def mapped(tensor: torch.Tensor) -> bool:
    """Whether it stands in memory that this process shares."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        first, end = (int(each, 16) for each in span.split("-"))
        if first <= tensor.data_ptr() < end:
            return rights.endswith("s")
    return False


dist.init_process_group("unisono")
rank = dist.get_rank()
for made in (unisono.torch.zeros(1000, 20), unisono.torch.empty((1000, 20), dtype=torch.bfloat16).fill_(0)):
    assert mapped(made)
    assert made.shape == (1000, 20)
    made += rank + 1
    dist.all_reduce(made)
    assert (made == 3).all()
assert not mapped(torch.zeros(100_000))
assert unisono.torch.zeros(3).tolist() == [0, 0, 0]  # too small for it
with unisono.torch.SharedTensors():
    made = torch.empty(5000, dtype=torch.int32)
assert mapped(made)
try:
    unisono.torch.empty(3, -1)
except RuntimeError as error:
    assert "pass integers from 0" in str(error)
else:
    raise AssertionError("a size below 0 was taken")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 200), torch.nn.ReLU(), torch.nn.Linear(200, 64))
model = unisono.torch.ddp(model, bucket_cap_mb=0.05, gradient_as_bucket_view=True)
generator = torch.Generator().manual_seed(rank)
for _ in range(4):
    model.zero_grad()
    model(torch.randn(4, 64, generator=generator)).pow(2).mean().backward()
    assert all(mapped(each.grad) for each in model.parameters() if each.numel() > 1000)
dist.destroy_process_group()
print("right", flush=True)
