"""SMI's interface as sources use it: which functions and classes open channels, and with which arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .._spec import Datatype, Func

#: What a channel takes of a port.
DIRECTIONS = {
    "send": frozenset({"send"}),
    "receive": frozenset({"receive"}),
    **{
        kind: frozenset({"send", "receive"})
        for kind in ("bcast", "reduce", "scatter", "gather", "allreduce", "allgather", "alltoall", "barrier")
    },
}
#: Numbers of UNISONO_SMI_..., in order from 1.
KINDS = ("send", "receive", "bcast", "reduce", "scatter", "gather", "allreduce", "allgather", "alltoall")
_OF_SMI = {1: Datatype.INT32, 2: Datatype.FP32, 3: Datatype.FP64, 4: Datatype.INT8, 5: Datatype.INT16}
_OPS_OF_SMI = {0: Func.SUM, 1: Func.MAX, 2: Func.MIN}
_OWN = 64  #: SMI_TYPE_OF, SMI_OP_OF


def datatype_of(number: int | None) -> Datatype | None:
    """The datatype that a number of SMI_Datatype means; None if it is none, or not known."""
    if number is None:
        return None
    if number >= _OWN and number - _OWN in set(Datatype):
        return Datatype(number - _OWN)
    return _OF_SMI.get(number)


def op_of(number: int | None) -> Func | None:
    """The same of SMI_Op."""
    if number is None:
        return None
    if number >= _OWN and number - _OWN in set(Func):
        return Func(number - _OWN)
    return _OPS_OF_SMI.get(number)


@dataclass(frozen=True)
class Opening:
    """A function that opens a channel: which of its arguments say what. -1: none."""

    kind: str
    count: int
    type: int
    port: int
    peer: int
    op: int = -1
    degree: int = -1


def _openings() -> dict[str, Opening]:
    found = {}
    for name, opening in {
        "send": Opening("send", 0, 1, 3, 2, degree=5),
        "receive": Opening("receive", 0, 1, 3, 2, degree=5),
        "bcast": Opening("bcast", 0, 1, 2, 3, degree=5),
        "reduce": Opening("reduce", 0, 1, 3, 4, op=2, degree=6),
        "scatter": Opening("scatter", 0, 2, 3, 4, degree=6),
        "gather": Opening("gather", 0, 2, 3, 4, degree=6),
        "allreduce": Opening("allreduce", 0, 1, 3, -1, op=2),
        "allgather": Opening("allgather", 0, 1, 2, -1),
        "alltoall": Opening("alltoall", 0, 1, 2, -1),
    }.items():
        found[f"SMI_Open_{name}_channel"] = replace(opening, degree=-1)
        if opening.degree >= 0:
            found[f"SMI_Open_{name}_channel_ad"] = opening
    return found


#: Functions of C that open channels. unisono_smi_open has its kind as an argument, too.
OPENINGS = _openings()
GENERAL_OPENING = Opening("", 1, 2, 5, 4, op=3, degree=7)


class Use(NamedTuple):
    """A function that uses a channel, its first argument: of which kinds, and where its data are."""

    kinds: tuple[str, ...]  #: empty: of any collective
    data: tuple[int, ...]
    vector: bool = False  #: its data may be vectors of elements


USES = {
    "SMI_Push": Use(("send",), (1,)),
    "SMI_Push_flush": Use(("send",), (1,)),
    "SMI_Pop": Use(("receive",), (1,)),
    "SMI_Bcast": Use(("bcast",), (1,)),
    **{
        f"SMI_{kind.capitalize()}": Use((kind,), (1, 2))
        for kind in ("reduce", "scatter", "gather", "allreduce", "allgather", "alltoall")
    },
    "SMI_Push_vector": Use(("send",), (1,), True),
    "SMI_Pop_vector": Use(("receive",), (1,), True),
    "SMI_Bcast_vector": Use(("bcast",), (1,), True),
    "SMI_Reduce_vector": Use(("reduce",), (1, 2), True),
    "SMI_Collective_vector": Use((), (1, 2), True),
    "unisono_smi_push": Use(("send",), (1,), True),
    "unisono_smi_pop": Use(("receive",), (1,), True),
    "unisono_smi_collective": Use((), (1, 2), True),
    "unisono_smi_flush": Use(("send",), ()),
}
#: Classes of C++ by their kinds; the last template of each takes the type of elements first.
CLASSES = {
    "SendChannel": "send",
    "ReceiveChannel": "receive",
    "BcastChannel": "bcast",
    "ReduceChannel": "reduce",
    "AllreduceChannel": "allreduce",
}
#: Fields of unisono::smi::Open, in order.
OPEN_FIELDS = ("count", "peer", "port", "degree")
LAUNCHES = frozenset({"launch", "launch_forever", "unisono_kernel_launch", "thread", "jthread"})
WAITS = frozenset({"wait_all", "wait", "unisono_kernel_wait", "unisono_kernel_wait_all", "join"})

#: What an element is in C: its class ("i", "u", "f", "?": only its length is looked at), and bytes.
ELEMENTS = {
    Datatype.BYTE: ("?", 1),
    Datatype.BOOL: ("?", 1),
    Datatype.INT8: ("i", 1),
    Datatype.INT16: ("i", 2),
    Datatype.INT32: ("i", 4),
    Datatype.INT64: ("i", 8),
    Datatype.UINT8: ("u", 1),
    Datatype.UINT16: ("u", 2),
    Datatype.UINT32: ("u", 4),
    Datatype.UINT64: ("u", 8),
    Datatype.FP16: ("?", 2),
    Datatype.BF16: ("?", 2),
    Datatype.FP32: ("f", 4),
    Datatype.FP64: ("f", 8),
    Datatype.COMPLEX64: ("?", 8),
    Datatype.COMPLEX128: ("?", 16),
    Datatype.FP32_INT32: ("?", 8),
    Datatype.INT32_INT32: ("?", 8),
    Datatype.FP64_INT32: ("?", 16),
    Datatype.INT64_INT64: ("?", 16),
}


class Place(NamedTuple):
    """A line of a source."""

    file: str
    line: int

    def __str__(self) -> str:
        """As compilers write it."""
        return f"{self.file}:{self.line}"


@dataclass(eq=False)
class Channel:
    """A channel that a kernel opens, and how long it is used. What is not a constant of the source is None."""

    kind: str
    place: Place
    function: str  #: that opens it
    port: int | None = None
    port_text: str = ""  #: as the source says it
    type: Datatype | None = None
    op: Func | None = None
    count: int | None = None
    peer: int | None = None
    degree: int | None = None  #: None, too, if none was given
    thread: int = 0  #: which kernel opens it, by its number
    opened: int = 0  #: when, in steps of this kernel
    used: int = 0  #: when last
    branches: tuple[tuple[int, int], ...] = ()  #: choices on the way to it, and which way was taken
    again: bool = False  #: it is opened again in a loop while the one before is in use
    outer_loops: list[int] = field(default_factory=list)  #: of the library

    @property
    def directions(self) -> frozenset[str]:
        """What it takes of its port."""
        return DIRECTIONS[self.kind]


class Finding(NamedTuple):
    """What is wrong in a source."""

    place: Place
    sentence: str
