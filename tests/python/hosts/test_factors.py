"""Factors of reductions between hosts: the bits of the plain call, and one error on every rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import LOCAL, run

PROGRAM = """
import contextlib
import time
import numpy as np
import unisono

with unisono.init(timeout=30) as context:
    world = context.world
    rank, size = world.rank, world.size
    pre, post = (0.3, None, -2.5, 0.0)[rank], 0.7
    for count in (1, 700, 200_000):
        mine = (10 * np.random.default_rng(rank).standard_normal(count)).astype("f4")
        before, scaled = mine.copy(), mine if pre is None else mine * np.float32(pre)
        plain = world.allreduce(scaled)
        assert world.allreduce(mine, pre_scale=pre).tobytes() == plain.tobytes()
        got = world.allreduce(mine, pre_scale=pre, post_scale=post)
        assert got.tobytes() == (plain * np.float32(post)).tobytes()
        assert mine.tobytes() == before.tobytes()
        world.allreduce(unisono.IN_PLACE, mine, pre_scale=pre, post_scale=post)
        assert mine.tobytes() == (plain * np.float32(post)).tobytes()
with contextlib.suppress(unisono.UnisonoError), unisono.init(timeout=30) as context:
    try:
        context.world.allreduce(mine, post_scale=0.5 if rank == 2 else 0.25)
        context.world.barrier()
    except (unisono.MismatchedCallError, unisono.RevokedError) as error:
        print("post_scale 0.5" in str(error), "post_scale 0.25" in str(error))
    time.sleep(1)  # so that nobody takes this rank for a dead one, before it has heard
"""


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_between_hosts(tmp_path: Path, transport: str) -> None:
    program = tmp_path / "factors.py"
    program.write_text(PROGRAM)
    done = run(*LOCAL, "--transport", transport, program)
    assert (done.returncode, done.stdout) == (0, "True True\n" * 4), (done.stdout, done.stderr)
