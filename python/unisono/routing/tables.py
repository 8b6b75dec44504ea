"""What the kernels of each node look up: next steps for ranks (CKS) and for ports (CKR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .topology import Topology

OWN_LINK = 0  #: entries of CKS, as SMI encodes them
LOCAL_CKR = 1
OTHER_CKS = 2  #: and above: the other CKS of the node, without oneself, from the lowest
NO_WAY = 15  #: no message comes here

MOST_CHANNELS = 8


class Step(NamedTuple):
    """An entry of CKS: what it does with a message for a rank."""

    code: int
    channel: int = 0  #: virtual channel on which the message goes on


def code_of(link: int, other: int) -> int:
    """How the CKS of a link calls another one."""
    return OTHER_CKS + other - (other > link)


def other_of(link: int, code: int) -> int:
    """Which CKS the one of a link calls so."""
    other = code - OTHER_CKS
    return other + (other >= link)


CksTable = list[list[Step]]  #: of one CKS: by virtual channel, then by destination


@dataclass
class Tables:
    """All tables of a network, by rank and link."""

    scheme: str
    channels: int  #: virtual channels
    cks: list[list[CksTable]]
    ckr: list[list[list[int]]]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.cks)

    @property
    def links(self) -> int:
        """Links of a node."""
        return len(self.cks[0])


def empty(topology: Topology, scheme: str, channels: int, ckr: list[list[list[int]]]) -> Tables:
    """Tables that know ways to one's own rank only."""
    cks: list[list[CksTable]] = [
        [
            [
                [Step(LOCAL_CKR, 0) if to == rank else Step(NO_WAY, 0) for to in range(topology.size)]
                for _ in range(channels)
            ]
            for _ in range(topology.links)
        ]
        for rank in range(topology.size)
    ]
    return Tables(scheme, channels, cks, ckr)
