"""Calls of torch.distributed against what each rank computes from the seed: data, kinds and strides are drawn."""

from __future__ import annotations

import os
import random

import pytest

from .support import launched, right, unisono_run

SEED = int(os.environ.get("UNISONO_SEED", "0") or "0", 0) or random.randrange(1 << 30)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_drawn_calls(ranks: int) -> None:
    right(unisono_run(ranks, "collectives.py", f"{SEED}/{ranks}", 200), ranks)


def test_drawn_calls_between_hosts() -> None:
    hosts = ["-m", "unisono", "run", "--hosts", "a:2,b:1", "--agent", "local"]
    right(launched(hosts, "collectives.py", SEED, 120), 3)


@pytest.mark.parametrize("ranks", [1, 3])
def test_sparse_tensors_are_summed(ranks: int) -> None:
    right(unisono_run(ranks, "sparse.py"), ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_calls_beside_the_program(ranks: int) -> None:
    """Dropped works, threads, forks, functional collectives, autograd."""
    right(unisono_run(ranks, "beside.py"), ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_futures(ranks: int) -> None:
    """Each completes once, in batches; callbacks fail and wait, and PowerSGD's do."""
    right(unisono_run(ranks, "futures.py"), ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_models_in_parts(ranks: int) -> None:
    """DDP, FSDP2 and tensor parallel give what gloo gives."""
    right(unisono_run(ranks, "parallel.py"), ranks)


def test_tensors_in_shared_memory() -> None:
    right(unisono_run(2, "shared.py"), 2)
