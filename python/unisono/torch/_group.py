"""The process group of torch.distributed."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .._messages import ANY_SOURCE
from ..communicator import Communicator
from ..errors import InvalidArgumentError, UnisonoError
from . import _tensors
from ._calls import Finish, How, one
from ._collectives import Collectives
from ._errors import as_torch_error

_CPU = torch.device("cpu")
# Messages of up to as many bytes leave at once and need neither end's progress: no helper thread is woken for them.
_UNASKED = 1 << 16
_NAME_LENGTH = 32  # of a communicator
_LARGEST_TAG = (1 << 31) - 1


class ProcessGroup(Collectives):
    """A process group whose calls Unisono carries. torch.distributed makes it, when it is asked for backend "unisono".

    Methods have the names and arguments of torch's own groups, in all their forms. Any thread may call them.
    """

    def __init__(self, communicator: Communicator, *, name: str, store: Any, timeout: timedelta, leave: Finish) -> None:
        """`timeout`: the deadline of calls that have none of their own. `leave` is called once, when the group is
        destroyed.
        """
        super().__init__(communicator)
        self.set_timeout(timeout)
        self._name = name
        self._description = "undefined"
        self._store = store
        self._leave: Finish | None = leave
        self._barriers = 0
        self._splits = 0

    # ---- messages ----

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        array = _tensors.source("send", one("send", tensors))
        return self._go("send", How(helped=array.nbytes > _UNASKED), array, dst, tag)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        tensor = one("recv", tensors)
        used = _tensors.target("recv", tensor)
        how = How(helped=used.array.nbytes > _UNASKED).of([tensor], used.finish)
        return self._go("recv", how, used.array, src, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self.recv(tensors, ANY_SOURCE, tag)

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

    def next_barrier(self) -> int:
        """The number of this monitored barrier, equal on all ranks."""
        self._barriers += 1
        return self._barriers

    def set_timeout(self, timeout: timedelta) -> None:
        """The deadline of calls that have none of their own."""
        self.timeout = timeout
        self.communicator.set_timeout(timeout.total_seconds())

    def split_group(
        self,
        new_ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> ProcessGroup | None:
        """A group of the ranks that are listed, in that order; None on others, which need not call it."""
        ranks = list(new_ranks)
        if self.communicator.rank not in ranks:
            return None
        self._splits += 1
        name = group_name or f"{self._name}/{self._splits}"
        made = ProcessGroup.of_ranks(self, ranks, name, timeout or self.timeout, self._store)
        made.setGroupDesc(group_desc or "undefined")
        return made

    splitGroup = split_group  # noqa: N815  (what C++ calls it)

    @staticmethod
    def of_ranks(whole: ProcessGroup, ranks: Sequence[int], name: str, timeout: timedelta, store: Any) -> ProcessGroup:
        """A group of ranks of another one. Collective over these ranks."""
        try:
            made = whole.communicator.create_group(ranks, zlib.crc32(name.encode()) & _LARGEST_TAG)
        except UnisonoError as error:
            raise as_torch_error(error) from None
        made.name = "".join(c for c in name if c.isprintable() and c.isascii())[:_NAME_LENGTH] or None

        def leave() -> None:
            with contextlib.suppress(UnisonoError):  # the job may have been left before
                made.free()

        return ProcessGroup(made, name=name, store=store, timeout=timeout, leave=leave)

    _set_default_timeout = set_timeout

    def abort(self) -> None:
        """Ends all calls of the group, on all ranks; later ones fail."""
        self.communicator.revoke("aborted")

    def shutdown(self) -> None:
        """Leaves the group. Does nothing the second time."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


def group_or_world(operation: str, group: Any) -> ProcessGroup:
    """The group that is given, or the world's; refused if it is of another backend."""
    found = dist.group.WORLD if group is None else group
    if isinstance(found, ProcessGroup):
        return found
    if found is None:
        raise as_torch_error(InvalidArgumentError(
            f'{operation}: there is no group; call torch.distributed.init_process_group("unisono") first'
        ))  # fmt: skip
    raise as_torch_error(InvalidArgumentError(
        f"{operation}: the group has the backend {dist.get_backend(found)}, or this rank is not in it; pass one of the "
        "backend unisono"
    ))  # fmt: skip
