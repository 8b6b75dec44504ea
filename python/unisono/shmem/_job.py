"""The beginning and the end of a job, and what completes its puts."""

from __future__ import annotations

from .. import _core
from ..errors import InvalidArgumentError
from ._teams import WORLD, Team


def init(heap: int | str | None = None) -> Team:
    """Joins the job that `unisono run` has started, or makes one of a single PE. Returns the team of all PEs.

    `heap` is the size of the symmetric heap, the same on all PEs: bytes, or as "64M" or "2G". Without it
    SHMEM_SYMMETRIC_SIZE says so, or it is 256 MB; memory is used where it is touched. In a `with` statement the end
    of the block finalizes. Collective.
    """
    if isinstance(heap, str):
        wanted = _core.shmem_size_from(heap)
    else:
        wanted = 0 if heap is None else int(heap)
        if heap is not None and not 0 < wanted < 2**47:
            raise InvalidArgumentError(f"init: a heap of {heap} bytes was asked for")
    _core.shmem_start(wanted)
    return Team(WORLD)


def finalize() -> None:
    """Waits for all PEs, and leaves the job. Arrays stay readable; other PEs do not see them any more."""
    _core.shmem_finish()


def my_pe() -> int:
    """The number of this PE, from 0."""
    return Team(WORLD).my_pe


def n_pes() -> int:
    """The number of PEs."""
    return Team(WORLD).n_pes


def fence() -> None:
    """Has this PE's puts and atomics to a PE before it take place there before those after it."""
    _core.shmem_quiet("fence")  # which is more, and costs nothing on one host


def quiet() -> None:
    """Waits until all puts and atomics of this PE are done."""
    _core.shmem_quiet("quiet")


def barrier_all() -> None:
    """Waits until all PEs have come and all their puts and atomics are done."""
    _core.shmem_barrier("barrier_all")
