"""`unisono mpirun`: programs of MPI, unchanged, with their collectives carried by Unisono (docs/mpi.md)."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import config
from .aggregation import AggregationError, find
from .mpi_devices import DeviceError, devices
from .run import PLATFORMS


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
#: Prints where mpi4py has its modules for libraries of MPI, and loads none of them.
_MODULES = """
import glob, importlib.util
spec = importlib.util.find_spec("mpi4py")
for folder in spec.submodule_search_locations if spec else []:
    print(*glob.glob(folder + "/MPI.*.so"), sep="\\n")
"""
#: Options of the launchers whose values may be names of files, which a program could have, and how many each has.
_VALUES = dict.fromkeys(
    ("H", "host", "hosts", "hostfile", "machinefile", "default-hostfile", "f", "rankfile", "rf", "x", "wdir", "wd",
     "prefix", "tune", "am", "map-by", "bind-to", "rank-by", "genvlist", "launcher", "launcher-exec", "rmk", "iface",
     "output-filename", "path", "configfile"), 1,
) | dict.fromkeys(("mca", "gmca", "genv", "env"), 2)  # fmt: skip


class MpiError(Exception):
    """There is nothing to start, and why."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "mpirun",
        help="run a program of MPI, its collectives carried by Unisono",
        usage="unisono mpirun [--mpi openmpi|mpich] [--platform PLATFORM] [--aggregate HOST:PORT,...|auto|off] "
        "[--aggregate-secret-file FILE] [--show] -n P [OPTION...] PROGRAM "
        "[ARGUMENT...]",
        description="Starts a program of Open MPI or MPICH by the launcher of its own MPI, with a shim before the "
        "MPI's library: collectives on intracommunicators go by Unisono, all else by the MPI. --mpi says whose "
        "program it is, if that is not seen; --platform functional or rtl carries them by devices, as in unisono run; "
        "--aggregate names switches that aggregate calls of several hosts, as in unisono run; "
        "--show prints the command and runs nothing; what follows is the launcher's. UNISONO_MPI_REPORT=1 prints at "
        "the end what was carried, UNISONO_MPI=off carries nothing.",
        # Options are the launcher's, but for a few, which `own_options` takes.
        prefix_chars="\0",
        add_help=False,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(execute=execute, help=parser.print_help)


@dataclass
class Own:
    """Options of the command itself, which stand before the launcher's words."""

    kind: str | None = None
    platform: str | None = None
    aggregate: str | None = None
    aggregate_secret_file: str | None = None
    shows: bool = False


def own_options(words: list[str]) -> tuple[Own, list[str]]:
    """The command's own options, and what the launcher gets. Raises MpiError."""
    own = Own()
    allowed = {"--mpi": [known.name for known in KINDS], "--platform": list(PLATFORMS)}
    while words and words[0] in ("--show", "--aggregate", "--aggregate-secret-file", *allowed):
        option, *words = words
        if option == "--show":
            own.shows = True
            continue
        value, *words = words or [""]
        if option.startswith("--aggregate"):
            if not value:
                raise MpiError(f"{option}: a value is missing")
            setattr(own, option.removeprefix("--").replace("-", "_"), value)
            continue
        if value not in allowed[option]:
            raise MpiError(f"{option} {value}: allowed are {', '.join(allowed[option])}")
        if option == "--mpi":
            own.kind = value
        else:
            own.platform = value
    return own, words


def program_of(words: Sequence[str]) -> str:
    """The program among the words of a launcher: the first that can be run and is no option's value."""
    values = 0
    for word in words:
        if values > 0:
            values -= 1
        elif word.startswith("-"):
            values = _VALUES.get(word.lstrip("-"), 0)
        elif found := shutil.which(word):
            return found
    raise MpiError("no program among: " + shlex.join(words) + "; write it with its folder, as ./program")


def libraries(program: str) -> dict[str, str]:
    """What a program loads: the paths of libraries by their names. Nothing for a script."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=_SECONDS, check=False)
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.MULTILINE))


def modules_of(program: str) -> list[str]:
    """The modules of mpi4py, if the program is a Python that has it."""
    if re.fullmatch(r"python[\d.]*", Path(program).name) is None:
        return []
    words = [program, "-c", _MODULES]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    return done.stdout.splitlines()


def bound(program: str) -> tuple[Kind, str] | None:
    """The MPI that a program needs, and where its library is."""
    for name, path in libraries(program).items():
        for kind in KINDS:
            if kind.library.search(name):
                return kind, path
    return None


def kind_of(program: str, wanted: str | None) -> tuple[Kind, str]:
    """Which MPI it is, and where its library is. Raises MpiError."""
    found = bound(program)
    if found is not None and wanted in (None, found[0].name):
        return found
    if found is not None:
        raise MpiError(f"{program} needs {found[0].title}, and --mpi says {wanted}")
    needed = [one for module in modules_of(program) if (one := bound(module))]
    if wanted is None and len({kind.name for kind, _ in needed}) > 1:
        titles = " and ".join(kind.title for kind, _ in needed)
        raise MpiError(f"mpi4py of {program} is there for {titles}; say which by --mpi")
    for kind, path in needed:
        if wanted in (None, kind.name):
            return kind, path
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
    if not {" ", ":"}.isdisjoint(str(shim)):
        raise MpiError(
            f"the loader takes no shim from a folder with spaces or colons in its name ({shim}); "
            "install Unisono in one without"
        )
    return shim


def command(words: Sequence[str], wanted: str | None = None, variables: Mapping[str, str] | None = None) -> list[str]:
    """What is run; `variables` come to the ranks besides those of the environment."""
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
    handed_on = [
        word
        for name in sorted({*os.environ, *(variables or {})})
        if name.startswith("UNISONO_")
        for word in ("-x", name)
    ]
    return [launcher, "-x", f"LD_PRELOAD={before}", *handed_on, *words]


def execute(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.words[:1] in (["-h"], ["--help"]):
        options.help()
        return 0
    try:
        own, words = own_options(options.words)
        if not words:
            raise MpiError("nothing to run; write for instance: unisono mpirun -n 4 ./program")
        switches = find(own.aggregate, own.aggregate_secret_file, os.environ)
        if switches.told:
            print(f"unisono mpirun: {switches.told}", file=sys.stderr)
        variables = switches.variables
        if own.shows:
            print(shlex.join(command(words, own.kind, variables)))
            return 0
        if own.platform is None:
            return subprocess.call(command(words, own.kind, variables), env=os.environ | variables)
        program_of(words)  # before a cluster is started for nothing
        with devices(own.platform, words) as of_devices:
            variables |= of_devices
            return subprocess.call(command(words, own.kind, variables), env=os.environ | variables)
    except (MpiError, DeviceError, AggregationError) as error:
        print(f"unisono mpirun: {error}", file=sys.stderr)
        return 2
