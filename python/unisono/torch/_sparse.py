"""All-reduce of sparse tensors: the sum of all ranks' entries, as torch's gloo has it."""

from __future__ import annotations

import numpy as np
import torch

from ..communicator import Communicator
from ..errors import InvalidOpError, MismatchedCallError
from ._errors import as_torch_error
from ._tensors import array_of


def allreduce(communicator: Communicator, tensor: torch.Tensor, func: str) -> None:
    """Sums sparse tensors of one shape into `tensor`, in place. Each rank may have other entries, and any number.

    The ranks tell one another their numbers of entries, then indices, then values; each adds them up in the order of
    the ranks, so that all get the same bits. Blocks. Sums alone.
    """
    if func != "sum":
        raise as_torch_error(InvalidOpError(f"all_reduce: sparse tensors can be summed, and {func} was asked for"))
    own = tensor.coalesce()
    indices, values = own.indices(), own.values().contiguous()
    shape = [own.sparse_dim(), own.dense_dim(), *own.shape]
    known = communicator.allgather(np.array([values.shape[0], len(shape)], np.int64)).reshape(-1, 2)
    shapes = communicator.allgather(np.array(shape, np.int64)) if (known[:, 1] == len(shape)).all() else None
    if shapes is None or (shapes.reshape(communicator.size, -1) != shape).any():
        raise as_torch_error(MismatchedCallError(
            f"all_reduce: the ranks gave sparse tensors of different shapes; this one has {list(own.shape)}"
        ))  # fmt: skip
    counts = [int(count) for count in known[:, 0]]
    total = sum(counts)
    width = values[0].numel() if values.shape[0] else int(np.prod(own.shape[own.sparse_dim() :], dtype=np.int64))
    # By entry, so that one rank's entries stand together.
    all_indices = torch.empty((total, own.sparse_dim()), dtype=torch.int64)
    all_values = torch.empty((total, *own.shape[own.sparse_dim() :]), dtype=values.dtype)
    communicator.allgatherv(
        array_of(indices.t().contiguous()).reshape(-1), array_of(all_indices).reshape(-1),
        [count * own.sparse_dim() for count in counts],
    )  # fmt: skip
    communicator.allgatherv(
        array_of(values).reshape(-1), array_of(all_values).reshape(-1), [count * width for count in counts]
    )
    result = torch.sparse_coo_tensor(all_indices.t(), all_values, own.shape).coalesce()
    with torch.no_grad():
        tensor.copy_(result)
