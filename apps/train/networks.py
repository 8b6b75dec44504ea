"""The networks that are trained: a small one that learns the digits, and a large one that moves many bytes."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

SIZES = {"small": (16, 32, (64,)), "large": (32, 64, (4096, 1536))}  # two convolutions, then layers that see all of it
SEED = 3


def network(size: str) -> nn.Module:
    """A convolutional network for images of 8 x 8 brightnesses: the same weights on every rank.

    It is smooth: where one sums in another order, the last bits of all weights differ, and still do at the end. With
    ReLU or the greatest of four, one such bit decides at times which path a gradient takes, and losses part.
    """
    first, second, hidden = SIZES[size]
    torch.manual_seed(SEED)
    widths = [second * 4 * 4, *hidden, 10]
    layers: list[nn.Module] = [
        nn.Conv2d(1, first, 3, padding=1), nn.SiLU(),
        nn.Conv2d(first, second, 3, padding=1), nn.SiLU(),
        nn.AvgPool2d(2), nn.Flatten(),
    ]  # fmt: skip
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def parameters(of: nn.Module) -> int:
    """How many numbers it learns."""
    return sum(each.numel() for each in of.parameters())
