"""A few jobs of the soak (`make soak`)."""

from __future__ import annotations

import pytest

from .soak import run_job


@pytest.mark.parametrize("seed", [3, 6, 12, 30])
def test_a_job_of_the_soak(seed: int) -> None:
    good, line = run_job(seed)
    assert good, line
