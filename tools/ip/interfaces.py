"""Groups a wrapper's ports into interfaces by their names, and holds them against what each interface has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.ip.design import Port

#: Signals as a master drives (out) or takes (in) them; those in capitals must be there.
AXI_READ = {"ARID": "out", "ARADDR": "out", "ARLEN": "out", "ARSIZE": "out", "ARBURST": "out", "ARVALID": "out"} | {
    "ARREADY": "in", "RID": "in", "RDATA": "in", "RRESP": "in", "RLAST": "in", "RVALID": "in", "RREADY": "out"
}  # fmt: skip
AXI_WRITE = {"AWID": "out", "AWADDR": "out", "AWLEN": "out", "AWSIZE": "out", "AWBURST": "out", "AWVALID": "out"} | {
    "AWREADY": "in", "WDATA": "out", "WSTRB": "out", "WLAST": "out", "WVALID": "out", "WREADY": "in",
    "BID": "in", "BRESP": "in", "BVALID": "in", "BREADY": "out",
}  # fmt: skip
ONLY_FULL = {"ARID", "ARLEN", "ARSIZE", "ARBURST", "RID", "RLAST", "AWID", "AWLEN", "AWSIZE", "AWBURST", "WLAST", "BID"}
SIGNALS = {
    "axi4": AXI_READ | AXI_WRITE,
    "axi4lite": {name: way for name, way in (AXI_READ | AXI_WRITE).items() if name not in ONLY_FULL}
    | {"ARPROT": "out", "AWPROT": "out"},
    "axis": {"TDATA": "out", "TKEEP": "out", "TLAST": "out", "TDEST": "out", "TUSER": "out", "TVALID": "out"}
    | {"TREADY": "in"},
    "clock": {"CLK": "out"},
    "reset": {"RST": "out"},
    "interrupt": {"INTERRUPT": "out"},
}
OPTIONAL = {"axis": {"TKEEP", "TLAST", "TDEST", "TUSER"}}

KINDS = [
    (r"(m_axi_\w+?)_(\w+)", "axi4", "master"),
    (r"(s_axi_\w+?|axi_ctrl)_(\w+)", "axi4lite", "slave"),
    (r"(m_axis_\w+?)_(\w+)", "axis", "master"),
    (r"(s_axis_\w+?)_(\w+)", "axis", "slave"),
    (r"((?:net_)?aclk|ap_clk)()", "clock", "slave"),
    (r"(aresetn|ap_rst_n)()", "reset", "slave"),
    (r"(irq|interrupt)()", "interrupt", "master"),
]


class IncompleteError(Exception):
    """A port belongs to no interface, or an interface is not what its kind has."""


@dataclass
class Interface:
    """Ports that belong together."""

    name: str
    kind: str
    mode: str
    """master or slave"""
    ports: dict[str, Port] = field(default_factory=dict)
    """By the signal's name in the interface."""

    def width(self, signal: str) -> int:
        """Bits of one of its signals."""
        return self.ports[signal].width

    @property
    def clock(self) -> str:
        """The clock of the port, by the name that `clocks` gives it."""
        return "net" if self.name.endswith("axis_net") else "main"


def grouped(ports: Iterable[Port]) -> list[Interface]:
    """The interfaces that the ports form, each checked. Throws IncompleteError."""
    found: dict[str, Interface] = {}
    for port in ports:
        for pattern, kind, mode in KINDS:
            match = re.fullmatch(pattern, port.name)
            if match is None:
                continue
            one = found.setdefault(match.group(1), Interface(match.group(1), kind, mode))
            signal = match.group(2).upper() or next(iter(SIGNALS[kind]))
            one.ports[signal] = port
            break
        else:
            raise IncompleteError(f"{port.name} belongs to no interface")
    for one in found.values():
        check(one)
    return list(found.values())


def check(one: Interface) -> None:
    """Whether an interface has the signals of its kind, in their directions, of widths that fit."""
    signals = SIGNALS[one.kind]
    for signal in signals:
        if signal not in one.ports and signal not in OPTIONAL.get(one.kind, set()):
            raise IncompleteError(f"{one.name} has no {signal}")
    for signal, port in one.ports.items():
        if signal not in signals:
            raise IncompleteError(f"{port.name}: an interface of {one.kind} has no {signal}")
        if (port.direction == signals[signal]) != (one.mode == "master"):
            raise IncompleteError(f"{port.name} goes {port.direction}, against a {one.mode} of {one.kind}")
    for strobes, data in (("WSTRB", "WDATA"), ("TKEEP", "TDATA")):
        if strobes in one.ports and 8 * one.width(strobes) != one.width(data):
            raise IncompleteError(f"{one.name} has {one.width(strobes)} of {strobes} for {one.width(data)} of {data}")
    for pair in (("RDATA", "WDATA"), ("ARADDR", "AWADDR"), ("ARID", "RID"), ("AWID", "BID")):
        if pair[0] in one.ports and one.width(pair[0]) != one.width(pair[1]):
            raise IncompleteError(f"{one.name}: {pair[0]} and {pair[1]} are of different widths")
