"""PyTorch's collectives by Unisono: importing this package makes the backend "unisono" known to torch.distributed.

    import torch.distributed as dist
    import unisono.torch

    dist.init_process_group("unisono")

docs/torch.md describes it. The package needs torch, and is compiled against nothing of it.
"""

from __future__ import annotations

from . import _interface

_interface.check()

from . import _joining  # noqa: E402  (torch's interface is looked at first)
from ._barrier import monitored_barrier  # noqa: E402
from ._group import ProcessGroup  # noqa: E402
from .memory import SharedTensors, empty, zeros  # noqa: E402
from .parallel import DistributedDataParallel  # noqa: E402

#: The short name.
ddp = DistributedDataParallel

_joining.register()

__all__ = ["DistributedDataParallel", "ProcessGroup", "SharedTensors", "ddp", "empty", "monitored_barrier", "zeros"]
