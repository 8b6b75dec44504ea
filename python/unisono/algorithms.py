"""The table of algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from . import _core
from ._spec import Collective


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of one collective, as the table describes it."""

    collective: str  #: name of the collective, for instance "allreduce"
    name: str  #: name of the algorithm, unique within the collective
    source: str  #: where it is from
    restriction: str  #: which calls it does not admit, in words; empty if it admits all
    cost: (
        str  #: in alpha (latency), beta (per byte), gamma (per reduced byte), P, n bytes; sigma: entry of a direct call
    )
    summary: str  #: one sentence
    ordered: bool  #: operands are combined in rank order
    radix: int = 0  #: that of the name alone, where `name:radix` may be written as well; 0 if there is none

    def __str__(self) -> str:
        return f"{self.collective}/{self.name}"


def algorithms(collective: str | None = None) -> list[Algorithm]:
    """All algorithms, or those of one collective, in the order of the table."""
    table = [
        Algorithm(**{**entry, "collective": Collective(entry["collective"]).name.lower()})
        for entry in _core.algorithms()
    ]
    return table if collective is None else [entry for entry in table if entry.collective == collective]
