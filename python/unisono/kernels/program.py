"""A program of kernels as hardware sees it: its endpoints, made of the channels that its sources open."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._spec import Datatype, Func
from .dialect import KernelError
from .elements import type_name
from .interface import ELEMENTS, Channel, Place
from .parsing import Source
from .walk import walk

#: What SMI's generator calls kinds of channels, types and functions.
_SMI_KINDS = {
    "send": "push",
    "receive": "pop",
    "bcast": "broadcast",
    "reduce": "reduce",
    "scatter": "scatter",
    "gather": "gather",
}
_SMI_TYPES = {
    Datatype.INT32: "int",
    Datatype.FP32: "float",
    Datatype.FP64: "double",
    Datatype.INT8: "char",
    Datatype.INT16: "short",
}
_SMI_OPS = {Func.SUM: "add", Func.MAX: "max", Func.MIN: "min"}
_SMI_PAYLOAD = 28  #: bytes of a packet
_SMI_BUFFER = 16  #: packets, where no asynchronicity degree is given
PROTOCOLS = ("credits", "eager")
PACKETS = (32, 64, 128, 256)  #: bytes


@dataclass(frozen=True)
class Shape:
    """What hardware is built for, beside its endpoints."""

    ranks: int = 8  #: at most
    reads: int = 8  #: R: messages that an arbiter takes from one input before it looks at the next
    packet: int = 32  #: bytes
    protocol: str = "credits"  #: of channels between two ranks: credits, or eager


@dataclass
class Endpoint:
    """What a port is used for in one program. Several channels that are open one after the other share it."""

    kind: str
    port: int
    type: Datatype | None
    op: Func | None
    degree: int | None  #: elements, the most that a channel asks for; None: no channel asks for any
    count: int | None  #: elements; None: they differ, or are known at run time
    place: Place
    kernels: list[str] = field(default_factory=list)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element; 0 for a barrier."""
        return ELEMENTS[self.type][1] if self.type is not None else 0


@dataclass(frozen=True)
class Program:
    """A program, by its name, and its endpoints by port."""

    name: str
    endpoints: tuple[Endpoint, ...]


def describe(name: str, sources: Sequence[Source]) -> Program:
    """The program that sources make together.

    Raises KernelError, by line, where an endpoint cannot be told or would be two at once.
    """
    found: dict[tuple[str, int], Endpoint] = {}
    for source in sources:
        walked = walk(source)
        for channel in walked.channels:
            endpoint = _endpoint(channel)
            key = (endpoint.kind, endpoint.port)
            known = found.setdefault(key, endpoint)
            if known is not endpoint:
                _join(known, endpoint)
            kernel = walked.threads[channel.thread].name
            if kernel not in known.kernels:
                known.kernels.append(kernel)
    endpoints = sorted(found.values(), key=lambda each: (each.port, each.kind))
    _alone(endpoints)
    return Program(name, tuple(endpoints))


def _endpoint(channel: Channel) -> Endpoint:
    if channel.port is None:
        raise KernelError(f"{channel.place}: the port `{channel.port_text}` is no constant")
    if channel.type is None and channel.kind != "barrier":
        raise KernelError(f"{channel.place}: the type of this {channel.kind} channel is no constant")
    if channel.op is None and channel.kind in ("reduce", "allreduce"):
        raise KernelError(f"{channel.place}: the function of this {channel.kind} channel is no constant")
    op = channel.op if channel.kind in ("reduce", "allreduce") else None
    return Endpoint(channel.kind, channel.port, channel.type, op, channel.degree, channel.count, channel.place)


def _join(known: Endpoint, other: Endpoint) -> None:
    if (known.type, known.op) != (other.type, other.op):
        raise KernelError(
            f"{other.place}: the {other.kind} endpoint of port {other.port} is of {_what(other)} here and of "
            f"{_what(known)} at {known.place}; hardware has one: take another port"
        )
    if other.degree is not None:
        known.degree = max(known.degree or 0, other.degree)
    if known.count != other.count:
        known.count = None


def _what(endpoint: Endpoint) -> str:
    type_text = type_name(endpoint.type) if endpoint.type is not None else "no type"
    return type_text + (f" {endpoint.op.name.lower()}" if endpoint.op is not None else "")


