"""The process group of torch.distributed: its collectives and messages as calls of a communicator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)

from .._messages import ANY_SOURCE
from .._options import IN_PLACE
from ..communicator import Communicator
from ..errors import InvalidArgumentError, InvalidCountError, UnisonoError
from ..request import Request
from . import _reductions, _sparse, _tensors
from ._errors import as_torch_error
from ._work import CallWork, FinishedWork

Tensor = torch.Tensor
Finish = Callable[[], object]

UNSET = AllreduceOptions().timeout  #: what options say that have no timeout of their own
FINISHED = FinishedWork()
_CPU = torch.device("cpu")


def one(operation: str, tensors: Any) -> Tensor:
    """The tensor that a call is given, alone or in a list of one."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise InvalidArgumentError(f"{operation}: {len(tensors)} tensors were given; this backend takes one for a call")
    return tensors[0]  # type: ignore[no-any-return]


def both(first: Finish | None, second: Finish | None) -> Finish | None:
    """One after the other, where there are two."""
    if first is None or second is None:
        return first or second

    def finish() -> None:
        first()
        second()

    return finish


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A process group whose calls Unisono carries. Made by torch.distributed, when it is asked for backend "unisono".

    Methods have the names and arguments of torch's own groups, in all their forms. Those that torch calls on behalf of
    a program that waits (`async_op=False`) block, and return a work that has ended.
    """

    def __init__(self, communicator: Communicator, *, name: str, store: Any, leave: Finish) -> None:
        """`leave` is called once, when the group is destroyed."""
        super().__init__(communicator.rank, communicator.size)
        #: The communicator: for calls that torch does not know.
        self.communicator = communicator
        self._name = name
        self._description = "undefined"
        self._store = store
        self._leave: Finish | None = leave
        self._held: list[CallWork] | None = None  # of a batch that is open
        self._sequence = 0

    # ---- how calls are made ----

    def _go(
        self,
        call: str,
        *arguments: Any,
        asynchronous: bool,
        limit: timedelta = UNSET,
        outputs: Sequence[Tensor] = (),
        finish: Finish | None = None,
        **options: Any,
    ) -> Any:
        """Makes a call of the communicator, and waits for it unless it is to run beside the program."""
        self._sequence += 1
        if limit != UNSET:
            options["timeout"] = max(limit.total_seconds(), 1e-3)
        try:
            if asynchronous or self._held is not None:
                request = getattr(self.communicator, call + "_async")(*arguments, **options)
                return self._started([request], outputs, finish)
            getattr(self.communicator, call)(*arguments, **options)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        if finish is not None:
            finish()
        return FINISHED

    def _started(self, requests: list[Request], outputs: Sequence[Tensor], finish: Finish | None) -> CallWork:
        for request in requests:
            request.offload()
        work = CallWork(requests, outputs, finish)
        if self._held is not None:
            self._held.append(work)
        return work

    # ---- collectives ----

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Any:
        tensor = one("all_reduce", tensors)
        if isinstance(opts, AllreduceOptions):
            op, asynchronous, limit = opts.reduceOp, opts.asyncOp, opts.timeout
        else:
            op, asynchronous, limit = opts, True, timeout or UNSET
        reduction = _reductions.reduction_of("all_reduce", tensor, op)
        if tensor.layout == torch.sparse_coo:
            return self._sparse(tensor, reduction.func)
        used = _tensors.target("all_reduce", tensor)
        array = reduction.prepared(used.array)
        return self._go(
            "allreduce", array, array, reduction.func,
            asynchronous=asynchronous, limit=limit, outputs=[tensor], finish=used.finish,
        )  # fmt: skip

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
                    array = reduction.prepared(used.array)
                    requests.append(self.communicator.allreduce_async(array, array, reduction.func))
                    finishes = both(finishes, used.finish)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        return self._ended(self._started(requests, list(tensors), finishes), opts.asyncOp)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Any:
        tensor = one("broadcast", tensors)
        if isinstance(opts, BroadcastOptions):
            root, asynchronous, limit = opts.rootRank, opts.asyncOp, opts.timeout
        else:
            root, asynchronous, limit = opts or 0, True, timeout or UNSET
        if root == self.communicator.rank:
            array, finish = _tensors.source("broadcast", tensor), None
        else:
            array, finish = _tensors.target("broadcast", tensor)
        return self._go(
            "bcast", array, root, asynchronous=asynchronous, limit=limit, outputs=[tensor], finish=finish
        )  # fmt: skip

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None
    ) -> Any:
        tensor = one("reduce", tensors)
        if isinstance(opts, ReduceOptions):
            root, op, asynchronous, limit = opts.rootRank, opts.reduceOp, opts.asyncOp, opts.timeout
        else:
            root, asynchronous, limit = opts or 0, True, timeout or UNSET
        reduction = _reductions.reduction_of("reduce", tensor, op)
        said = {"asynchronous": asynchronous, "limit": limit, "outputs": [tensor]}
        if root == self.communicator.rank:
            used = _tensors.target("reduce", tensor)
            array = reduction.prepared(used.array)
            return self._go(
                "reduce", IN_PLACE, array, reduction.func, root, in_place=True, finish=used.finish, **said
            )  # fmt: skip
        array = reduction.prepared(_tensors.source("reduce", tensor), copies=True)
        return self._go("reduce", array, None, reduction.func, root, in_place=True, **said)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        tensor = one("all_gather", input_tensors)
        outputs = output_tensors if isinstance(input_tensors, Tensor) else one("all_gather", output_tensors)
        asynchronous, limit = _said(opts, AllgatherOptions, timeout)
        blocks = _tensors.targets("all_gather", outputs, self.communicator.size, keeps=False)
        if blocks.counts[self.communicator.rank] != tensor.numel():
            raise as_torch_error(InvalidCountError(
                f"all_gather: the input has {tensor.numel()} elements, and the place for it in the list "
                f"{blocks.counts[self.communicator.rank]}"
            ))  # fmt: skip
        src = _tensors.apart(_tensors.source("all_gather", tensor), blocks.array)
        said = {"asynchronous": asynchronous, "limit": limit, "outputs": outputs, "finish": blocks.finish}
        if blocks.even:
            return self._go("allgather", src, blocks.array, **said)
        return self._go("allgatherv", src, blocks.array, blocks.counts, **said)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:  # noqa: A002
        asynchronous, limit = _said(opts, AllgatherOptions, None)
        return self._gather_into(output, input, asynchronous, limit)

    def _gather_into(self, output: Tensor, tensor: Tensor, asynchronous: bool, limit: timedelta) -> Any:
        size = self.communicator.size
        if output.numel() != size * tensor.numel():
            raise as_torch_error(InvalidCountError(
                f"all_gather_into_tensor: the output has {output.numel()} elements; needed are {size} times the "
                f"{tensor.numel()} of the input"
            ))  # fmt: skip
        used = _tensors.target("all_gather_into_tensor", output)
        src: Any = _tensors.source("all_gather_into_tensor", tensor)
        own = output.data_ptr() + self.communicator.rank * tensor.numel() * tensor.element_size()
        # In place, unless the tensor is a part of the output that has been copied.
        in_place = tensor.data_ptr() == own and used.finish is None and tensor.is_contiguous()
        src = IN_PLACE if in_place else _tensors.apart(src, used.array)
        return self._go(
            "allgather", src, used.array,
            asynchronous=asynchronous, limit=limit, outputs=[output], finish=used.finish,
        )  # fmt: skip

    def all_gather_single_coalesced(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None) -> Any:
        asynchronous, limit = _said(opts, AllgatherOptions, None)
        works = [self._gather_into(to, of, True, limit) for to, of in zip(outputs, inputs, strict=True)]
        return self._ended(_together(works), asynchronous)

    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = None
    ) -> Any:
        """`output_lists[r]`: what rank r gives."""
        asynchronous, limit = _said(opts, AllgatherOptions, None)
        wanted = AllgatherOptions()
        wanted.timeout = limit
        works = [
            self.allgather([[of_rank[i] for of_rank in output_lists]], [tensor], wanted)
            for i, tensor in enumerate(input_list)
        ]
        return self._ended(_together(works), asynchronous)

    def reduce_scatter(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        output = one("reduce_scatter", output_tensors)
        inputs = input_tensors if isinstance(output_tensors, Tensor) else one("reduce_scatter", input_tensors)
        if isinstance(opts, ReduceScatterOptions):
            op, asynchronous, limit = opts.reduceOp, opts.asyncOp, opts.timeout
        else:
            op, asynchronous, limit = opts, True, timeout or UNSET
        reduction = _reductions.reduction_of("reduce_scatter", output, op)
        blocks = _tensors.sources("reduce_scatter", inputs, self.communicator.size)
        if blocks.counts[self.communicator.rank] != output.numel():
            raise as_torch_error(InvalidCountError(
                f"reduce_scatter: the output has {output.numel()} elements, and this rank's input "
                f"{blocks.counts[self.communicator.rank]}"
            ))  # fmt: skip
        used = _tensors.target("reduce_scatter", output)
        src = _tensors.apart(reduction.prepared(blocks.array, copies=True), used.array)
        said = {"asynchronous": asynchronous, "limit": limit, "outputs": [output], "finish": used.finish}
        if blocks.even:
            return self._go("reduce_scatter", src, used.array, reduction.func, **said)
        return self._go("reduce_scatterv", src, used.array, blocks.counts, reduction.func, **said)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:  # noqa: A002
        opts = opts or ReduceScatterOptions()
        return self._reduce_scatter_into(output, input, opts.reduceOp, opts.asyncOp, opts.timeout)

    def _reduce_scatter_into(
        self, output: Tensor, tensor: Tensor, op: Any, asynchronous: bool, limit: timedelta
    ) -> Any:
        size = self.communicator.size
        if tensor.numel() != size * output.numel():
            raise as_torch_error(InvalidCountError(
                f"reduce_scatter_tensor: the input has {tensor.numel()} elements; needed are {size} times the "
                f"{output.numel()} of the output"
            ))  # fmt: skip
        reduction = _reductions.reduction_of("reduce_scatter_tensor", output, op)
        used = _tensors.target("reduce_scatter_tensor", output)
        src = reduction.prepared(_tensors.source("reduce_scatter_tensor", tensor), copies=True)
        return self._go(
            "reduce_scatter", _tensors.apart(src, used.array), used.array, reduction.func,
            asynchronous=asynchronous, limit=limit, outputs=[output], finish=used.finish,
        )  # fmt: skip

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Any:
        opts = opts or ReduceScatterOptions()
        works = [
            self._reduce_scatter_into(to, of, opts.reduceOp, True, opts.timeout)
            for to, of in zip(outputs, inputs, strict=True)
        ]
        return self._ended(_together(works), opts.asyncOp)

    def gather(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        alone = isinstance(input_tensors, Tensor)
        tensor = one("gather", input_tensors)
        if isinstance(opts, GatherOptions):
            root, asynchronous, limit = opts.rootRank, opts.asyncOp, opts.timeout
        else:
            root, asynchronous, limit = opts or 0, True, timeout or UNSET
        src = _tensors.source("gather", tensor)
        if root != self.communicator.rank:
            return self._go("gather", src, None, root, asynchronous=asynchronous, limit=limit)
        outputs = output_tensors if alone else one("gather", output_tensors)
        blocks = _tensors.targets("gather", outputs, self.communicator.size)
        return self._go(
            "gather", _tensors.apart(src, blocks.array), _even("gather", blocks), root,
            asynchronous=asynchronous, limit=limit, outputs=outputs, finish=blocks.finish,
        )  # fmt: skip

    def scatter(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        alone = isinstance(output_tensors, Tensor)
        tensor = one("scatter", output_tensors)
        if isinstance(opts, ScatterOptions):
            root, asynchronous, limit = opts.rootRank, opts.asyncOp, opts.timeout
        else:
            root, asynchronous, limit = opts or 0, True, timeout or UNSET
        used = _tensors.target("scatter", tensor)
        src = None
        if root == self.communicator.rank:
            inputs = input_tensors if alone else one("scatter", input_tensors)
            blocks = _tensors.sources("scatter", inputs, self.communicator.size)
            src = _tensors.apart(_even("scatter", blocks), used.array)
        return self._go(
            "scatter", src, used.array, root,
            asynchronous=asynchronous, limit=limit, outputs=[tensor], finish=used.finish,
        )  # fmt: skip

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,  # noqa: A002
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Any:
        asynchronous, limit = _said(opts, AllToAllOptions, timeout)
        used = _tensors.target("all_to_all_single", output)
        src = _tensors.apart(_tensors.source("all_to_all_single", input), used.array)
        said = {"asynchronous": asynchronous, "limit": limit, "outputs": [output], "finish": used.finish}
        if not output_split_sizes and not input_split_sizes and output.numel() == input.numel():
            return self._go("alltoall", src, used.array, **said)
        sent = self._rows("input", input, input_split_sizes)
        received = self._rows("output", output, output_split_sizes)
        return self._go("alltoallv", src, used.array, sent, received, **said)

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
        asynchronous, limit = _said(opts, AllToAllOptions, timeout)
        size = self.communicator.size
        outputs = _tensors.targets("all_to_all", output_tensors, size)
        inputs = _tensors.sources("all_to_all", input_tensors, size)
        said = {
            "asynchronous": asynchronous, "limit": limit, "outputs": output_tensors, "finish": outputs.finish
        }  # fmt: skip
        src = _tensors.apart(inputs.array, outputs.array)
        # Whether the sizes are even is not known of the other ranks.
        return self._go("alltoallv", src, outputs.array, inputs.counts, outputs.counts, **said)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Any:
        if isinstance(opts, timedelta):
            opts, timeout = None, opts
        asynchronous, limit = _said(opts, BarrierOptions, timeout)
        return self._go("barrier", asynchronous=asynchronous, limit=limit)

    # The names that they had before.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # ---- messages ----

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        tensor = one("send", tensors)
        return self._go("send", _tensors.source("send", tensor), dst, tag, asynchronous=True)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        tensor = one("recv", tensors)
        used = _tensors.target("recv", tensor)
        return self._go("recv", used.array, src, tag, asynchronous=True, outputs=[tensor], finish=used.finish)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self.recv(tensors, ANY_SOURCE, tag)

    # ---- batches ----

    def _start_coalescing(self, device: Any = None) -> None:
        self._held = []

    def _end_coalescing(self, device: Any = None) -> Any:
        works, self._held = self._held or [], None
        return _together(works)

    def _ended(self, work: CallWork, asynchronous: bool) -> Any:
        if asynchronous or self._held is not None:
            return work
        work.wait()
        return FINISHED

    # ---- the group itself ----

    def getBackendName(self) -> str:  # noqa: N802  (torch's name)
        return "unisono"

    def _get_backend_name(self) -> str:
        return "unisono"

    def name(self) -> str:
        return "unisono"

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._description

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        self._description = description

    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    def get_group_store(self) -> Any:
        return self._store

    @property
    def _device_types(self) -> list[torch.device]:
        return [_CPU]

    def _get_backend(self, device: Any) -> ProcessGroup:
        """Itself: it is what torch calls a backend, too."""
        device = torch.device(device)
        if device.type != "cpu":
            raise RuntimeError(f"the backend unisono takes tensors on the CPU, and none of device {device}")
        return self

    @property
    def supports_splitting(self) -> bool:
        return False  # by torch's own split_group, which wants an accelerator

    @property
    def supports_coalescing(self) -> bool:
        return True

    @property
    def supports_time_estimate(self) -> bool:
        return False

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        """Calls that this rank has made."""
        return self._sequence

    def set_timeout(self, timeout: timedelta) -> None:
        """The deadline of calls that have none of their own."""
        self.communicator.set_timeout(timeout.total_seconds())

    _set_default_timeout = set_timeout

    def abort(self) -> None:
        """Ends all calls of the group, on all ranks; later ones fail."""
        self.communicator.revoke("aborted")

    def shutdown(self) -> None:
        """Leaves the group. Does nothing the second time."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


def _said(opts: Any, kind: type, timeout: timedelta | None) -> tuple[bool, timedelta]:
    """Whether a call is to run beside the program, and its own deadline."""
    if isinstance(opts, kind):
        return opts.asyncOp, opts.timeout  # type: ignore[attr-defined]
    return True, (timeout if timeout is not None else opts if isinstance(opts, timedelta) else UNSET)


def _even(operation: str, blocks: _tensors.Blocks) -> Any:
    if not blocks.even:
        raise as_torch_error(InvalidCountError(
            f"{operation}: the tensors of the list have {blocks.counts} elements; all must have as many"
        ))  # fmt: skip
    return blocks.array


def _together(works: Sequence[CallWork]) -> CallWork:
    """Several works as one."""
    if len(works) == 1:
        return works[0]
    return CallWork.of(works)
