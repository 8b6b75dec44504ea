"""`unisono mpirun`: programs of MPI, unchanged, with their collectives carried by Unisono (docs/mpi.md)."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import config


@dataclass(frozen=True)
class Kind:
    """A library of MPI."""

    name: str
    title: str
    library: re.Pattern[str]  #: by what name programs need it
    launchers: tuple[str, ...]


KINDS = (
    Kind("openmpi", "Open MPI", re.compile(r"libmpi\.so\.40\b"), ("mpirun.openmpi", "mpirun")),
    Kind(
        "mpich", "MPICH", re.compile(r"libmpich\.so\.12\b|libmpi\.so\.12\b"),
        ("mpiexec.mpich", "mpiexec.hydra", "mpiexec"),
    ),
)  # fmt: skip
_SECONDS = 20
#: Options whose values are names that a program may have, too.
_NAMES_FOLLOW = {"-H", "-host", "--host", "-hosts", "--hosts", "-hostfile", "--hostfile", "-machinefile", "-f", "-x"}


class MpiError(Exception):
    """There is nothing to start, and why."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "mpirun",
        help="run a program of MPI, its collectives carried by Unisono",
        description="Starts a program of Open MPI or MPICH by the launcher of its own MPI, with a shim before the "
        "MPI's library: blocking collectives on intracommunicators go by Unisono, all else by the MPI. "
        "UNISONO_MPI_REPORT=1 prints at the end what was carried, UNISONO_MPI=off carries nothing.",
    )
    parser.add_argument("--mpi", choices=[kind.name for kind in KINDS], help="whose program it is, if that is not seen")
    parser.add_argument("--show", action="store_true", help="print the command instead of running it")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-n P [OPTION...] PROGRAM [ARGUMENT...]",
                        help="the launcher's options, the program, its arguments")  # fmt: skip
    parser.set_defaults(execute=execute)


def program_of(words: Sequence[str]) -> str:
    """The program among the words of a launcher: the first that can be run and is no option's value."""
    for before, word in zip(["", *words], words, strict=False):
        if word.startswith("-") or before in _NAMES_FOLLOW:
            continue
        if found := shutil.which(word):
            return found
    raise MpiError("no program among: " + shlex.join(words) + "; write it with its folder, as ./program")


def libraries(program: str) -> dict[str, str]:
    """What a program loads: the paths of libraries by their names. Nothing for a script."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=_SECONDS, check=False)
    return dict(re.findall(r"^\s*(\S+) => (\S+)", done.stdout, re.MULTILINE))


def bound(program: str) -> tuple[Kind, str] | None:
    """The MPI that a program needs, and where its library is."""
    for name, path in libraries(program).items():
        for kind in KINDS:
            if kind.library.search(name):
                return kind, path
    return None


def extension_of(interpreter: str) -> str | None:
    """mpi4py's extension, if the program is a Python that has it."""
    if not re.match(r"(python|pypy)[\d.]*$", Path(interpreter).name):
        return None
    code = "import importlib.util as u; print(u.find_spec('mpi4py.MPI').origin)"
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, timeout=_SECONDS, check=False)
    return done.stdout.strip() or None


def kind_of(program: str, wanted: str | None) -> tuple[Kind, str]:
    """Which MPI it is, and where its library is. Raises MpiError."""
    found = bound(program)
    if found is None and (extension := extension_of(program)) is not None:
        found = bound(extension)
    if found is not None and wanted in (None, found[0].name):
        return found
    if found is not None:
        raise MpiError(f"{program} needs {found[0].title}, and --mpi says {wanted}")
    if wanted is None:
        raise MpiError(f"{program} needs neither Open MPI nor MPICH as far as ldd sees; say which by --mpi")
    (kind,) = (kind for kind in KINDS if kind.name == wanted)
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    for name, path in re.findall(r"^\s*(\S+) .* => (\S+)$", cache.stdout, re.MULTILINE):
        if kind.library.search(name):
            return kind, path
    raise MpiError(f"the library of {kind.title} is not installed")


def shim_of(kind: Kind) -> Path:
    """What stands before the library."""
    shim = config.library_dir() / f"libunisono_mpi_{kind.name}.so"
    if not shim.exists():
        raise MpiError(f"there is no shim for {kind.title} ({shim}); `make mpi` in a checkout of Unisono builds it")
    return shim


def command(words: Sequence[str], wanted: str | None = None) -> list[str]:
    """What is run."""
    kind, library = kind_of(program_of(words), wanted)
    # The library comes along, for what the shim has of it is missed in processes that load none, such as shells.
    before = f"{shim_of(kind)}:{library}"
    if os.environ.get("LD_PRELOAD"):
        before += ":" + os.environ["LD_PRELOAD"]
    launcher = next((found for name in kind.launchers if (found := shutil.which(name))), None)
    if launcher is None:
        raise MpiError(f"the launcher of {kind.title} is not here: {', '.join(kind.launchers)}")
    if kind.name == "mpich":  # which hands on the environment as it is
        return [launcher, "-genv", "LD_PRELOAD", before, *words]
    handed_on = [word for name in sorted(os.environ) if name.startswith("UNISONO_") for word in ("-x", name)]
    return [launcher, "-x", f"LD_PRELOAD={before}", *handed_on, *words]


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    try:
        if not options.words:
            raise MpiError("nothing to run; write for instance: unisono mpirun -n 4 ./program")
        made = command(options.words, options.mpi)
    except MpiError as error:
        print(f"unisono mpirun: {error}", file=sys.stderr)
        return 2
    if options.show:
        print(shlex.join(made))
        return 0
    return subprocess.call(made)
