"""Routes of `unisono run --carrier smi`: made for the job's ranks by the code of `unisono route`."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidArgumentError
from ..routing import topology
from ..routing.nodes import files_for_nodes
from ..routing.topology import SMI_LINKS, Topology

CARRIERS = ("network", "smi")  #: who carries frames between simulated nodes
PORTS = 1  #: logical ports of a node: frames have one, for data and for control


class CarrierError(Exception):
    """There are no routes for these cables, and why."""


@dataclass(frozen=True)
class CarrierOptions:
    """What `unisono run` was given. `carrier` None: nothing, the simulated network carries frames."""

    carrier: str | None = None
    topology: str | None = None  #: file; None: `usual`
    without: tuple[str, ...] = ()  #: cables, as `unisono route` names them
    leave_out: tuple[str, ...] = ()  #: nodes

    def given(self) -> list[str]:
        """The options that were used."""
        names = {
            "--carrier": self.carrier is not None,
            "--topology": self.topology is not None,
            "--without": bool(self.without),
            "--leave-out": bool(self.leave_out),
        }
        return [name for name, used in names.items() if used]

    @property
    def used(self) -> bool:
        """Whether nodes are on cables. Raises `CarrierError` for options that mean nothing."""
        if self.carrier == "smi":
            return True
        others = [name for name in self.given() if name != "--carrier"]
        if others:
            raise CarrierError(f"{' and '.join(others)} goes with --carrier smi: the simulated network has no cables")
        return False


def usual(ranks: int) -> Topology:
    """Cables for so many ranks where no file says which: a torus, as square as it can be, or else a ring."""
    if ranks == 1:
        return Topology(("fpga-0000:acl0",), (None,), SMI_LINKS, ())
    side = next(side for side in range(math.isqrt(ranks), 0, -1) if ranks % side == 0)
    if side > 1:
        return topology.torus([side, ranks // side])
    return topology.bus(ranks, closed=ranks > 2)


def make_routes(ranks: int, options: CarrierOptions) -> tempfile.TemporaryDirectory[str]:
    """A folder with the routes. Raises `CarrierError` with the sentence of `unisono route`."""
    try:
        files = _files(ranks, options)
    except InvalidArgumentError as failure:
        raise CarrierError(str(failure)) from failure
    folder = tempfile.TemporaryDirectory(prefix="unisono-routes-")
    for name, data in files.items():
        (Path(folder.name) / name).write_bytes(data)
    return folder


def _files(ranks: int, options: CarrierOptions) -> dict[str, bytes]:
    network = usual(ranks) if options.topology is None else topology.load(Path(options.topology))
    network = topology.without_cables(network, options.without)
    if options.leave_out:
        network = topology.without_nodes(network, options.leave_out)
    if network.size < ranks:
        raise InvalidArgumentError(
            f"{ranks} ranks were asked for, and the topology has {network.size} node{'s' * (network.size != 1)}"
        )
    if network.size > ranks:
        network = topology.first_ranks(network, ranks)
    if network.links > SMI_LINKS:
        raise InvalidArgumentError(
            f"a node of this topology has {network.links} links; those of simulated nodes are {SMI_LINKS}, from ch0 on"
        )
    return files_for_nodes(network, PORTS)
