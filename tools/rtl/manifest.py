"""Writes the manifests with which other projects use the RTL: rtl/unisono.core (FuseSoC) and Bender.yml (Bender).

Both list every file of rtl/ in one order in which each file follows the packages and modules that it names, so that a
tool which reads files one by one accepts them. With --check nothing is written; the exit status tells whether they are
up to date.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "rtl"))

import hdl  # noqa: E402  (found through the path above)

CORE = hdl.RTL / "unisono.core"
BENDER = ROOT / "Bender.yml"
WRITTEN = "# Written by tools/rtl/manifest from the files of rtl/; change tools/rtl/manifest.py instead.\n"


def named(path: Path) -> list[str]:
    """What a file names, outside comments."""
    return re.findall(r"\b(?:unisono_\w+|VexRiscv)\b", re.sub(r"//.*", "", path.read_text()))


def order() -> list[Path]:
    """All SystemVerilog files of rtl/, each behind what it names."""
    files = {path.stem: path for path in sorted(hdl.RTL.rglob("*.sv"))}
    found: list[str] = [path.stem for path in hdl.packages()]
    begun = set(found)

    def visit(name: str) -> None:
        if name in begun or name not in files:
            return
        begun.add(name)
        for other in named(files[name]):
            visit(other)
        found.append(name)

    for name in files:
        visit(name)
    return [files[name] for name in found]


def parts() -> tuple[list[Path], list[Path]]:
    """The files in their order: those that stand by themselves, and those that need the microcontroller's core, which
    is another project's.
    """
    own: list[Path] = []
    rest: list[Path] = []
    for path in order():
        needs = set(named(path)) - {path.stem}
        (rest if needs & {"VexRiscv", *(other.stem for other in rest)} else own).append(path)
    return own, rest


def core() -> str:
    """The FuseSoC core."""

    def listed(paths: list[Path]) -> str:
        return "".join(f"      - {path.relative_to(hdl.RTL)}\n" for path in paths)

    own, rest = parts()
    return f"""CAPI=2:
{WRITTEN}
name: unisono:cclo:engine:0.1.0
description: A collective engine for distributed applications

filesets:
  rtl:
    file_type: systemVerilogSource
    files:
{listed(own)}
  # The microcontroller's wrapper. It needs VexRiscv_FullCfu.v of the Python package pythondata-cpu-vexriscv, which the
  # user of this fileset adds.
  cpu:
    file_type: systemVerilogSource
    files:
{listed(rest)}
  cpu_waivers:
    file_type: vlt
    files:
      - cpu/vexriscv.vlt

targets:
  default: &default
    filesets: [rtl]
    toplevel: unisono_cclo_engine

  cpu:
    filesets: [rtl, cpu, "tool_verilator? (cpu_waivers)"]
    toplevel: unisono_cclo_cpu

  lint:
    <<: *default
    description: Verilator, all warnings
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
    parameters: [DataBytes]

parameters:
  DataBytes:
    datatype: int
    default: 64
    description: Bytes of a word of the data path, 8, 16, 32 or 64
    paramtype: vlogparam
"""


def bender() -> str:
    """The Bender manifest."""

    def listed(paths: list[Path]) -> str:
        return "".join(f"      - {path.relative_to(ROOT)}\n" for path in paths)

    own, rest = parts()
    return f"""{WRITTEN}
package:
  name: unisono
  authors: [The authors of Unisono]

sources:
  - files:
{listed(own)}
  # Needs VexRiscv_FullCfu.v of the Python package pythondata-cpu-vexriscv.
  - target: unisono_cpu
    files:
{listed(rest)}"""


def main() -> int:
    """Writes, or checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a manifest is not up to date")
    options = parser.parse_args()
    old = 0
    for path, text in ((CORE, core()), (BENDER, bender())):
        if path.exists() and path.read_text() == text:
            continue
        old += 1
        if options.check:
            print(f"{path.relative_to(ROOT)} is not up to date: run tools/rtl/manifest")
        else:
            path.write_text(text)
            print(f"{path.relative_to(ROOT)} written")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
