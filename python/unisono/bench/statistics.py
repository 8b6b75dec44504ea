"""From the times of rounds to figures: which rounds count, ratios of pairs, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DISTURBED = 1.3  #: a round counts if the machine's limit was at most so many times its minimum
STOLEN = 0.05  #: and if no rank bound to a core waited for it longer than this part of a block
RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """A median of paired ratios, with the interval in which it lies with 95 % confidence."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Round:
    """What is known of a round besides the times of the systems."""

    limits: tuple[float, ...]  #: the machine's limit before, between and after the blocks
    stolen: float = 0.0  #: the largest share of a block in which a rank waited for a core that others had

    @property
    def limit(self) -> float:
        """The limit that the round's times are compared with."""
        return sum(self.limits) / len(self.limits)


def disturbances(rounds: Sequence[Round]) -> list[float]:
    """How much each round was disturbed.

    Up to 1 it counts: the limit stayed near its minimum, and the ranks had their cores.
    """
    least = min((min(one.limits) for one in rounds), default=1.0)
    return [max(max(one.limits) / least / DISTURBED, one.stolen / STOLEN) for one in rounds]


def quiet_rounds(rounds: Sequence[Round]) -> list[int]:
    """The rounds that count."""
    return [i for i, disturbance in enumerate(disturbances(rounds)) if disturbance <= 1]


def quietest_rounds(rounds: Sequence[Round], count: int) -> list[int]:
    """So many rounds, those that were disturbed least: what is left to take when too few were quiet."""
    order = np.argsort(disturbances(rounds), kind="stable")[:count]
    return sorted(int(i) for i in order)


def geometric_mean(values: Sequence[float]) -> float:
    """Of at least one positive value."""
    if not values or min(values) <= 0:
        raise ValueError(f"there is no geometric mean of {list(values)!r}; positive values are needed")
    return float(np.exp(np.mean(np.log(values))))


def paired_ratio(times: Sequence[float], others: Sequence[float], *, seed: int = 0) -> Ratio:
    """The median of times[i] / others[i], and its percentile bootstrap interval over rounds."""
    if len(times) != len(others) or not times:
        raise ValueError(f"{len(times)} times and {len(others)} others make no pairs; equally many are needed")
    ratios = np.asarray(times, dtype=float) / np.asarray(others, dtype=float)
    draws = np.random.default_rng(seed).integers(0, len(ratios), size=(RESAMPLES, len(ratios)))
    medians = np.median(ratios[draws], axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Ratio(float(np.median(ratios)), float(low), float(high))
