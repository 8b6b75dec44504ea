"""Makes the archive of the engine as an IP: build/ip/unisono-ip-VERSION.tar.gz, and the same as a folder."""

from __future__ import annotations

import argparse
import gzip
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tools.ip import constraints, ipxact, registers, vitis, wrappers
from tools.ip.design import CONTROLLER, PLATFORM, ROOT, RTL, WRAPPERS, Design, controller, elaborated, needed
from tools.ip.interfaces import grouped

VERSION = "0.1.0"
TEMPLATES = PLATFORM / "ip"


def copied(folder: Path) -> list[str]:
    """Puts the sources of the engine into the archive's folder, and lists them in the order in which they are read."""
    files = []
    for path in needed(PLATFORM / "axi" / "unisono_axi.sv"):
        name = Path("rtl") / path.relative_to(RTL)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)
        files.append(str(name))
    shutil.copy(RTL / "cpu" / "vexriscv.vlt", folder / "rtl" / "cpu")
    (folder / "controller").mkdir()
    shutil.copy(controller(), folder / "controller")
    (folder / "wrappers").mkdir()
    shutil.copy(wrappers.SOURCE, folder / "wrappers")
    for other in wrappers.SURROUNDINGS:
        written(folder / "wrappers" / f"unisono_{other}.sv", wrappers.wrapper(other))
    (folder / "sim").mkdir()
    for path in sorted((PLATFORM / "axi" / "sim").glob("*.sv")):
        shutil.copy(path, folder / "sim")
    return [f"controller/{CONTROLLER}", *files]


def core(files: Sequence[str]) -> str:
    """The archive's core for FuseSoC."""
    listed = "".join(
        f"      - {path}: {{file_type: {'systemVerilogSource' if path.endswith('.sv') else 'verilogSource'}}}\n"
        for path in files
    )
    return (TEMPLATES / "unisono_ip.core.in").read_text().replace("@VERSION@", VERSION).replace("@FILES@\n", listed)


def firmware(folder: Path) -> None:
    """The microcontroller's program."""
    objects = folder.with_name("firmware")
    command = [sys.executable, str(ROOT / "firmware" / "build.py"), "--image", "--output", str(objects)]
    subprocess.run(command, cwd=ROOT, check=True)
    (folder / "firmware").mkdir()
    for name in ("unisono.hex", "unisono.bin"):
        shutil.copy(objects / "image" / name, folder / "firmware")


def written(path: Path, text: str) -> None:
    """A file of the archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make(folder: Path, wanted: Sequence[str] = WRAPPERS) -> dict[str, Design]:
    """All of the archive but the firmware, in an empty folder; the designs of these wrappers, by their names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = copied(folder)
    rows, size = registers.registers()
    designs = {}
    for wrapper in wanted:
        top = f"unisono_{wrapper}"
        outer = [] if wrapper == "axi" else [f"wrappers/{top}.sv"]
        own = (*files, "wrappers/unisono_axi.sv", *outer)
        design = designs[wrapper] = Design(top, folder, own, elaborated(top, folder, own))
        interfaces = grouped(design.ports)
        print(f"{top}: {len(design.ports)} ports, {len(interfaces)} interfaces", flush=True)
        written(folder / "ipxact" / f"{top}.xml", ipxact.component(design, interfaces, rows, size, VERSION))
        written(folder / "constraints" / f"{top}_clocks.xdc", constraints.clocks(interfaces))
        if wrapper == "vitis":
            written(folder / "vitis" / "kernel.xml", vitis.kernel(design, interfaces, size, VERSION))
            written(folder / "vitis" / "package.tcl", vitis.script(design, interfaces, VERSION))
    written(folder / "constraints" / "crossings.xdc", constraints.CROSSINGS)
    written(folder / "registers" / "unisono_registers.h", registers.header(rows, size))
    written(folder / "registers" / "registers.md", registers.table(rows))
    written(folder / "unisono_ip.core", core([*files, "wrappers/unisono_axi.sv"]))
    written(folder / "README.md", (TEMPLATES / "README.md").read_text().replace("@VERSION@", VERSION))
    return designs


def packed(folder: Path) -> Path:
    """The archive: the same bytes each time from the same files."""
    path = folder.with_name(folder.name + ".tar.gz")
    names = sorted(one for one in folder.rglob("*") if one.is_file())
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name in names:
            about = tarfile.TarInfo(str(Path(folder.name) / name.relative_to(folder)))
            about.size = name.stat().st_size
            with name.open("rb") as content:
                archive.addfile(about, content)
    with path.open("wb") as out, gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0) as squeezed:
        squeezed.write(raw.getvalue())
    return path


def main() -> int:
    """Makes it, and says where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "ip", help="folder (build/ip)")
    options = parser.parse_args()
    folder = options.into / f"unisono-ip-{VERSION}"
    make(folder)
    firmware(folder)
    path = packed(folder)
    print(f"{path}: {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
