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
from ._group import ProcessGroup  # noqa: E402

_joining.register()

__all__ = ["ProcessGroup"]
