"""From the times of rounds to figures: which rounds count, ratios of pairs, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DISTURBED = 1.3  #: a round counts if the machine's limit, before and after it, was at most so many times its minimum
RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """A median of paired ratios, with the interval in which it lies with 95 % confidence."""

    value: float
    low: float
    high: float


def quiet_rounds(limits: Sequence[float], disturbed: float = DISTURBED) -> list[int]:
    """The rounds that count. `limits` has an entry before each round and one after the last."""
    if len(limits) < 2:
        return []
    most = disturbed * min(limits)
    return [i for i in range(len(limits) - 1) if max(limits[i], limits[i + 1]) <= most]


def limits_of_rounds(limits: Sequence[float]) -> list[float]:
    """The limit of each round: the mean of what was measured before and after it."""
    return [(before + after) / 2 for before, after in zip(limits, limits[1:], strict=False)]


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
