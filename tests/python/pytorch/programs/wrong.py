"""Wrong use: a sentence before anything is sent, and the group goes on."""

from collections.abc import Callable

import torch
import torch.distributed as dist
import unisono.torch

dist.init_process_group("unisono")
rank, size = dist.get_rank(), dist.get_world_size()
group = dist.group.WORLD


def refused(words: str, call: Callable[[], object], kind: type[Exception] = RuntimeError) -> None:
    """It raises an error that is both torch's and ours, and says this."""
    try:
        call()
    except kind as error:
        assert words in str(error), f"wanted {words!r}, got {error!r}"
        assert isinstance(error, dist.DistBackendError), type(error).__mro__
        assert isinstance(error, unisono.UnisonoError)
    else:
        raise AssertionError(f"not refused: {words}")


one = torch.ones(3)
refused("on device meta", lambda: dist.all_reduce(torch.ones(3, device="meta")))
refused("on device meta", lambda: dist.all_gather([torch.empty(3, device="meta")] * size, one))
refused("torch.float8_e4m3fn", lambda: group.allreduce([one.to(torch.float8_e4m3fn)]))
refused("torch.bool has no operator AVG", lambda: dist.all_reduce(torch.ones(3).bool(), dist.ReduceOp.AVG))
premultiplied = dist._make_nccl_premul_sum(0.5)
refused("pre_scale was given for elements of int64", lambda: dist.all_reduce(torch.ones(3).long(), premultiplied))
refused("no operator PREMUL_SUM", lambda: dist.all_reduce(torch.ones(3).to_sparse(), premultiplied))
imaginary = dist._make_nccl_premul_sum(torch.tensor([1j]))
refused("pass a real number", lambda: dist.all_reduce(torch.ones(3), imaginary))
refused("2 tensors were given", lambda: group.allreduce([one, one]))
refused("a list was given", lambda: group.broadcast([[1, 2]]))
refused("the list has 1 tensors", lambda: dist.all_gather([torch.empty(3)], one)) if size > 1 else None
refused(
    "the input has 3 elements, and the place for it in the list 4",
    lambda: dist.all_gather([torch.empty(4) for _ in range(size)], one),
)
refused("the output has 4 elements", lambda: dist.all_gather_single(torch.empty(4), one))
refused("the input has 3 elements", lambda: dist.reduce_scatter_single(torch.empty(4), one))
refused(
    "output_split_sizes is [9]",
    lambda: dist.all_to_all_single(torch.empty(size), torch.empty(size), [9], [1] * size),
)
refused("cannot share evenly", lambda: dist.all_to_all_single(torch.empty(size + 1), torch.empty(2 * size)))
refused(
    "the tensors of the list have",
    lambda: dist.scatter(torch.empty(3), [torch.empty(3 + r) for r in range(size)], src=rank),
)
refused("the backend unisono takes none", lambda: dist.new_group(pg_options=object()))
refused("the group has the backend gloo", lambda: unisono.torch.empty(5000, group=dist.new_group(backend="gloo")))
# Nothing was sent, and nothing is left behind.
dist.all_reduce(one)
assert one.tolist() == [size] * 3
dist.destroy_process_group()
refused("there is no group", lambda: unisono.torch.zeros(5000))
print("right", flush=True)
