"""Operators of torch, by the names that Unisono has for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.distributed import ReduceOp

from .._options import Options
from .._texts import shown
from ..errors import InvalidOpError
from ._errors import as_torch_error

_KINDS = ReduceOp.RedOpType

_FUNCS = {
    _KINDS.SUM: "sum",
    _KINDS.AVG: "avg",
    _KINDS.PRODUCT: "prod",
    _KINDS.MIN: "min",
    _KINDS.MAX: "max",
    _KINDS.BAND: "bitwise_and",
    _KINDS.BOR: "bitwise_or",
    _KINDS.BXOR: "bitwise_xor",
    _KINDS.PREMUL_SUM: "sum",
}
#: The same of truth values: that sums are true if one of them is comes from torch's other backends.
_TRUTHS = {
    _KINDS.SUM: "logical_or",
    _KINDS.PRODUCT: "logical_and",
    _KINDS.MIN: "logical_and",
    _KINDS.MAX: "logical_or",
    _KINDS.BAND: "logical_and",
    _KINDS.BOR: "logical_or",
    _KINDS.BXOR: "logical_xor",
}


class Reduction(NamedTuple):
    func: str
    factor: float | None = None  #: what each rank's elements are multiplied by first

    @property
    def options(self) -> Options:
        """What the call is told beside the operator."""
        return {} if self.factor is None else {"pre_scale": self.factor}


def reduction_of(operation: str, tensor: torch.Tensor, op: Any) -> Reduction:
    """The operator of a call. None is the sum."""
    kind = _KINDS.SUM if op is None else op if isinstance(op, _KINDS) else op.op
    func = (_TRUTHS if tensor.dtype == torch.bool else _FUNCS).get(kind)
    if func is None or (tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1):
        raise as_torch_error(InvalidOpError(f"{operation}: {tensor.dtype} has no operator {kind.name}"))
    return Reduction(func, _factor_of(operation, op) if kind == _KINDS.PREMUL_SUM else None)


def _factor_of(operation: str, op: Any) -> float:
    """That of PREMUL_SUM: a number, or a tensor of one element."""
    try:
        return float(op.factor)
    except (TypeError, ValueError, RuntimeError):
        raise as_torch_error(InvalidOpError(
            f"{operation}: the factor of PREMUL_SUM is {shown(op.factor)}; pass a real number"
        )) from None  # fmt: skip
