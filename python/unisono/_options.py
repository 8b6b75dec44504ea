"""What calls and communicators are told beside their buffers."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final, NamedTuple, TypedDict

from . import _core
from ._spec import Capability, Datatype
from .request import Request


class InPlace(enum.Enum):
    """Type of `IN_PLACE`."""

    IN_PLACE = enum.auto()

    def __repr__(self) -> str:
        return "unisono.IN_PLACE"


#: Stands for the buffer that an in-place call does not use.
IN_PLACE: Final = InPlace.IN_PLACE
_core.set_in_place(IN_PLACE)


class Options(TypedDict, total=False):
    """Options of every operation of a `Communicator`, as keyword arguments.

    - `algorithm`: a name from `unisono algorithms`; not given, or None, one is chosen.
    - `timeout`: deadline in seconds; not given, or None, the communicator's.
    - `wait_for`: requests that must complete first.
    - `count`: elements, where it is not to follow from the buffers (docs/model.md says of what).
    - `wire_datatype`: "fp16" or "bf16"; float32 elements travel rounded to it, and all ranks get equal results
      (docs/compressed.md).
    - `pre_scale`, of reductions: what this rank gives is multiplied by it before it is folded; ranks may differ. The
      buffer stays as it is. Floating point and complex numbers have factors (docs/factors.md).
    - `post_scale`, of reductions: the result is multiplied by it; all ranks give the same.
    - `start`, of `_async` forms: False only checks and prepares the call; `Request.start` starts it, as often as it is
      wanted.
    """

    algorithm: str | None
    timeout: float | None
    wait_for: Iterable[Request]
    count: int | None
    wire_datatype: str | Datatype | None
    pre_scale: float | None
    post_scale: float | None
    start: bool


class CommunicatorSettings(TypedDict, total=False):
    """Settings of a communicator that is made, as keyword arguments; what is not given is the context's.

    - `group_size`: ranks of a group for two-level algorithms, equal on all members; 1 means one level, 0 groups that
      are hosts, which means one level on one host.
    - `group`: a number; ranks that give equal ones are a group, of any size and of any ranks. All members give one, or
      none does.
    - `eager_limit`: bytes of the largest eager message; the least that a member gives.
    - `timeout`: default deadline of a call in seconds; the least that a member gives.
    - `lanes`: False, on one member, means no use of shared memory but for messages.
    - `name`: see `Communicator.name`.
    - `streams`: True, on all members: for calls with `Stream`, whose elements then go on one by one
      (docs/streams.md). Its calls go without lanes, by algorithms that take elements in their order.
    """

    group_size: int
    group: int | None
    eager_limit: int
    timeout: float | None
    lanes: bool
    name: str | None
    streams: bool


class LastAlgorithm(NamedTuple):
    """What a collective call ran with."""

    name: str | None  #: of the table of algorithms; None before there was a call, and for programs of the user
    automatic: bool  #: the call named none


class CommunicatorState(NamedTuple):
    """What the members of a communicator agreed on when it was made, and how it is now."""

    number: int  #: of the communicator, equal on all members
    epoch: int
    group_size: int  #: ranks of a group for two-level algorithms; 0: one group, or groups of several sizes
    eager_limit: int  #: bytes of the largest message that is sent at once
    segment_bytes: int  #: bytes of the largest segment
    rx_buffer_count: int  #: receive buffers for each peer
    timeout: float  #: default deadline of calls on this rank, seconds
    capability: Capability  #: what all its engines can do
    calls: int  #: begun by this rank
    lanes: bool  #: its calls go over memory that all members share
    revoked: bool  #: it has failed
    groups: int  #: for two-level algorithms; 1: one level
    group: int  #: this rank's, counted from 0 in the order of their first ranks
    carrier: str  #: the switches that carry calls which are made now, in words; empty, or none and why: ranks alone
