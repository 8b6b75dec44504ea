"""Settings of the simulated network that cannot be, or do nothing, are one sentence before any rank starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from .native_cluster import run


@pytest.mark.parametrize(
    ("ranks", "text", "options", "words"),
    [
        (4, "topology = ring\ngbps@node* = 40\n", (), "line 2: gbps@node* does nothing here: node0>router0 is within"),
        (4, "nodes = 8\n", (), "line 1: nodes = 8, but the job has 4 ranks"),
        (4, "nodes = 4\nsped = 3\n", (), "line 2: sped: is no key; these are: topology, nodes"),
        (2, "gbps@leaf*>* = 40\n", (), "line 1: gbps@leaf*>*: no link has such a name"),
        (2, "# fast\ngbps = quick\n", (), "line 2: gbps: 'quick' is not allowed"),
        (2, "seed = 3\n", ("--seed", 4), "line 1: seed = 3 does nothing, for the option --seed says 4"),
        (2, "tlb_entries = 3\n", (), "--memory unified"),
        (3, "topology = point_to_point\n", (), "point_to_point has 2, not 3"),
    ],
)
def test_it_is_said_before_ranks_start(
    tmp_path: Path, ranks: int, text: str, options: tuple[object, ...], words: str
) -> None:
    file = tmp_path / "net.conf"
    file.write_text(text)
    begun = tmp_path / "begun"
    done = run(ranks, "--network", file, *options, "touch", begun)
    assert done.returncode != 0
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("unisono run: --network: ")
    assert not begun.exists()


def test_settings_that_do_something_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "net.conf"
    file.write_text("topology = ring\nnodes = 4\ngbps = 40\ngbps@router0>* = 10\nseed = 7\n")
    done = run(4, "--network", file, "true")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
