"""Two ranks that nothing started but a shell."""

import sys

import torch
import torch.distributed as dist
import unisono.torch  # noqa: F401

method, rank = sys.argv[1], int(sys.argv[2])
given = {} if method == "env://" else {"rank": rank, "world_size": 2}
dist.init_process_group("unisono", init_method=method, **given)
tensor = torch.tensor([rank + 1.0])
dist.all_reduce(tensor)
assert tensor.item() == 3
dist.destroy_process_group()
print("right", flush=True)
