"""Which message a receive takes, and what is known of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._spec import Datatype
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

ANY_SOURCE = -1000  #: as the peer of a receive or a probe: whichever rank
ANY_TAG = -2000  #: as their tag: whichever


class Status:
    """What is known of a message: pass an empty one to a receive, or get one from `probe`.

    `source` is the rank that sent it, `count` its elements: as the receive has them; of a probe those of `datatype`,
    which is the sender's. `nbytes` is its length.
    """

    __slots__ = ("count", "datatype", "nbytes", "source", "tag")

    def __init__(self) -> None:
        self.source = ANY_SOURCE
        self.tag = ANY_TAG
        self.count = 0
        self.nbytes = 0
        self.datatype = Datatype.NONE

    def _fill(self, of: tuple[int, int, int, int, int]) -> Status:
        self.source, self.tag, self.count, self.nbytes, datatype = of
        self.datatype = Datatype(datatype)
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """The sender's elements as NumPy has them."""
        from ._arrays import dtype_for

        return dtype_for(self.datatype)

    def __repr__(self) -> str:
        return (
            f"Status(source={self.source}, tag={self.tag}, count={self.count}, nbytes={self.nbytes}, "
            f"datatype={self.datatype.name})"
        )


def status_for(operation: str, given: Any) -> Status:
    """The status that a caller passed, to be filled."""
    if not isinstance(given, Status):
        raise InvalidArgumentError(f"{operation}: status is a {type(given).__name__}; pass a unisono.Status, or None")
    return given


def peer_of(operation: str, peer: Any, source: Any) -> Any:
    """Whom a receive is from: `peer`, which may be called `source`, too."""
    if source is None:
        return peer
    if peer is not None:
        raise InvalidArgumentError(f"{operation}: both peer and source were given, which are two names for one thing")
    return source
