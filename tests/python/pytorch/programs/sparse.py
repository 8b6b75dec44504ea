"""Sparse tensors with other entries on each rank, of several shapes: their sum is that of the dense ones."""

import torch
import torch.distributed as dist
import unisono.torch  # noqa: F401


def given(rank: int, shape: tuple[int, ...], dense: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(17 * rank + len(shape))
    full = torch.randint(0, 3, shape, generator=generator).double()
    if rank == 1:
        full.zero_()  # no entry at all
    return full.to_sparse(len(shape) - dense)


dist.init_process_group("unisono")
rank, size = dist.get_rank(), dist.get_world_size()
for shape, dense in [((5,), 0), ((4, 6), 0), ((7, 3), 1), ((3, 4, 2), 1)]:
    for asynchronous in (False, True):
        tensor = given(rank, shape, dense)
        work = dist.all_reduce(tensor, async_op=asynchronous)
        if work is not None:
            work.wait()
        wanted = sum(given(r, shape, dense).to_dense() for r in range(size))
        assert torch.equal(tensor.to_dense(), wanted), (tensor, wanted)
try:
    dist.all_reduce(given(rank, (5,), 0), dist.ReduceOp.MAX)
except RuntimeError as error:
    assert "sparse tensors can be summed, and max was asked for" in str(error), error
else:
    raise AssertionError("a maximum of sparse tensors was taken")
dist.destroy_process_group()
print("right", flush=True)
