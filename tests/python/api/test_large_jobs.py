"""Jobs on the loop network: threads of one process, each of which counts as a host of its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono import Communicator, ThreadJob

ROOT = Path(__file__).resolve().parents[3]


def test_many_ranks() -> None:
    ranks = 150

    def member(comm: Communicator) -> None:
        part = comm.split(comm.rank % 7, -comm.rank)
        assert part is not None
        got = part.allgather(np.array([comm.rank]))
        np.testing.assert_array_equal(got.ravel(), range(ranks)[comm.rank % 7 :: 7][::-1])
        assert comm.agree(0xFF & ~(1 << comm.rank % 8)) == 0

    ThreadJob(ranks, network="loop", timeout=60).run(member)


def test_no_memory_is_shared() -> None:
    def member(comm: Communicator) -> None:
        with pytest.raises(unisono.UnsupportedError, match="share no memory"):
            comm.empty(3, np.float32)

    ThreadJob(2, network="loop", timeout=60).run(member)


def test_what_is_refused() -> None:
    with pytest.raises(unisono.InvalidArgumentError, match=r"'ring'.*'shm' and 'loop'"):
        ThreadJob(2, network="ring")
    with pytest.raises(unisono.InvalidArgumentError, match="1 to 16384"):
        ThreadJob(20000, network="loop")
    with pytest.raises(unisono.InvalidArgumentError, match="1 to 1024"):
        ThreadJob(1025)


def test_the_page_runs() -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "large-jobs.md").read_text(), re.DOTALL)
    assert found
    text = found[1].replace("500", "100")
    said: list[object] = []
    exec(text, {"print": said.append, "__name__": "page"})
    assert said == [{100 * 99 / 2}]
