"""Tensors of PyTorch in memory that ranks share: what `allocating()` does for torch's factories on the CPU.

NumPy makes the memory (inside `allocating()` that of the arena), torch looks at it. torch is used only if the program
has imported it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

LEAST_BYTES = 4096  #: smaller arrays are ordinary in any case


def shared_factories() -> contextlib.AbstractContextManager[object]:
    """Inside, torch's factories take their memory from NumPy; nothing happens if torch has not been imported."""
    torch = sys.modules.get("torch")
    if getattr(torch, "overrides", None) is None:  # not imported, or only in part
        return contextlib.nullcontext()
    mode: contextlib.AbstractContextManager[object] = _mode_of(torch)()
    return mode


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs[name]


def _fills(torch: Any) -> dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], object]]:
    """By factory: what is done to its tensor, given its arguments. Random numbers are those of torch itself."""

    def nothing(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        pass

    def zeros(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor.zero_()

    def ones(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor.fill_(1)

    def uniform(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor.uniform_(generator=kwargs.get("generator"))

    def normal(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor.normal_(generator=kwargs.get("generator"))

    def full(place: int) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], None]:
        return lambda tensor, args, kwargs: tensor.fill_(_argument(args, kwargs, place, "fill_value"))

    return {
        torch.empty: nothing, torch.empty_like: nothing, torch.Tensor.new_empty: nothing,
        torch.zeros: zeros, torch.zeros_like: zeros, torch.Tensor.new_zeros: zeros,
        torch.ones: ones, torch.ones_like: ones, torch.Tensor.new_ones: ones,
        torch.full: full(1), torch.full_like: full(1), torch.Tensor.new_full: full(2),
        torch.rand: uniform, torch.rand_like: uniform,
        torch.randn: normal, torch.randn_like: normal,
    }  # fmt: skip


def _copied(torch: Any) -> frozenset[Any]:
    """Factories whose tensor is made by torch and then copied."""
    return frozenset({
        torch.tensor, torch.arange, torch.linspace, torch.logspace, torch.eye, torch.randint, torch.randint_like,
        torch.randperm,
    })  # fmt: skip


def _memory(torch: Any, like: Any) -> Any | None:
    """A tensor of the shape, strides and datatype of `like`; None if it would be small, or has holes."""
    elements = math.prod(like.shape)
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(like.shape, like.stride(), strict=True))
    if elements * like.element_size() < LEAST_BYTES or reach != elements or like.layout != torch.strided:
        return None
    array = np.empty(elements * like.element_size(), np.uint8)
    return torch.from_numpy(array).view(like.dtype).as_strided(like.shape, like.stride())


def _is_plain(torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether torch would make an ordinary tensor on the CPU."""
    if kwargs.get("pin_memory") or any(kwargs.get(name) is not None for name in ("out", "names")):
        return False
    given = args[0] if args else kwargs.get("input")
    like = given if isinstance(given, torch.Tensor) else None
    if like is not None and (type(like) not in (torch.Tensor, torch.nn.Parameter) or like.layout != torch.strided):
        return False
    device = kwargs.get("device")
    if device is None:
        device = torch.get_default_device() if like is None else like.device
    if torch.device(device).type != "cpu" or torch.compiler.is_compiling():
        return False
    # Other modes, such as that of tensors without data, want to see the factory.
    return bool(torch._C._len_torch_dispatch_stack() == 0)


@functools.cache
def _mode_of(torch: Any) -> Any:
    """The class whose instances, entered, see all calls of torch on their thread."""
    fills, copied = _fills(torch), _copied(torch)

    def made(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """The tensor of a factory; None if torch is to make it."""
        shaping = {name: value for name, value in kwargs.items() if name not in ("generator", "requires_grad")}
        shaping["device"] = "meta"  # no memory: torch says what shape and datatype come of the arguments
        with torch.no_grad():
            tensor = _memory(torch, function(*args, **shaping))
            if tensor is not None:
                fills[function](tensor, args, kwargs)
        return tensor

    def moved(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor of a factory, copied where it is large."""
        result = function(*args, **kwargs)
        with torch.no_grad():
            tensor = _memory(torch, result)
            return result if tensor is None else tensor.copy_(result).requires_grad_(result.requires_grad)

    class SharedFactories(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Factories on the CPU give memory of NumPy; all else is torch's own."""

        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            if func in fills and _is_plain(torch, args, kwargs):
                tensor = made(func, args, kwargs)
                if tensor is not None:
                    return tensor.requires_grad_(bool(kwargs.get("requires_grad", False)))
            elif func in copied and _is_plain(torch, args, kwargs):
                return moved(func, args, kwargs)
            return func(*args, **kwargs)

    return SharedFactories
