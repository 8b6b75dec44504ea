"""Tensors in memory that the ranks of a host share: collectives reach them directly, without buffers in between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import InvalidArgumentError, UnisonoError
from ._errors import as_torch_error
from ._group import ProcessGroup, group_or_world

LEAST_BYTES = 4096  #: smaller tensors are ordinary in any case


def empty(*size: Any, dtype: torch.dtype | None = None, group: Any = None) -> torch.Tensor:
    """A tensor as `torch.empty` makes it, in memory that all ranks of `group` (the world) on this host reach.

    `size`: numbers, or one sequence of them. The memory is given back with the last tensor that uses it, which may
    outlive the group. Large collectives whose tensors are all made so copy nothing in between. Not collective.
    """
    return _made(group_or_world("empty", group), _shape(size), dtype or torch.get_default_dtype())


def zeros(*size: Any, dtype: torch.dtype | None = None, group: Any = None) -> torch.Tensor:
    """As `empty`, and all elements are zero."""
    return empty(*size, dtype=dtype, group=group).zero_()


def _shape(size: tuple[Any, ...]) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    if not all(isinstance(extent, int) and extent >= 0 for extent in size):
        raise as_torch_error(InvalidArgumentError(f"size is {size}; pass integers from 0"))
    return size


def _made(group: ProcessGroup, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    elements = math.prod(shape)
    if elements * dtype.itemsize < LEAST_BYTES:
        return torch.empty(shape, dtype=dtype)
    try:
        array = group.communicator.empty(elements * dtype.itemsize, np.uint8)
    except UnisonoError as error:
        raise as_torch_error(error) from None
    return torch.from_numpy(array).view(dtype).reshape(shape)


class SharedTensors(TorchDispatchMode):
    """Inside, tensors that torch itself makes on the CPU, from C++ too, are made as `empty` makes them.

    Those of less than 4 KB, and those for which there is no room, are ordinary. Of the present thread.
    """

    def __init__(self, group: Any = None) -> None:
        super().__init__()
        self._group = group_or_world("SharedTensors", group)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.empty.memory_format and _plain(kwargs):
            try:
                return _made(self._group, tuple(args[0]), kwargs.get("dtype") or torch.get_default_dtype())
            except UnisonoError:
                pass  # no room: it is ordinary
        return func(*args, **kwargs)


def _plain(kwargs: dict[str, Any]) -> bool:
    """Whether an ordinary tensor on the CPU is wanted."""
    device = kwargs.get("device")
    return (
        (device is None or torch.device(device).type == "cpu")
        and kwargs.get("layout") in (None, torch.strided)
        and kwargs.get("memory_format") in (None, torch.contiguous_format)
        and not kwargs.get("pin_memory")
    )
