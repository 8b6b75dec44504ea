"""What starts the systems that are measured: programs, launchers, their surroundings, and other states of Unisono."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidArgumentError
from .machine import Placement
from .network import CARRIED, FLOORS, LOSSY, PLAIN, Network
from .plan import BUFFERS, OWN, PEERS, PYTHON_PEERS

PACKAGE = Path(__file__).resolve().parents[1]
LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpi4py": "mpirun.openmpi", "mpich": "mpiexec.mpich"}
PYTHON = ".venv/bin/python"  #: of a checkout
PEERS_PYTHON = ".venv-peers/bin/python"  #: of the environment that `make peers` makes
NAME = re.compile(r"[a-z][a-z0-9_-]{0,15}")
RESERVED = ("unisono", "limit", *FLOORS, PLAIN, LOSSY, *CARRIED, *OWN, *PEERS, *PYTHON_PEERS)


@dataclass(frozen=True)
class Build:
    """Another state of Unisono, measured as a peer."""

    library: Path  #: the folder of libunisono.so
    package: Path | None  #: the folder that its Python package is imported from; None: it is not built

    @property
    def python(self) -> str:
        """The interpreter of its checkout, to which its package is installed; without one, this one."""
        return sys.executable if self.package is None else str(self.package.parent / PYTHON)

    def serves(self, interface: str) -> Path | None:
        """The folder that a rank's code must come from."""
        return self.library if interface == "c" else self.package


def programs() -> Path:
    """The folder of the benchmark's processes."""
    given = os.environ.get("UNISONO_BENCH_DIR")
    folder = Path(given) if given else PACKAGE.parents[1] / "build" / "release" / "bench"
    if not (folder / "bench_unisono").is_file():
        if not given and not (PACKAGE.parents[1] / "CMakeLists.txt").is_file():
            raise InvalidArgumentError(
                "unisono bench needs programs that measure, which an installed package does not have: in a checkout of "
                "Unisono run `make build` (`make peers` for Open MPI and MPICH too), then `.venv/bin/unisono bench` "
                "there; or set UNISONO_BENCH_DIR to that checkout's build/release/bench"
            )
        raise InvalidArgumentError(
            f"there is no {folder / 'bench_unisono'}; `make build` in a checkout builds it, and UNISONO_BENCH_DIR "
            "names another folder"
        )
    return folder


def peer_is_there(name: str) -> bool:
    """Whether a peer is built and can be started."""
    program = peers_python() if name == "mpi4py" else programs() / f"bench_{name}"
    return program.is_file() and _launcher(name) is not None


def peers_python() -> Path:
    """The interpreter of the peers' Python environment, whether or not it is there."""
    return checkout() / PEERS_PYTHON


def checkout() -> Path:
    """The checkout that the benchmark's programs belong to."""
    own = PACKAGE.parents[1]
    return own if (own / "bench" / "process").is_dir() else programs().parents[2]


