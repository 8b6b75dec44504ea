"""Calls that run beside the program: dropped works, threads, forks, functional collectives, autograd."""

import threading
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable
import unisono.torch  # noqa: F401
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("unisono")
rank, size = dist.get_rank(), dist.get_world_size()
world = dist.group.WORLD

# Nobody keeps the works; a barrier comes after what was started before it.
for count in (1, 5_000, 300_000):
    tensors = [torch.full((count,), float(rank + i)) for i in range(20)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    for i, tensor in enumerate(tensors):
        assert tensor[0] == sum(range(size)) + i * size
        assert tensor[-1] == tensor[0]

# Nor of one that is not contiguous.
grid = torch.zeros(50, 40).t()
grid[...] = rank
dist.all_reduce(grid, async_op=True)
dist.barrier()
until = time.monotonic() + 20
while grid[0, 0] != sum(range(size)) and time.monotonic() < until:
    time.sleep(0.01)
assert (grid == sum(range(size))).all()

# Results are all there when the first look says so, although the helper thread brings them at that moment.
for turn in range(60):
    wide = torch.zeros(1000, 1200).t()
    wide[...] = rank + turn
    work = dist.all_reduce(wide, async_op=True)
    time.sleep(turn * 2e-4)
    while not work.is_completed():
        pass
    assert (wide == sum(range(size)) + turn * size).all(), turn

# A receive that is posted before a barrier may be sent to after it.
here = torch.zeros(3)
work = dist.irecv(here, (rank - 1) % size) if size > 1 else None
dist.barrier()
if work is not None:
    dist.isend(torch.full((3,), float(rank)), (rank + 1) % size).wait()
    work.wait()
    assert here[0] == (rank - 1) % size

# Tensors stay what they were: one that a call has used can be resized.
tensor = torch.ones(8)
dist.all_reduce(tensor)
tensor.resize_(100)

# Each thread with a group of its own.
groups = [dist.new_group() for _ in range(3)]


def many(number: int) -> None:
    for _ in range(100):
        mine = torch.full((64,), float(rank + number))
        dist.all_reduce(mine, group=groups[number])
        assert mine[5] == sum(range(size)) + number * size


failed: list[object] = []
threading.excepthook = failed.append
threads = [threading.Thread(target=many, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
assert not failed, failed

# Workers of a loader are children of fork.
data = TensorDataset(torch.arange(32.0).reshape(32, 1))
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False), num_workers=2)
total = torch.zeros(1)
for (batch,) in loader:
    total += batch.sum()
dist.all_reduce(total)
assert total >= 32 * 31 / 2

# What compiled programs and DTensor call.
ones = torch.ones(4) * (rank + 1)
assert (functional.all_reduce(ones, "avg", world) + 0).tolist() == [(size + 1) / 2] * 4
assert (functional.all_gather_tensor(ones, 0, world) + 0).tolist() == [r + 1.0 for r in range(size) for _ in range(4)]
assert (functional.reduce_scatter_tensor(torch.ones(2 * size), "sum", 0, world) + 0).tolist() == [size] * 2
sent = torch.arange(float(size)) + 10 * rank
assert (functional.all_to_all_single(sent, None, None, world) + 0).tolist() == [10.0 * r + rank for r in range(size)]
assert (functional.broadcast(torch.ones(2) * rank, size - 1, world) + 0).tolist() == [size - 1.0] * 2
several = functional.all_reduce_coalesced([torch.ones(2), torch.ones(3) * rank], "sum", world)
assert [(one + 0)[0].item() for one in several] == [size, sum(range(size))]

# Through a call, backwards.
leaf = torch.ones(3, requires_grad=True)
differentiable.all_reduce(leaf * (rank + 1)).sum().backward()
assert leaf.grad.tolist() == [size * (rank + 1)] * 3
dist.destroy_process_group()
print("right", flush=True)
