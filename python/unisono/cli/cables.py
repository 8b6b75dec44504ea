"""The cables of `unisono run --cables`: routes for the job's ranks, and the memory by which their nodes are joined."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InvalidArgumentError
from ..routing import topology
from ..routing.nodes import files_for_nodes
from . import node_model, node_shape
from .node_model import NodeError
from .node_shape import NodeShape, ShapeError

CLOCK_KHZ = 250_000
MOST_RANKS = 32  #: that the simulated nodes' tables hold
LINKS = 4
STATE_BYTES = 128  #: of a rank, at the beginning of the shared memory (sim/cables/shared_cables.hpp)
COLLECTIVES = ("units", "channels")  #: what carries kernels' collectives; the first where ports have it
PROTOCOLS = ("degree", "eager", "credits")  #: of channels between two ranks; the first: k decides


class CablesError(Exception):
    """The cables cannot be had, and why."""


@dataclass(frozen=True)
class CablesOptions:
    """What `unisono run` hands on."""

    topology: str
    latency: int = 40  #: cycles from node to node; more than that, and a cable's 64 places do not fill it
    gbits: float = 40.0  #: of a cable
    ports: int | None = None  #: at least; None: 4, or those that `endpoints` use
    report: str | None = None  #: a file for what the job took, as JSON
    endpoints: tuple[str, ...] = ()  #: descriptions of the job's programs; the node is made for them
    reads: int | None = None  #: R
    packet: int | None = None  #: bytes
    collectives: str | None = None  #: of COLLECTIVES
    protocol: str | None = None  #: of PROTOCOLS; None: that of `endpoints`
    software: tuple[int, ...] = ()  #: ranks whose nodes are in software
    delay: int | None = None  #: cycles that pass before what these send leaves


class Cables:
    """Tables for every rank's node, and memory that they share, for the time of a job."""

    def __init__(self, ranks: int, options: CablesOptions) -> None:
        self._ranks = ranks
        self._options = options
        if ranks > MOST_RANKS:
            raise CablesError(f"{ranks} ranks were asked for; simulated nodes on cables know up to {MOST_RANKS}")
        _check_software(ranks, options)
        try:
            self._shape = _shape(options)
            network = _network(ranks, options)
            self._library = ""
            if len(options.software) < ranks:
                self._library, self._shape = _node(self._shape, made=bool(options.endpoints))
            self._files = _routes(network, self._shape.ports)
        except (NodeError, ShapeError) as failure:
            raise CablesError(str(failure)) from failure
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
            "ports": self._shape.ports,
            "packet": self._shape.packet,
            "broadcasts": self._shape.broadcasts,
            "reductions": self._shape.reductions,
            "datatypes": self._shape.datatypes,
            "funcs": self._shape.funcs,
            "software": ",".join(map(str, self._options.software)),
            "delay": self._options.delay or 0,
        }
        told = {"UNISONO_CABLES": "".join(f"{name}={value}\n" for name, value in fields.items())}
        if self._options.collectives is not None:
            told["UNISONO_SMI_COLLECTIVES"] = self._options.collectives
        elif self._options.software and os.environ.get("UNISONO_SMI_NODE"):
            # Which units that node has is not known here, and all ranks must do the same.
            told["UNISONO_SMI_COLLECTIVES"] = "channels"
        protocol = self._options.protocol
        # Descriptions say `credits` unless they are asked for `eager`; k decides then, as natively.
        if protocol is None and self._options.endpoints and node_shape.are_eager(self._options.endpoints):
            protocol = "eager"
        if protocol is not None:
            told["UNISONO_SMI_PROTOCOL"] = protocol
        return told

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
        software = len(self._options.software)
        kinds = "" if software == 0 else ", all in software" if software == self._ranks else f", {software} in software"
        self.told = (
            f"unisono run: kernels took {cycles} cycles ({micros:g} us at {CLOCK_KHZ // 1000} MHz) on {self._ranks} "
            f"nodes{kinds}; {packets} packets crossed cables\n"
        )
        if self._options.report is not None:
            result = {
                "cycles": cycles,
                "clock_khz": CLOCK_KHZ,
                "packets": packets,
                "software": sorted(self._options.software),
                "ranks": ranks,
            }
            with contextlib.suppress(OSError):
                Path(self._options.report).write_text(json.dumps(result, indent=1) + "\n")


def _check_software(ranks: int, options: CablesOptions) -> None:
    for rank in options.software:
        if rank >= ranks:
            raise CablesError(f"--native: there is no rank {rank}; the job has ranks 0 to {ranks - 1}")
    if options.delay is not None and not options.software:
        raise CablesError("--native-delay is of ranks that --native names, and none is named")


def _network(ranks: int, options: CablesOptions) -> topology.Topology:
    """The job's cables. Raises `CablesError`."""
    try:
        network = topology.load(Path(options.topology), LINKS)
    except InvalidArgumentError as failure:
        raise CablesError(f"--cables: {failure}") from failure
    if network.size != ranks:
        raise CablesError(
            f"--cables: {options.topology} has {network.size} node{'s' * (network.size != 1)}, and the job "
            f"{ranks} rank{'s' * (ranks != 1)}"
        )
    return network


def _routes(network: topology.Topology, ports: int) -> dict[str, bytes]:
    """Files with tables for the job's ranks, which are proven free of circles. Raises `CablesError`."""
    try:
        return files_for_nodes(network, ports)
    except InvalidArgumentError as failure:
        raise CablesError(f"--cables: {failure}") from failure


def _shape(options: CablesOptions) -> NodeShape:
    """What the job's nodes are built for. Raises `ShapeError`."""
    if not options.endpoints:
        return NodeShape(ports=min(node_model.READY_MADE)).needs(options.ports, options.reads, options.packet)
    shape = node_shape.of_programs(options.endpoints)
    return shape.needs(options.ports, options.reads, options.packet)


def _node(shape: NodeShape, *, made: bool) -> tuple[str, NodeShape]:
    """The library with such a node, and its shape: UNISONO_SMI_NODE; or one that is `made` for a program, or has an R
    or packets of its own, and is built where that is possible; or the smallest ready-made one that does. Raises
    `NodeError`.
    """
    named = os.environ.get("UNISONO_SMI_NODE")
    if named:
        if not os.path.isfile(named):
            raise NodeError(f"UNISONO_SMI_NODE is {named!r}, which is no file")
        return named, shape
    enough = node_model.is_ready_made(shape)
    if made or not enough or shape.ports not in node_model.READY_MADE:
        lacking = node_model.lacking()
        if lacking is None:
            return node_model.built(shape, node_model.say), shape
        if not enough:
            raise NodeError(
                f"this program needs a node of {shape}, which must be built, and here is no {lacking}; ready-made "
                f"nodes have up to {max(node_model.READY_MADE)} ports, R = 8 and packets of 32 bytes"
            )
        node_model.say(f"a node for this program ({shape}) cannot be built without {lacking}: a ready-made one serves, "
                       "and collectives go over channels")  # fmt: skip
    ports = next(ports for ports in node_model.READY_MADE if ports >= shape.ports)
    return node_model.ready_made(ports), replace(shape.without_units(), ports=ports)
