"""Tensors as arrays that a call can use, and lists of tensors as one array.

A tensor that is contiguous is used where it lies. Of others a copy is made, which is copied back when the call that
writes it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import _core
from ..errors import InvalidArgumentError, InvalidCountError, InvalidDatatypeError
from ._errors import as_torch_error

Array = npt.NDArray[Any]

_BYTE = np.dtype("V1")
_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    **{
        getattr(torch, name): np.dtype(name)
        for name in (
            "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
            "float64", "complex64", "complex128",
        )
    },
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    # These are moved as they are; nothing adds them up.
    torch.float8_e4m3fn: _BYTE,
    torch.float8_e4m3fnuz: _BYTE,
    torch.float8_e5m2: _BYTE,
    torch.float8_e5m2fnuz: _BYTE,
}  # fmt: skip


def check(operation: str, tensor: Any) -> None:
    """Refuses what no call of this backend takes, before anything is sent."""
    if not isinstance(tensor, Tensor):
        raise as_torch_error(InvalidArgumentError(f"{operation}: a {type(tensor).__name__} was given; pass a tensor"))
    if tensor.is_cpu and tensor.layout is torch.strided and tensor.dtype in _DTYPES:
        return
    if not tensor.is_cpu:
        raise as_torch_error(InvalidArgumentError(
            f"{operation}: the tensor is on device {tensor.device}; the backend unisono takes tensors on the CPU. "
            "Pass tensor.cpu(), or make the group with the backend of that device"
        ))  # fmt: skip
    if tensor.layout is not torch.strided:
        raise as_torch_error(InvalidArgumentError(
            f"{operation}: the tensor has layout {tensor.layout}; pass a dense one (tensor.to_dense())"
        ))  # fmt: skip
    raise as_torch_error(InvalidDatatypeError(
        f"{operation}: the tensor has dtype {tensor.dtype}, which no call takes; allowed are "
        f"{', '.join(str(dtype).removeprefix('torch.') for dtype in _DTYPES)}"
    ))  # fmt: skip


def array_of(tensor: Tensor) -> Array:
    """The elements of a contiguous tensor on the CPU, in a row, as NumPy has them. They share memory.

    Not tensor.numpy(): a tensor of which that was asked cannot be resized any more.
    """
    return _core.array_at(tensor.data_ptr(), tensor.numel(), _DTYPES[tensor.dtype], tensor)


class Used(NamedTuple):
    """What a call reads or writes."""

    array: Array
    finish: Callable[[], object] | None = None  #: brings results to where they belong; after the call, once


def source(operation: str, tensor: Tensor) -> Array:
    """What a call reads."""
    check(operation, tensor)
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.detach().resolve_conj().resolve_neg()
    return array_of(tensor if tensor.is_contiguous() else tensor.detach().contiguous())


def target(operation: str, tensor: Tensor) -> Used:
    """What a call writes, having read it or not."""
    check(operation, tensor)
    if tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg()):
        return Used(array_of(tensor))
    owner = tensor.detach()
    packed = owner.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return Used(array_of(packed), lambda: owner.copy_(packed))


def apart(src: Array, dst: Array) -> Array:
    """`src`, or a copy of it if it shares memory with `dst`."""
    return src.copy() if np.may_share_memory(src, dst) else src


def _one_after_the_other(tensors: Sequence[Tensor]) -> bool:
    """Whether they stand in one memory without a gap, as the parts of a tensor do."""
    storage = tensors[0].untyped_storage().data_ptr()
    end = tensors[0].data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != end or not tensor.is_contiguous():
            return False
        if tensor.untyped_storage().data_ptr() != storage:
            return False
        end += tensor.numel() * tensor.element_size()
    return True


def _whole(tensors: Sequence[Tensor], elements: int) -> Tensor:
    """The one tensor whose parts they are."""
    return tensors[0].detach().as_strided((elements,), (1,))


class Blocks(NamedTuple):
    """A list of tensors as one array, block after block."""

    array: Array
    counts: list[int]  #: elements of each
    even: bool  #: all have as many
    finish: Callable[[], object] | None = None


def _checked(operation: str, tensors: Sequence[Tensor], entries: int) -> list[int]:
    if len(tensors) != entries:
        raise as_torch_error(InvalidCountError(
            f"{operation}: the list has {len(tensors)} tensors; needed is one for each of the {entries} ranks"
        ))  # fmt: skip
    for tensor in tensors:
        check(operation, tensor)
        if tensor.dtype != tensors[0].dtype:
            raise as_torch_error(InvalidDatatypeError(
                f"{operation}: the list has tensors of {tensors[0].dtype} and of {tensor.dtype}; they must be equal"
            ))  # fmt: skip
    return [tensor.numel() for tensor in tensors]


def sources(operation: str, tensors: Sequence[Tensor], entries: int) -> Blocks:
    """A list that a call reads."""
    counts = _checked(operation, tensors, entries)
    total = sum(counts)
    if _one_after_the_other(tensors):
        flat = _whole(tensors, total)
    else:
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    return Blocks(source(operation, flat), counts, len(set(counts)) == 1)


def targets(operation: str, tensors: Sequence[Tensor], entries: int) -> Blocks:
    """A list that a call writes."""
    counts = _checked(operation, tensors, entries)
    total = sum(counts)
    even = len(set(counts)) == 1
    if _one_after_the_other(tensors):
        return Blocks(array_of(_whole(tensors, total)), counts, even)
    owners = [tensor.detach() for tensor in tensors]
    flat = torch.empty(total, dtype=tensors[0].dtype)

    def finish() -> None:
        for owner, part in zip(owners, flat.split(counts), strict=True):
            owner.copy_(part.view(owner.shape))

    return Blocks(array_of(flat), counts, even, finish)
