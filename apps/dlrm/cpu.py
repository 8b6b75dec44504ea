"""The same model on a CPU, as frameworks run it: fp32, NumPy and its BLAS, a batch at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from model import NODES, Model


@dataclass(frozen=True)
class Batch:
    """Medians of batches of one size."""

    size: int
    latency_us: float  #: of a batch, which is that of each of its queries

    @property
    def rate(self) -> float:
        """Queries in a second."""
        return self.size / self.latency_us * 1e6


def tables_of(model: Model) -> npt.NDArray[np.float32]:
    """All tables in fp32, random: their values do not matter for the time."""
    random = np.random.default_rng(model.seed)
    made: npt.NDArray[np.float32] = random.random((model.tables, model.rows, model.row), np.float32)
    return made


def measure(model: Model, sizes: list[int], seconds: float = 1.0) -> list[Batch]:
    """Each size for so long; batches ask for other rows each time, as queries do."""
    random = np.random.default_rng(model.seed + 1)
    tables = tables_of(model)
    number = np.arange(model.tables)
    weights = [
        random.random(shape, np.float32) - np.float32(0.5)
        for shape in (
            (model.inputs * NODES, model.layers[0]),
            model.layers[:2],
            model.layers[1:],
            (model.layers[2], 1),
        )
    ]

    def infer(indices: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        values = tables[number, indices].reshape(len(indices), -1)
        for layer in weights[:-1]:
            values = np.maximum(values @ layer, 0)
        scores: npt.NDArray[np.float32] = values @ weights[-1]
        return scores

    found = []
    for size in sizes:
        times: list[float] = []
        infer(random.integers(0, model.rows, (size, model.tables)))
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            indices = random.integers(0, model.rows, (size, model.tables))
            begin = time.perf_counter()
            infer(indices)
            times.append(time.perf_counter() - begin)
        found.append(Batch(size, float(np.median(times)) * 1e6))
    return found
