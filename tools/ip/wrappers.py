"""Wrappers that are unisono_axi by the names of another surrounding, written from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.ip.design import PLATFORM

SOURCE = PLATFORM / "axi" / "unisono_axi.sv"


@dataclass(frozen=True)
class Surrounding:
    """Where an engine stands, and what its ports are called there."""

    what: str
    names: dict[str, str]
    """Of ports, or of what several begin with, that are called otherwise."""


SURROUNDINGS = {
    "vitis": Surrounding("an RTL kernel of Vitis", {"aclk": "ap_clk", "aresetn": "ap_rst_n", "irq": "interrupt"}),
    "coyote": Surrounding("a user region of Coyote", {"s_axi_control": "axi_ctrl"}),
}


def wrapper(name: str) -> str:
    """The text of unisono_NAME.sv: one clock for all, and otherwise the parameters and ports of unisono_axi."""
    surrounding = SURROUNDINGS[name]
    found = re.search(r"module unisono_axi #\(\n(.*?)\n\) \(\n(.*?)\n\);\n", SOURCE.read_text(), re.S)
    if found is None:
        raise ValueError(f"{SOURCE} begins otherwise than it did")
    one_clock = re.compile(r"^.*\b(?:NetClock|net_aclk)\b.*\n", re.M)
    parameters, ports = one_clock.sub("", found.group(1)), one_clock.sub("", found.group(2))

    def there(port: str) -> str:
        return re.sub(
            r"^(\w+?)(?=_(?:aw|ar|w|b|r)\w+$|$)", lambda head: surrounding.names.get(head.group(), head.group()), port
        )

    inner = re.findall(r"^  (?:input|output) +logic +(?:\[[^]]*\] *)?(\w+),?", ports, re.M)
    for port in inner:
        ports = re.sub(rf"\b{port}\b(?=,|$| )", there(port), ports, flags=re.M)
    joined = "".join(f",\n    .{port}({there(port)})" for port in inner)
    given = re.findall(r"parameter .*?(\w+) +=", parameters)
    passed = ",\n    ".join(f".{one}({one})" for one in given)
    return f"""// The engine as {surrounding.what}: unisono_axi by the names that it wants, written from it.
//
// Untested on hardware: linted, never run, never seen by a vendor's tool.

module unisono_{name} #(
{parameters}
) (
/* verilator lint_off SYMRSVDWORD */
{ports}
/* verilator lint_on SYMRSVDWORD */
);

  unisono_axi #(
    {passed}
  ) u_axi (
    .net_aclk({there("aclk")}){joined}
  );

endmodule
"""
