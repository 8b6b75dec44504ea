"""Communication hooks of DistributedDataParallel: gradients that travel in half the bytes.

    from unisono.torch import hooks

    model = DistributedDataParallel(network)
    model.register_comm_hook(None, hooks.bf16_wire_hook)

Gradients stay float32. A bucket is rounded as its call begins, and every rank gets equal sums (docs/compressed.md).
Hooks take the process group as their state; None is the group of all ranks.
"""

# Annotations here are objects, not text: DistributedDataParallel looks at those of its hooks.

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError, UnisonoError
from . import _tensors
from ._errors import as_torch_error
from ._group import ProcessGroup
from ._work import CallWork

__all__ = ["bf16_wire_hook", "fp16_wire_hook"]


def bf16_wire_hook(state: dist.ProcessGroup | None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean of a bucket over all ranks. Travels as bf16, which has the range of float32 and 8 bits of precision."""
    return _mean(state, bucket, "bf16")


def fp16_wire_hook(state: dist.ProcessGroup | None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The same as fp16, which has 11 bits of precision and ends at 65504: for gradients whose size is known."""
    return _mean(state, bucket, "fp16")


def _mean(
    group: dist.ProcessGroup | None, bucket: dist.GradBucket, wire_datatype: str
) -> torch.futures.Future[torch.Tensor]:
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, ProcessGroup):
        raise as_torch_error(InvalidArgumentError(
            f"{wire_datatype}_wire_hook: the group's backend is {group.name()}; this hook needs a group of backend "
            '"unisono"'
        ))  # fmt: skip
    gradient: torch.Tensor = bucket.buffer()
    if gradient.dtype != torch.float32:
        raise as_torch_error(InvalidArgumentError(
            f"{wire_datatype}_wire_hook: the gradients are {gradient.dtype}; this hook takes torch.float32. Those that "
            "are as narrow already need no hook"
        ))  # fmt: skip
    # First the division: in fp16 a sum may be too large where the mean is not.
    array = _tensors.target("all_reduce", gradient.div_(group.size())).array
    try:
        request = group.communicator.allreduce_async(array, array, "sum", wire_datatype=wire_datatype)
    except UnisonoError as error:
        raise as_torch_error(error) from None
    # A hook's result is one tensor, that of a work a list.
    return CallWork([request], [gradient]).get_future().then(lambda future: future.value()[0])
