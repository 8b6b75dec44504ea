"""Names of algorithms on the command line."""

from __future__ import annotations

import dataclasses

from .._texts import shown
from ..algorithms import Algorithm, algorithms
from ..errors import InvalidArgumentError, UnknownAlgorithmError


def select(name: str | None) -> list[Algorithm]:
    """The algorithms of `allreduce`, `allreduce/ring` or `allreduce/knomial:8`, or all for None."""
    table = algorithms()
    if name is None:
        return table
    collective, _, algorithm = name.partition("/")
    of_collective = [entry for entry in table if entry.collective == collective]
    if not of_collective:
        known = ", ".join(dict.fromkeys(entry.collective for entry in table))
        raise InvalidArgumentError(f"there is no file and no collective {shown(name)}; collectives are {known}")
    if not algorithm:
        return of_collective
    alone, colon, _ = algorithm.partition(":")
    found = [entry for entry in of_collective if entry.name == alone]
    if not found:
        known = ", ".join(entry.name for entry in of_collective)
        raise UnknownAlgorithmError(f"{collective} has no algorithm {alone!r}; there are {known}")
    return [dataclasses.replace(entry, name=algorithm) for entry in found] if colon else found
