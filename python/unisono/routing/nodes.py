"""Tables for simulated nodes, which have a given number of virtual channels."""

from __future__ import annotations

from ..errors import InvalidArgumentError
from . import own_files, programs, schemes, topology
from .proof import examine
from .topology import Topology

CHANNELS = 2  #: virtual channels of simulated nodes


def files_for_nodes(network: Topology, ports: int) -> dict[str, bytes]:
    """Files with tables for every node of a network, proven free of circles: by shortest ways, or, if those need more
    channels than nodes have, by up*/down*. Raises InvalidArgumentError if there are none.
    """
    topology.check_connected(network)
    of_ranks = programs.of_nodes(network, [], ports)
    tables = schemes.make(network, of_ranks, "shortest", None)
    if tables.channels > CHANNELS:
        tables = schemes.make(network, of_ranks, "updown", None)
    finding = examine(network, tables)
    if not finding.right:
        raise InvalidArgumentError("; ".join(finding.faults) or "there is a circle (`unisono route` prints it)")
    return own_files.encode(network, tables, of_ranks)