def _alone(endpoints: Sequence[Endpoint]) -> None:
    """A collective has its port for itself."""
    for first, second in itertools.pairwise(endpoints):
        if first.port == second.port and {first.kind, second.kind} != {"send", "receive"}:
            raise KernelError(
                f"{second.place}: port {second.port} has a {second.kind} endpoint, and a {first.kind} endpoint by "
                f"{first.place}; a collective needs both directions: take another port"
            )


def metadata(program: Program, shape: Shape, beyond: bool = False) -> dict[str, Any]:
    """A program as SMI's generator describes it, with the same keys.

    Types that SMI has not go by their names here, which its generator refuses and `unisono route` takes; so do kinds
    of channels and functions if `beyond`. Else they raise KernelError.
    """
    operations = []
    for endpoint in program.endpoints:
        if not beyond and (
            endpoint.kind not in _SMI_KINDS or (endpoint.op is not None and endpoint.op not in _SMI_OPS)
        ):
            raise KernelError(
                f"{endpoint.place}: SMI's description of programs has no {endpoint.kind} of {_what(endpoint)}"
            )
        type_text = _SMI_TYPES.get(endpoint.type, endpoint.type.name.lower()) if endpoint.type is not None else "int"
        arguments = {"op_type": _SMI_OPS.get(endpoint.op, endpoint.op.name.lower())} if endpoint.op is not None else {}
        operations.append(
            {
                "type": _SMI_KINDS.get(endpoint.kind, endpoint.kind),
                "port": endpoint.port,
                "data_type": type_text,
                "buffer_size": _packets(endpoint),
                "args": arguments,
            }
        )
    return {
        "operations": operations,
        "consecutive_reads": shape.reads,
        "max_ranks": shape.ranks,
        "p2p_rendezvous": shape.protocol == "credits",
    }


def _packets(endpoint: Endpoint) -> int:
    """Elements as packets, as SMI's generator counts them: a multiple of 8."""
    if endpoint.degree is None:
        return _SMI_BUFFER
    return math.ceil(max(1, endpoint.degree) / (_SMI_PAYLOAD // max(1, endpoint.element_bytes)) / 8) * 8


def configuration(program: Program, shape: Shape) -> dict[str, Any]:
    """A program as Unisono's hardware is configured for it (docs/smi.md says what the fields are)."""
    return {
        "format": "unisono-endpoints",
        "version": 1,
        "program": program.name,
        "ranks": shape.ranks,
        "reads": shape.reads,
        "packet": shape.packet,
        "protocol": shape.protocol,
        "endpoints": [
            {
                "port": endpoint.port,
                "kind": endpoint.kind,
                "direction": endpoint.kind if endpoint.kind in ("send", "receive") else "both",
                "type": endpoint.type.name.lower() if endpoint.type is not None else None,
                "element_bytes": endpoint.element_bytes,
                "op": endpoint.op.name.lower() if endpoint.op is not None else None,
                "degree": endpoint.degree,
                "count": endpoint.count,
                "kernels": endpoint.kernels,
                "line": str(endpoint.place),
            }
            for endpoint in program.endpoints
        ],
    }


def report(program: Program, shape: Shape) -> str:
    """What a program needs of hardware, in lines for people."""
    payload = shape.packet - (4 if shape.packet == 32 else 8)
    lines = [f"{program.name}: {len(program.endpoints)} endpoints, packets of {shape.packet} bytes, R = {shape.reads}"]
    form = "  {:>5}  {:<10} {:<8} {:<6} {:>8} {:>8} {:>8}  {}"
    lines.append(form.format("port", "kind", "type", "op", "count", "degree", "bytes", "kernels"))
    total = 0
    for each in program.endpoints:
        packets = _SMI_BUFFER if each.degree is None else math.ceil(each.degree * each.element_bytes / payload)
        bytes_held = max(1, packets) * shape.packet if each.kind != "send" else 0
        total += bytes_held
        lines.append(form.format(
            each.port, each.kind, each.type.name.lower() if each.type is not None else "-",
            each.op.name.lower() if each.op is not None else "-", each.count if each.count is not None else "-",
            each.degree if each.degree is not None else "-", bytes_held, " ".join(each.kernels),
        ))  # fmt: skip
    lines.append(f"  bytes of queues that take elements: {total}")
    return "\n".join(lines) + "\n"
