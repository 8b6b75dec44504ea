"""The cables of `unisono run --cables`: routes for the job's ranks, and the memory by which their nodes are joined."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidArgumentError
from ..routing import topology
from ..routing.nodes import files_for_nodes
from .cluster import PACKAGE, ROOT

CLOCK_KHZ = 250_000
MOST_RANKS = 32  #: that the simulated nodes' tables hold
LINKS = 4
STATE_BYTES = 128  #: of a rank, at the beginning of the shared memory (sim/cables/shared_cables.hpp)
NODE_PORTS = (4, 16)  #: of the nodes that there are


class CablesError(Exception):
    """The cables cannot be had, and why."""


@dataclass(frozen=True)
class CablesOptions:
    """What `unisono run` hands on."""

    topology: str
    latency: int = 40  #: cycles from node to node; more than that, and a cable's 64 places do not fill it
    gbits: float = 40.0  #: of a cable
    ports: int = NODE_PORTS[0]
    report: str | None = None  #: a file for what the job took, as JSON


class Cables:
    """Tables for every rank's node, and memory that they share, for the time of a job."""

    def __init__(self, ranks: int, options: CablesOptions) -> None:
        self._ranks = ranks
        self._options = options
        self._library = find_node(options.ports)
        if ranks > MOST_RANKS:
            raise CablesError(f"{ranks} ranks were asked for; simulated nodes on cables know up to {MOST_RANKS}")
        self._files = _routes(ranks, options)
        self._folder: str | None = None
        self._memory: int | None = None
        self.told = ""  #: what the job took, once it has ended

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What every rank inherits."""
        assert self._memory is not None
        return (self._memory,)

    @property
    def environment(self) -> dict[str, str]:
        """What every rank is told."""
        fields = {
            "ranks": self._ranks,
            "memory": self._memory,
            "routes": self._folder,
            "library": self._library,
            "latency": self._options.latency,
            "bytes_per_cycle": self._options.gbits * 1e6 / 8 / CLOCK_KHZ,
            "clock_khz": CLOCK_KHZ,
        }
        return {"UNISONO_CABLES": "".join(f"{name}={value}\n" for name, value in fields.items())}

    def start(self) -> None:
        """Makes what ranks need."""
        self._folder = tempfile.mkdtemp(prefix="unisono-routes-")
        for name, content in self._files.items():
            (Path(self._folder) / name).write_bytes(content)
        self._memory = os.memfd_create("unisono-cables")
        os.ftruncate(self._memory, STATE_BYTES * self._ranks)

    def finish(self) -> None:
        """After the last rank's end: takes everything away, and says what the job took."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        if self._memory is None:
            return
        states = os.pread(self._memory, STATE_BYTES * self._ranks, 0)
        os.close(self._memory)
        self._memory = None
        ranks = []
        for rank in range(self._ranks):
            begin, end, packets = struct.unpack_from("<3Q", states, rank * STATE_BYTES)
            ranks.append({"begin": begin - 1 if begin else None, "end": end if begin else None, "packets": packets})
        ran = [rank for rank in ranks if rank["begin"] is not None]
        cycles = max(rank["end"] for rank in ran) - min(rank["begin"] for rank in ran) if ran else 0
        packets = sum(rank["packets"] for rank in ranks)
        micros = cycles * 1000 / CLOCK_KHZ
        self.told = (
            f"unisono run: kernels took {cycles} cycles ({micros:g} us at {CLOCK_KHZ // 1000} MHz) on {self._ranks} "
            f"nodes; {packets} packets crossed cables\n"
        )
        if self._options.report is not None:
            result = {"cycles": cycles, "clock_khz": CLOCK_KHZ, "packets": packets, "ranks": ranks}
            with contextlib.suppress(OSError):
                Path(self._options.report).write_text(json.dumps(result, indent=1) + "\n")


def _routes(ranks: int, options: CablesOptions) -> dict[str, bytes]:
    """Files with tables for the job's ranks, which are proven free of circles. Raises `CablesError`."""
    try:
        network = topology.load(Path(options.topology), LINKS)
        if network.size != ranks:
            raise CablesError(
                f"--cables: {options.topology} has {network.size} node{'s' * (network.size != 1)}, and the job "
                f"{ranks} rank{'s' * (ranks != 1)}"
            )
        return files_for_nodes(network, options.ports)
    except InvalidArgumentError as failure:
        raise CablesError(f"--cables: {failure}") from failure


def find_node(ports: int) -> str:
    """The library with the simulated node: UNISONO_SMI_NODE, or in the build folder, or beside the package."""
    named = os.environ.get("UNISONO_SMI_NODE")
    if named:
        if not os.path.isfile(named):
            raise CablesError(f"UNISONO_SMI_NODE is {named!r}, which is no file")
        return named
    name = f"libunisono_smi_node_{ports}.so"
    for candidate in (ROOT / "build" / "release" / "sim" / "cables" / name, PACKAGE / name, PACKAGE / "lib" / name):
        if candidate.is_file():
            return str(candidate)
    raise CablesError(
        f"the simulated node ({name}) is not built: `make cables` in a checkout builds it (it needs Verilator, and "
        "takes minutes); or say where it is with UNISONO_SMI_NODE"
    )