def kinds_of_buffers() -> tuple[str, ...]:
    """The kinds of buffers that this state of Unisono can be measured with."""
    command = [str(programs() / "bench_unisono"), "--buffers"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return tuple(kind for kind in BUFFERS if kind in done.stdout.split())


def require_buffers(kinds: list[str]) -> None:
    """Refuses kinds of buffers that Unisono does not have."""
    there = kinds_of_buffers()
    if "registered" in kinds and "registered" not in there:
        raise InvalidArgumentError(
            f"registered buffers were asked for, but this Unisono cannot register memory; there are "
            f"{', '.join(there)}. What earlier versions of this command called registered is allocated"
        )


def find_build(name: str, folder: Path) -> Build:
    """The build of Unisono in a checkout, or in a build folder."""
    if not NAME.fullmatch(name) or name in RESERVED:
        raise InvalidArgumentError(
            f"peer {name}={folder} was given; a name is of small letters, digits, - and _, at most 16, and none of "
            f"{', '.join(RESERVED)}"
        )
    folder = folder.expanduser().resolve()
    sonames = [path.name for path in programs().parent.glob("libunisono.so.*") if path.name.count(".") == 2]
    wanted = sonames[0] if sonames else "libunisono.so"
    for library in (folder / "build" / "release", folder):
        if (library / wanted).is_file():
            sources = [library.parents[1], library.parents[0], library]
            built = [path for path in sources if any((path / "python" / "unisono").glob("_core*.so"))]
            packages = [path / "python" for path in built if (path / PYTHON).exists()]
            return Build(library, packages[0] if packages else None)
    raise InvalidArgumentError(
        f"peer {name}={folder} was given, and there is no {wanted} in that folder or in its build/release; build that "
        "checkout with `make build` there, or name a build folder"
    )


def require_interface(name: str, build: Build, interface: str) -> None:
    """Refuses a build that cannot be called in this way."""
    if build.serves(interface) is None:
        raise InvalidArgumentError(
            f"peer {name} was given with --python, and its Python package is not built; `make build` in its checkout "
            "builds it"
        )


def require_peer(name: str) -> None:
    """Refuses a peer that is not there."""
    if not peer_is_there(name):
        raise InvalidArgumentError(f"peer {name} is not installed or not built; `make peers` does both")


def _launcher(name: str) -> str | None:
    return shutil.which(LAUNCHERS[name])


def _program(name: str, interface: str, build: Build | None) -> list[str]:
    """What a rank runs."""
    if interface == "python" and name != "limit":
        own = sys.executable if build is None else build.python
        return [
            str(peers_python()) if name == "mpi4py" else own,
            "-m",
            "process",
            "--library",
            "mpi4py" if name == "mpi4py" else "unisono",
        ]
    if build is not None:
        return ["env", f"LD_LIBRARY_PATH={build.library}", str(programs() / "bench_unisono")]
    return [str(programs() / f"bench_{'unisono' if name in (PLAIN, LOSSY, *CARRIED) else name}")]


def command(
    name: str,
    placement: Placement,
    more: Sequence[str] = (),
    *,
    interface: str,
    build: Build | None,
    network: Network | None = None,
) -> list[str]:
    """What starts a system's ranks, with arguments of theirs. docs/bench.md explains the choices."""
    program = [*_program(name, interface, build), *more]
    if name in ("openmpi", "mpi4py"):
        return _openmpi(name, placement, program, network)
    return [*_launch(name, placement, build, network), *program]


def _openmpi(name: str, placement: Placement, program: Sequence[str], network: Network | None) -> list[str]:
    launch = [str(_launcher(name)), "-n", str(placement.ranks), "--oversubscribe", "--bind-to", "none"]
    launch += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    launch += ["--mca", "pml", "ob1", "--mca", "mpi_yield_when_idle", "1" if placement.crowded else "0"]
    if network is None:
        # Shared memory and nothing else; single copies by CMA are the default where the kernel allows them.
        return [*launch, "--mca", "btl", "vader,self", *program]
    before, options = network.openmpi()
    return network.in_shell(before, [*launch, *options, *program])


def _launch(name: str, placement: Placement, build: Build | None, network: Network | None) -> list[str]:
    ranks = str(placement.ranks)
    if name == "mpich":
        return [str(_launcher(name)), "-n", ranks, "-launcher", "fork", "-bind-to", "none"]
    if name == "limit":
        return []
    run = [sys.executable if build is None else build.python, "-m", "unisono", "run"]
    if network is None:
        return [*run, "-n", ranks, "--"]
    # Plain sockets meet where the launcher lets ranks meet, and so do those of bare libfabric.
    return [*run, *network.run_options(transport=name not in FLOORS), "--"]


def environment(name: str, folder: Path, build: Build | None, network: Network | None = None) -> dict[str, str]:
    """The variables of a system's processes."""
    variables = dict(os.environ)
    variables["TMPDIR"] = str(folder)  # removed at the end, with whatever a system has left there
    package = PACKAGE.parent if build is None or build.package is None else build.package
    paths = [str(package), str(checkout() / "bench"), variables.get("PYTHONPATH")]
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # The ranks of a system find their own job, not one that this command runs in.
    for variable in list(variables):
        if variable.startswith(
            ("UNISONO_RANK", "UNISONO_SIZE", "UNISONO_JOIN", "UNISONO_HOST", "UNISONO_SECRET", "PMI_")
        ):
            del variables[variable]
    if network is not None and network.impairment:
        variables["UNISONO_UDP_IMPAIR"] = network.impairment
    if name == "mpich" and network is not None:
        variables |= network.mpich()
    elif name == "mpich":
        # Its transport for one machine, among them CMA; no look at network cards.
        variables.setdefault("UCX_TLS", "self,sm")
    if name == "mpi4py":
        variables["MPI4PY_MPIABI"] = "openmpi"  # its wheel serves several libraries
    return variables
