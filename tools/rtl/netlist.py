"""What a mapped netlist of Yosys (write_json, UltraScale+ cells) costs, and its longest way between registers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

REVISION = 1
"""Raised when the same netlist gives other figures: results that are kept are then made anew."""

LUT_MEMORIES = {
    "RAM32X1S": 1,
    "RAM32X1D": 2,
    "RAM64X1S": 1,
    "RAM64X1D": 2,
    "RAM128X1S": 2,
    "RAM128X1D": 4,
    "RAM256X1D": 8,
    "RAM512X1S": 8,
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32M16": 8,
    "RAM64M8": 8,
    "SRL16E": 1,
    "SRLC32E": 1,
}
"""LUTs that a memory or a shift register occupies. They are read without a clock, as a LUT is."""

_WRITE_PORTS = {
    kind: re.compile(
        r"D|CE|CLK"
        if kind.startswith("SRL")
        else r"D|WE|WCLK"
        if kind.endswith("S")
        else r"D|A\d?|WE|WCLK"
        if kind.endswith("D")
        else r"DI[A-H]|ADDRH|WE|WCLK"
        if kind.endswith(("16", "M8"))
        else r"DI[A-D]|ADDRD|WE|WCLK"
    )
    for kind in LUT_MEMORIES
}
"""Ports that act with the clock; the others lead through to the output."""

THROUGH = {"INV", "CARRY4", "CARRY8", "MUXF7", "MUXF8", "MUXF9"}
"""Cells that a path passes without another level: they are part of the LUT before them, or fast carries."""


@dataclass
class Cost:
    """What a module takes."""

    luts: int = 0
    memory_luts: int = 0
    registers: int = 0
    block_rams: float = 0.0
    dsps: int = 0
    levels: int = 0


@dataclass
class Path:
    """The longest way through LUTs between two registers (or ports, or block RAMs, or black boxes)."""

    levels: int
    steps: list[str]
    """From the start to the end: what drives it, the cells, what takes the result."""


def is_lut(kind: str) -> bool:
    """Whether a cell is a look-up table."""
    return re.fullmatch(r"LUT[1-6]", kind) is not None


def count(module: dict[str, Any]) -> Cost:
    """Adds up the cells; levels are left at zero."""
    cost = Cost()
    for kind, number in Counter(str(cell["type"]) for cell in module["cells"].values()).items():
        if is_lut(kind):
            cost.luts += number
        elif kind in LUT_MEMORIES:
            cost.memory_luts += LUT_MEMORIES[kind] * number
        elif re.fullmatch(r"FD[A-Z]*|LD[A-Z]*", kind):
            cost.registers += number
        elif kind.startswith("RAMB36"):
            cost.block_rams += number
        elif kind.startswith("RAMB18"):
            cost.block_rams += number / 2
        elif kind.startswith("DSP"):
            cost.dsps += number
    return cost


def _names(module: dict[str, Any]) -> dict[int, str]:
    """A readable name of each net."""
    names: dict[int, str] = {}
    for net, entry in module["netnames"].items():
        for place, bit in enumerate(entry["bits"]):
            if not isinstance(bit, int):
                continue
            known = names.get(bit)
            if known is None or ("$" in known and "$" not in net):
                names[bit] = f"{net}[{place}]" if len(entry["bits"]) > 1 else net
    return names


def longest(module: dict[str, Any]) -> Path:
    """The most LUT levels on any way. Registers, block RAMs, DSP slices, black boxes and ports end a way."""
    cells: dict[str, dict[str, Any]] = module["cells"]

    def weight(name: str) -> int | None:
        """Levels of a cell that a way passes through; none where a way ends."""
        kind = str(cells[name]["type"])
        if is_lut(kind) or kind in LUT_MEMORIES:
            return 1
        return 0 if kind in THROUGH else None

    driver: dict[int, str] = {}
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                driver.update((bit, name) for bit in bits if isinstance(bit, int))

    def inputs(name: str) -> list[int]:
        cell = cells[name]
        writes = _WRITE_PORTS[str(cell["type"])] if cell["type"] in LUT_MEMORIES else None
        return [
            bit
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "input" and not (writes and writes.fullmatch(port))
            for bit in bits
            if isinstance(bit, int)
        ]

    level: dict[str, int] = {}
    before: dict[str, int | None] = {}
    waiting = [name for name in cells if weight(name) is not None]
    while waiting:
        name = waiting[-1]
        if name in level:
            waiting.pop()
            continue
        sources = [(bit, driver.get(bit)) for bit in inputs(name)]
        inner = [source for _, source in sources if source is not None and weight(source) is not None]
        missing = [source for source in inner if source not in before]
        # The second time all that was missing has its level; on a loop it never gets one.
        if name not in before and missing:
            before[name] = None
            waiting += missing
            continue
        best, by = -1, None
        for bit, source in sources:
            behind = level.get(source, 0) if source is not None else 0
            if behind > best:
                best, by = behind, bit
        level[name] = max(best, 0) + (weight(name) or 0)
        before[name] = by
        waiting.pop()
    if not level:
        return Path(0, [])

    end = max(level, key=lambda name: level[name])
    names = _names(module)
    outputs = {
        bit
        for port, bits in cells[end]["connections"].items()
        if cells[end]["port_directions"][port] == "output"
        for bit in bits
        if isinstance(bit, int)
    }
    steps = [f"to {_taker(module, outputs, names)}"]
    at: str | None = end
    seen: set[str] = set()
    while at is not None and at not in seen:
        seen.add(at)
        via = before[at]
        steps.append(f"{cells[at]['type']} from {names.get(via, '?') if via is not None else 'constants'}")
        at = driver.get(via) if via is not None else None
        if at is not None and weight(at) is None:
            steps.append(str(cells[at]["type"]))
            at = None
    return Path(level[end], steps[::-1])


def _taker(module: dict[str, Any], outputs: set[int], names: dict[int, str]) -> str:
    """What takes the end of a way: a register by the net that it drives, or a port."""
    for cell in module["cells"].values():
        if is_lut(str(cell["type"])) or cell["type"] in THROUGH:
            continue
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input" and outputs.intersection(
                bit for bit in bits if isinstance(bit, int)
            ):
                driven = [
                    bit
                    for other, its in cell["connections"].items()
                    if cell["port_directions"][other] == "output"
                    for bit in its
                    if isinstance(bit, int)
                ]
                return f"{cell['type']}.{port} {names.get(driven[0], '?') if driven else ''}".rstrip()
    return ", ".join(sorted(names.get(bit, "?") for bit in outputs))
