"""torch's DistributedDataParallel with its gradients where the ranks of a host reach them."""

from __future__ import annotations

from typing import Any

import torch

from .memory import SharedTensors


class DistributedDataParallel(torch.nn.parallel.DistributedDataParallel):
    """As torch's, whose arguments it takes, for models on the CPU and groups of the backend "unisono".

    The buckets in which gradients are summed are made in shared memory, so that each sum copies nothing in between.
    With `gradient_as_bucket_view=True`, gradients themselves stand there, and are not copied to the buckets either.
    torch makes the buckets twice: here, and, in the order in which gradients came, before the second step.
    """

    def __init__(self, module: torch.nn.Module, *args: Any, process_group: Any = None, **options: Any) -> None:
        self._shared = SharedTensors(process_group)
        with self._shared:
            super().__init__(module, *args, process_group=process_group, **options)
        self._steps = 0

    def _pre_forward(self, *inputs: Any, **options: Any) -> Any:
        if self._steps > 1:
            return super()._pre_forward(*inputs, **options)
        self._steps += torch.is_grad_enabled()
        with self._shared:
            return super()._pre_forward(*inputs, **options)
