"""Groups of all kinds, twice: subgroups, parts, meshes, one of gloo beside ours, ours beside gloo's."""

from datetime import timedelta

import torch
import torch.distributed as dist
import unisono.torch
from torch.distributed.device_mesh import init_device_mesh


def total(group: object, rank: int) -> int:
    tensor = torch.tensor([1 << (4 * rank)])
    dist.all_reduce(tensor, group=group)
    return int(tensor.item())


def wanted(ranks: list[int]) -> int:
    return sum(1 << (4 * rank) for rank in ranks)


for turn in range(2):
    dist.init_process_group("unisono", timeout=timedelta(seconds=30))
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "unisono"
    assert total(None, rank) == wanted(list(range(size)))
    # A group of every two ranks that stand together, all alive at once.
    groups = {(a, a + 1): dist.new_group([a, a + 1]) for a in range(size - 1)}
    for ranks, group in groups.items():
        if rank in ranks:
            assert total(group, rank) == wanted(list(ranks))
            assert dist.get_group_rank(group, rank) == ranks.index(rank)
    backwards, _ = dist.new_subgroups_by_enumeration([list(range(size - 1, -1, -1))])
    assert dist.get_rank(backwards) == size - 1 - rank or dist.get_rank(backwards) == rank
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("data",))
    assert total(mesh.get_group("data"), rank) == wanted(list(range(size)))
    # Part of a group, without the others.
    part = dist.group.WORLD.split_group([0, size - 1]) if rank in (0, size - 1) else None
    if part is not None:
        tensor = torch.tensor([rank + 1])
        part.allreduce([tensor]).wait()
        assert tensor.item() == 1 + size
        part.shutdown()
    # A group of another backend beside ours. Once: gloo finds the addresses of the first time in the store again.
    if turn == 0:
        gloo = dist.new_group(backend="gloo")
        assert total(gloo, rank) == wanted(list(range(size)))
    for group in groups.values():
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)
    unisono.torch.monitored_barrier()
    dist.destroy_process_group()
# Ours beside gloo's.
if size > 1:
    try:
        dist.init_process_group("gloo")
    except ValueError:  # a launcher that torch does not know
        dist.init_process_group("unisono")
    group = dist.new_group(backend="unisono")
    assert total(group, rank) == wanted(list(range(size)))
    dist.destroy_process_group()
# Backends by device: ours takes the whole group, so tensors of the other device are refused, not carried elsewhere.
for names in ("cpu:unisono,cuda:gloo", "cuda:gloo,cpu:unisono"):
    dist.init_process_group(names)
    world = dist.group.WORLD
    if names.startswith("cpu"):
        assert isinstance(world, unisono.torch.ProcessGroup)
    assert total(None, rank) == wanted(list(range(size)))
    try:
        dist.all_reduce(torch.ones(3, device="meta"))
    except RuntimeError as error:
        assert "device meta" in str(error), error
    else:
        raise AssertionError("a tensor on another device was taken")
    try:
        dist.split_group(split_ranks=[list(range(size))])
    except RuntimeError as error:
        assert "No device" in str(error), error
    else:
        raise AssertionError("torch splits groups without an accelerator now; docs/torch.md says that it does not")
    dist.destroy_process_group()
print("right", flush=True)
