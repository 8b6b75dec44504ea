"""The networks that are trained: a small one that learns the digits, and a large one that moves many bytes."""

from __future__ import annotations

import torch
from torch import nn

SIZES = {"small": (16, 32, (64,)), "large": (32, 64, (4096, 1536))}  # two convolutions, then layers that see all of it
SEED = 3


def network(size: str) -> nn.Module:
    """A convolutional network for images of 8 x 8 brightnesses: the same weights on every rank."""
    first, second, hidden = SIZES[size]
    torch.manual_seed(SEED)
    widths = [second * 4 * 4, *hidden, 10]
    layers: list[nn.Module] = [
        nn.Conv2d(1, first, 3, padding=1), nn.ReLU(),
        nn.Conv2d(first, second, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(),
    ]  # fmt: skip
    for inputs, outputs in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def parameters(of: nn.Module) -> int:
    """How many numbers it learns."""
    return sum(each.numel() for each in of.parameters())
