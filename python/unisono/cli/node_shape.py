"""Shapes of simulated nodes: what the hardware of a node is built for, by what a program's kernels need of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._spec import Datatype, Func

MOST_PORTS = 32
READS = (1, 2, 4, 8, 16)
PACKETS = (32, 64, 128, 256)  #: bytes
#: Where the units of collectives pay: kinds of channels that they carry, and elements that they take.
_BROADCASTS = ("bcast",)
_REDUCES = ("reduce",)
_UNIT_BYTES = (1, 2, 4, 8)


class ShapeError(Exception):
    """A description that no node can be built for, and why."""


@dataclass(frozen=True)
class NodeShape:
    """Parameters of unisono_smi_node. Sets of ports, datatypes and functions are bits."""

    ports: int = 4
    reads: int = 8  #: R: packets that an arbiter takes from one input before it looks at the next
    packet: int = 32  #: bytes
    broadcasts: int = 0  #: ports with the unit
    reductions: int = 0  #: likewise
    datatypes: int = 0  #: of reductions
    funcs: int = 0

    def needs(self, ports: int | None = None, reads: int | None = None, packet: int | None = None) -> NodeShape:
        """The same with more ports, another R or other packets, where they are given. Raises `ShapeError`."""
        shape = replace(
            self, ports=max(self.ports, ports or 0), reads=reads or self.reads, packet=packet or self.packet
        )
        if shape.reads not in READS:
            raise ShapeError(f"R = {shape.reads}; simulated nodes have one of {', '.join(map(str, READS))}")
        if shape.packet not in PACKETS:
            raise ShapeError(f"packets of {shape.packet} bytes; there are {', '.join(map(str, PACKETS))}")
        if shape.ports > MOST_PORTS:
            raise ShapeError(f"port {shape.ports - 1}; simulated nodes have up to {MOST_PORTS} ports, from 0 on")
        return shape

    def without_units(self) -> NodeShape:
        """The same with collectives over channels."""
        return replace(self, broadcasts=0, reductions=0, datatypes=0, funcs=0)

    def parameters(self) -> dict[str, str]:
        """Those of the module, as Verilator takes them."""
        given = {
            "Ports": str(self.ports),
            "Burst": str(self.reads),
            "PacketBytes": str(self.packet),
            "Collectives": str(self.broadcasts),
            "Reductions": str(self.reductions),
        }
        if self.reductions:
            given |= {"Datatypes": f"24'h{self.datatypes:x}", "Funcs": f"32'h{self.funcs:x}"}
        return given

    def __str__(self) -> str:
        text = f"{self.ports} port{'s' * (self.ports != 1)}, R = {self.reads}, packets of {self.packet} bytes"
        if self.broadcasts:
            text += f", broadcast at {_ports(self.broadcasts)}"
        if self.reductions:
            types = "/".join(each.name.lower() for each in Datatype if self.datatypes >> each.value & 1)
            funcs = "/".join(each.name.lower() for each in Func if self.funcs >> each.value & 1)
            text += f", reduction ({funcs} of {types}) at {_ports(self.reductions)}"
        return text


def _ports(bits: int) -> str:
    found = [str(port) for port in range(bits.bit_length()) if bits >> port & 1]
    return f"port{'s' * (len(found) != 1)} {', '.join(found)}"


def of_programs(files: Sequence[str]) -> NodeShape:
    """The shape that serves all programs that these files describe, which `unisono kernel generate` has written.

    Raises ShapeError that names the file.
    """
    shapes = [(file, _of_description(file, _read(file))) for file in files]
    first, shape = shapes[0]
    for file, other in shapes[1:]:
        for what, mine, theirs in (("R", shape.reads, other.reads), ("packet", shape.packet, other.packet)):
            if mine != theirs:
                raise ShapeError(f"{file} has {what} {theirs} and {first} has {mine}; all nodes of a job are alike")
        shape = replace(
            shape,
            ports=max(shape.ports, other.ports),
            broadcasts=shape.broadcasts | other.broadcasts,
            reductions=shape.reductions | other.reductions,
            datatypes=shape.datatypes | other.datatypes,
            funcs=shape.funcs | other.funcs,
        )
    return shape


def are_eager(files: Sequence[str]) -> bool:
    """Whether all descriptions say that channels do not wait for credits."""
    return all(_read(file).get("protocol") == "eager" for file in files)


def _read(file: str) -> dict[str, Any]:
    try:
        description = json.loads(Path(file).read_text())
    except OSError as error:
        raise ShapeError(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ShapeError(f"{file} is no JSON: {error}") from None
    if not isinstance(description, dict) or description.get("format") != "unisono-endpoints":
        raise ShapeError(
            f"{file} describes no program to hardware; "
            "give PROGRAM.endpoints.json, which `unisono kernel generate` writes"
        )
    return description


def _of_description(file: str, description: dict[str, Any]) -> NodeShape:
    try:
        endpoints = list(description["endpoints"])
        ports = [int(each["port"]) for each in endpoints]
        reduces = [each for each in endpoints if each["kind"] in _REDUCES and each["element_bytes"] in _UNIT_BYTES]
        shape = NodeShape(
            ports=max(ports, default=0) + 1,
            broadcasts=_bits(
                int(each["port"])
                for each in endpoints
                if each["kind"] in _BROADCASTS and each["element_bytes"] in _UNIT_BYTES
            ),
            reductions=_bits(int(each["port"]) for each in reduces),
            datatypes=_bits(Datatype[str(each["type"]).upper()].value for each in reduces),
            funcs=_bits(Func[str(each["op"]).upper()].value for each in reduces),
        )
        return shape.needs(reads=int(description["reads"]), packet=int(description["packet"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ShapeError(f"{file} is not understood: {error!r}") from None
    except ShapeError as error:
        raise ShapeError(f"{file}: {error}") from None


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits
