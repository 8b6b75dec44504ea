"""The ways of making tables, by name."""

from __future__ import annotations

from collections.abc import Sequence

from . import shortest, smi_rule, updown
from .programs import Program
from .tables import Tables
from .topology import Topology, check_connected

SCHEMES = {
    "shortest": "shortest ways, on the fewest virtual channels without a circle",
    "updown": "up*/down*: one virtual channel in any network; some ways are longer",
    "smi": "what SMI's generator does; its ways may form circles",
}


def make(
    topology: Topology, programs: Sequence[Program], scheme: str = "shortest", channels: int | None = None
) -> Tables:
    """All tables of a network. Refuses one that is disconnected."""
    check_connected(topology)
    made = {program: program.ckr_tables(topology.links) for program in dict.fromkeys(programs)}
    ckr = [[table[:] for table in made[program]] for program in programs]
    if scheme == "updown":
        return updown.route(topology, ckr)
    if scheme == "smi":
        return smi_rule.route(topology, ckr)
    return shortest.route(topology, ckr, channels)
