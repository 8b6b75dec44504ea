"""scikit-learn's hand-written digits: 1797 images of 8 x 8 brightnesses from -1 to 1, and the digit of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

TRAINING = 1437  # the other 360 are for the test
BATCH = 96  # images of a step, over all ranks
STEPS = TRAINING // BATCH  # of an epoch


@dataclass(frozen=True)
class Digits:
    """Images, and the digits they show."""

    images: Tensor
    labels: Tensor

    def part(self, which: slice | Tensor) -> Digits:
        """The images of an index."""
        return Digits(self.images[which], self.labels[which])


def load() -> tuple[Digits, Digits]:
    """Training and test images, shuffled alike on every rank."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(labels))
    scaled = torch.from_numpy((images[order] / 8 - 1).astype(np.float32)).reshape(-1, 1, 8, 8)
    everything = Digits(scaled, torch.from_numpy(labels[order].astype(np.int64)))
    return everything.part(slice(TRAINING)), everything.part(slice(TRAINING, None))


def batches(training: Digits, epoch: int, rank: int, ranks: int) -> Iterator[Digits]:
    """A rank's share of each batch of an epoch.

    What all ranks get together is the same whatever their number, and no two get the same image. It follows from the
    number of the epoch alone, so that a run which is resumed sees what it would have seen.
    """
    order = torch.from_numpy(np.random.default_rng([2, epoch]).permutation(TRAINING))
    for step in range(STEPS):
        yield training.part(order[step * BATCH : (step + 1) * BATCH][rank::ranks])
