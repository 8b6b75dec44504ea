"""Compiles the collectives for the engine's microcontroller (RV32IM) and reports their size.

The collectives are freestanding C++: the text that runs on the host is the text that runs in the engine. This
script proves it for every source under `collectives/`: each compiles without a library, exceptions, run-time
types or static constructors, and together they need nothing but libgcc's 64-bit arithmetic and the two functions
of `firmware/memory.cpp`. Then it links them behind the algorithm table and says how much memory they take.

With `--image` it builds the firmware as well: the same sources, compiled for speed and for the custom-function unit
(the headers under `firmware/machine/` stand before those of the same name), behind the dispatcher of `main.cpp`. The
image is written as `unisono.elf`, `unisono.bin` and `unisono.hex`, one 32-bit word a line.

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


#: The image has another purpose than the proof above: cycles count, and memory is there.
IMAGE_FLAGS = tuple("-O2" if flag == "-Os" else flag for flag in FLAGS)
#: Sources of the firmware, beside the collectives.
IMAGE_SOURCES = ("main.cpp", "admission.cpp", "memory.cpp")


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


@dataclass(frozen=True)
class Firmware:
    """The image of the microcontroller; sizes in bytes."""

    elf: Path
    binary: Path
    hex: Path
    code: int
    constants: int
    memory: int  # written at run time: tables and stack
    total: int  # from address 0 to the end of the stack
    rules: int  # address of the tuning rules, which a host may fill in
    per_source: tuple[tuple[str, int, int], ...]  # source, code, constants

    def words(self) -> list[int]:
        """What is to be loaded from address 0 on."""
        data = self.binary.read_bytes()
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


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


def check_symbols(units: list[Unit], root: Path = ROOT) -> None:
    """Raises BuildError if the units need anything that is neither theirs nor allowed."""
    defined = frozenset[str]().union(*(unit.defined for unit in units))
    for unit in units:
        for name in sorted(unit.undefined - defined):
            if not ALLOWED.fullmatch(name):
                readable = _run([PREFIX + "c++filt", name], "demangling").strip()
                shown = unit.source.relative_to(root) if unit.source.is_relative_to(root) else unit.source
                raise BuildError(f"{shown}: needs {readable}, which the engine does not have")


def link(units: list[Unit], folder: Path) -> Image:
    """Links what the algorithm table reaches. Raises BuildError if the table is not there."""
    defined = frozenset[str]().union(*(unit.defined for unit in units))
    for entry in ENTRIES:
        if entry not in defined:
            raise BuildError(f"no source under collectives/ defines {entry}")
    image = folder / "collectives.elf"
    roots = [f"-Wl,--undefined={entry}" for entry in ENTRIES]
    objects = [str(unit.object) for unit in units]
    command = [PREFIX + "g++", *TARGET, "-nostdlib", "-Wl,--gc-sections", f"-Wl,-e,{ENTRIES[0]}", *roots, *objects]
    _run([*command, _libgcc(), "-o", str(image)], "linking")
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


def _libgcc() -> str:
    # The compiler has its own library for rv32im, and does not know that _zicsr makes no difference to it.
    return _run([PREFIX + "gcc", "-march=rv32im", "-mabi=ilp32", "-print-libgcc-file-name"], "libgcc").strip()


def _compile_for_image(source: Path, folder: Path, root: Path, includes: list[Path]) -> tuple[Path, Unit]:
    shown = source.relative_to(root)
    target = folder / ("_".join(shown.with_suffix("").parts[-3:]) + ".o")
    command = [PREFIX + "g++", *IMAGE_FLAGS, "-isystem", str(root / "firmware/compat")]
    for include in includes:
        command += ["-isystem", str(include)]
    command += [f"-I{root / 'firmware/machine'}", f"-I{root}", "-c", str(source), "-o", str(target)]
    _run(command, str(shown))
    code, constants, _ = _sizes(target)
    return target, Unit(shown, target, code, constants, *_symbols(target))


#: Bytes of the core's instruction cache, which is mapped directly, and of its lines.
CACHE, LINE = 4096, 32
#: Sections that only the admission of a call needs.
_COLD = re.compile(r"_(steps|admits|scratch_bytes|params_words|fill_params)E|\.unlikely\.|\.startup\.")
#: The loop around all steps, from address 0 on.
_DISPATCHER = (".start", ".text.unisono_main")


def _code_sections(target: Path) -> list[tuple[str, int]]:
    lines = _run([PREFIX + "size", "-A", str(target)], str(target)).splitlines()
    found = (re.match(r"(\.start|\.text\S*)\s+(\d+)\s+\d+$", line) for line in lines)
    return [(match[1], int(match[2])) for match in found if match and int(match[2])]


def _up(value: int, to: int) -> int:
    return -(-value // to) * to


def place(objects: list[Path]) -> list[str]:
    """Lines of the linker script that place the code such that no step and the dispatcher share lines of the cache.

    The dispatcher stands at address 0 and takes the first part of the cache. In the same part of each further piece of
    memory as large as the cache stands what is needed once in a call; the steps stand in the other part, those of a
    source together.
    """
    first: list[str] = []
    cold: list[tuple[int, str]] = []
    hot: list[tuple[int, list[str]]] = []
    size = 0
    for target in objects:
        steps: list[str] = []
        steps_size = 0
        for section, length in _code_sections(target):
            line = f"KEEP(*{target.name}({section}))" if section == ".start" else f"*{target.name}({section})"
            if section in _DISPATCHER:
                first.append(line)
                size += _up(length, 4)
            elif "firmware" in target.name or target.name == "start.o" or _COLD.search(section):
                cold.append((_up(length, 4), line))
            else:
                steps.append(line)
                steps_size += _up(length, 4)
        if steps:
            hot.append((_up(steps_size, LINE), steps))
    reserved = _up(size, LINE)
    room = CACHE - reserved
    pieces: list[tuple[int, list[str]]] = []
    for length, lines in sorted(hot, key=lambda entry: (-entry[0], entry[1])):
        for i, (used, placed) in enumerate(pieces):
            if used + length <= room:
                pieces[i] = (used + length, [*placed, ". = ALIGN(32);", *lines])
                break
        else:
            pieces.append((length, lines))
    script = first
    cold.sort(key=lambda entry: (-entry[0], entry[1]))
    address = 0
    for i, (used, lines) in enumerate(pieces):
        if i > 0:
            script.append(f". = {address:#x};")
            left = reserved
            for entry in list(cold):
                if entry[0] <= left:
                    left -= entry[0]
                    script.append(entry[1])
                    cold.remove(entry)
        script.append(f". = {address + reserved:#x};")
        script += lines
        # What is larger than its part of the cache evicts the dispatcher in any case.
        address = _up(address + reserved + used, CACHE)
    return [*script, *(line for _, line in cold)]


def build_image(folder: Path, jobs: int, root: Path = ROOT) -> Firmware:
    """Builds the firmware from the sources under `root` into `folder`. Raises BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    includes = header_folders()
    wanted = [root / "firmware" / name for name in IMAGE_SOURCES] + sources(root)
    with ThreadPoolExecutor(jobs) as pool:
        compiled = list(pool.map(lambda source: _compile_for_image(source, folder, root, includes), wanted))
    check_symbols([unit for _, unit in compiled], root)
    start = folder / "start.o"
    _run([PREFIX + "gcc", *TARGET, "-c", str(root / "firmware/start.S"), "-o", str(start)], "start.S")
    elf, binary, text = (folder / f"unisono.{ending}" for ending in ("elf", "bin", "hex"))
    command = [PREFIX + "g++", *TARGET, "-nostdlib", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments"]
    objects = [start, *(target for target, _ in compiled)]
    code = folder / "code.ld"
    code.write_text("\n".join(place(objects)) + "\n", encoding="ascii")
    command += ["-L", str(folder), "-T", str(root / "firmware/link.ld"), *map(str, objects), _libgcc()]
    _run([*command, "-o", str(elf)], "linking the image")
    _run([PREFIX + "objcopy", "-O", "binary", str(elf), str(binary)], "objcopy")
    data = binary.read_bytes()
    binary.write_bytes(data + bytes(-len(data) % 4))
    sections: dict[str, int] = {}
    for line in _run([PREFIX + "size", "-A", str(elf)], str(elf)).splitlines():
        if match := re.match(r"(\.\S+)\s+(\d+)\s+\d+$", line):
            sections[match[1]] = int(match[2])
    symbols: dict[str, int] = {}
    for line in _run([PREFIX + "nm", "--format=posix", str(elf)], str(elf)).splitlines():
        words = line.split()
        if len(words) >= 3:
            symbols[words[0]] = int(words[2], 16)
    image = Firmware(
        elf,
        binary,
        text,
        sections[".text"],
        sections[".rodata"] + sections[".rules"],
        sections.get(".data", 0) + sections[".bss"] + sections[".stack"],
        symbols["__stack_end"],
        symbols["unisono_rules_begin"],
        tuple((str(unit.source), unit.code, unit.constants) for _, unit in compiled),
    )
    text.write_text("".join(f"{word:08x}\n" for word in image.words()), encoding="ascii")
    return image


def report_image(image: Firmware, console: Console) -> None:
    """Prints the sizes of the firmware."""
    table = Table(title="Firmware of the microcontroller, bytes")
    for name in ("", "code", "constants", "memory", "in all"):
        table.add_column(name, justify="right" if name else "left")
    for source, code, constants in image.per_source:
        if source.startswith("firmware"):
            table.add_row(source, str(code), str(constants))
    collectives = [entry for entry in image.per_source if not entry[0].startswith("firmware")]
    total_code = sum(entry[1] for entry in collectives)
    total_constants = sum(entry[2] for entry in collectives)
    table.add_row("collectives", str(total_code), str(total_constants))
    table.add_section()
    sizes = (image.code, image.constants, image.memory, image.total)
    table.add_row("[bold]linked[/]", *(f"[bold]{size}[/]" for size in sizes))
    console.print(table)


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
    parser.add_argument("--image", action="store_true", help="build the firmware too")
    arguments = parser.parse_args()
    try:
        units, image = build(arguments.output.resolve(), arguments.jobs)
        firmware = build_image(arguments.output.resolve() / "image", arguments.jobs) if arguments.image else None
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    report(units, image, Console())
    if firmware is not None:
        report_image(firmware, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
