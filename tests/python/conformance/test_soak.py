"""A few jobs of the soak (`make soak`)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .engines import has_fabric
from .reports import reports_of, say
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


def test_a_rank_that_is_killed_while_it_writes_its_report_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(tmp_path, 0, {"wrong": [], "calls": 10})
    child = os.fork()
    if child == 0:
        # Killed between the making of the file and its first byte.
        monkeypatch.setattr(Path, "write_text", lambda path, _: (path.touch(), os.kill(os.getpid(), signal.SIGKILL)))
        say(tmp_path, 1, {"wrong": [], "calls": 10})
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert reports_of(tmp_path) == [{"wrong": [], "calls": 10}]
