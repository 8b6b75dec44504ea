"""Collectives of torch's groups, in all the forms that torch has for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)

from .._options import IN_PLACE
from ..errors import InvalidCountError, InvalidOpError, UnisonoError
from ..request import Request
from . import _reductions, _sparse, _tensors
from ._calls import Calls, Finish, How, both, how_of, one, together
from ._errors import as_torch_error
from ._work import FinishedWork


def _even(operation: str, blocks: _tensors.Blocks) -> Any:
    if not blocks.even:
        raise as_torch_error(InvalidCountError(
            f"{operation}: the tensors of the list have {blocks.counts} elements; all must have as many"
        ))  # fmt: skip
    return blocks.array


class Collectives(Calls):
    """Collectives. Those that torch calls for a program that waits (`async_op=False`) block."""

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Any:
        tensor = one("all_reduce", tensors)
        if isinstance(opts, AllreduceOptions):
            op, how = opts.reduceOp, how_of(opts)
        else:
            op, how = opts, how_of(None, timeout)
        reduction = _reductions.reduction_of("all_reduce", tensor, op)
        if tensor.layout == torch.sparse_coo:
            if reduction.factor is not None:
                raise as_torch_error(InvalidOpError("all_reduce: sparse tensors have no operator PREMUL_SUM"))
            return self._sparse(tensor, reduction.func)
        used = _tensors.target("all_reduce", tensor)
        how = how.of([tensor], used.finish)
        return self._go("allreduce", how, used.array, used.array, reduction.func, **reduction.options)

    def _sparse(self, tensor: Tensor, func: str) -> Any:
        """Blocks in any case: what is received decides what is called next."""
        try:
            _sparse.allreduce(self.communicator, tensor, func)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        return FinishedWork([tensor])

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Any:
        opts = opts or AllreduceCoalescedOptions()
        requests: list[Request] = []
        finishes: Finish | None = None
        try:
            with self.communicator.group():
                for tensor in tensors:
                    reduction = _reductions.reduction_of("all_reduce_coalesced", tensor, opts.reduceOp)
                    used = _tensors.target("all_reduce_coalesced", tensor)
                    requests.append(
                        self.communicator.allreduce_async(used.array, used.array, reduction.func, **reduction.options)
                    )
                    finishes = both(finishes, used.finish)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        how = how_of(opts)
        return self._ended(self._started(requests, how.of(list(tensors), finishes)), how)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Any:
        tensor = one("broadcast", tensors)
        if isinstance(opts, BroadcastOptions):
            root, how = opts.rootRank, how_of(opts)
        else:
            root, how = opts or 0, how_of(None, timeout)
        if root == self.communicator.rank:
            array, finish = _tensors.source("broadcast", tensor), None
        else:
            array, finish = _tensors.target("broadcast", tensor)
        return self._go("bcast", how.of([tensor], finish), array, root)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None) -> Any:
        tensor = one("reduce", tensors)
        if isinstance(opts, ReduceOptions):
            root, op, how = opts.rootRank, opts.reduceOp, how_of(opts)
        else:
            root, how = opts or 0, how_of(None, timeout)
        reduction = _reductions.reduction_of("reduce", tensor, op)
        if root == self.communicator.rank:
            used = _tensors.target("reduce", tensor)
            how = how.of([tensor], used.finish)
            buffers: tuple[Any, Any] = IN_PLACE, used.array
        else:
            how = how.of([tensor])
            buffers = _tensors.source("reduce", tensor), None
        return self._go("reduce", how, *buffers, reduction.func, root, in_place=True, **reduction.options)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        tensor = one("all_gather", input_tensors)
        outputs = output_tensors if isinstance(input_tensors, Tensor) else one("all_gather", output_tensors)
        how = how_of(opts, timeout)
        blocks = _tensors.targets("all_gather", outputs, self.communicator.size)
        if blocks.counts[self.communicator.rank] != tensor.numel():
            raise as_torch_error(InvalidCountError(
                f"all_gather: the input has {tensor.numel()} elements, and the place for it in the list "
                f"{blocks.counts[self.communicator.rank]}"
            ))  # fmt: skip
        src = _tensors.apart(_tensors.source("all_gather", tensor), blocks.array)
        how = how.of(outputs, blocks.finish)
        if blocks.even:
            return self._go("allgather", how, src, blocks.array)
        return self._go("allgatherv", how, src, blocks.array, blocks.counts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        return self._gather_into(output, input, how_of(opts))

    def _gather_into(self, output: Tensor, tensor: Tensor, how: How) -> Any:
        size = self.communicator.size
        if output.numel() != size * tensor.numel():
            raise as_torch_error(InvalidCountError(
                f"all_gather_into_tensor: the output has {output.numel()} elements; needed are {size} times the "
                f"{tensor.numel()} of the input"
            ))  # fmt: skip
        used = _tensors.target("all_gather_into_tensor", output)
        # If the input is a part of the output, a copy of it: a call is in place on all ranks, or on none, and where the
        # others' tensors lie is not known.
        src = _tensors.apart(_tensors.source("all_gather_into_tensor", tensor), used.array)
        return self._go("allgather", how.of([output], used.finish), src, used.array)

    def all_gather_single_coalesced(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None) -> Any:
        how = how_of(opts)
        works = [self._gather_into(to, of, how.beside()) for to, of in zip(outputs, inputs, strict=True)]
        return self._ended(together(works), how)

    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = None
    ) -> Any:
        """`output_lists[r]`: what rank r gives."""
        how = how_of(opts)
        wanted = AllgatherOptions()
        wanted.timeout = how.limit
        works = [
            self.allgather([[of_rank[i] for of_rank in output_lists]], [tensor], wanted)
            for i, tensor in enumerate(input_list)
        ]
        return self._ended(together(works), how)

    def reduce_scatter(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        output = one("reduce_scatter", output_tensors)
        inputs = input_tensors if isinstance(output_tensors, Tensor) else one("reduce_scatter", input_tensors)
        if isinstance(opts, ReduceScatterOptions):
            op, how = opts.reduceOp, how_of(opts)
        else:
            op, how = opts, how_of(None, timeout)
        reduction = _reductions.reduction_of("reduce_scatter", output, op)
        blocks = _tensors.sources("reduce_scatter", inputs, self.communicator.size)
        if blocks.counts[self.communicator.rank] != output.numel():
            raise as_torch_error(InvalidCountError(
                f"reduce_scatter: the output has {output.numel()} elements, and this rank's input "
                f"{blocks.counts[self.communicator.rank]}"
            ))  # fmt: skip
        used = _tensors.target("reduce_scatter", output)
        src = _tensors.apart(blocks.array, used.array)
        how = how.of([output], used.finish)
        if blocks.even:
            return self._go("reduce_scatter", how, src, used.array, reduction.func, **reduction.options)
        return self._go("reduce_scatterv", how, src, used.array, blocks.counts, reduction.func, **reduction.options)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        opts = opts or ReduceScatterOptions()
        return self._reduce_scatter_into(output, input, opts.reduceOp, how_of(opts))

    def _reduce_scatter_into(self, output: Tensor, tensor: Tensor, op: Any, how: How) -> Any:
        size = self.communicator.size
        if tensor.numel() != size * output.numel():
            raise as_torch_error(InvalidCountError(
                f"reduce_scatter_tensor: the input has {tensor.numel()} elements; needed are {size} times the "
                f"{output.numel()} of the output"
            ))  # fmt: skip
        reduction = _reductions.reduction_of("reduce_scatter_tensor", output, op)
        used = _tensors.target("reduce_scatter_tensor", output)
        src = _tensors.apart(_tensors.source("reduce_scatter_tensor", tensor), used.array)
        how = how.of([output], used.finish)
        return self._go("reduce_scatter", how, src, used.array, reduction.func, **reduction.options)

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Any:
        opts = opts or ReduceScatterOptions()
        how = how_of(opts)
        works = [
            self._reduce_scatter_into(to, of, opts.reduceOp, how.beside())
            for to, of in zip(outputs, inputs, strict=True)
        ]
        return self._ended(together(works), how)

    def gather(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        alone = isinstance(input_tensors, Tensor)
        tensor = one("gather", input_tensors)
        if isinstance(opts, GatherOptions):
            root, how = opts.rootRank, how_of(opts)
        else:
            root, how = opts or 0, how_of(None, timeout)
        src = _tensors.source("gather", tensor)
        if root != self.communicator.rank:
            return self._go("gather", how, src, None, root)
        outputs = output_tensors if alone else one("gather", output_tensors)
        blocks = _tensors.targets("gather", outputs, self.communicator.size)
        src = _tensors.apart(src, blocks.array)
        return self._go("gather", how.of(outputs, blocks.finish), src, _even("gather", blocks), root)

    def scatter(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        alone = isinstance(output_tensors, Tensor)
        tensor = one("scatter", output_tensors)
        if isinstance(opts, ScatterOptions):
            root, how = opts.rootRank, how_of(opts)
        else:
            root, how = opts or 0, how_of(None, timeout)
        used = _tensors.target("scatter", tensor)
        src = None
        if root == self.communicator.rank:
            inputs = input_tensors if alone else one("scatter", input_tensors)
            blocks = _tensors.sources("scatter", inputs, self.communicator.size)
            src = _tensors.apart(_even("scatter", blocks), used.array)
        return self._go("scatter", how.of([tensor], used.finish), src, used.array, root)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Any:
        how = how_of(opts, timeout)
        used = _tensors.target("all_to_all_single", output)
        src = _tensors.apart(_tensors.source("all_to_all_single", input), used.array)
        how = how.of([output], used.finish)
        if not output_split_sizes and not input_split_sizes and output.numel() == input.numel():
            return self._go("alltoall", how, src, used.array)
        sent = self._rows("input", input, input_split_sizes)
        received = self._rows("output", output, output_split_sizes)
        return self._go("alltoallv", how, src, used.array, sent, received)

    def _rows(self, name: str, tensor: Tensor, splits: Sequence[int]) -> list[int]:
        """Elements for each rank, of a tensor whose first axis is split."""
        size = self.communicator.size
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % size:
                raise as_torch_error(InvalidCountError(
                    f"all_to_all_single: the first axis of the {name} has {rows} entries, which {size} ranks cannot "
                    f"share evenly; pass {name}_split_sizes"
                ))  # fmt: skip
            splits = [rows // size] * size
        if len(splits) != size or sum(splits) != rows or min(splits) < 0:
            raise as_torch_error(InvalidCountError(
                f"all_to_all_single: {name}_split_sizes is {list(splits)}; needed are {size} sizes whose sum is the "
                f"{rows} entries of the first axis"
            ))  # fmt: skip
        width = tensor.numel() // rows if rows else 0
        return [split * width for split in splits]

    def alltoall(
        self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: Any = None, timeout: Any = None
    ) -> Any:
        how = how_of(opts, timeout)
        size = self.communicator.size
        outputs = _tensors.targets("all_to_all", output_tensors, size)
        inputs = _tensors.sources("all_to_all", input_tensors, size)
        how = how.of(output_tensors, outputs.finish)
        src = _tensors.apart(inputs.array, outputs.array)
        # Whether the sizes are even is not known of the other ranks.
        return self._go("alltoallv", how, src, outputs.array, inputs.counts, outputs.counts)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Any:
        # As with torch's other backends, collectives that this rank has started have ended after it.
        before = [request for work in list(self._flying) for request in work.requests]
        return self._go("barrier", how_of(opts, timeout), **({"wait_for": before} if before else {}))

    # The names that they had before.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
