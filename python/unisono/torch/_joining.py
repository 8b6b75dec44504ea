"""How torch's groups come to be: jobs that ranks join through torch's store, or through the launcher of Unisono or MPI.

torch.distributed asks for a group with a store (`make_group`), which it has got from a rendezvous. Where its variables
(MASTER_ADDR and so on) are not set, but a launcher has started the ranks, `rendezvous` joins the launcher's job and
makes a store for torch's own use.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ..communicator import Communicator
from ..context import Context, init
from ..errors import InvalidArgumentError, UnisonoError
from ..machine import interfaces
from ._calls import Finish
from ._errors import as_torch_error
from ._group import ProcessGroup

#: What torch's own rendezvous needs, and by what launchers are known.
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LAUNCHERS = ("UNISONO_START", "UNISONO_RANK", "UNISONO_JOIN", "PMIX_RANK", "PMI_FD", "PMI_PORT")
_SIGN = "unisono/sign"
_PATIENCE = 5.0  # seconds with one address

#: torch's own rendezvous, by what stands before "://".
_handlers: dict[str, Any] = {}

#: The job of the launcher. A process joins it once: groups that are made again after they were destroyed use it again.
_launched: Context | None = None
#: It has been joined for the group that is about to be made.
_pending = False


def register() -> None:
    """Makes backend "unisono" known to torch.distributed, once."""
    if _handlers:
        return
    known = dist.rendezvous.__globals__["_rendezvous_handlers"]
    _handlers.update(known)
    known["env"] = rendezvous
    dist.Backend.register_backend("unisono", make_group, extended_api=True, devices=["cpu"])


def rendezvous(
    url: str, timeout: timedelta = dist.distributed_c10d.default_pg_timeout, **options: Any
) -> Iterator[Any]:
    """Of env://, as torch has it: yields a store, the rank and the size."""
    own = all(os.environ.get(name) for name in _NEEDED) or "?" in url
    if own or not any(name in os.environ for name in _LAUNCHERS):
        yield from _handlers["env"](url, timeout=timeout, **options)
        return
    global _launched, _pending
    if _launched is None:
        _launched = init()
    _pending = True
    world = _launched.world
    yield _store_of(world, timeout), world.rank, world.size
    raise RuntimeError("the job of a launcher cannot be joined again by the same rendezvous")


def _store_of(world: Communicator, timeout: timedelta) -> dist.Store:
    """A store that all ranks reach: rank 0 serves it, and says where."""
    store: dist.Store | None = None
    where: tuple[list[str], int, bytes] | None = None
    if world.rank == 0:
        served = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False, timeout=timeout)
        sign = secrets.token_bytes(16)
        served.set(_SIGN, sign)
        where = _addresses(), served.port, sign
        store = served
    addresses, port, sign = world.bcast_object(where)
    reasons: list[str] = []
    if store is None:
        store = _reached(addresses, port, sign, timeout, reasons)
    # All, or none: a rank that has no store would leave the others waiting for it.
    if not world.agree(store is not None) or store is None:
        raise dist.DistStoreError(
            f"the store of rank 0 was not reached by all ranks at port {port} of {', '.join(addresses)}"
            + (f"; on rank {world.rank}: {'; '.join(reasons)}" if reasons else "")
            + ". Set MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE for all ranks instead"
        )
    return store


def _addresses() -> list[str]:
    """Where this host may be reached: addresses of its interfaces, that of this host alone last."""
    found = [text for texts in interfaces.texts().values() for text in texts if "%" not in text]
    here = [text for text in found if text == "::1" or text.startswith("127.")]
    return [text for text in found if text not in here] + here


def _reached(addresses: list[str], port: int, sign: bytes, timeout: timedelta, reasons: list[str]) -> dist.Store | None:
    """The store that has this sign: an address may be that of another host, too."""
    for address in addresses:
        try:
            socket.create_connection((address, port), _PATIENCE).close()
            store = dist.TCPStore(address, port, is_master=False, timeout=timedelta(seconds=_PATIENCE))
            if bytes(store.get(_SIGN)) == sign:
                store.set_timeout(timeout)
                return store
            reasons.append(f"{address}: another store")
        except (OSError, RuntimeError) as error:
            reasons.append(f"{address}: {error}")
    return None


def make_group(given: Any, options: Any) -> ProcessGroup:
    """The group that torch asks for: `given` is its DistributedBackendOptions."""
    if options is not None:
        raise as_torch_error(InvalidArgumentError(
            "pg_options: the backend unisono takes none; its settings are variables of the environment (docs/tuning.md)"
        ))  # fmt: skip
    ranks = list(given.global_ranks_in_group)
    whole = dist.group.WORLD if ranks else None
    if isinstance(whole, ProcessGroup):
        return ProcessGroup.of_ranks(whole, ranks, given.group_id, given.timeout, given.store)
    try:
        communicator, leave = _whole(given)
    except UnisonoError as error:
        raise as_torch_error(error) from None
    return ProcessGroup(communicator, name=given.group_id, store=given.store, timeout=given.timeout, leave=leave)


def _whole(given: Any) -> tuple[Communicator, Finish]:
    """A communicator of ranks that have none together yet, and what ends it."""
    global _pending
    if _pending and _launched is not None:
        _pending = False
        world = _launched.world
        ranks = list(given.global_ranks_in_group) or list(range(given.group_size))
        if ranks == list(range(world.size)):
            communicator = world.dup()
            return communicator, communicator.free
    context = init(store=given.store, rank=given.group_rank, size=given.group_size)
    return context.world, context.close
