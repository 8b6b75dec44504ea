"""A few jobs of the soak (`make soak`)."""

from __future__ import annotations

import pytest

from .engines import has_fabric
from .soak import run_job


@pytest.mark.parametrize("seed", [3, 6, 12, 30])
def test_a_job_of_the_soak(seed: int) -> None:
    good, line = run_job(seed)
    assert good, line


@pytest.mark.parametrize(("kind", "seed"), [("tcp", 3), ("udp", 5), ("ofi", 1018)])
def test_a_short_job_between_hosts(kind: str, seed: int) -> None:
    if kind == "ofi" and not has_fabric():
        pytest.skip("there is no libfabric here, or its headers were missing")
    good, line = run_job(seed, kind, most=3)
    assert good, line
