"""Teams and their collectives."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import elements_of
from .._spec import Func
from ..errors import InvalidArgumentError
from ._memory import Array, address_of

WORLD, SHARED = 1, 2


class Team:
    """A numbered set of PEs. That of all PEs comes from `init`; it is also a context, whose end finalizes.

    Collectives are called by all PEs of the team, with arrays in any memory.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @property
    def my_pe(self) -> int:
        """The number of this PE in the team."""
        return _core.shmem_team("my_pe", self._handle)[0]

    @property
    def n_pes(self) -> int:
        """The number of its PEs."""
        return _core.shmem_team("n_pes", self._handle)[1]

    @property
    def shared(self) -> Team:
        """The PEs of this host."""
        return Team(SHARED)

    def __repr__(self) -> str:
        if _core.shmem_size() == 0:
            return "<unisono.shmem.Team, of a job that has ended>"
        return f"<unisono.shmem.Team, PE {self.my_pe} of {self.n_pes}>"

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._handle != WORLD:
            self.destroy()
        elif kind is None:
            _core.shmem_finish()
        else:
            _core.shmem_abandon()

    def translate_pe(self, pe: int, to: Team) -> int:
        """The number in another team of this one's PE `pe`; -1 if it has none there."""
        return _core.shmem_team_pe("translate_pe", self._handle, pe, to._handle)

    def split_strided(self, start: int, stride: int, size: int) -> Team | None:
        """The team of PEs start, start + stride, ...; None on others. Collective over this team."""
        made = _core.shmem_split_strided("split_strided", self._handle, start, stride, size)
        return Team(made) if made else None

    def split_2d(self, width: int) -> tuple[Team, Team]:
        """The team's PEs as rows of `width`: the team of this PE's row, and that of its column. Collective."""
        if width < 1:
            raise InvalidArgumentError(f"split_2d: a width of {width} was given; allowed are 1 and more")
        columns, own = min(width, self.n_pes), self.my_pe
        row = _core.shmem_split("split_2d", self._handle, own // columns)
        return Team(row), Team(_core.shmem_split("split_2d", self._handle, own % columns))

    def destroy(self) -> None:
        """Ends a team that a split has made."""
        _core.shmem_destroy("destroy", self._handle)

    def sync(self) -> None:
        """Waits until all PEs of the team have come. It completes no put."""
        _core.shmem_collective("sync", "sync", self._handle, 0, 0, 0, 0)

    def broadcast(self, values: Array, root: int) -> Array:
        """The root's array, on all PEs: a new array of the shape and dtype that all give."""
        given = np.ascontiguousarray(values)
        result = np.empty_like(given)
        self._move("broadcast", result, given, given.nbytes, root)
        return result

    def fcollect(self, values: npt.ArrayLike) -> Array:
        """The arrays of all PEs, of one shape and dtype, along a new first axis."""
        given = np.ascontiguousarray(values)
        result = np.empty((self.n_pes, *np.shape(values)), given.dtype)
        self._move("fcollect", result, given, given.nbytes)
        return result

    def alltoall(self, values: Array) -> Array:
        """Row j goes to PE j; row i of the result comes from PE i. The first axis has a row for each PE."""
        given = np.ascontiguousarray(values)
        if given.ndim == 0 or given.shape[0] != self.n_pes:
            raise InvalidArgumentError(
                f"alltoall: an array of shape {given.shape} was given; its first axis must have {self.n_pes} rows"
            )
        result = np.empty_like(given)
        self._move("alltoall", result, given, given.nbytes // self.n_pes)
        return result

    def sum(self, values: npt.ArrayLike) -> Any:
        """The sum over all PEs, element by element; so are the following."""
        return self._reduce("sum", values, Func.SUM)

    def prod(self, values: npt.ArrayLike) -> Any:
        """The product."""
        return self._reduce("prod", values, Func.PROD)

    def min(self, values: npt.ArrayLike) -> Any:
        """The least."""
        return self._reduce("min", values, Func.MIN)

    def max(self, values: npt.ArrayLike) -> Any:
        """The greatest."""
        return self._reduce("max", values, Func.MAX)

    def bitwise_and(self, values: npt.ArrayLike) -> Any:
        """The bits that all have."""
        return self._reduce("bitwise_and", values, Func.BITWISE_AND)

    def bitwise_or(self, values: npt.ArrayLike) -> Any:
        """The bits that any has."""
        return self._reduce("bitwise_or", values, Func.BITWISE_OR)

    def bitwise_xor(self, values: npt.ArrayLike) -> Any:
        """The bits that an odd number of PEs have."""
        return self._reduce("bitwise_xor", values, Func.BITWISE_XOR)

    def _move(self, which: str, result: Array, given: Array, size: int, root: int = 0) -> None:
        if given.dtype.hasobject:
            raise InvalidArgumentError(f"{which}: dtype {given.dtype} has Python objects, which cannot be moved")
        dest, source = address_of(which, result), address_of(which, given)
        _core.shmem_collective(which, which, self._handle, dest, source, size, root)

    def _reduce(self, name: str, values: npt.ArrayLike, op: Func) -> Any:
        given = np.asarray(values, order="C")
        datatype = elements_of(name, "the array", given.dtype, computes=True).datatype
        result = np.empty_like(given)
        dest, source = address_of(name, result), address_of(name, given)
        _core.shmem_reduce(name, self._handle, dest, source, given.size, given.itemsize, int(datatype), int(op))
        return result[()] if np.ndim(values) == 0 else result
