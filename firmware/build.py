"""Compiles the collectives for the engine's microcontroller (RV32IM) and reports their size.

The collectives are freestanding C++: the text that runs on the host is the text that runs in the engine. This
script proves it for every source under `collectives/`: each compiles without a library, exceptions, run-time
types or static constructors, and together they need nothing but libgcc's 64-bit arithmetic and the two functions
of `firmware/memory.cpp`. Then it links them behind the algorithm table and says how much memory they take.

Needs `riscv64-unknown-elf-g++` and the C++ headers of a host GCC of the same major version.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FIRMWARE = ROOT / "firmware"

PREFIX = "riscv64-unknown-elf-"
TARGET = ("-march=rv32im_zicsr", "-mabi=ilp32")
FLAGS = (
    "-std=c++20",
    "-Os",
    *TARGET,
    "-ffreestanding",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Werror",
    "-nostdinc++",
)

#: Standard headers that work without a library. Others either do not compile or pull one in.
_HEADER_LIST = """
    array bit compare concepts cstddef cstdint initializer_list limits numeric optional span tuple type_traits
    utility variant
"""
HEADERS = frozenset(_HEADER_LIST.split())

#: What libgcc adds for arithmetic that RV32IM lacks, and what `memory.cpp` provides.
ALLOWED = re.compile(r"__(u?div|u?mod|mul|ashl|ashr|lshr)di3|__(clz|ctz|popcount|bswap)[sd]i2|memcpy|memset")

#: What the microcontroller's dispatcher calls; everything else hangs on it.
ENTRIES = ("_ZN7unisono10algorithmsEv", "_ZN7unisono16choose_algorithmERKNS_4CallE")

COMMAND_TIMEOUT_S = 300


class BuildError(RuntimeError):
    """The collectives do not build for the microcontroller; the message says which source, and why."""


@dataclass(frozen=True)
class Unit:
    """One compiled source; sizes in bytes. It has no writable data."""

    source: Path
    object: Path
    code: int  # instructions
    constants: int  # read-only data
    defined: frozenset[str]
    undefined: frozenset[str]

    @property
    def collective(self) -> str:
        """Folder under `collectives/`, empty for what all share."""
        parent = self.source.parent.name
        return "" if parent == "collectives" else parent


@dataclass(frozen=True)
class Image:
    """The linked collectives; sizes in bytes."""

    path: Path
    code: int
    data: int  # constants, and what the linker puts with them


def _run(command: list[str], what: str, stdin: str = "") -> str:
    """Standard output of a command. Raises BuildError with its messages if it fails."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False, cwd=ROOT
        )
    except FileNotFoundError:
        raise BuildError(f"{what}: {command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise BuildError(f"{what}: {command[0]} took more than {COMMAND_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise BuildError(f"{what}:\n{done.stderr.strip()}")
    return done.stdout


def _major(compiler: str) -> str:
    return _run([compiler, "-dumpversion"], "asking for the compiler's version").split(".", maxsplit=1)[0].strip()


def header_folders() -> list[Path]:
    """Folders with the host's C++ headers. Raises BuildError if host and cross compiler differ in version."""
    wanted = _major(PREFIX + "g++")
    host = next((name for name in (f"g++-{wanted}", "g++") if shutil.which(name)), "g++")
    if _major(host) != wanted:
        raise BuildError(f"{PREFIX}g++ is GCC {wanted}, {host} is GCC {_major(host)}; install g++-{wanted}")
    done = subprocess.run(
        [host, "-std=c++20", "-E", "-v", "-x", "c++", "-"],
        input="",
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=True,
    )
    listed = done.stderr.partition("#include <...> search starts here:")[2].partition("End of search list")[0]
    folders = [Path(line.strip()).resolve() for line in listed.splitlines() if line.strip()]
    found = [folder for folder in folders if "c++" in folder.parts and "backward" not in folder.parts]
    if not found:
        raise BuildError(f"{host} names no folder with C++ headers")
    return found


def sources(root: Path = ROOT) -> list[Path]:
    """Every source of the collectives, in a fixed order."""
    return sorted((root / "collectives").rglob("*.cpp"))


def _check_headers(dependencies: Path, source: Path) -> None:
    """Refuses standard headers outside HEADERS in the source and in the project's headers it includes."""
    names = dependencies.read_text(encoding="utf-8").replace("\\\n", " ").split()[1:]
    for name in names:
        path = Path(name)
        if not path.is_absolute():
            path = ROOT / path
        for header in re.findall(r"^\s*#\s*include\s*<([^>]+)>", path.read_text(encoding="utf-8"), re.MULTILINE):
            if header not in HEADERS:
                raise BuildError(
                    f"{source}: {path.name} includes <{header}>, which needs a library; allowed is "
                    + ", ".join(sorted(HEADERS))
                )


def _sizes(path: Path) -> tuple[int, int, int]:
    """Bytes of code, constants and writable data in an object or image."""
    code = constants = writable = 0
    for line in _run([PREFIX + "size", "-A", str(path)], str(path)).splitlines():
        section = re.match(r"(\.\S+)\s+(\d+)\s+\d+$", line)
        if section is None:
            continue
        name, size = section[1], int(section[2])
        if name.startswith((".init_array", ".ctors", ".preinit_array")) and size:
            raise BuildError(f"{path.name}: has static constructors, which nothing runs in the engine")
        if name.startswith(".text"):
            code += size
        elif name.startswith((".rodata", ".srodata")):
            constants += size
        elif name.startswith((".data", ".sdata", ".bss", ".sbss")):
            writable += size
    return code, constants, writable


def _symbols(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Global symbols that an object defines, and those it needs."""
    lines = _run([PREFIX + "nm", "--extern-only", "--format=posix", str(path)], str(path)).splitlines()
    pairs = [line.split()[:2] for line in lines]
    needed = frozenset(name for name, kind in pairs if kind in "Uw")
    return frozenset(name for name, _ in pairs) - needed, needed


def compile_unit(source: Path, folder: Path, includes: list[Path]) -> Unit:
    """Compiles one source into `folder`. Raises BuildError."""
    shown = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source
    target = folder / ("_".join(shown.with_suffix("").parts[-3:]) + ".o")
    dependencies = target.with_suffix(".d")
    command = [PREFIX + "g++", *FLAGS, "-isystem", str(FIRMWARE / "compat")]
    for include in includes:
        command += ["-isystem", str(include)]
    command += [f"-I{ROOT}", "-MMD", "-MF", str(dependencies), "-c", str(source), "-o", str(target)]
    _run(command, str(shown))
    _check_headers(dependencies, shown)
    code, constants, writable = _sizes(target)
    if writable:
        raise BuildError(f"{shown}: keeps {writable} bytes of state; a collective is a pure function")
    return Unit(source, target, code, constants, *_symbols(target))


def check_symbols(units: list[Unit]) -> None:
    """Raises BuildError if the units need anything that is neither theirs nor allowed."""
    defined = frozenset[str]().union(*(unit.defined for unit in units))
    for unit in units:
        for name in sorted(unit.undefined - defined):
            if not ALLOWED.fullmatch(name):
                readable = _run([PREFIX + "c++filt", name], "demangling").strip()
                raise BuildError(f"{unit.source.relative_to(ROOT)}: needs {readable}, which the engine does not have")


def link(units: list[Unit], folder: Path) -> Image:
    """Links what the algorithm table reaches. Raises BuildError if the table is not there."""
    defined = frozenset[str]().union(*(unit.defined for unit in units))
    for entry in ENTRIES:
        if entry not in defined:
            raise BuildError(f"no source under collectives/ defines {entry}")
    image = folder / "collectives.elf"
    # The compiler has its own library for rv32im, and does not know that _zicsr makes no difference to it.
    libgcc = _run([PREFIX + "gcc", "-march=rv32im", "-mabi=ilp32", "-print-libgcc-file-name"], "libgcc").strip()
    roots = [f"-Wl,--undefined={entry}" for entry in ENTRIES]
    objects = [str(unit.object) for unit in units]
    command = [PREFIX + "g++", *TARGET, "-nostdlib", "-Wl,--gc-sections", f"-Wl,-e,{ENTRIES[0]}", *roots, *objects]
    _run([*command, libgcc, "-o", str(image)], "linking")
    code, constants, writable = _sizes(image)
    return Image(image, code, constants + writable)


def build(folder: Path, jobs: int) -> tuple[list[Unit], Image]:
    """Compiles, checks and links everything into `folder`. Raises BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    includes = header_folders()
    compile_unit(FIRMWARE / "abi.cpp", folder, includes)
    support = compile_unit(FIRMWARE / "memory.cpp", folder, includes)
    with ThreadPoolExecutor(jobs) as pool:
        units = list(pool.map(lambda source: compile_unit(source, folder, includes), sources()))
    check_symbols(units)
    return units, link([*units, support], folder)


def report(units: list[Unit], image: Image, console: Console) -> None:
    """Prints the sizes: per algorithm, per collective, linked."""
    table = Table(title="Collectives on RV32IM, bytes")
    table.add_column("collective")
    table.add_column("source")
    table.add_column("code", justify="right")
    table.add_column("constants", justify="right")
    for collective in sorted({unit.collective for unit in units}):
        members = [unit for unit in units if unit.collective == collective]
        for unit in members:
            table.add_row(collective, unit.source.stem, str(unit.code), str(unit.constants))
        if len(members) > 1:
            sums = (sum(u.code for u in members), sum(u.constants for u in members))
            table.add_row(collective, "[bold]together[/]", *(f"[bold]{value}[/]" for value in sums))
        table.add_section()
    table.add_row("all", "sum of sources", str(sum(u.code for u in units)), str(sum(u.constants for u in units)))
    table.add_row("all", "[bold]linked[/]", f"[bold]{image.code}[/]", f"[bold]{image.data}[/]")
    console.print(table)


def main() -> int:
    """Entry point; 1 if the collectives do not build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build/firmware", help="folder for objects and image")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time")
    arguments = parser.parse_args()
    try:
        units, image = build(arguments.output.resolve(), arguments.jobs)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    report(units, image, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
