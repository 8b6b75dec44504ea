"""What this package needs of torch. A release of torch that has changed it is told of at import."""

from __future__ import annotations

import importlib
from typing import Any

#: Modules, and what must be in them: names, and the attributes that objects of a class must have.
_NEEDED: dict[str, dict[str, tuple[str, ...]]] = {
    "torch.distributed": {
        "Backend": ("register_backend",),
        "DistBackendError": (),
        "ProcessGroup": (
            *("allreduce", "allgather", "all_gather_single", "reduce_scatter_single", "all_to_all_single"),
            *("_device_types", "_get_backend", "_set_group_name", "_set_group_desc", "group_name", "shutdown"),
        ),
        "ReduceOp": ("op", "factor", "RedOpType"),
        "Work": ("wait", "get_future", "is_completed"),
        "TCPStore": (),
    },
    "torch.distributed.rendezvous": {"_rendezvous_handlers": ()},
    "torch._C._distributed_c10d": {
        "AllgatherOptions": ("asyncOp", "timeout"),
        "AllreduceOptions": ("asyncOp", "reduceOp", "timeout"),
        "AllreduceCoalescedOptions": ("asyncOp", "reduceOp", "timeout"),
        "AllToAllOptions": ("asyncOp", "timeout"),
        "BarrierOptions": ("asyncOp", "timeout"),
        "BroadcastOptions": ("asyncOp", "rootRank", "timeout"),
        "GatherOptions": ("asyncOp", "rootRank", "timeout"),
        "ReduceOptions": ("asyncOp", "reduceOp", "rootRank", "timeout"),
        "ReduceScatterOptions": ("asyncOp", "reduceOp", "timeout"),
        "ScatterOptions": ("asyncOp", "rootRank", "timeout"),
    },
}
_ADVICE = "install a release that this one of unisono was tested with: pip install torch==2.13.0"


def check() -> None:
    """Raises ImportError where torch is missing, has no torch.distributed, or another interface than this needs."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(f"unisono.torch needs torch, which cannot be imported ({error}); {_ADVICE}") from error
    if not torch.distributed.is_available():
        raise ImportError(f"torch {torch.__version__} was built without torch.distributed; {_ADVICE}")
    missing = []
    for module_name, names in _NEEDED.items():
        module = importlib.import_module(module_name)
        for name, attributes in names.items():
            if not hasattr(module, name):
                missing.append(f"{module_name}.{name}")
                continue
            missing += [f"{name}.{each}" for each in attributes if not hasattr(getattr(module, name), each)]
    if missing:
        raise ImportError(
            f"torch {torch.__version__} lacks what unisono.torch needs of it: {', '.join(missing)}; {_ADVICE}"
        )
