"""What a training needs to go on: in one file, which is replaced as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

NAME = "checkpoint.pt"


def save(folder: Path, epoch: int, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Keeps the state after this many epochs. One rank does it: all have the same."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{NAME}.{os.getpid()}.new"
    with beside.open("wb") as file:
        torch.save({"epoch": epoch, "network": network.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(folder / NAME)


def resume(folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Takes up the state that was kept, and returns its number of epochs; 0 if there is none."""
    if not (folder / NAME).exists():
        return 0
    kept: dict[str, Any] = torch.load(folder / NAME, weights_only=True)
    network.load_state_dict(kept["network"])
    optimizer.load_state_dict(kept["optimizer"])
    return int(kept["epoch"])
